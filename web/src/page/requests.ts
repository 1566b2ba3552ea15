// Checks callers' arguments and makes the worker's requests of them. JavaScript callers have no types, so an unknown
// name or a value of another kind is refused with advice.
import { embeddingOptions, kvTypes, openOptions, poolings, promptOptions, samplerOptions } from '../boundary.gen.js';
import type { OptionRules } from '../boundary.gen.js';
import { GiB, MAX_THREADS, MiB, PAGE } from '../constants.js';
import type {
  ChatRequest,
  EmbedRequest,
  GenerateRequest,
  LoadRequest,
  Network,
  SaveRequest,
  WasmSource,
} from '../contract.js';
import { QSFError, messageOf } from '../errors.js';
import { keepsModels, ownFile } from '../platform.js';
import { savedName } from '../sources/saved-files.js';
import { HOLDING, holdOf } from './holding.js';
import { kvPolicyOf } from './kv-policy.js';
import { bytesOf, draftOf, present, sourceOf, typeOf } from './model-source.js';
import { checkKind, checkKnown, checkName, checkOption, checkOptions, kindOf, shown } from './options.js';
import { LISTS, samplingLists } from './sampling.js';
import type { ConversationOptions } from '../conversation-types.js';
import type { ResponseFormat } from '../format-types.js';
import type { RerankOptions } from '../rerank-types.js';
import type { SequenceOptions } from '../sequence-types.js';
import type {
  ChatMessage,
  ChatOptions,
  EmbedOptions,
  GenerateOptions,
  LoadOptions,
  ModelSource,
  NetworkOptions,
  Prompt,
  SaveOptions,
  TemplateOptions,
  Variant,
} from '../types.js';

const DEFAULT_MEMORY = 256 * MiB;
/** The most memory. With one page more, its size would not fit 32 bits. */
const MOST_MEMORY = 4 * GiB - PAGE;
const MOST_STOPS = 8;
/** Tokens of the longest context that a plan can have. */
const MOST_TOKENS = openOptions.maxSeqLen.most;
const VARIANTS: readonly Variant[] = ['relaxed', 'relaxedpairs', 'simd'];
const CREDENTIALS: readonly RequestCredentials[] = ['omit', 'same-origin', 'include'];

type Names<T> = Record<keyof T, true>;
const LOAD = {
  ...{ memory: true, onProgress: true, onWarning: true, signal: true, kv: true, cache: true, background: true },
  ...{
    variant: true,
    threads: true,
    network: true,
    maxSeqLen: true,
    kvPolicy: true,
    draft: true,
    guesses: true,
    guessByLayers: true,
    guessByHead: true,
    guessLayers: true,
    sequences: true,
    logprobs: true,
    streamAll: true,
    workerUrl: true,
    wasmUrl: true,
  },
  ...{ wasmBinary: true, cacheLimit: true, persist: true, shared: true, textBytes: true, sha256: true },
  ...{ lazy: true, readRate: true, computeRate: true, quantType: true },
} satisfies Names<LoadOptions>;
const OF_GENERATION = {
  ...{
    ...LISTS,
    stop: true,
    signal: true,
    continue: true,
    responseFormat: true,
    onPromptProgress: true,
    sequence: true,
  },
};
const GENERATE = { ...samplerOptions, ...promptOptions, ...OF_GENERATION } satisfies {
  [K in keyof GenerateOptions]-?: unknown;
};
const TEMPLATE = { template: true, templateArgs: true, tools: true } satisfies {
  [K in keyof TemplateOptions]-?: unknown;
};
/** Options of a generation that a conversation's template decides. */
const BY_TEMPLATE = ['continue', 'addBos', 'special'];
/** Options that only the package itself sets. */
const OWN = ['allLogits', 'logitsFrom', 'anew'];
const SAVE = { messages: true, name: true, sequence: true } satisfies { [K in keyof SaveOptions]-?: unknown };
const CONVERSATION = { system: true, messages: true, whenFull: true, onDrop: true };
const SEQUENCE = { type: 'u32', fallback: 0, least: 0, most: openOptions.sequences.most - 1 } as const;
const WHEN_FULL = ['end', 'drop'] as const;
const RERANK = { signal: true } satisfies { [Key in keyof RerankOptions]-?: true };
const EMBED = { ...embeddingOptions, pooling: true, normalize: true, signal: true } satisfies {
  [K in keyof EmbedOptions]-?: unknown;
};

const whole = (fallback: number, least = 0) => ({ type: 'u32', fallback, least, most: 0xffffffff }) as const;
/** The NetworkOptions that are numbers. */
type NetworkNumbers = Pick<Required<NetworkOptions>, 'retries' | 'retryDelay' | 'parallel' | 'timeout'>;
const networkNumbers: OptionRules<NetworkNumbers> = {
  retries: whole(5),
  retryDelay: whole(400),
  parallel: whole(3, 1),
  timeout: whole(30_000, 1),
};
const NETWORK = { ...networkNumbers, headers: true, credentials: true } satisfies {
  [K in keyof NetworkOptions]-?: unknown;
};

export async function loadRequest(source: ModelSource, options: LoadOptions): Promise<LoadRequest> {
  checkKnown('load()', options, LOAD);
  checkKind('onProgress', 'function', options.onProgress);
  checkKind('onWarning', 'function', options.onWarning);
  checkKind('shared', 'boolean', options.shared);
  checkKind('persist', 'boolean', options.persist);
  checkSignal(options.signal);
  addressOf('workerUrl', options.workerUrl);
  addressOf('wasmUrl', options.wasmUrl);
  const { cacheLimit } = options;
  // A single module is for one thread or for several, not both.
  const single = options.wasmBinary !== undefined || (options.wasmUrl !== undefined && !folder(options.wasmUrl));
  const threads = options.threads ?? (single ? 1 : undefined);
  const { draft, guesses } = options;
  if (draft !== undefined && guesses === 0)
    throw new QSFError('bad_argument', 'guesses is 0, so that a draft has nothing to guess; it must be 1 to 15');
  if ((options.guessByLayers || options.guessByHead) && guesses === 0)
    throw new QSFError('bad_argument', 'guesses is 0, so that layers have nothing to guess; it must be 1 to 15');
  return {
    memory: memoryOf(options.memory),
    open: checkOptions(openOptions, {
      ...kvPolicyOf(options.kvPolicy),
      maxSeqLen: options.maxSeqLen,
      guesses,
      guessByLayers: options.guessByLayers,
      guessByHead: options.guessByHead,
      guessLayers: options.guessLayers,
      sequences: options.sequences,
      logprobs: options.logprobs,
      streamAll: options.streamAll,
      textBytes: options.textBytes,
      readRate: options.readRate,
      computeRate: options.computeRate,
    }),
    kv: checkName('kv', kvTypes, options.kv),
    sha256: digestOf(options.sha256),
    quantType: typeOf('quantType', options.quantType),
    cache: (checkKind('cache', 'boolean', options.cache) ?? true) && keepsModels,
    cacheLimit: cacheLimit === undefined ? undefined : checkOption('cacheLimit', CACHE_LIMIT, cacheLimit),
    background: checkKind('background', 'boolean', options.background) ?? false,
    lazy: checkKind('lazy', 'boolean', options.lazy) ?? false,
    variant: checkName('variant', VARIANTS, options.variant),
    threads: threads === undefined ? undefined : checkOption('threads', THREADS, threads),
    network: networkOf(options.network ?? {}),
    source: await sourceOf(source),
    ...(draft !== undefined && (await draftOf(draft))),
    wasm: wasmOf(options),
  };
}

function digestOf(sha256: string | undefined): string | undefined {
  if (sha256 === undefined || (typeof sha256 === 'string' && /^[0-9a-f]{64}$/i.test(sha256)))
    return sha256?.toLowerCase();
  throw new QSFError('bad_argument', `sha256 is ${shown(sha256)}; it must be 64 hexadecimal digits`);
}

const folder = (url: string | URL) => (url instanceof URL ? url.href : url).endsWith('/');

/** Returns the address of a file of the package, if one is given. Throws bad_argument for another kind of value. */
function addressOf(name: string, given: string | URL | undefined): string | URL | undefined {
  if (given === undefined || typeof given === 'string' || given instanceof URL) return given;
  throw new QSFError('bad_argument', `${name} is ${kindOf(given)}; it must be an address`);
}

function wasmOf({ wasmUrl, wasmBinary }: LoadOptions): WasmSource {
  if (wasmUrl !== undefined && wasmBinary !== undefined)
    throw new QSFError('bad_argument', 'wasmUrl and wasmBinary are both given; give one of them');
  if (wasmUrl !== undefined) return ownFile('wasmUrl', wasmUrl);
  if (wasmBinary === undefined) return undefined;
  if (wasmBinary instanceof ArrayBuffer || ArrayBuffer.isView(wasmBinary))
    return bytesOf(present('wasmBinary', wasmBinary));
  throw new QSFError('bad_argument', `wasmBinary is ${kindOf(wasmBinary)}; it must be an ArrayBuffer or a view of one`);
}

const MOST = Number.MAX_SAFE_INTEGER;
const CACHE_LIMIT = { type: 'real', fallback: MOST, least: 0, most: MOST } as const;
export const THREADS = { type: 'u32', fallback: 1, least: 1, most: MAX_THREADS } as const;

export function generateRequest(prompt: Prompt, options: GenerateOptions): GenerateRequest {
  checkKnown('generate()', options, GENERATE, OWN);
  checkSignal(options.signal);
  sequenceIn(options);
  const goesOn = checkKind('continue', 'boolean', options.continue) ?? false;
  const seed = options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]!;
  return {
    ...checkOptions(samplerOptions, { ...options, seed }),
    ...checkOptions(promptOptions, { ...options, allLogits: false, logitsFrom: 0, anew: !goesOn }),
    prompt: promptOf(prompt),
    grammar: grammarOf(options.responseFormat),
    lists: samplingLists(options),
    stop: stopsOf(options.stop ?? []),
    ...(checkKind('onPromptProgress', 'function', options.onPromptProgress) && { promptProgress: true }),
  };
}

/** Throws bad_argument for an option that conversations do not have; `what` names the call. */
export function checkChatOptions(what: string, options: ChatOptions): void {
  checkKnown(what, options, { ...GENERATE, ...TEMPLATE, ...HOLDING }, [...OWN, ...BY_TEMPLATE]);
}

export function chatRequest(given: string | readonly ChatMessage[], options: ChatOptions): GenerateRequest {
  checkChatOptions('chat()', options);
  const { template, templateArgs, tools, toolChoice, parallelToolCalls, reasoningBudget, ...rest } = options;
  const messages = messagesOf(given);
  if (endsWithAnswer(messages))
    throw new QSFError('bad_argument', 'the conversation ends with an answer, so there is nothing to answer');
  const prompt = chatTexts(messages, { template, templateArgs, tools });
  const hold = holdOf({ toolChoice, reasoningBudget, tools, responseFormat: rest.responseFormat });
  const oneCall = checkKind('parallelToolCalls', 'boolean', parallelToolCalls) === false;
  return { ...generateRequest('', rest), prompt, ...(hold && { hold }), ...(oneCall && { oneCall }) };
}

export function renderRequest(messages: string | readonly ChatMessage[], options: TemplateOptions): ChatRequest {
  checkKnown('render()', options, TEMPLATE);
  return chatTexts(messagesOf(messages), options);
}

/** Returns the first messages of a conversation, and the options of its answers. Throws bad_argument. */
export function conversationRequest(options: ConversationOptions): { messages: ChatMessage[]; chat: ChatOptions } {
  const known = { ...GENERATE, ...TEMPLATE, ...HOLDING, ...CONVERSATION };
  checkKnown('conversation()', options, known, [...OWN, ...BY_TEMPLATE, 'signal']);
  const { system, messages = [], whenFull, onDrop, ...chat } = options;
  checkName('whenFull', WHEN_FULL, whenFull);
  checkKind('onDrop', 'function', onDrop);
  chatRequest('', chat);
  if (system !== undefined && typeof system !== 'string')
    throw new QSFError('bad_argument', `system is ${kindOf(system)}; it must be a text`);
  const given = Array.isArray(messages) && messages.length === 0 ? [] : messagesOf(messages);
  if (system === undefined) return { messages: given, chat };
  if (given[0]?.role === 'system')
    throw new QSFError('bad_argument', 'the conversation has two system messages: system, and the first of messages');
  return { messages: [{ role: 'system', content: system }, ...given], chat };
}

/** Returns a copy of the messages as templates get them, or of one message of the user. Throws bad_argument. */
export function messagesOf(
  given: string | readonly ChatMessage[],
  wanted = 'a text, or a list of objects with a role',
): ChatMessage[] {
  const all: unknown = typeof given === 'string' ? [{ role: 'user', content: given }] : given;
  const messages: unknown = Array.isArray(all) ? JSON.parse(json('the conversation', all)) : all;
  const isMessage = (one: unknown) => typeof (one as ChatMessage | null | undefined)?.role === 'string';
  if (Array.isArray(messages) && messages.length > 0 && messages.every(isMessage)) return messages as ChatMessage[];
  const what = Array.isArray(messages) ? 'a list that is empty or has other values' : kindOf(messages);
  throw new QSFError('bad_argument', `the messages are ${what}; they must be ${wanted}`);
}

const endsWithAnswer = (messages: readonly ChatMessage[]) => messages.at(-1)?.role === 'assistant';

/** What conversations have the variables of their templates from that `templateArgs` must not replace. */
const OF_CONVERSATIONS = {
  messages: 'they are the conversation',
  tools: 'they are those of the option tools',
  add_generation_prompt: 'it follows from the last message',
};

/** Returns the texts for the template. A conversation that ends with an answer gets no beginning of another. */
function chatTexts(messages: readonly ChatMessage[], { template, templateArgs, tools }: TemplateOptions): ChatRequest {
  if (template !== undefined && typeof template !== 'string')
    throw new QSFError('bad_argument', `template is ${kindOf(template)}; it must be the text of a template`);
  if (tools !== undefined && !Array.isArray(tools))
    throw new QSFError('bad_argument', `tools is ${kindOf(tools)}; it must be a list of objects`);
  checkKind('templateArgs', 'object', templateArgs);
  for (const [name, whose] of Object.entries(OF_CONVERSATIONS)) {
    if (templateArgs && name in templateArgs)
      throw new QSFError('bad_argument', `templateArgs cannot replace ${name}: ${whose}`);
  }
  return {
    template: template ?? '',
    values: json('the conversation', {
      ...{ messages, ...(tools && { tools }), add_generation_prompt: !endsWithAnswer(messages) },
    }),
    more: templateArgs ? json('templateArgs', templateArgs) : '',
  };
}

function grammarOf(format: ResponseFormat | undefined): GenerateRequest['grammar'] {
  if (format === undefined) return undefined;
  checkKind('responseFormat', 'object', format);
  switch (format.type) {
    case 'json_object':
      return { kind: 'json_schema', text: '{"type":"object"}' };
    case 'json_schema': {
      const schema: unknown = 'schema' in format ? format.schema : format.json_schema?.schema;
      if (typeof schema === 'boolean' || (typeof schema === 'object' && schema !== null))
        return { kind: 'json_schema', text: json('the schema', schema) };
      throw new QSFError('bad_argument', `responseFormat.schema is ${kindOf(schema)}; it must be an object`);
    }
    case 'regex':
      return { kind: 'regex', text: textOf('pattern', format.pattern) };
    case 'gbnf':
      return { kind: 'gbnf', text: textOf('grammar', format.grammar) };
  }
  const type = kindOf((format as { type: unknown }).type);
  throw new QSFError(
    'bad_argument',
    `responseFormat.type is ${type}; it must be json_schema, json_object, regex or gbnf`,
  );
}

function textOf(name: string, text: unknown): string {
  if (typeof text === 'string') return text;
  throw new QSFError('bad_argument', `responseFormat.${name} is ${kindOf(text)}; it must be a text`);
}

function json(what: string, value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch (error) {
    throw new QSFError('bad_argument', `${what} has no form in JSON: ${messageOf(error)}`);
  }
}

export function embedRequest(texts: readonly Prompt[], options: EmbedOptions): EmbedRequest {
  checkKnown('embed()', options, EMBED);
  checkSignal(options.signal);
  if (!Array.isArray(texts)) {
    throw new QSFError('bad_argument', `the texts are ${kindOf(texts)}; they must be a text or a list of texts`);
  }
  const { pooling, normalize, ...rest } = options;
  return {
    ...checkOptions(embeddingOptions, rest),
    texts: texts.map(promptOf),
    pooling: checkName('pooling', poolings.slice(1), pooling),
    normalize: checkKind('normalize', 'boolean', normalize),
  };
}

export function rerankRequest(query: string, texts: readonly string[], options: RerankOptions): EmbedRequest {
  checkKnown('rerank()', options, RERANK);
  checkSignal(options.signal);
  if (typeof query !== 'string' || !Array.isArray(texts) || !texts.every((text) => typeof text === 'string')) {
    throw new QSFError('bad_argument', 'rerank() takes a query, which is a text, and a list of texts');
  }
  return { ...embedRequest(texts, {}), query };
}

export function saveRequest(options: SaveOptions): SaveRequest {
  checkKnown('save()', options, SAVE);
  sequenceIn(options);
  const { messages, name } = options;
  const wanted = 'a list of objects with a role';
  if (messages !== undefined && !Array.isArray(messages))
    throw new QSFError('bad_argument', `the messages are ${kindOf(messages)}; they must be ${wanted}`);
  return {
    messages: messages === undefined ? '' : json('the conversation', messagesOf(messages, wanted)),
    name: name === undefined ? undefined : savedName(name),
  };
}

/** Checks the options of a call that has no others. Throws bad_argument. */
export function sequenceOf(what: string, options: SequenceOptions): SequenceOptions {
  checkKnown(what, options, { sequence: true });
  return sequenceIn(options);
}

function sequenceIn(options: SequenceOptions): SequenceOptions {
  if (options.sequence !== undefined) checkOption('sequence', SEQUENCE, options.sequence);
  return options;
}

/** Returns the argument of the worker's restore(). */
export function restoreRequest(from: Blob | string): Blob | string {
  if (from instanceof Blob) return from;
  if (typeof from === 'string') return savedName(from);
  throw new QSFError('bad_argument', `the saved sequence is ${kindOf(from)}; it must be a Blob or a name`);
}

/** Returns the arguments of the worker's tokenize(). */
export function tokenizeRequest(text: string, options: { special?: boolean | undefined }): [string, boolean] {
  checkKnown('tokenize()', options, { special: true });
  if (typeof text === 'string') return [text, checkKind('special', 'boolean', options.special) ?? true];
  throw new QSFError('bad_argument', `the text is ${kindOf(text)}; it must be a string`);
}

/** Returns the argument of the worker's rewind(). */
export const positionOf = (position: number): number => checkOption('position', whole(NaN), position);

/** Returns the arguments of the worker's detokenize(). */
export function detokenizeRequest(
  tokens: ArrayLike<number>,
  options: { special?: boolean | undefined },
): [Uint32Array, boolean] {
  checkKnown('detokenize()', options, { special: true });
  return [tokenIds(tokens), checkKind('special', 'boolean', options.special) ?? false];
}

function tokenIds(tokens: ArrayLike<number>): Uint32Array {
  if (typeof tokens !== 'object' || typeof (tokens as ArrayLike<number> | null)?.length !== 'number') {
    throw new QSFError('bad_argument', `the tokens are ${kindOf(tokens)}; they must be a list of token ids`);
  }
  if (tokens.length > MOST_TOKENS)
    throw new QSFError('bad_argument', `there are ${tokens.length} tokens; there can be ${MOST_TOKENS}`);
  return Uint32Array.from(tokens, (id) => {
    if (Number.isInteger(id) && id >= 0 && id <= 0xffffffff) return id;
    throw new QSFError('bad_token', `${kindOf(id)} is not a token id`);
  });
}

function promptOf(prompt: Prompt): string | Uint32Array {
  if (typeof prompt === 'string') return prompt;
  const parts: readonly unknown[] = Array.isArray(prompt) ? prompt : [];
  if (parts.some((part) => typeof part === 'object' || typeof part === 'string')) {
    const what = typeof parts[0] === 'string' ? 'texts' : 'objects, such as chat messages';
    throw new QSFError(
      'bad_argument',
      `the prompt is a list of ${what}; it must be one text, or token ids; ${AS_TEXT}`,
    );
  }
  if (Array.isArray(prompt) || ArrayBuffer.isView(prompt)) return tokenIds(prompt);
  throw new QSFError('bad_argument', `the prompt is ${kindOf(prompt)}; it must be text or token ids`);
}

const AS_TEXT = 'chat() answers messages';

function stopsOf(stop: string | readonly string[]): string[] {
  const stops: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  if (stops.length <= MOST_STOPS && stops.every((text) => typeof text === 'string')) return [...stops];
  const given = Array.isArray(stop) ? `a list of ${stop.length}` : kindOf(stop);
  throw new QSFError('bad_argument', `stop is ${given}; it must be a text or a list of at most ${MOST_STOPS} texts`);
}

function memoryOf(given = DEFAULT_MEMORY): number {
  const memory = typeof given === 'number' ? Math.ceil(given / PAGE) * PAGE : NaN;
  if (memory > 0 && memory <= MOST_MEMORY) return memory;
  throw new QSFError(
    'bad_argument',
    `memory is ${shown(given)} bytes; it must be more than 0 and at most ${MOST_MEMORY} (4 GiB - 64 KiB)`,
  );
}

function networkOf(network: NetworkOptions): Network {
  checkKnown('network', network, NETWORK);
  checkOptions(networkNumbers, network);
  checkName('network.credentials', CREDENTIALS, network.credentials);
  const given: NetworkOptions = { ...network };
  if (network.headers !== undefined) given.headers = headersOf(network.headers);
  const names = Object.keys(NETWORK) as (keyof NetworkOptions)[];
  return Object.fromEntries(names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]));
}

/** Returns headers in a form that crosses to a worker. No sentence contains their values, which may be secret. */
function headersOf(given: HeadersInit): Record<string, string> {
  const refused = (what: string) =>
    new QSFError('bad_argument', `network.headers ${what}; it must be an object of names and values, or a Headers`);
  if (typeof given !== 'object' || given === null) throw refused(`is ${kindOf(given)}`);
  try {
    return Object.fromEntries(new Headers(given));
  } catch {
    throw refused('has a name or a value that no request can have');
  }
}

export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new QSFError('bad_argument', `signal is ${kindOf(signal)}; it must be an AbortSignal`);
}
