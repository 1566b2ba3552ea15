// Models of random weights in Llama's shape, as Hugging Face directories. Their columns depend on each other and differ
// in size, as those of trained models do.
import { Buffer } from 'node:buffer';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './process.mjs';

const tokenizerOf = join(root, 'models', 'stories');
const tokenizerFiles = ['tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json'];
const shape = { vocab: 2048, hidden: 512, ffn: 1024, layers: 2, heads: 8, kvHeads: 4, headDim: 64 };
const rank = 64; // of the common part of the embeddings

/** Numbers of mean 0 and deviation 1 from a seed: mulberry32, Box and Muller. */
function normals(seed) {
  let state = seed;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Distributions of weights with deviation of about 1. Heavy tails: Student's t of three degrees of freedom. */
const spreads = {
  normal: (next) => next(),
  'heavy-tailed': (next) => next() / Math.sqrt(next() ** 2 + next() ** 2 + next() ** 2),
};
export const randomLayers = Object.keys(spreads);

/** Returns embeddings: mixtures of a few directions with decreasing shares, and a small part of their own. */
function embeddings(next) {
  const directions = Float32Array.from({ length: rank * shape.hidden }, next);
  const out = new Float32Array(shape.vocab * shape.hidden);
  for (let token = 0; token < shape.vocab; token += 1) {
    const row = out.subarray(token * shape.hidden, (token + 1) * shape.hidden);
    for (let i = 0; i < shape.hidden; i += 1) row[i] = 0.2 * next();
    for (let k = 0; k < rank; k += 1) {
      const part = next() / (1 + k);
      for (let i = 0; i < shape.hidden; i += 1) row[i] += part * directions[k * shape.hidden + i];
    }
  }
  return out;
}

/** Writes a model whose weights have this distribution. */
export function writeRandomLayers(spread, folder) {
  const next = normals(7);
  const { vocab, hidden, ffn, layers, heads, kvHeads, headDim } = shape;
  const tensors = [];
  const add = (name, dims, values) => tensors.push({ name, dims, values });
  const matrix = (name, rows, columns) =>
    add(
      name,
      [rows, columns],
      Float32Array.from({ length: rows * columns }, () => spreads[spread](next) / Math.sqrt(columns)),
    );
  const norm = (name) =>
    add(
      name,
      [hidden],
      Float32Array.from({ length: hidden }, () => Math.exp(0.5 * next())),
    );
  add('model.embed_tokens.weight', [vocab, hidden], embeddings(next));
  norm('model.norm.weight');
  for (let layer = 0; layer < layers; layer += 1) {
    const at = (name) => `model.layers.${layer}.${name}.weight`;
    norm(at('input_layernorm'));
    norm(at('post_attention_layernorm'));
    matrix(at('self_attn.q_proj'), heads * headDim, hidden);
    matrix(at('self_attn.k_proj'), kvHeads * headDim, hidden);
    matrix(at('self_attn.v_proj'), kvHeads * headDim, hidden);
    matrix(at('self_attn.o_proj'), hidden, heads * headDim);
    matrix(at('mlp.gate_proj'), ffn, hidden);
    matrix(at('mlp.up_proj'), ffn, hidden);
    matrix(at('mlp.down_proj'), hidden, ffn);
  }
  const head = {};
  let offset = 0;
  for (const { name, dims, values } of tensors) {
    head[name] = { dtype: 'F32', shape: dims, data_offsets: [offset, (offset += values.byteLength)] };
  }
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const data = tensors.map(({ values }) => Buffer.from(values.buffer));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text, ...data]));
  for (const file of tokenizerFiles) copyFileSync(join(tokenizerOf, file), join(folder, file));
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: vocab,
    hidden_size: hidden,
    intermediate_size: ffn,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    hidden_act: 'silu',
    max_position_embeddings: 512,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: true,
    bos_token_id: 0,
    eos_token_id: 0,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config, null, 1));
}
