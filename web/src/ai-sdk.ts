// The entry `qsf/ai-sdk`: models in the page as those of the AI SDK, by its specification `v4` or `v3`.
import { optionsOf } from './adapters/ai-sdk-options.js';
import type {
  CallOptions,
  Content,
  EmbeddingModel,
  Finish,
  LanguageModel,
  Specification,
  StreamPart,
  Usage,
  Warning,
} from './adapters/ai-sdk-types.js';
import { checkModel } from './adapters/checks.js';
import { inTurn, streamInTurn } from './adapters/turns.js';
import type { CallPart, ChatResult, ChatStream } from './answer-types.js';
import { checkKind, checkKnown, checkName } from './page/options.js';
import { finishOfChat, usageOf } from './page/usage.js';
import type { QSF } from './page/qsf.js';
import { randomName } from './random-name.js';

export type { CallOptions, EmbeddingModel, LanguageModel, Specification, StreamPart, Warning };

/** The provider's name, under which `providerOptions` has options of chat(). */
const PROVIDER = 'qsf';
/** Parts before a stream is returned: its start, the answer's head, and the first part of the answer. */
const AHEAD = 3;

/** Options of a model for the AI SDK. */
export interface ModelOptions<S extends Specification = Specification> {
  /** The model's name, which results repeat. Default `local`. */
  id?: string | undefined;
  /** The SDK's specification: `v4` for version 7, which is the default, or `v3` for version 6. */
  specificationVersion?: S | undefined;
}

/**
 * Returns a model for generateText(), streamText() and the rest of the AI SDK. Calls of one model take turns. A setting
 * that the model does not have becomes a warning of the result; files in messages reject with the SDK's
 * UnsupportedFunctionalityError. Errors are those of chat().
 */
export function languageModel<S extends Specification = 'v4'>(
  llm: Pick<QSF, 'chat'>,
  options: ModelOptions<S> = {},
): LanguageModel<S> {
  const identity = identityOf('languageModel()', llm, 'chat', options);
  const begin = (options: CallOptions, signal: AbortSignal | undefined) => {
    const { messages, chat, warnings } = optionsOf(options, PROVIDER);
    const response = { id: randomName(), timestamp: new Date(), modelId: identity.modelId };
    return { answer: () => llm.chat(messages, { ...chat, signal }), warnings, response };
  };
  return {
    ...identity,
    supportedUrls: {},
    async doGenerate(options) {
      const { answer, warnings, response } = begin(options, options.abortSignal);
      return inTurn(llm, options.abortSignal, async () => {
        const stream = answer();
        const content: Content[] = [];
        for await (const part of stream.parts()) {
          if (part.type === 'call') content.push(callOf(part));
          else append(content, part.type === 'thought' ? 'reasoning' : 'text', part.text);
        }
        return { content, ...endOf(await stream.result), response, warnings };
      });
    },
    async doStream(options) {
      optionsOf(options, PROVIDER); // refuses before the turn
      const stream = await streamInTurn(llm, options.abortSignal, AHEAD, (signal) => {
        const { answer, warnings, response } = begin(options, signal);
        return partsOf(answer(), warnings, response, signal);
      });
      return { stream };
    },
  };
}

/** Returns a model for embed() and embedMany(). */
export function embeddingModel<S extends Specification = 'v4'>(
  llm: Pick<QSF, 'embeddings'>,
  options: ModelOptions<S> = {},
): EmbeddingModel<S> {
  return {
    ...identityOf('embeddingModel()', llm, 'embeddings', options),
    ...{ maxEmbeddingsPerCall: undefined, supportsParallelCalls: false },
    async doEmbed({ values, dimensions, abortSignal: signal }) {
      const create = () => llm.embeddings.create({ input: values, dimensions, encoding_format: 'float' }, { signal });
      const { data, usage } = await inTurn(llm, signal, create);
      return {
        embeddings: data.map(({ embedding }) => embedding),
        usage: { tokens: usage.total_tokens },
        warnings: [],
      };
    },
  };
}

/** Returns how the SDK knows the model. Throws bad_argument for arguments that are none. */
function identityOf<S extends Specification>(what: string, llm: unknown, member: string, options: ModelOptions<S>) {
  checkModel(what, llm, [member]);
  checkKnown(what, options, { id: true, specificationVersion: true });
  const modelId = checkKind('id', 'string', options.id) ?? 'local';
  const named = checkName('specificationVersion', ['v3', 'v4'], options.specificationVersion) ?? 'v4';
  return { specificationVersion: named as S, provider: PROVIDER, modelId };
}

/** Adds text to the last part if that has the type, else as a part. */
function append(content: Content[], type: 'text' | 'reasoning', text: string): void {
  const last = content.at(-1);
  if (last?.type === type) last.text += text;
  else content.push({ type, text });
}

const callOf = ({ id, name, arguments: values }: CallPart): Extract<Content, { type: 'tool-call' }> => ({
  ...{ type: 'tool-call', toolCallId: id, toolName: name, input: JSON.stringify(values) },
});

/** Yields an answer's parts. An error after the answer's first part is a part too, except an abort. */
async function* partsOf(
  answer: ChatStream,
  warnings: Warning[],
  response: { id: string; timestamp: Date; modelId: string },
  signal: AbortSignal,
): AsyncGenerator<StreamPart> {
  yield { type: 'stream-start', warnings };
  yield { type: 'response-metadata', ...response };
  let open: { kind: 'text' | 'reasoning'; id: string } | undefined;
  let blocks = 0;
  let begun = false;
  const closed = function* (): Generator<StreamPart> {
    if (open) yield { type: `${open.kind}-end`, id: open.id };
    open = undefined;
  };
  try {
    for await (const part of answer.parts()) {
      begun = true;
      if (part.type === 'call') {
        yield* closed();
        const call = callOf(part);
        const { toolCallId: id, toolName, input: delta } = call;
        yield { type: 'tool-input-start', id, toolName };
        yield { type: 'tool-input-delta', id, delta };
        yield { type: 'tool-input-end', id };
        yield call;
        continue;
      }
      const kind = part.type === 'thought' ? 'reasoning' : 'text';
      if (open?.kind !== kind) {
        yield* closed();
        open = { kind, id: String(blocks++) };
        yield { type: `${kind}-start`, id: open.id };
      }
      yield { type: `${kind}-delta`, id: open.id, delta: part.text };
    }
    yield* closed();
    yield { type: 'finish', ...endOf(await answer.result) };
  } catch (error) {
    if (signal.aborted || !begun) throw error;
    yield { type: 'error', error };
  }
}

function endOf(result: ChatResult): { finishReason: Finish; usage: Usage } {
  const finish = finishOfChat(result, result.message.tool_calls?.length ?? 0);
  const { prompt_tokens: total, completion_tokens, prompt_tokens_details } = usageOf(result);
  const { cached_tokens: cacheRead } = prompt_tokens_details;
  return {
    finishReason: { unified: finish === 'tool_calls' ? 'tool-calls' : finish, raw: result.end },
    usage: {
      inputTokens: { total, noCache: total - cacheRead, cacheRead, cacheWrite: undefined },
      outputTokens: { total: completion_tokens, text: undefined, reasoning: undefined },
    },
  };
}
