// A model of random weights in the shape of the built-in one, as large as a test wants it.
import { execFile } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = process.env['QSF_BIN'] ?? join(root, 'build', 'bin');
const stories = join(root, 'models', 'stories');

/** Small bfloat16 numbers of either sign, from a fixed seed (xorshift32). */
function* noise(bytes: number): Generator<Uint8Array> {
  let state = 0x2545f491;
  const block = new Uint8Array(1 << 20);
  for (let left = bytes; left > 0; left -= block.length) {
    for (let i = 0; i < block.length; i += 2) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      block[i] = state & 0x7f;
      block[i + 1] = 0x3c | ((state >>> 8) & 0x80);
    }
    yield block.subarray(0, Math.min(left, block.length));
  }
}

interface Config {
  vocab_size: number;
  [key: string]: unknown;
}

/** Shapes of a llama's tensors, by name. */
function tensors(vocab: number, dim: number, ffn: number, layers: number): [string, number[]][] {
  const all: [string, number[]][] = [
    ['model.embed_tokens.weight', [vocab, dim]],
    ['model.norm.weight', [dim]],
  ];
  for (let i = 0; i < layers; i++) {
    const layer = `model.layers.${String(i)}`;
    for (const name of ['q', 'k', 'v', 'o']) all.push([`${layer}.self_attn.${name}_proj.weight`, [dim, dim]]);
    for (const name of ['gate', 'up']) all.push([`${layer}.mlp.${name}_proj.weight`, [ffn, dim]]);
    all.push([`${layer}.mlp.down_proj.weight`, [dim, ffn]]);
    for (const name of ['input', 'post_attention']) all.push([`${layer}.${name}_layernorm.weight`, [dim]]);
  }
  return all;
}

/** Writes a model of about so many bytes of bfloat16 weights to `out`. */
export async function makeRandomModel(out: string, bytes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'qsf-random-'));
  try {
    for (const name of readdirSync(stories))
      if (!name.endsWith('.safetensors')) copyFileSync(join(stories, name), join(folder, name));
    const old = JSON.parse(readFileSync(join(stories, 'config.json'), 'utf8')) as Config;
    const [dim, ffn] = [1024, 4096];
    const layers = Math.max(1, Math.round(bytes / 2 / (4 * dim * dim + 3 * dim * ffn)));
    const heads = { num_attention_heads: 16, num_key_value_heads: 16, head_dim: 64 };
    const sizes = { hidden_size: dim, intermediate_size: ffn, num_hidden_layers: layers };
    const config = { ...old, ...heads, ...sizes, tie_word_embeddings: true, torch_dtype: 'bfloat16' };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    const header: Record<string, object> = {};
    let end = 0;
    for (const [name, shape] of tensors(old.vocab_size, dim, ffn, layers)) {
      const size = 2 * shape.reduce((product, n) => product * n, 1);
      header[name] = { dtype: 'BF16', shape, data_offsets: [end, (end += size)] };
    }
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    const file = openSync(join(folder, 'model.safetensors'), 'w');
    writeSync(file, length);
    writeSync(file, text);
    for (const part of noise(end)) writeSync(file, part);
    closeSync(file);
    await promisify(execFile)(join(bin, 'qsf-convert'), [folder, out, '--quant-type', 'bf16']);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
