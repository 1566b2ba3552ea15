/// <reference lib="dom" />
// Several generations at once in one model: each is the same to the bit as alone, also its answer and its grammar.
import { beforeAll, describe, expect, it } from 'vitest';

import { openOptions } from '../../web/src/boundary.gen.js';
import type { OpenOptions } from '../../web/src/boundary.gen.js';
import type { Batch, Call, GenerateRequest } from '../../web/src/contract.js';
import { checkOptions } from '../../web/src/page/options.js';
import { chatRequest, generateRequest } from '../../web/src/page/requests.js';
import type { ChatOptions, GenerationResult } from '../../web/src/types.js';
import { Model } from '../../web/src/worker/model.js';
import { moduleCreator, starters, stories } from './module.js';

const MiB = 1024 * 1024;
const PROMPTS = ['Once upon a time', 'A cat and a dog went to', 'The sun'];
const HOW = { temperature: 0.8, maxTokens: 24, ignoreEos: true, logitsHash: true };

let start: ReturnType<typeof starters>;
let file: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  start = starters(await moduleCreator());
  file = new Uint8Array(stories());
});

async function open(memory: number, given: Partial<OpenOptions>): Promise<Model> {
  const model = await Model.create(
    {
      ...{ source: new Blob([file]), memory, open: checkOptions(openOptions, given), kv: undefined, network: {} },
      ...{ cache: false, cacheLimit: undefined, background: false, variant: 'simd', threads: 1 },
    },
    { progress: () => undefined, warning: () => undefined },
    start,
  );
  await model.load();
  return model;
}

interface Run {
  text: string;
  parts: Batch['parts'];
  result: GenerationResult;
}

let ids = 0;
async function run(model: Model, request: GenerateRequest, given: Partial<Call> = {}): Promise<Run> {
  const id = String(++ids);
  await model.start({ id, caller: 'test', ...given }, request);
  return take(model, id);
}

async function take(model: Model, id: string): Promise<Run> {
  const run: Omit<Run, 'result'> = { text: '', parts: [] };
  for (;;) {
    const { pieces, parts = [], result } = await model.next(id);
    run.text += pieces.join('');
    run.parts!.push(...parts);
    if (result) return { ...run, result };
  }
}

/** The members of a run that are the same alone and together. */
const bitsOf = ({ text, parts, result: { tokens, logitsHash, end } }: Run) => ({
  text,
  parts,
  tokens,
  logitsHash,
  end,
});

const stories_ = (i: number) => generateRequest(PROMPTS[i]!, { ...HOW, seed: i });

describe.each([
  ['resident', 16 * MiB, {}],
  ['streamed', 4 * MiB, { streamAll: true }],
])('%s weights', (_, memory, how) => {
  const options = { maxSeqLen: 128, ...how };

  it('give several generations the same bits as each alone', async () => {
    const alone = await open(memory, options);
    const expected: Run[] = [];
    for (const i of PROMPTS.keys()) expected.push(await run(alone, stories_(i)));
    await alone.close();
    const model = await open(memory, { ...options, sequences: 3 });
    expect(model.stats().plan.sequences).toBe(3);
    const before = model.stats().io.engine;
    const together = await Promise.all([...PROMPTS.keys()].map((i) => run(model, stories_(i))));
    expect(together.map(bitsOf)).toEqual(expected.map(bitsOf));
    expect(together.map(({ result }) => result.sequence)).toEqual([0, 1, 2]);
    expect(new Set(together.map(({ result }) => result.logitsHash)).size).toBe(3);
    const read = model.stats().io.engine - before;
    // More calls than sequences, one of which continues; a part of the first prompt is copied from another sequence.
    const more = [2, 1, 0, 2, 1].map((i) => run(model, stories_(i)));
    const rest = run(model, generateRequest(' and', { ...HOW, seed: 1, continue: true, maxTokens: 3 }));
    expect((await Promise.all(more)).map(bitsOf)).toEqual([2, 1, 0, 2, 1].map((i) => bitsOf(expected[i]!)));
    expect((await rest).result.tokens).toHaveLength(3);
    await model.close();
    if (memory === 4 * MiB) {
      // A pass reads the weights once for all: three texts together read as much as one, and not as three.
      const single = await open(memory, options);
      const none = single.stats().io.engine;
      await run(single, stories_(1));
      expect(read).toBeLessThan(1.5 * (single.stats().io.engine - none));
      await single.close();
    }
  });
});

describe('answers', () => {
  const template = `{% for m in messages %}{{ m['content'] }}{% endfor %}{% if tools %} {% endif %}`;
  const ask = (i: number, given: ChatOptions = {}) => chatRequest(PROMPTS[i]!, { ...HOW, template, seed: i, ...given });
  const options = { maxSeqLen: 128, textBytes: 4 * MiB };
  const regex = { type: 'regex', pattern: '[a-z]{3} [a-z]{5} [0-9]{40}' } as const;

  it('have their own readers and grammars', async () => {
    const requests = [
      ask(0),
      ask(1, { responseFormat: regex }),
      ask(2, { stop: 'a' }),
      ask(2, { responseFormat: regex }),
    ];
    const alone = await open(16 * MiB, options);
    const expected: Run[] = [];
    for (const request of requests) expected.push(await run(alone, request));
    await alone.close();
    expect(expected[1]!.text).toMatch(/^[a-z]{3} [a-z]{5} [0-9]+$/);
    expect(expected[3]!.text).toMatch(/^[a-z]{3} [a-z]{5} [0-9]+$/);
    for (let round = 0; round < 2; round++) {
      // Without a guide at first, which is then made while answers are read.
      const model = await open(16 * MiB, { ...options, sequences: 4 });
      const order = round === 0 ? [0, 1, 2, 3] : [3, 2, 1, 0];
      const runs = await Promise.all(order.map((i) => run(model, requests[i]!)));
      expect(runs.map(bitsOf)).toEqual(order.map((i) => bitsOf(expected[i]!)));
      await model.close();
    }
  });

  it('that are held compute together, as many as have room', async () => {
    const json = { type: 'json_schema', schema: { type: 'array', items: { type: 'integer' } } } as const;
    const held = [
      ask(0, { responseFormat: regex, maxTokens: 60 }),
      ask(1, { responseFormat: json, maxTokens: 60 }),
      ask(2, { responseFormat: { type: 'gbnf', grammar: 'root ::= ("ab" | "c")+' }, maxTokens: 60 }),
      ask(0, { reasoningBudget: 2, maxTokens: 60 }),
    ];
    const alone = await open(16 * MiB, options);
    const expected: Run[] = [];
    for (const request of held) expected.push(await run(alone, request));
    await alone.close();
    expect(expected[2]!.text).toMatch(/^(ab|c)+a?$/);
    for (const [textBytes, memory, number] of [
      [8 * MiB, 13 * MiB, 4],
      [2 * MiB, 4.75 * MiB, 1],
    ] as const) {
      const model = await open(memory, { ...options, textBytes, sequences: 4, streamAll: true });
      expect(model.engine.session.guides(true)).toBe(number);
      expect(model.engine.session.guides(false)).toBe(4);
      const { session } = model.engine;
      const isRunning = (i: number) => session.end(i) === 'none' && session.sequenceStats(i).promptTokens > 0;
      let most = 0;
      const runs = await Promise.all(
        held.map(async (request, i) => {
          const id = `held ${String(i)}`;
          await model.start({ id, caller: 'test' }, request);
          most = Math.max(most, [0, 1, 2, 3].filter(isRunning).length);
          return take(model, id);
        }),
      );
      expect(most).toBe(Math.min(number, 3) + 1); // with the one of limited thoughts
      expect(runs.map(bitsOf)).toEqual(expected.map(bitsOf));
      await model.close();
    }
  });

  it('with held calls leave the readers of others as they are', async () => {
    const calls =
      `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", ` +
      `"arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% endfor %}`;
    const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const tools = [{ type: 'function', function: { name: 'add', parameters } }];
    const requests = [
      ask(0, { template: calls, tools, maxTokens: 60 }),
      ask(1, { template: calls, tools, toolChoice: 'required', maxTokens: 60 }),
      ask(2, { template: calls, tools, toolChoice: 'required', maxTokens: 60 }),
    ];
    const alone = await open(16 * MiB, options);
    const expected: Run[] = [];
    for (const request of requests) expected.push(await run(alone, request));
    await alone.close();
    const model = await open(16 * MiB, { ...options, sequences: 3 });
    await run(model, requests[1]!); // the guides are made while no answer is read
    const first = run(model, requests[0]!);
    const runs = await Promise.all([first, run(model, requests[1]!), run(model, requests[2]!)]);
    expect(runs.map(bitsOf)).toEqual(expected.map(bitsOf));
    expect(runs[1]!.text).toContain('<tool_call>');
    await model.close();
  });

  it('are refused with a remedy if a grammar does not fit in its share', async () => {
    const choices = Array.from({ length: 25_000 }, (_, i) => `"${String(i * 7919)}"`).join(' | ');
    const large = ask(0, { responseFormat: { type: 'gbnf', grammar: `root ::= ${choices}` } });
    const model = await open(24 * MiB, { ...options, textBytes: 6 * MiB, sequences: 4, streamAll: true });
    const message = expect.stringMatching(/texts at once have equal shares: see text_bytes and sequences$/) as string;
    await expect(run(model, large)).rejects.toMatchObject({ code: 'out_of_memory', message });
    expect((await run(model, ask(1, { responseFormat: regex }))).text).toMatch(/^[a-z]{3} [a-z]{5} [0-9]+$/);
    await model.close();
  });
});

describe('calls', () => {
  it('of a stopped generation leave others as they are', async () => {
    const alone = await open(16 * MiB, { maxSeqLen: 128 });
    const expected = await run(alone, stories_(0));
    await alone.close();
    const model = await open(16 * MiB, { maxSeqLen: 128, sequences: 2 });
    const first = run(model, stories_(0));
    await model.start({ id: 'stopped', caller: 'test' }, stories_(1));
    expect(model.stop('stopped')).toMatchObject({ end: 'cancelled', sequence: 1 });
    await expect(run(model, generateRequest('a '.repeat(500), HOW))).rejects.toMatchObject({ code: 'context_full' });
    const copied = await run(model, stories_(0), { sequence: 1 });
    expect([bitsOf(await first), bitsOf(copied)]).toEqual([bitsOf(expected), bitsOf(expected)]);
    // A file restores the same text in another sequence.
    const saved = await model.save({ id: 'save', caller: 'test', sequence: 0 }, { messages: '', name: undefined });
    const { sequence } = await model.restore({ id: 'restore', caller: 'test', sequence: 1 }, saved);
    const [here, there] = await Promise.all(
      [0, 1].map((i) => run(model, generateRequest(' and', { ...HOW, continue: true, seed: 3 }), { sequence: i })),
    );
    expect(sequence).toBe(1);
    expect(bitsOf(here!)).toEqual(bitsOf(there!));
    await model.close();
  });
});
