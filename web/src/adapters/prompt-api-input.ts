// The Prompt API's arguments as messages and options of chat(), and its errors.
import type {
  CoreOptions,
  Message,
  MessageContent,
  PromptInput,
  PromptOptions,
  SamplingMode,
} from './prompt-api-types.js';
import type { ErrorName, QSFError } from '../errors.js';
import type { ResponseFormat } from '../format-types.js';
import type { ChatMessage, ChatOptions } from '../types.js';

/** Temperatures of the modes. */
const MODES: Record<SamplingMode, number> = {
  'most-predictable': 0,
  predictable: 0.4,
  balanced: 0.7,
  creative: 1,
  'most-creative': 1.3,
};

const notSupported = (sentence: string) => new DOMException(sentence, 'NotSupportedError');

/** Returns the messages of an input. Rejects other content than texts with NotSupportedError. */
export function messagesOf(input: PromptInput, mayBegin: boolean): ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  if (!Array.isArray(input)) throw new TypeError('The input must be a text or a list of messages.');
  return input.map((message, i) => messageOf(message, mayBegin && i === 0));
}

function messageOf({ role, content, prefix }: Message, mayBeSystem: boolean): ChatMessage {
  if (!['system', 'user', 'assistant'].includes(role))
    throw new TypeError(`The role is ${String(role)}; it must be system, user or assistant.`);
  if (role === 'system' && !mayBeSystem)
    throw new TypeError('Only the first message of initialPrompts may have the role system.');
  if (prefix === true) throw notSupported('The beginning of an answer (prefix) is not supported.');
  if (typeof content === 'string') return { role, content };
  if (!Array.isArray(content)) throw new TypeError('The content must be a text or a list of parts.');
  return { role, content: content.map(textOf).join('') };
}

function textOf({ type, value }: MessageContent): string {
  if (type !== 'text') throw notSupported(`Content of the type ${String(type)} is not supported; it must be text.`);
  if (typeof value === 'string') return value;
  throw new TypeError('The value of a text must be a string.');
}

/** Whether everything that is expected is text. */
export const isText = ({ expectedInputs = [], expectedOutputs = [] }: CoreOptions): boolean =>
  [...expectedInputs, ...expectedOutputs].every(({ type }) => type === 'text');

/** Returns the session's options of sampling. */
export function samplingOf({ topK, temperature, samplingMode }: CoreOptions): ChatOptions {
  if (samplingMode !== undefined) {
    if (topK !== undefined || temperature !== undefined)
      throw new TypeError('samplingMode is given with topK or temperature; give one of them.');
    if (!(samplingMode in MODES)) throw new TypeError(`samplingMode is ${String(samplingMode)}.`);
    return { temperature: MODES[samplingMode] };
  }
  if (topK !== undefined && !(topK >= 1)) throw new RangeError(`topK is ${topK}; it must be at least 1.`);
  if (temperature !== undefined && !(temperature >= 0))
    throw new RangeError(`temperature is ${temperature}; it must be at least 0.`);
  return {
    ...(topK !== undefined && { topK: Math.floor(topK) }),
    ...(temperature !== undefined && { temperature }),
  };
}

/** Returns the texts that an answer may be. */
export function formatOf({ responseConstraint: constraint }: PromptOptions): ResponseFormat | undefined {
  if (constraint === undefined) return undefined;
  if (constraint instanceof RegExp) {
    const [flag] = /[ims]/.exec(constraint.flags) ?? [];
    if (flag !== undefined) throw notSupported(`The flag ${flag} of a regular expression is not supported.`);
    return { type: 'regex', pattern: constraint.source };
  }
  if (typeof constraint === 'object' && constraint !== null) return { type: 'json_schema', schema: constraint };
  throw new TypeError('responseConstraint must be a JSON schema or a regular expression.');
}

/** Returns the error of a text that is longer than the context. */
export function quotaExceeded(requested: number, quota: number): DOMException {
  const sentence = `The input has ${requested} tokens; the context has room for ${quota}.`;
  const numbers = { requested, quota };
  const own = (globalThis as { QuotaExceededError?: new (sentence: string, numbers: object) => DOMException })
    .QuotaExceededError;
  return own ? new own(sentence, numbers) : Object.assign(new DOMException(sentence, 'QuotaExceededError'), numbers);
}

/** Names of DOMExceptions by the codes of errors; UnknownError for all others. */
const NAMES: Partial<Record<ErrorName, string>> = {
  context_full: 'QuotaExceededError',
  unsupported: 'NotSupportedError',
  bad_argument: 'NotSupportedError',
  bad_template: 'NotSupportedError',
  template_refusal: 'NotSupportedError',
  bad_state: 'InvalidStateError',
  cancelled: 'AbortError',
  network_error: 'NetworkError',
  http_status: 'NetworkError',
};

/** Returns the Prompt API's form of any error of a model. Errors of others stay as they are. */
export function asDomException(error: unknown): unknown {
  const { name, code, message = '' } = error as Partial<QSFError>;
  if (name !== 'QSFError') return error;
  return new DOMException(message, (code && NAMES[code]) ?? 'UnknownError');
}
