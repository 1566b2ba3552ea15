// Habits of prose that docs/style.md counts, in documents and in comments.
import { read, sources } from './files.js';

/** Patterns by their names in docs/style.md. */
export const habits = {
  'a clause as a noun':
    /\b[Ww]hat (?:is|was|are|were|does|do|has|have|had|a|the|it|they|stays|fits|lies|comes|came|enters|cannot|can|one|that|those|others|this)\b/g,
  beside: /\bbeside\b/g,
  behind: /\bbehind\b/g,
  told: /\b(?:told|tells|tell)\b/g,
  lies: /\b(?:lie|lies|lay)\b/g,
  'fronted Of': /(?:^|[.;:] )Of (?:a|an|the|those|these|what|all|its|both|each|every|such|their|them|it)\b/g,
} as const;
export type Habit = keyof typeof habits;

export interface Line {
  path: string;
  number: number;
  text: string;
}

/** Returns a document's lines without code blocks and tables. */
export function proseOf(path: string): Line[] {
  let fenced = false;
  return read(path)
    .split('\n')
    .flatMap((text, i) => {
      if (/^\s*```/.test(text)) {
        fenced = !fenced;
        return [];
      }
      return fenced || /^\s*\|/.test(text) ? [] : [{ path, number: i + 1, text }];
    });
}

const code = /^(?:engine|include|converter|native|wasm|web|system|threads|bench|scripts)\//;

/** Returns the text of the comments in all sources. */
export const comments = (): Line[] =>
  sources('.cpp', '.h', '.inl', '.def', '.ts', '.mjs')
    .filter((path) => code.test(path))
    .flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, i) => {
          const text = /(?:^|\s)(?:\/\/+|\*|\/\*+)\s?(.*)$/.exec(line)?.[1];
          return text === undefined ? [] : [{ path, number: i + 1, text }];
        }),
    );

/** Returns each habit's uses for every 1,000 words. */
export function rates(lines: readonly Line[]): Record<Habit, number> {
  const words = lines.reduce((sum, { text }) => sum + (text.match(/\S+/g)?.length ?? 0), 0);
  const rate = (pattern: RegExp) => {
    const uses = lines.reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0);
    return (1000 * uses) / words;
  };
  return Object.fromEntries(Object.entries(habits).map(([name, pattern]) => [name, rate(pattern)])) as Record<
    Habit,
    number
  >;
}

/** Returns the habits above their ceilings, each with its rate and some lines that have it. */
export function excess(lines: readonly Line[], ceilings: Record<Habit, number>): string[] {
  const found = rates(lines);
  return (Object.keys(habits) as Habit[])
    .filter((name) => found[name] > ceilings[name])
    .map((name) => {
      const having = lines.filter(({ text }) => text.match(habits[name]) !== null).slice(0, 8);
      const places = having.map(({ path, number }) => `${path}:${String(number)}`).join(', ');
      return `${name}: ${found[name].toFixed(2)} for every 1,000 words, not ${String(ceilings[name])}; for example ${places}`;
    });
}
