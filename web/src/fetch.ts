// The entry `qsf/fetch`: a fetch() for clients of OpenAI's interface, answered by a model in the page.
import { checkModel } from './adapters/checks.js';
import { inTurn, streamInTurn } from './adapters/turns.js';
import type { ErrorName, QSFError } from './errors.js';
import type { ChatCompletionCreateParams, CompletionCreateParams, EmbeddingCreateParams } from './openai-types.js';
import type { QSF } from './page/qsf.js';

/** The calls of a model that answer requests. */
export type ServedModel = Pick<QSF, 'chat' | 'completions' | 'embeddings'> & Partial<Pick<QSF, 'rerank'>>;

/** The parameters of a request. */
type Params = Readonly<Record<string, unknown>>;

const CALLS = ['chat', 'completions', 'embeddings'] satisfies (keyof ServedModel)[];

/** The status of an error by its code. Every other error has 500, or 503 if it may pass. */
const STATUS: Partial<Record<ErrorName, number>> = {
  bad_argument: 400,
  unsupported: 400,
  bad_token: 400,
  bad_text: 400,
  bad_input: 400,
  context_full: 400,
  bad_template: 400,
  template_refusal: 400,
  bad_state: 409,
};
/** Chunks before a stream is a response: the role, which computes nothing, and the first part of the answer. */
const AHEAD = 2;

/** The error of a response, in OpenAI's shape. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string,
    /** Whether the same request may succeed later. */
    readonly mayPass = false,
    /** The parameter that is the reason, if one is. */
    readonly param: string | null = null,
  ) {
    super(message);
  }

  get body(): object {
    const type = this.status < 500 ? 'invalid_request_error' : 'server_error';
    return { error: { message: this.message, type, param: this.param, code: this.code } };
  }
}

/**
 * Returns a fetch() that answers OpenAI's requests by a model and sends nothing: `/chat/completions`, `/completions`,
 * `/embeddings`, `/rerank`, `/models` and `/models/NAME`, at the end of any address. One model answers for every name. An object
 * has a model for each name, and another name is refused with 404. Requests to one model take turns. Errors are
 * responses with a status and OpenAI's error object; an abort rejects with the signal's reason. Throws bad_argument for
 * anything but models.
 */
export function openaiFetch(models: ServedModel | Readonly<Record<string, ServedModel>>): typeof fetch {
  const created = Math.floor(Date.now() / 1000);
  const CALL = 'openaiFetch()';
  if (typeof models !== 'object' || models === null || Object.keys(models).length === 0)
    checkModel(CALL, models, CALLS);
  const only = 'embeddings' in models && 'completions' in models ? (models as ServedModel) : undefined;
  const served = new Map(Object.entries(only ? { qsf: only } : (models as Record<string, ServedModel>)));
  for (const model of served.values()) checkModel(CALL, model, CALLS);
  const about = (id: string) => ({ id, object: 'model', created, owned_by: 'qsf' });

  const named = (name: unknown): ServedModel => {
    const model = only ?? served.get(String(name));
    if (model) return model;
    throw new Refusal(
      404,
      `The model ${JSON.stringify(name)} does not exist; known are ${[...served.keys()].join(', ')}.`,
      'model_not_found',
    );
  };

  const answer = async (request: Request, signal: AbortSignal | undefined): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const [, path = '', name] =
      /\/(chat\/completions|completions|embeddings|rerank|models(?:\/(.+))?)$/.exec(pathname) ?? [];
    if (path === '') throw new Refusal(404, `${request.method} ${pathname} is not served.`, 'unknown_url');
    const method = path.startsWith('models') ? 'GET' : 'POST';
    if (request.method !== method)
      throw new Refusal(405, `${pathname} is for ${method}, not ${request.method}.`, 'method_not_allowed');
    if (path === 'models') return json({ object: 'list', data: [...served.keys()].map(about) });
    if (name !== undefined) {
      const id = decoded(name);
      named(id);
      return json(about(id));
    }
    const params = await paramsOf(request);
    const model = named(params.model);
    try {
      return await called(path, model, params, signal);
    } catch (error) {
      throw refusalOf(error, params);
    }
  };

  const called = async (
    path: string,
    model: ServedModel,
    params: Params,
    signal: AbortSignal | undefined,
  ): Promise<Response> => {
    if (path === 'embeddings')
      return json(
        await inTurn(model, signal, () =>
          model.embeddings.create(params as unknown as EmbeddingCreateParams, { signal }),
        ),
      );
    if (path === 'rerank') return json(await inTurn(model, signal, () => ranking(model, params, signal)));
    const create = (signal: AbortSignal | undefined): Promise<object> =>
      path === 'completions'
        ? model.completions.create(params as unknown as CompletionCreateParams, { signal })
        : model.chat.completions.create(params as unknown as ChatCompletionCreateParams, { signal });
    if (params.stream !== true) return json(await inTurn(model, signal, () => create(signal)));
    const events = await streamInTurn(model, signal, AHEAD, async (own) =>
      eventsOf((await create(own)) as AsyncIterable<object>, params, own),
    );
    const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
    return new Response(events.pipeThrough(new TextEncoderStream()), { headers });
  };

  return async (input, init) => {
    const given = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    given?.throwIfAborted();
    // The signal of a Request follows another one only as long as that Request is used.
    const request = new Request(input, { ...init, signal: null });
    try {
      return await answer(request, given);
    } catch (error) {
      if (given?.aborted) throw given.reason;
      const refusal = refusalOf(error, {});
      return json(refusal.body, refusal.status, { 'x-should-retry': String(refusal.mayPass) });
    }
  };
}

/** Returns the text that a part of an address encodes, or the part itself if it encodes none. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const json = (value: object, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } });

/** Returns the best documents of a request in the shape of servers that rerank. OpenAI's interface has none. */
async function ranking(
  served: ServedModel,
  { model, query, documents, top_n: most }: Params,
  signal: AbortSignal | undefined,
): Promise<object> {
  if (!served.rerank) throw new Refusal(400, 'This model cannot rerank.', 'unsupported');
  if (most !== undefined && !(Number.isInteger(most) && Number(most) > 0))
    throw new Refusal(400, 'top_n is not a whole number above 0.', 'bad_argument', false, 'top_n');
  const ranked = await served.rerank(query as string, documents as string[], { signal });
  const best = ranked.slice(0, most as number | undefined);
  const results = best.map(({ index, score }) => ({ index, relevance_score: score }));
  return { object: 'list', model, results };
}

/** Returns the parameters in a request's body. */
async function paramsOf(request: Request): Promise<Params> {
  const text = await request.text();
  try {
    const params: unknown = JSON.parse(text);
    if (typeof params === 'object' && params !== null && !Array.isArray(params)) return params as Params;
  } catch {
    // The refusal is the same for text that is not JSON.
  }
  throw new Refusal(400, 'The body is not an object in JSON.', 'bad_argument');
}

/** Yields chunks as events. An error after the first events is an event too, because the status was sent before. */
async function* eventsOf(chunks: AsyncIterable<object>, params: Params, signal: AbortSignal): AsyncGenerator<string> {
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
  let count = 0;
  try {
    for await (const chunk of chunks) {
      yield event(chunk);
      count++;
    }
  } catch (error) {
    if (signal.aborted || count < AHEAD) throw error;
    yield event(refusalOf(error, params).body);
    return;
  }
  yield 'data: [DONE]\n\n';
}

/** Returns any error as one of a response to these parameters. */
function refusalOf(error: unknown, params: Params): Refusal {
  if (error instanceof Refusal) return error;
  const { name, code, message = '', mayPass } = error as Partial<QSFError>;
  if (name !== 'QSFError' || code === undefined) return new Refusal(500, String(error), 'internal');
  const status = STATUS[code] ?? (mayPass ? 503 : 500);
  const param = status === 400 ? paramOf(code, message, params) : null;
  return new Refusal(status, message, code, mayPass === true || code === 'bad_state', param);
}

/** The parameters that are texts for the model. */
const TEXTS = ['messages', 'prompt', 'input', 'documents'];
/** The codes of errors that only these texts cause. */
const OF_TEXTS: readonly ErrorName[] = ['context_full', 'bad_token', 'template_refusal'];

/** Returns the path of the parameter that a sentence begins with or quotes, or null. Options have OpenAI's names. */
function paramOf(code: ErrorName, sentence: string, params: Params): string | null {
  const [, unknown] = /^\S+ has no option "([^"]+)"/.exec(sentence) ?? [];
  const [, path = ''] = /^(?:the )?([\w.[\]]+)/.exec(sentence) ?? [];
  const named = unknown ?? path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const [root = ''] = /^\w+/.exec(named) ?? [];
  if (Object.hasOwn(params, root) || TEXTS.includes(root)) return named;
  const text = TEXTS.find((name) => Object.hasOwn(params, name));
  if (text && root === 'texts') return named.replace(root, text);
  return (OF_TEXTS.includes(code) && text) || null;
}
