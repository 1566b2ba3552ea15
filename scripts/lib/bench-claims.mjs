// The claims of the benchmarks, and their verdicts.
import { median } from './bench.mjs';

/** Prompts whose prefill is compared with llama.cpp's, each with the required ratio. */
export const longPrompts = [
  { model: 'tinyllama-1.1b/q4_0', prompt: 512, least: 2 },
  { model: 'tinyllama-1.1b/q4_k_m', prompt: 512, least: 2 },
  { model: 'smollm-135m/q4_0', prompt: 2000, least: 3 },
];

const reached = (value, least) => (value >= least ? 'yes' : '**no**');
const times = (value) => `${value.toFixed(2)}x`;

/** Returns the median of one figure of a row over that of another row, or null if a row is absent. */
function ratio(over, under, key) {
  return over?.[key] && under?.[key] ? median(over[key]) / median(under[key]) : null;
}

/** Returns the best of some rows. */
const better = (rows, key) => rows.filter((row) => row?.[key]).sort((a, b) => median(b[key]) - median(a[key]))[0];

const find = (rows, names) => rows?.find((row) => Object.entries(names).every(([key, value]) => row[key] === value));

function goal(work, least, value, show = times) {
  return value === null
    ? [work, show(least), 'not measured', '']
    : [work, show(least), show(value), reached(value, least)];
}

function browserGoals(peers) {
  const rows = peers?.browser?.rows ?? [];
  const row = (engine) => find(rows, { model: 'smollm-135m/q4_0', engine, threads: 1 });
  const wllama = (key) => better([row('wllama 2.4.0'), row('wllama 3.8.1')], key);
  // Pages use the one that is faster on their processor.
  const relaxed = (key) => better([row('qsf relaxed'), row('qsf relaxedpairs')], key);
  const against = (ours, key) => ratio(ours, wllama(key), key);
  const own = (isa) => find(peers?.native, { model: 'smollm-135m/q4_0', engine: `qsf ${isa}`, threads: 1 });
  // Engines compile the relaxed dot to one instruction if the processor has AVX-VNNI.
  const [decode, prefill, dot] = peers?.machine.avxVnni ? [9, 13, 'with AVX-VNNI'] : [5, 8, 'without AVX-VNNI'];
  return [
    goal(`Chromium ${dot}, 135M Q4_0: decode / better wllama`, decode, against(relaxed('decode'), 'decode')),
    goal('the same: prefill', prefill, against(relaxed('prefill'), 'prefill')),
    goal('Chromium, 135M Q4_0, plain SIMD: decode / better wllama', 3, against(row('qsf simd'), 'decode')),
    goal('the same: prefill', 4, against(row('qsf simd'), 'prefill')),
    goal('Chromium relaxed SIMD / own native AVX2, decode', 0.6, ratio(relaxed('decode'), own('avx2'), 'decode')),
    goal('Chromium plain SIMD / own native SSE4.1, decode', 0.75, ratio(row('qsf simd'), own('sse41'), 'decode')),
  ];
}

function nativeGoals(peers) {
  const row = (model, engine, threads = 1) => find(peers?.native, { model, engine, threads });
  const against = (model, key) => ratio(row(model, 'qsf'), row(model, 'llama.cpp'), key);
  return [
    ...['tinyllama-1.1b/q4_0', 'tinyllama-1.1b/q4_k_m', 'smollm-135m/q4_k_m'].map((model) =>
      goal(`native decode / llama.cpp, ${model}`, 1.15, against(model, 'decode')),
    ),
    ...longPrompts.map(({ model, prompt, least }) => {
      const of = (engine) => find(peers?.prompts, { model, prompt, engine });
      return goal(
        `native prefill / llama.cpp, ${model}, ${prompt} tokens`,
        least,
        ratio(of('qsf'), of('llama.cpp'), 'prefill'),
      );
    }),
    goal(
      '2 threads / 1, prefill, tinyllama-1.1b/q4_0',
      1.8,
      ratio(row('tinyllama-1.1b/q4_0', 'qsf', 2), row('tinyllama-1.1b/q4_0', 'qsf'), 'prefill'),
    ),
  ];
}

/** Returns the product of 4096 x 4096 weights from memory in a format, on the fastest measured instruction set. */
function product(kernels, format, columns, threads) {
  const end = `/4096x4096/memory/columns:${columns}/threads:${threads}`;
  return kernels?.rows.findLast(({ name }) => name.startsWith(`matmul/${format}/`) && name.endsWith(end));
}

function kernelGoals(kernels) {
  const percent = (value) => `${(value * 100).toFixed(0)} %`;
  const share = (format, threads) => {
    const row = product(kernels, format, 1, threads);
    return row?.share ? median(row.share) : null;
  };
  const one = product(kernels, 'q4_0', 1, 1);
  const four = ratio(product(kernels, 'q4_0', 4, 1), one, 'real_time');
  const faster = (format) => ratio(product(kernels, '4bit', 1, 1), product(kernels, format, 1, 1), 'real_time');
  return [
    ...['4bit', 'q4_0', 'q4_k'].flatMap((format) =>
      [1, 2].map((threads) =>
        goal(
          `product from memory, ${format}, ${threads} thread(s): share of read bandwidth`,
          0.85,
          share(format, threads),
          percent,
        ),
      ),
    ),
    [
      '4 columns / 1 column, q4_0 from memory: time',
      'at most 1.20x',
      four ? times(four) : 'not measured',
      four ? reached(1.2, four) : '',
    ],
    ...['2bit', 'ternary'].map((format) => goal(`${format} / 4bit from memory`, 1.5, faster(format))),
  ];
}

/**
 * Returns the goals of models several times their budget: the cost of streaming, compared with a plain reader, memory
 * and llama.cpp.
 */
function streamingGoals(streaming) {
  const inBrowser = (streaming?.browser?.rows ?? []).flatMap(({ model, streamed, firstToken }) => [
    ...streamed.flatMap(({ budget, share, native }) => [
      ...(share.length > 0
        ? [goal(`Chromium, ${model} in ${budget} MiB, over the slower of computing and reading`, 0.8, median(share))]
        : []),
      ...(native.length > 0 ? [goal(`Chromium, ${model} in ${budget} MiB, over native`, 0.5, median(native))] : []),
    ]),
    ...(firstToken
      ? [
          [
            `Chromium, ${model}, kept: first token`,
            'at most 0.50 s',
            `${median(firstToken).toFixed(2)} s`,
            reached(0.5, median(firstToken)),
          ],
        ]
      : []),
  ]);
  const native = (streaming?.rows ?? []).flatMap(({ model, budget, ratios, experts }) => {
    const of = (words, least, name) =>
      goal(`${model} in ${budget} MiB, ${words}`, least, ratios[name] ? median(ratios[name]) : null);
    const resident = experts ? 0.4 : 0.5;
    return [
      ...(experts
        ? [of('cold, over resident, 2 threads', resident, 'cold over resident')]
        : [of('cold, over a plain reader: bytes/s', 0.9, 'cold over a plain reader')]),
      of('in a control group, over itself without', 0.9, 'capped over cold'),
      of('in a control group, over llama.cpp there', experts ? 2 : 3, 'capped over llama.cpp, capped'),
      ...[1, 2].map((n) =>
        of(`warm, over resident, ${n} thread(s)`, resident, `warm over resident, ${n} thread${n > 1 ? 's' : ''}`),
      ),
      ...['warm', 'mapped'].map((way) => of(`${way}, 2 threads over 1`, 1.3, `${way}, 2 threads over 1`)),
    ];
  });
  return [...native, ...inBrowser];
}

/** Returns whether `value` meets the bound of a claim, misses it beyond `limit`, or is between the two. */
function verdict(value, { atLeast, atMost, limit }) {
  const [claim, sign] = atLeast === undefined ? [atMost, -1] : [atLeast, 1];
  if (sign * value >= sign * claim) return 'holds';
  return sign * value < sign * limit ? '**falsified**' : 'neither: between the claim and its limit';
}

function hypotheses({ kernels, peers }) {
  const row = (name) => find(kernels?.rows, { name });
  const way = (name, place) => row(`h1-h2/${name}/avx2/${place}`);
  const rows = [];
  const add = (claim, range, value, show, otherwise = 'not measured') => {
    const falsified = range.atLeast === undefined ? `above ${range.limit}` : `below ${range.limit}x`;
    rows.push([
      claim,
      falsified,
      value === null ? otherwise : show(value),
      value === null ? '' : verdict(value, range),
    ]);
  };
  const h1 = 'H1: a fused product does at least 2x the dot products (256 weights) of a separate one';
  const faster = { atLeast: 2, limit: 1.5 };
  for (const [place, words] of [
    ['l2', 'from L2'],
    ['memory', 'from memory'],
  ]) {
    add(`${h1}, ${words}`, faster, ratio(way('fused', place), way('separate', place), 'dots/s'), times);
  }
  const h2 = 'H2: a fused product takes at most 0.2 of the memory traffic';
  const less = { atMost: 0.2, limit: 0.5 };
  const traffic = (name, key) => ratio(way('fused', 'memory'), way(name, 'memory'), key);
  const share = (value) => value.toFixed(3);
  add(`${h2} of floats of the whole matrix (bytes by count)`, less, traffic('separate-matrix', 'touched'), share);
  add(`${h2} of floats of a block, which stay in cache (bytes by count)`, less, traffic('separate', 'touched'), share);
  const uncounted = 'this system does not let a program count them';
  add(
    `${h2} of floats of the whole matrix (missed loads)`,
    less,
    traffic('separate-matrix', 'missed'),
    share,
    uncounted,
  );
  const model = { model: 'tinyllama-1.1b/q4_k_m', threads: 1 };
  const decode = ratio(
    find(peers?.native, { ...model, engine: 'qsf' }),
    find(peers?.native, { ...model, engine: 'llama.cpp' }),
    'decode',
  );
  const h3 = 'H3: TinyLlama-1.1B decodes at least 2x as fast as with Ollama (measured: llama.cpp, which Ollama runs)';
  add(h3, faster, decode, times);
  const errors = kernels?.rows.findLast(({ name }) => name.startsWith('h4/'));
  const exponent = (key) => median(errors[key]).toExponential(1);
  const h4 = 'H4: the largest relative error of 1000 random dot products (4096 weights) against doubles is below 1e-3';
  const show = () =>
    `${exponent('relative_max')}, median ${exponent('relative_median')}: activations are rounded to 8 bits, and a sum ` +
    `near 0 has no small relative error. Against the product of the norms ${exponent('to_norms_max')}; against ` +
    `doubles of the rounded activations, the same way, ${exponent('rounded_activations_max')}`;
  add(h4, { atMost: 1e-3, limit: 1e-3 }, errors ? median(errors.relative_max) : null, show);
  return rows;
}

/** Returns rows of tables: the target ratios, and the claims with their verdicts. */
export function claims({ kernels, peers, streaming }) {
  return {
    goals: [...browserGoals(peers), ...nativeGoals(peers), ...kernelGoals(kernels), ...streamingGoals(streaming)],
    hypotheses: hypotheses({ kernels, peers }),
  };
}
