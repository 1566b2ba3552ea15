/// <reference lib="dom" />
// Saved sequences cross between pages and native programs: the same bytes, and the same bits afterwards.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { openOptions } from '../../web/src/boundary.gen.js';
import { checkOptions } from '../../web/src/page/options.js';
import { generateRequest } from '../../web/src/page/requests.js';
import { Model } from '../../web/src/worker/model.js';
import { CALL } from '../web/call.js';
import { convert, folder, moduleCreator, program, starters } from './module.js';

const MiB = 1024 * 1024;
const BUDGET = 32;
/** Tokens of a pass. A state goes back to the beginning of the prompt's last pass, so prompts have several. */
const CHUNK = 16;

interface Receipt {
  generated_tokens: number[];
  logits_hash: string;
}

const greedy = { temperature: 0, ignoreEos: true, logitsHash: true };

const asNative = (tokens: number[]) => tokens.join(',');

describe.each(['llama', 'mistral', 'gemma3', 'lfm2', 'qwen3.5', 'granite-hybrid', 'gpt-oss'])('%s', (name) => {
  let path: string;
  let model: Model;
  let prompt: number[];
  const more = [3, 5, 7];
  const own = join(folder, `sessions-${name}`);

  beforeAll(async () => {
    path = convert(join('tests', 'data', name), `sessions-${name}.qsf`);
    rmSync(own, { recursive: true, force: true });
    mkdirSync(own, { recursive: true });
    const golden = readFileSync(join(import.meta.dirname, '..', 'data', name, 'golden.json'), 'utf8');
    prompt = (JSON.parse(golden) as { prompts: { ids: number[] }[] }).prompts[0]!.ids.slice(0, 40);
    const start = starters(await moduleCreator());
    model = await Model.create(
      {
        ...{
          source: new Blob([readFileSync(path)]),
          memory: BUDGET * MiB,
          open: checkOptions(openOptions, { chunk: CHUNK }),
        },
        ...{ kv: undefined, network: {}, cache: false, cacheLimit: undefined, background: false },
        ...{ variant: 'simd', threads: 1 },
      },
      { progress: () => undefined, warning: () => undefined },
      start,
    );
    await model.load();
  });

  /** Continues the sequence of a file natively, if it is there, and saves it there. */
  function native(tokens: number[], session: string, n = 6): Receipt {
    const receipt = join(own, 'receipt.json');
    execFileSync(
      program('qsf-run'),
      [
        ...[path, '--tokens', asNative(tokens), '--session', session, '--receipt', receipt, '-n', String(n)],
        ...['--temperature', '0', '--ignore-eos', '--ram-budget', String(BUDGET), '--threads', '1'],
        ...['--chunk', String(CHUNK)],
      ],
      { stdio: 'ignore' },
    );
    return JSON.parse(readFileSync(receipt, 'utf8')) as Receipt;
  }

  async function inPage(tokens: number[], goesOn: boolean, maxTokens = 6): Promise<Receipt> {
    await model.start(CALL, generateRequest(tokens, { ...greedy, maxTokens, continue: goesOn }));
    for (;;) {
      const { result } = await model.next(CALL.id);
      if (result) return { generated_tokens: result.tokens, logits_hash: result.logitsHash! };
    }
  }

  const saved = async () =>
    Buffer.from(await (await model.save(CALL, { messages: '', name: undefined })).arrayBuffer());

  const same = ({ generated_tokens, logits_hash }: Receipt, other: Receipt) =>
    expect({ generated_tokens, logits_hash }).toEqual({
      generated_tokens: other.generated_tokens,
      logits_hash: other.logits_hash,
    });

  it('goes from native to a page and back with the same bytes and bits', async () => {
    const first = join(own, 'first');
    const whole = native(prompt, first);
    same(await inPage(prompt, false), whole);
    expect((await saved()).equals(readFileSync(first))).toBe(true);

    const second = join(own, 'second');
    copyFileSync(first, second);
    const expected = native(more, second);
    await inPage([1, 2, 3], false); // another sequence
    await model.restore(CALL, new Blob([readFileSync(first)]));
    expect((await saved()).equals(readFileSync(first))).toBe(true);
    same(await inPage(more, true), expected);
    const page = await saved();
    expect(page.equals(readFileSync(second))).toBe(true);

    const third = join(own, 'third');
    writeFileSync(third, page);
    same(native([11], third), native([11], second));
    await model.restore(CALL, new Blob([readFileSync(third)]));
    expect(model.stats().position).toBeGreaterThan(prompt.length + more.length);
  });

  it('is reused for a prompt that begins as it does, with the same bits', async () => {
    const alone = await inPage([...prompt, ...more], false);
    await inPage(prompt, false);
    same(await inPage([...prompt, ...more], false), alone);
    expect(model.stats().generation!.reusedTokens).toBeGreaterThan(0);
  });

  it('is refused by another model', async () => {
    const other = name === 'llama' ? 'mistral' : 'llama';
    const file = convert(join('tests', 'data', other), `sessions-other-${other}.qsf`);
    const session = join(own, 'other');
    execFileSync(program('qsf-run'), [file, '--tokens', '3,4', '-n', '2', '--session', session], { stdio: 'ignore' });
    const before = await saved();
    await expect(model.restore(CALL, new Blob([readFileSync(session)]))).rejects.toMatchObject({ code: 'mismatch' });
    expect((await saved()).equals(before)).toBe(true);
  });
});
