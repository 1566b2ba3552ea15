// The native twin: the same model, prompt and seed through qsf-run, and the models that the tests use.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = process.env['QSF_BIN'] ?? join(root, 'build', 'bin');

/** Waiting without blocking: the model may come from a server in this process. */
const run = promisify(execFile);

export interface Receipt {
  text: string;
  generated_tokens: number[];
  prompt_tokens: number[];
  logits_hash: string;
  ended: string;
  model: { hash: string };
  plan: {
    budget: number;
    max_seq_len: number;
    kv: string;
    pinned_segments: number;
    segments: number;
    ring_slots: number;
    weight_bytes: number;
    memory_map: Record<string, number>;
  };
}

/** The built-in model, converted. */
export const convert = (quantType: string, ...options: string[]): Promise<Buffer> =>
  converted(join(root, 'models', 'stories'), 'model.qsf', '--quant-type', quantType, ...options);

/** The built-in model with a chat template, as a GGUF file or, with such a name, as a .qsf file. */
export async function convertForChat(template: string, name = 'model.gguf'): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'qsf-chat-'));
  try {
    const stories = join(root, 'models', 'stories');
    cpSync(stories, folder, { recursive: true });
    writeFileSync(join(folder, 'chat_template.jinja'), template);
    return await converted(folder, name, '--quant-type', 'q8_0');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The built-in model as a GGUF file, and the .qsf file that is made of that with these options. */
export async function convertToGguf(quantType: string, ...options: string[]): Promise<{ gguf: Buffer; qsf: Buffer }> {
  const gguf = await converted(join(root, 'models', 'stories'), 'model.gguf', '--quant-type', quantType);
  const folder = mkdtempSync(join(tmpdir(), 'qsf-gguf-'));
  try {
    writeFileSync(join(folder, 'model.gguf'), gguf);
    return { gguf, qsf: await converted(join(folder, 'model.gguf'), 'model.qsf', ...options) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Converts a model to a file of that name; gives its bytes. */
async function converted(model: string, name: string, ...options: string[]): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'qsf-convert-'));
  try {
    await run(join(bin, 'qsf-convert'), [model, join(folder, name), ...options]);
    return readFileSync(join(folder, name));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Runs a model from an address, which a server sees read, or from a file of these bytes, and continues a saved sequence if
 * there is one. The plans may differ.
 */
export async function runNatively(
  model: string | Buffer,
  budgetMiB: number,
  options: string[],
  session?: Buffer,
): Promise<Receipt> {
  const folder = mkdtempSync(join(tmpdir(), 'qsf-native-'));
  try {
    const receipt = join(folder, 'receipt.json');
    const file = join(folder, 'model.qsf');
    if (typeof model !== 'string') writeFileSync(file, model);
    const saved = join(folder, 'session');
    if (session) writeFileSync(saved, session);
    const args = [
      typeof model === 'string' ? model : file,
      '--ram-budget',
      String(budgetMiB),
      '--receipt',
      receipt,
      ...options,
      ...(session ? ['--session', saved] : []),
    ];
    await run(join(bin, 'qsf-run'), args);
    return JSON.parse(readFileSync(receipt, 'utf8')) as Receipt;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
