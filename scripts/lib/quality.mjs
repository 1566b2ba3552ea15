// quality.md and its plot, from the results of bench-quality.mjs.

/** Bits of the layers' weights if the embedding has the type that it has in this file of llama.cpp. */
export const layerBits = 2.63;
export const layersBeside = 'Q2_K';

const percent = (share) => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 1).replace(/^-(0\.0+)$/, '$1')} %`;
const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
const grid = (titles, places, rows) => [`| ${titles.join(' | ')} |`, `|${places.join('|')}|`, ...rows].join('\n');
const row = (fields) => `| ${fields.join(' | ')} |`;

/**
 * Returns llama.cpp's files together with the types that are chosen for their sizes. Ratios are relative to the best of
 * its files that are no larger.
 */
function besideLlama({ rows, perplexity: base, weights }) {
  const loss = ({ perplexity }) => perplexity / base - 1;
  const theirs = rows.filter(({ way }) => way === 'llama.cpp').sort((a, b) => a.bits - b.bits);
  const ours = rows.filter(({ way, target }) => way === 'chosen' && target);
  const facts = (file) => [
    `${megabytes((Math.min(file.bits, file.target ?? Infinity) * weights) / 8)}, ${megabytes(file.fileBytes)}`,
    percent(loss(file)),
    file.divergence.toFixed(4),
  ];
  const lines = theirs.map((file) => {
    const smaller = theirs.filter(({ bits }) => bits <= file.bits + 1e-9);
    const ratio = (own, of) => {
      const least = Math.min(...smaller.map(of));
      if (of(own) < 0) return 'below 0';
      return least > 0 ? (of(own) / least).toFixed(2) : 'of less than 0';
    };
    const own = ours.find(({ target }) => target <= file.bits && target > file.bits - 1.01e-4);
    const beside = own
      ? [...facts(own), ratio(own, loss), ratio(own, ({ divergence }) => divergence)]
      : Array(5).fill('');
    return row([`\`${file.name}\``, file.bits.toFixed(3), ...facts(file), ...beside]);
  });
  const each = ['MB of tensors, file', 'loss', 'divergence'];
  const titles = [
    'llama.cpp',
    'bits',
    ...each,
    ...each.map((title) => `chosen: ${title}`),
    'ratio of losses',
    'of divergences',
  ];
  return grid(titles, ['---', ...Array(9).fill('--:')], lines);
}

/** Returns the results for layers with fewer bits than in llama.cpp's file, and its type for the embedding. */
function layersAlone({ rows, perplexity: base }) {
  const own = rows.find(({ way }) => way === 'layers');
  const file = rows.find(({ way, name }) => way === 'llama.cpp' && name === layersBeside);
  if (!own || !file) return '';
  const [less, more] = [own, file].map(({ perplexity }) => perplexity / base - 1);
  return `
With the embedding (also the output head) in the type of llama.cpp's ${layersBeside} file and ${layerBits} bits for the layers (\`--tensor-type\`,
\`--target-bpw ${own.target}\`; ${own.bits.toFixed(2)} bits over all, ${file.bits.toFixed(2)} in that file), the perplexity is ${own.perplexity.toFixed(3)}: ${percent(less)} above f32.
That file loses ${percent(more)}, so the ratio is ${(less / more).toFixed(2)}. The divergences are ${own.divergence.toFixed(4)} and ${file.divergence.toFixed(4)}.
`;
}

function everyType({ rows, perplexity: base }) {
  const sorted = rows
    .filter(({ way, target }) => way !== 'llama.cpp' && !target)
    .sort((a, b) => a.bits - b.bits || a.way.localeCompare(b.way));
  const lines = sorted.map(({ name, way, bits, perplexity, divergence, at99, sameTop }) => {
    const facts = [`\`${name}\``, way, bits.toFixed(2), perplexity.toFixed(3), percent(perplexity / base - 1)];
    return row([...facts, divergence.toFixed(5), at99.toFixed(4), `${sameTop.toFixed(1)} %`]);
  });
  const titles = ['type', 'how', 'bits', 'perplexity', 'loss', 'divergence, mean', 'at 99 %', 'same likeliest token'];
  return grid(titles, ['---', '---', ...Array(6).fill('--:')], lines);
}

function ofModel([name, model]) {
  const { windows, window, counted, perplexity, error, rows } = model;
  const parts = [
    `## ${name}\n\n${windows} windows of ${window} tokens, ${counted.toLocaleString('en')} counted; with f32 weights the perplexity is ` +
      `${perplexity.toFixed(4)} ± ${error.toFixed(4)}.`,
  ];
  if (rows.some(({ way }) => way === 'llama.cpp')) {
    parts.push(`### At the sizes of llama.cpp's files\n\n${besideLlama(model)}`);
    parts.push(layersAlone(model).trim());
  }
  if (rows.some(({ way, target }) => way !== 'llama.cpp' && !target)) parts.push(`### By type\n\n${everyType(model)}`);
  return parts.filter(Boolean).join('\n\n');
}

/** Returns the loss of products: types here compared with llama.cpp's. */
function ofProducts(products) {
  if (!products) return '';
  const names = Object.keys(products.models);
  const first = products.models[names[0]];
  const lines = products.types.map(({ theirs, ours }, i) => {
    const facts = names.flatMap((name) => {
      const [their, own] = [products.models[name].theirs[i].error, products.models[name].ours[ours]];
      return [percent(their), percent(own.error), (own.error / their).toFixed(2)];
    });
    const bits = [first.theirs[i].bits, first.ours[ours].bits].map((number) => number.toFixed(2));
    return row([`\`${theirs}\`, ${bits[0]}`, `\`${ours}\`, ${bits[1]}`, ...facts]);
  });
  const titles = names.flatMap((name) => [`${name}: llama.cpp`, 'here', 'ratio']);
  return `## Products

Each figure is the error of single matrix products: the sum of squared differences from the products with f32 weights, divided by the
sum of squares of those products, averaged over all matrices in the layers. The inputs are those that the model computes when it
reads 40 KB of the measured text. Both programs use one type for all matrices and calibrate with the same 40 KB of Frankenstein only
(\`--pure\`, \`--own-tokens 0\`). Two models have random weights in two layers of 512 columns (1024 in the network). Their embeddings
and norms give correlated columns of different sizes; one has normally distributed weights, one has Student's t weights with three
degrees of freedom (commit ${products.machine.commit}, ${products.machine.date}).

${grid(['llama.cpp, bits', 'here, bits', ...titles], ['---', '---', ...Array(3 * names.length).fill('--:')], lines)}`;
}

/** Returns the recommendation for a reader who does not read the tables. */
function advice({ rows, perplexity: base }) {
  const loss = (name, way) => {
    const found = rows.find((candidate) => candidate.name === name && candidate.way === way);
    return found ? percent(found.perplexity / base - 1) : 'not measured';
  };
  const rounded = ['q4_k', 'q5_k', 'q6_k'].map((type) => `\`${type}\` loses ${loss(type, 'rounded')}`);
  return `**Which type should I use?** With a calibration text, state the size: \`--calibration text.txt --target-bpw 4.5\` loses ${loss('--target-bpw 4.5', 'chosen')}
of the built-in model's perplexity. Without one, ${rounded.join(', ')} and \`8bit\` ${loss('8bit', 'rounded')}.`;
}

/** Returns the page. Its plot shows the first measured model. */
export function qualityPage({ models, products, machine, calibrationBytes, command }) {
  return `# Quality

This page shows how much each quantization type costs a model.

${advice(Object.values(models)[0])}

- *Loss* is the perplexity divided by that of f32 weights, minus one.
- *Divergence* is the Kullback-Leibler divergence from the f32 model, in nats per token.
- *Bits* are bits per weight over the data of all tensors.
- *Rounded* types round each weight alone. *Searched* types use \`--search\`, *calibrated* types \`--calibration\`.
- *Chosen* files have one type for each matrix, from \`--target-size\` or \`--target-bpw\`. They are never larger than the llama.cpp
  file in the same row.
- *Ratios* are relative to the least loss, or the least divergence, of all llama.cpp files of that size or smaller.
- The standard error of a loss is about the root of twice the divergence over the counted tokens: 0.14 % at a divergence of 0.015,
  and 0.04 % at 0.001.

Neither the models nor the quantizer have seen the measured text. The calibration text is ${(calibrationBytes / 1000).toFixed(1)} KB of TinyStories, short
stories in today's language. The built-in model was trained on children's stories from before 1929, and the measured text is from the
same period. Both programs get the same calibration text; the converter's model also writes text of its own. *llama.cpp* means
\`llama-quantize\` with the matrix of \`llama-imatrix\`, and its files run on the engine of this project.

IQ2 and IQ3 were not formats of this engine when this was measured, and were computed as the floats that they represent. llama.cpp's own
\`llama-perplexity\` reports 23.4281 for the built-in model's Q4_K_M and 27.6168 for its IQ2_XXS. This engine reports 23.4088 and 27.6090,
because it rounds activations differently. Quantized types round activations to eight bits and f32 does not; that alone costs a
model of exact ternary weights (BitLlamas) a divergence of 0.0004.

Measured by \`${command}\` (commit ${machine.commit}, ${machine.date}).

![Divergence over bits per weight](quality.svg)

${[...Object.entries(models).map(ofModel), ofProducts(products)].filter(Boolean).join('\n\n')}
`;
}

const colours = {
  rounded: '#9a9a9a',
  searched: '#4a7fb5',
  calibrated: '#2b8a3e',
  chosen: '#c92a2a',
  layers: '#9c36b5',
  'llama.cpp': '#e67700',
};
const width = 760;
const height = 460;
const margin = { left: 70, right: 130, top: 20, bottom: 50 };

/** Returns the plot of the first model: divergence, logarithmic, over bits per weight. */
export function qualityPlot({ models }) {
  const [{ rows }] = Object.values(models);
  const shown = rows.filter(({ bits, divergence }) => bits <= 9 && divergence > 0);
  const logs = shown.map(({ divergence }) => Math.log10(divergence));
  const [low, high] = [Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs))];
  const x = (bits) => margin.left + ((bits - 1.5) / 7.5) * (width - margin.left - margin.right);
  const y = (log) => margin.top + ((high - log) / (high - low)) * (height - margin.top - margin.bottom);
  const parts = [];
  const line = (x1, y1, x2, y2) =>
    parts.push(`<path d="M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}" stroke="#ddd"/>`);
  const text = (at, down, words, anchor = 'middle') =>
    parts.push(`<text x="${at.toFixed(1)}" y="${down.toFixed(1)}" text-anchor="${anchor}">${words}</text>`);
  for (let bits = 2; bits <= 9; bits += 1) {
    line(x(bits), margin.top, x(bits), height - margin.bottom);
    text(x(bits), height - margin.bottom + 18, bits);
  }
  for (let log = low; log <= high; log += 1) {
    line(margin.left, y(log), width - margin.right, y(log));
    text(margin.left - 8, y(log) + 4, Number(`1e${log}`), 'end');
  }
  text(x(5), height - 12, 'bits per weight');
  text(margin.left, margin.top - 6, 'divergence, nats per token', 'start');
  for (const { name, way, bits, divergence } of shown) {
    const label = `${name}, ${way}: ${divergence}`;
    const at = `cx="${x(bits).toFixed(1)}" cy="${y(Math.log10(divergence)).toFixed(1)}"`;
    parts.push(`<circle ${at} r="4" fill="${colours[way]}"><title>${label}</title></circle>`);
  }
  Object.entries(colours).forEach(([way, colour], i) => {
    const down = margin.top + 20 + 22 * i;
    parts.push(`<circle cx="${width - margin.right + 20}" cy="${down}" r="4" fill="${colour}"/>`);
    text(width - margin.right + 32, down + 4, way, 'start');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    '<rect width="100%" height="100%" fill="#fff"/>',
    ...parts,
    '</svg>\n',
  ].join('\n');
}
