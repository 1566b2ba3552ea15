// OpenAI's parameters as options of chat(), generate() and embed(). A parameter that the package does not have is
// refused by its name.
import { promptOptions, samplerOptions } from '../boundary.gen.js';
import { QSFError } from '../errors.js';
import { BUDGET } from './holding.js';
import { checkKind, checkKnown, checkOption, kindOf } from './options.js';
import { checkSignal } from './requests.js';
import { biasesOf } from './sampling.js';
import type { RequestOptions } from '../openai-types.js';
import type { ResponseFormat } from '../format-types.js';
import type { ChatMessage, ChatOptions, GenerateOptions, Prompt } from '../types.js';

/** OpenAI's names of numbers, and the package's. */
const NUMBERS = {
  temperature: 'temperature',
  top_p: 'topP',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  seed: 'seed',
  max_tokens: 'maxTokens',
  max_completion_tokens: 'maxTokens',
} as const;
const numbers = { ...samplerOptions, ...promptOptions };

/** Parameters that the package does not have, with the values that ask for nothing. Every other value is refused. */
const REFUSED: Readonly<Record<string, readonly unknown[]>> = {
  best_of: [1],
  echo: [false],
  suffix: [],
  functions: [],
  function_call: [],
  audio: [],
  modalities: [['text']],
  prediction: [],
  web_search_options: [],
  moderation: [],
  store: [false],
  service_tier: ['auto', 'default'],
  verbosity: ['medium'],
  prompt_cache_options: [],
};

/** Labels for servers, which never change an answer. */
const LABELS = ['model', 'user', 'metadata', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'];
const OF_BOTH = [
  ...[...LABELS, 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'seed', 'max_tokens'],
  ...['stop', 'stream', 'stream_options', 'n', 'logprobs'],
];
const OF_CHAT = [
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'reasoning_effort',
  'max_completion_tokens',
  'top_logprobs',
];
/** What other servers with OpenAI's interface have. */
const OF_OTHERS = ['chat_template', 'chat_template_kwargs', 'reasoning_budget'];

/** The shapes, with the parameters that each has and those that it refuses. */
const SHAPES = {
  'chat.completions': { known: [...OF_BOTH, ...OF_CHAT, ...OF_OTHERS], refused: REFUSED },
  completions: { known: [...OF_BOTH, 'prompt'], refused: REFUSED },
  embeddings: { known: ['model', 'user', 'input', 'encoding_format', 'dimensions'], refused: {} },
} as const;
export type Shape = keyof typeof SHAPES;

/** Parameters that are given: not null, and none that is refused; and the signal. */
export interface Params {
  readonly signal?: AbortSignal | undefined;
  readonly [name: string]: unknown;
}

/** Returns the parameters of a shape's create(). Throws bad_argument for unknown ones, and unsupported. */
export function paramsOf(shape: Shape, params: unknown, options: RequestOptions): Params {
  const { known, refused }: { known: readonly string[]; refused: typeof REFUSED } = SHAPES[shape];
  const names = [...known, ...Object.keys(refused)];
  checkKnown(`${shape}.create()`, params as object, Object.fromEntries(names.map((name) => [name, true])));
  const given = Object.entries(params as object).filter(([, value]) => value !== null && value !== undefined);
  for (const [name, value] of given) {
    const harmless = refused[name];
    if (harmless && !harmless.some((one) => json(one) === json(value))) throw refusal(name, value, harmless);
  }
  checkKnown(`${shape}.create()`, options, { signal: true });
  const signal = options.signal ?? undefined;
  checkSignal(signal);
  return { ...Object.fromEntries(given.filter(([name]) => !(name in refused))), ...(signal && { signal }) };
}

/** Returns a value as JSON, or undefined if it has no such form. */
function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Returns the refusal of a value, with those that are allowed. */
export function refusal(name: string, value: unknown, allowed: readonly unknown[]): QSFError {
  const must = [...allowed.map(json), ...(value === undefined ? [] : ['omitted'])].join(' or ');
  return new QSFError(
    'unsupported',
    `${name} is ${quoted(value)}, which this package does not have; it must be ${must}`,
  );
}

const quoted = (value: unknown) => (typeof value === 'string' ? JSON.stringify(value) : kindOf(value));

/** OpenAI's limit. */
const MOST_CHOICES = 128;
const choices = { type: 'u32', fallback: 1, least: 1, most: MOST_CHOICES } as const;

/** Returns the options of each choice. Their seeds follow one another, if there is one. */
export function eachChoice<T extends GenerateOptions>({ n }: Params, options: T): T[] {
  const { seed } = options;
  return Array.from({ length: checkOption('n', choices, n as number | undefined) }, (_, i) => ({
    ...options,
    ...(seed !== undefined && { seed: (seed + i) % Number.MAX_SAFE_INTEGER }),
  }));
}

/** Returns the name of the model, which answers repeat. */
export function modelOf({ model = 'qsf' }: Params): string {
  if (typeof model === 'string') return model;
  throw new QSFError('bad_argument', `model is ${kindOf(model)}; it must be a text`);
}

/** Returns whether an answer comes in chunks, and whether these end with the usage. */
export function streamingOf({ stream = false, stream_options }: Params): { stream: boolean; usage: boolean } {
  checkKind('stream', 'boolean', stream);
  if (stream_options === undefined) return { stream: stream === true, usage: false };
  if (stream !== true) throw new QSFError('bad_argument', 'stream_options is given without stream: true');
  checkKnown('stream_options', stream_options as object, { include_usage: true, include_obfuscation: true });
  const { include_usage, include_obfuscation } = stream_options as Params;
  const usage = include_usage ?? false;
  checkKind('stream_options.include_usage', 'boolean', usage);
  if (include_obfuscation ?? false) throw refusal('stream_options.include_obfuscation', include_obfuscation, [false]);
  return { stream: true, usage: usage === true };
}

/** Returns the options of a generation. Numbers are checked by their names in OpenAI's interface. */
export function generateOptions(params: Params): GenerateOptions {
  const options: Record<string, unknown> = { stop: params.stop, signal: params.signal };
  for (const [name, own] of Object.entries(NUMBERS)) {
    const value = params[name];
    if (value === undefined) continue;
    checkOption(name, numbers[own], value as number);
    if (options[own] !== undefined && options[own] !== value)
      throw new QSFError('bad_argument', `${name} is ${kindOf(value)}, but max_tokens is ${kindOf(options[own])}`);
    options[own] = value;
  }
  const biases = params.logit_bias as Record<number, number> | undefined;
  if (biases !== undefined) options.logitBias = Object.fromEntries(biasesOf('logit_bias', biases));
  return options;
}

const top = numbers.topLogprobs;

/** Returns the options for log-probabilities of an answer. */
function chatLogprobsOf({ logprobs = false, top_logprobs }: Params): GenerateOptions {
  checkKind('logprobs', 'boolean', logprobs);
  if (top_logprobs === undefined) return logprobs === true ? { logprobs } : {};
  const topLogprobs = checkOption('top_logprobs', top, top_logprobs as number);
  if (logprobs !== true && topLogprobs > 0)
    throw new QSFError('bad_argument', 'top_logprobs is given without logprobs: true');
  return { logprobs: logprobs === true, topLogprobs };
}

/** Returns the options of a continued text. */
export function textOptions({ logprobs, ...params }: Params): GenerateOptions {
  if (logprobs === undefined) return generateOptions(params);
  const topLogprobs = checkOption('logprobs', top, logprobs as number);
  return { ...generateOptions(params), logprobs: true, topLogprobs };
}

/** Returns the options of an answer. */
export function chatOptions(params: Params): ChatOptions {
  const { tools, tool_choice: choice = 'auto', response_format: format, reasoning_effort: effort } = params;
  if (effort !== undefined && typeof effort !== 'string')
    throw new QSFError('bad_argument', `reasoning_effort is ${kindOf(effort)}; it must be a text`);
  for (const [i, tool] of Array.isArray(tools) ? tools.entries() : []) {
    functionOf(tool, `tools[${i}]`);
  }
  const thinking = { reasoning_effort: effort, ...(effort === 'none' && { enable_thinking: false }) };
  const args = checkKind('chat_template_kwargs', 'object', params.chat_template_kwargs as object | undefined);
  const hasTools = choice !== 'none' && tools !== undefined && !(Array.isArray(tools) && tools.length === 0);
  const isText = (format as { type?: unknown } | undefined)?.type === 'text';
  const hasFormat = format !== undefined && !isText;
  const toolChoice = toolChoiceOf(choice, tools, hasFormat);
  const budget = params.reasoning_budget as number | undefined;
  const parallel = checkKind('parallel_tool_calls', 'boolean', params.parallel_tool_calls as boolean | undefined);
  return {
    ...generateOptions(params),
    ...chatLogprobsOf(params),
    ...(hasTools && { tools: tools as readonly object[] }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(parallel === false && { parallelToolCalls: false }),
    ...(hasFormat && { responseFormat: format as ResponseFormat }),
    ...(budget !== undefined && { reasoningBudget: checkOption('reasoning_budget', BUDGET, budget) }),
    ...{ template: params.chat_template as string | undefined },
    ...((effort ?? args) !== undefined && { templateArgs: { ...(effort !== undefined && thinking), ...args } }),
  };
}

/**
 * Returns the calls that are held: required ones, and all if a tool is strict. A format holds the whole answer, which
 * then has no calls.
 */
function toolChoiceOf(choice: unknown, tools: unknown, hasFormat: boolean): ChatOptions['toolChoice'] {
  const isStrict = (tool: unknown) => (tool as { function?: { strict?: unknown } | null }).function?.strict === true;
  if (choice === 'none') return undefined;
  if (choice === 'auto') return !hasFormat && Array.isArray(tools) && tools.some(isStrict) ? 'auto' : undefined;
  const { type, function: named } = choice as { type?: unknown; function?: { name?: unknown } };
  const name = type === 'function' && typeof named?.name === 'string' ? named.name : undefined;
  if (choice !== 'required' && name === undefined)
    throw refusal('tool_choice', choice, ['none', 'auto', 'required', { type: 'function', function: { name: '…' } }]);
  if (hasFormat)
    throw new QSFError('bad_argument', 'tool_choice asks for a call, and response_format for a text; give one of them');
  if (!Array.isArray(tools) || tools.length === 0)
    throw new QSFError('bad_argument', 'tool_choice asks for a call, and there are no tools');
  return name === undefined ? 'required' : { name };
}

/** Returns the messages as templates expect them. */
export function messagesOf({ messages }: Params): ChatMessage[] {
  if (!Array.isArray(messages))
    throw new QSFError('bad_argument', `messages is ${kindOf(messages)}; it must be a list of messages`);
  return messages.map((message: unknown, i) => messageOf(message, `messages[${i}]`));
}

/** Returns a message without null, whose content is one text, and the arguments of whose calls are objects. */
function messageOf(message: unknown, at: string): ChatMessage {
  if (typeof message !== 'object' || message === null)
    throw new QSFError('bad_argument', `${at} is ${kindOf(message)}; it must be an object with a role`);
  const all = Object.entries(message).filter(([, value]) => value !== null && value !== undefined);
  const { role, content, tool_calls, ...others }: Params = Object.fromEntries(all);
  if (typeof role !== 'string')
    throw new QSFError('bad_argument', `${at}.role is ${kindOf(role)}; it must be a text, such as user`);
  for (const name of ['audio', 'function_call']) if (name in others) throw refusal(`${at}.${name}`, others[name], []);
  const calls = Array.isArray(tool_calls)
    ? tool_calls.map((call: unknown, i) => callOf(call, `${at}.tool_calls[${i}]`))
    : tool_calls;
  return {
    ...{ role: role === 'developer' ? 'system' : role, content: contentOf(content ?? '', `${at}.content`) },
    ...others,
    ...(calls !== undefined && { tool_calls: calls }),
  };
}

/** Returns a content as one text. Parts become lines. */
function contentOf(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content))
    throw new QSFError('bad_argument', `${at} is ${kindOf(content)}; it must be a text or a list of parts`);
  const texts = content.map((part: unknown, i) => {
    const { type, text } = (part ?? {}) as Params;
    if (type !== 'text') throw refusal(`${at}[${i}].type`, type, ['text']);
    if (typeof text === 'string') return text;
    throw new QSFError('bad_argument', `${at}[${i}].text is ${kindOf(text)}; it must be a text`);
  });
  return texts.join('\n');
}

/** Returns the function of a tool or a call. Throws unsupported for another type, and bad_argument without a name. */
function functionOf(given: unknown, at: string): { name: string; arguments?: unknown } {
  const { type, function: called } = (given ?? {}) as { type?: unknown; function?: { name: string } };
  if (type !== 'function') throw refusal(`${at}.type`, type, ['function']);
  if (typeof called?.name === 'string') return called;
  throw new QSFError('bad_argument', `${at}.function.name is ${kindOf(called?.name)}; it must be a text`);
}

/** Returns a call with its arguments as an object, which templates write in their own form. Omitted ones are empty. */
function callOf(call: unknown, at: string): object {
  const called = functionOf(call, at);
  let given = called.arguments || '{}';
  try {
    const parsed: unknown = JSON.parse(given as string);
    if (typeof parsed === 'object') given = parsed ?? {};
  } catch {
    // Templates get a text that is not JSON as it is.
  }
  return { ...(call as object), function: { ...called, arguments: given } };
}

/** Returns the one prompt. Throws unsupported for several. */
export function promptOf({ prompt }: Params): Prompt {
  const [first, ...others] = inputsOf('prompt', prompt);
  if (first !== undefined && others.length === 0) return first;
  throw new QSFError('unsupported', `prompt is a list of ${others.length + 1}; it must be one text, or token ids`);
}

/** Returns texts and lists of token ids, one or several. */
export function inputsOf(name: string, given: unknown): Prompt[] {
  if (typeof given === 'string') return [given];
  if (Array.isArray(given) && given.length > 0)
    return typeof given[0] === 'number' ? [given as number[]] : (given as Prompt[]);
  throw new QSFError(
    'bad_argument',
    `${name} is ${quoted(given)}; it must be a text, token ids, or a list of these that is not empty`,
  );
}
