// A calculator for expressions, without eval(): expression = term {+|- term}, term = factor {*|/|% factor},
// factor = [+|-] power, power = value [^ factor].

const CONSTANTS: Readonly<Record<string, number>> = { pi: Math.PI, e: Math.E };

const FUNCTIONS: Readonly<Record<string, (x: number) => number>> = {
  ...{ sqrt: Math.sqrt, abs: Math.abs, round: Math.round, ln: Math.log, log: Math.log10 },
  ...{ sin: Math.sin, cos: Math.cos, tan: Math.tan },
};

const TOKEN = /\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+|[a-z]+|[-+*/%^()])/iy;

/** The deepest nesting of an expression. */
const DEEPEST = 100;

/** Returns the value of an expression. Throws a sentence for anything else. */
export function calculate(expression: string): number {
  const tokens = tokensOf(expression.replaceAll('×', '*').replaceAll('÷', '/').replaceAll('−', '-'));
  let at = 0;
  let depth = 0;
  const take = (...wanted: string[]) => (wanted.includes(tokens[at] ?? '') ? tokens[at++] : undefined);
  const need = (wanted: string) => {
    if (take(wanted) === undefined) throw new Error(`${wanted} is missing before ${tokens[at] ?? 'the end'}`);
  };
  const sum = (): number => {
    if (++depth > DEEPEST) throw new Error('the expression is nested too deeply');
    let left = product();
    for (let op = take('+', '-'); op !== undefined; op = take('+', '-'))
      left = op === '+' ? left + product() : left - product();
    depth--;
    return left;
  };
  const product = (): number => {
    let left = factor();
    for (let op = take('*', '/', '%'); op !== undefined; op = take('*', '/', '%')) {
      const right = factor();
      left = op === '*' ? left * right : op === '/' ? left / right : left % right;
    }
    return left;
  };
  const factor = (): number => {
    let isNegative = false;
    for (let op = take('+', '-'); op !== undefined; op = take('+', '-')) isNegative = isNegative !== (op === '-');
    const base = value();
    const power = take('^') === undefined ? base : base ** factor();
    return isNegative ? -power : power;
  };
  const value = (): number => {
    const token = tokens[at++];
    if (token === undefined) throw new Error('the expression ends too early');
    if (token === '(') {
      const inner = sum();
      need(')');
      return inner;
    }
    const number = Number(token);
    if (!Number.isNaN(number)) return number;
    const name = token.toLowerCase();
    if (Object.hasOwn(CONSTANTS, name)) return CONSTANTS[name]!;
    if (!Object.hasOwn(FUNCTIONS, name)) throw new Error(`"${token}" is neither a number nor a known name`);
    need('(');
    const inner = sum();
    need(')');
    return FUNCTIONS[name]!(inner);
  };
  const result = sum();
  if (at < tokens.length) throw new Error(`"${tokens[at]!}" is not expected there`);
  return Number(result.toPrecision(12));
}

function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (expression.slice(TOKEN.lastIndex).trim() !== '') {
    const from = TOKEN.lastIndex;
    const found = TOKEN.exec(expression);
    if (!found) throw new Error(`"${expression.slice(from).trim()}" is no part of an expression`);
    tokens.push(found[1]!);
  }
  return tokens;
}
