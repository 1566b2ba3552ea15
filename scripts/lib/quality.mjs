// docs/quality.md and its plot, from the results of bench-quality.mjs.

/** Bits of the layers' weights where the embedding has the type that it has in this file of llama.cpp. */
export const layerBits = 2.63;
export const layersBeside = 'Q2_K';

const percent = (share) => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 1).replace(/^-(0\.0+)$/, '$1')} %`;
const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
const grid = (titles, places, rows) => [`| ${titles.join(' | ')} |`, `|${places.join('|')}|`, ...rows].join('\n');
const row = (fields) => `| ${fields.join(' | ')} |`;

/** llama.cpp's files beside what is chosen for their size. The ratios are to the best of its files that are no larger. */
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

/** The embedding as in llama.cpp's file, the layers chosen at fewer bits than they have there. */
function layersAlone({ rows, perplexity: base }) {
  const own = rows.find(({ way }) => way === 'layers');
  const file = rows.find(({ way, name }) => way === 'llama.cpp' && name === layersBeside);
  if (!own || !file) return '';
  const [less, more] = [own, file].map(({ perplexity }) => perplexity / base - 1);
  return `
With the embedding, which is the head too, as in llama.cpp's ${layersBeside} file and ${layerBits} bits for the layers (\`--tensor-type\`,
\`--target-bpw ${own.target}\`; ${own.bits.toFixed(2)} bits over all, ${file.bits.toFixed(2)} in that file) the perplexity is ${own.perplexity.toFixed(3)}: ${percent(less)} more than f32
where that file has ${percent(more)}, a ratio of ${(less / more).toFixed(2)}; the divergences are ${own.divergence.toFixed(4)} and ${file.divergence.toFixed(4)}.
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

/** What products lose: types here beside llama.cpp's. */
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

How far the products of single matrices are from those of their f32 weights, over the columns that enter them when the model
reads 40 KB of the measured text: the sum of squares of what is missing over that of the products, the mean of all matrices in the
layers. All are in one type on either side, calibrated with the same 40 KB of Frankenstein and nothing else (\`--pure\`, \`--own-tokens 0\`).
Beside the built-in model two of random weights, two layers of 512 columns (1024 in the network), whose embeddings and norms make
columns that depend on each other and differ in size: weights spread normally, and by Student's t with three degrees of freedom
(commit ${products.machine.commit}, ${products.machine.date}).

${grid(['llama.cpp, bits', 'here, bits', ...titles], ['---', '---', ...Array(3 * names.length).fill('--:')], lines)}`;
}

/** The first model that was measured is the one of the plot. */
export function qualityPage({ models, products, machine, calibrationBytes, command }) {
  return `# Quality

What types cost models, on text that they were not trained on and that nothing here was tuned on. *Loss* is perplexity over that
of f32 weights, less one; *divergence* is from that model, in nats per token. *Bits* are over the data of all tensors. The text for
calibration is ${(calibrationBytes / 1000).toFixed(1)} KB of TinyStories, short stories in today's language; the built-in model was trained on children's
stories from before 1929, and the measured text is of those. Both sides get the same text (the converter's model writes more
itself), and what GGUF cannot say of a model is missing on both: *llama.cpp* is \`llama-quantize\` with the matrix of
\`llama-imatrix\`, computed by the engine here. Tensors in IQ2 and IQ3, which are no formats here, are computed as the floats that they
stand for. llama.cpp's own \`llama-perplexity\` gives of the built-in model's Q4_K_M 23.4281 and of its IQ2_XXS 27.6168, where it is
23.4088 and 27.6090 here: activations are rounded otherwise. Quantized types round them to eight bits, f32 does not, which costs a
model of ternary weights (BitLlamas) a divergence of 0.0004 where these are exact.

*Rounded* is each weight by itself, *searched* \`--search\`, *calibrated* \`--calibration\`, *chosen* a type for each matrix
(\`--target-size\` or \`--target-bpw\`, never more than the file beside it). *Ratios* are to the least loss, and the least divergence,
of any of llama.cpp's files of that size or smaller. The standard error of a loss is about the root of twice the divergence over the
counted tokens: 0.14 % at a divergence of 0.015, 0.04 % at 0.001.

\`${command}\` measures it (commit ${machine.commit}, ${machine.date}).

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

/** Divergence, logarithmic, over bits per weight, of the first model. */
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
