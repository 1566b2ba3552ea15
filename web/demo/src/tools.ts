// Tools that run in the page: a clock, a calculator, and a search of the visitor's files.

import { calculate } from './calculator.js';

interface Tool {
  /** As OpenAI's interface has it. */
  definition: { type: 'function'; function: { name: string; description: string; parameters: object } };
  /** Returns the result for the model. Throws a sentence. */
  run(given: Record<string, unknown>, signal?: AbortSignal): string | Promise<string>;
}

const tool = (
  name: string,
  description: string,
  properties: Record<string, object>,
  required: string[],
  run: Tool['run'],
): Tool => ({
  definition: {
    type: 'function',
    function: { name, description, parameters: { type: 'object', properties, required } },
  },
  run,
});

export const tools: readonly Tool[] = [
  tool(
    'clock',
    'Returns the current date and time.',
    { time_zone: { type: 'string', description: 'Such as Europe/Paris. Default: the zone of the user.' } },
    [],
    ({ time_zone: timeZone }) =>
      new Intl.DateTimeFormat('en-GB', {
        ...{ dateStyle: 'full', timeStyle: 'long' },
        ...(typeof timeZone === 'string' && timeZone !== '' && { timeZone }),
      }).format(new Date()),
  ),
  tool(
    'calculator',
    'Computes an expression of numbers with + - * / % ^, parentheses, sqrt, abs, round, ln, log, sin, cos, tan, pi and e.',
    { expression: { type: 'string', description: 'Such as 2 * (3 + 4)' } },
    ['expression'],
    ({ expression }) => String(calculate(String(expression))),
  ),
  tool(
    'search_files',
    'Returns the passages of the files of the user that are nearest to a question.',
    { question: { type: 'string', description: 'What the user asks, in words that its answer may have' } },
    ['question'],
    async ({ question }, signal) => {
      const { searchFiles } = await import('./retrieval/tool.js');
      return searchFiles(String(question), signal);
    },
  ),
];

/** Returns the result of a call, or a sentence about its failure: the model reads both. */
export async function runTool(name: string, given: Record<string, unknown>, signal?: AbortSignal): Promise<string> {
  try {
    const found = tools.find(({ definition }) => definition.function.name === name);
    if (found === undefined) throw new Error(`there is no tool ${name}`);
    return await found.run(given, signal);
  } catch (error) {
    return `Error: ${error instanceof Error ? error.message : String(error)}`;
  }
}
