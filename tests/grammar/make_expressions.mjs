// Writes expressions.json: regular expressions with the texts that the RegExp of Node accepts as a whole, by the flag u if
// it compiles with it, else by Annex B of ECMA-262. `why` is the reason for which QSF refuses one that has a meaning.
//   node tests/grammar/make_expressions.mjs > tests/grammar/expressions.json
const letters = ['a', 'b', 'z', 'A', '-', '{', '}', ']', '1', '2', '0', ',', '\\', 'x', '/', ' ', '_'];
const more = [
  'aaa',
  'a{',
  'aa{',
  'a{1',
  'a{,2}',
  'a{1,2',
  'a{a}',
  '{a}',
  'x{y}',
  '10.5',
  'a-b',
  'a{ 1}',
  '*',
  '?',
  '\b',
  '\t',
  '"',
  '@',
  '\u0001',
  '\u0000',
  'a]b',
];
const texts = ['', ...letters, ...letters.flatMap((a) => letters.map((b) => a + b)), ...more];

const cases = [
  // Counts.
  ...[
    'a*',
    'a+?',
    'a??',
    'a{2}',
    'a{1,2}?',
    'a{0}',
    'a{1,}',
    'a**',
    'a*+',
    'a++',
    'a+*',
    'a???',
    'a{2}{3}',
    'a{2}*',
    'a*{2}',
  ],
  ...[
    '*',
    '+a',
    '?',
    '{2}',
    '{1,2}a',
    '(*a)',
    '(?:{2})',
    'a|*',
    'a|{2}',
    '(a*)*',
    'a{2,1}',
    '(?:)*',
    '^*',
    '$+',
    'a|+',
  ],
  // Braces and brackets that are no counts and classes.
  ...[
    'a{',
    'a{1',
    'a{1,2',
    'a{,2}',
    'a{a}',
    '{a}',
    '{',
    '}',
    'a}',
    ']',
    'a]b',
    '[a]]',
    '{}',
    'x{y}',
    'a{ 1}',
    '[',
    '[a',
    '(',
    ')',
  ],
  // Classes.
  ...[
    '[a-\\d]',
    '[\\d-a]',
    '[\\d--z]',
    '[\\d-\\w]',
    '[\\w-]',
    '[-\\w]',
    '[a-b-z]',
    '[--/]',
    '[a-]',
    '[-a]',
    '[^]',
    '[]',
  ],
  ...[
    '[]a]',
    '[^\\d-a]',
    '[\\s-\\d]',
    '[z-a]',
    '[\\w-\\-]',
    '[+--]',
    '[\\]a]',
    '[{}]',
    '[*+?]',
    '[\\-]',
    '[a\\-z]',
    '[\\b]',
  ],
  // Escapes.
  ...[
    '\\-',
    '\\_',
    '\\/',
    '\\ ',
    '\\,',
    '\\]',
    '\\{',
    '\\}',
    '\\\\',
    '\\x41',
    '\\u0041',
    '\\cA',
    '\\0',
    '\\t',
    '[\\/]',
    '\\"',
    '\\@',
  ],
  // Groups.
  ...[
    '(?<n>a)',
    '(?<>a)',
    '(?<1>a)',
    '(?<a b>a)',
    '(?<n',
    '(?<n>a)(?<m>b)',
    '(?<n>a)(?<n>b)',
    '(?<n>a(?<n>b))',
    '(?:(?<n>a)|b)(?<n>c)',
    '(?:a',
    '(?a)',
    '(?=a)a',
    '(?!a)b',
    '(?=a)?a',
  ],
  // Of people's schemas.
  ...[
    '^[a-z0-9]+(?:-[a-z0-9]+)*$',
    '^\\d+(\\.\\d+)?$',
    '^[\\w\\-\\.]+$',
    '^[^\\s]+$',
    '^([a-z]{1,2}\\-?)+$',
    '^\\{?[a-b]\\}?$',
  ],
].map((pattern) => ({ pattern }));
/** Those that have a meaning without the flag u, another than their writers have in mind. */
const refused = {
  '\\a': 'letters',
  '\\Z': 'letters',
  '\\e': 'letters',
  '[\\A]': 'letters',
  '\\x1': 'numbers',
  '\\u12': 'numbers',
  '\\c1': 'numbers',
  '\\01': 'octal',
  '[\\c_]': 'numbers',
  '\\1': 'references',
  '\\8': 'references',
  '\\k': 'references',
  'a\\b': 'boundaries',
  '(?=a)*a': 'repeated look ahead',
  '(?<=a)': 'look behind',
};
for (const [pattern, why] of Object.entries(refused)) cases.push({ pattern, why });

function compile(pattern, flags) {
  try {
    new RegExp(pattern, flags); // what the group below would hide
    return new RegExp(`^(?:${pattern})$`, flags);
  } catch {
    return undefined;
  }
}

for (const each of cases) {
  const read = compile(each.pattern, 'u') ?? compile(each.pattern, '');
  each.accepts = read === undefined ? null : texts.filter((text) => read.test(text));
}
const lines = cases.map((each) => `  ${JSON.stringify(each)}`).join(',\n');
process.stdout.write(`{"texts": ${JSON.stringify(texts)},\n"cases": [\n${lines}\n]}\n`);
