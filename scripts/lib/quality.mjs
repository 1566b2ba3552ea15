// docs/quality.md and its plot, from the results of bench-quality.mjs.

const percent = (share) => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 1)} %`;

function table(rows, base) {
  const lines = rows.map(
    ({ name, way, bits, perplexity, divergence, at99, sameTop }) =>
      `| \`${name}\` | ${way} | ${bits.toFixed(2)} | ${perplexity.toFixed(3)} | ${percent(perplexity / base - 1)} | ` +
      `${divergence.toFixed(5)} | ${at99.toFixed(4)} | ${sameTop.toFixed(1)} % |`,
  );
  return [
    '| type | how | bits | perplexity | more than f32 | divergence, mean | at 99 % | same likeliest token |',
    '|---|---|--:|--:|--:|--:|--:|--:|',
    ...lines,
  ].join('\n');
}

export function qualityPage(result) {
  const { perplexity, error, windows, counted, rows, machine } = result;
  const sorted = [...rows].sort((a, b) => a.bits - b.bits || a.way.localeCompare(b.way));
  return `# Quality

What types cost the built-in model: ${windows} windows of 512 tokens of text that it was not trained on and that nothing here was
tuned on, ${counted.toLocaleString('en')} counted tokens. With f32 weights the perplexity is ${perplexity.toFixed(4)} ± ${error.toFixed(4)}; divergence is from that model, in nats
per token. Bits are over all tensors. *rounded* is each weight by itself, *searched* \`--search\`, *calibrated* \`--calibration\` with
${(result.calibrationBytes / 1000).toFixed(1)} KB of text of another kind, *chosen* a type for each matrix by the same text; *llama.cpp* is \`llama-quantize\` with
\`llama-imatrix\` of it, run by the same engine.

\`${result.command}\` measures it (commit ${machine.commit}, ${machine.date}).

![Divergence over bits per weight](quality.svg)

${table(sorted, perplexity)}
`;
}

const colours = {
  rounded: '#9a9a9a',
  searched: '#4a7fb5',
  calibrated: '#2b8a3e',
  chosen: '#c92a2a',
  'llama.cpp': '#e67700',
};
const width = 760;
const height = 460;
const margin = { left: 70, right: 130, top: 20, bottom: 50 };

/** Divergence, logarithmic, over bits per weight. */
export function qualityPlot({ rows }) {
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
    text(margin.left - 8, y(log) + 4, 10 ** log, 'end');
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
