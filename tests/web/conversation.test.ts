// Conversations that are kept: the messages after each call, and the model's input.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { AnswerPiece } from '../../web/src/boundary.gen.js';
import type { ChatRequest, Reply } from '../../web/src/contract.js';
import type { ConversationOptions } from '../../web/src/conversation-types.js';
import { Conversation } from '../../web/src/page/conversation.js';
import { QSF } from '../../web/src/page/qsf.js';
import type { ChatMessage, Stats } from '../../web/src/types.js';
import { until } from './fake-engine.js';
import { failure, installFakeWorker, removeFakeWorker, result } from './fake-worker.js';
import type { Backend } from './fake-worker.js';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const answer = (content: string): ChatMessage => ({ role: 'assistant', content });
const system: ChatMessage = { role: 'system', content: 'Be brief.' };
const exchanged = [user('a'), answer('A'), user('b'), answer('B')];

let backend: Backend;
let llm: QSF;
beforeEach(async () => {
  backend = installFakeWorker();
  llm = await QSF.load('https://example.org/model.qsf');
});
afterEach(removeFakeWorker);

/** The messages that the n-th last answer was made for. */
const asked = (n = 1) =>
  (JSON.parse((backend.starts.at(-n)!.prompt as ChatRequest).values) as { messages: ChatMessage[] }).messages;

/** A stop of the worker, after which the generation has ended. */
function willStop(): void {
  backend.answers.stop = async () => ({ ok: true, value: { ...result, end: 'cancelled' } });
}

describe('a conversation', () => {
  it('keeps what is sent and answered, and gives the model all of it', async () => {
    const talk = llm.conversation({ system: 'Be brief.', maxTokens: 5, seed: 1 });
    expect(talk.messages).toEqual([system]);
    backend.will(['H', 'i']);
    expect(await talk.send('Hello')).toBe('Hi');
    expect(talk.messages).toEqual([system, user('Hello'), answer('Hi')]);
    expect(backend.starts[0]).toMatchObject({ maxTokens: 5, seed: 1 });
    backend.will(['!']);
    const stream = talk.send('Bye', { maxTokens: 2, seed: undefined });
    const pieces: string[] = [];
    for await (const piece of stream) pieces.push(piece);
    expect(pieces).toEqual(['!']);
    expect(await stream.result).toMatchObject({ end: 'length', message: answer('!') });
    expect(asked()).toEqual([system, user('Hello'), answer('Hi'), user('Bye')]);
    expect(backend.starts[1]).toMatchObject({ maxTokens: 2, seed: 1 });
  });

  it('keeps thoughts and calls as templates take them, and the results of calls', async () => {
    const tools = [{ type: 'function', function: { name: 'now' } }];
    const talk = llm.conversation({ tools });
    const pieces: AnswerPiece[] = [
      { kind: 'thought', text: 'Which time' },
      { kind: 'thought', text: '?' },
      { kind: 'call', text: 'now' },
      { kind: 'arguments', text: '{"zone":"UTC"}' },
    ];
    backend.willAnswer(...pieces);
    const stream = talk.send('What time is it?');
    const parts = [];
    for await (const part of stream.parts()) parts.push(part);
    const { message } = await stream.result;
    const [call] = message.tool_calls!;
    expect(parts.at(-1)).toEqual({ type: 'call', id: call!.id, name: 'now', arguments: { zone: 'UTC' } });
    expect(talk.messages.at(-1)).toEqual({
      ...{ role: 'assistant', content: '', reasoning_content: 'Which time?' },
      tool_calls: [{ id: call!.id, type: 'function', function: { name: 'now', arguments: { zone: 'UTC' } } }],
    });
    backend.will(['Noon.']);
    const told = { role: 'tool', tool_call_id: call!.id, content: '12:00' };
    expect(await talk.send(told)).toBe('Noon.');
    expect(asked()).toEqual([user('What time is it?'), message, told]);
    expect(JSON.parse((backend.starts[1]!.prompt as ChatRequest).values)).toMatchObject({ tools });
    backend.will(['Midday.']);
    expect(await talk.regenerate()).toBe('Midday.');
    expect(asked()).toHaveLength(3);
    expect(talk.undo()).toHaveLength(4);
    expect(talk.messages).toEqual([]);
  });

  it('holds each answer by its options, and by those of the call first', async () => {
    const talk = llm.conversation({ tools: [{ name: 'f' }], toolChoice: { name: 'f' }, reasoningBudget: 9 });
    backend.will(['A']);
    await talk.send('a');
    expect(backend.starts[0]!.hold).toEqual({ thought: 9, calls: { required: true, only: 'f' } });
    backend.will(['B']);
    await talk.send('b', { toolChoice: 'auto', reasoningBudget: -1 });
    expect(backend.starts[1]!.hold).toEqual({ thought: undefined, calls: { required: false, only: '' } });
  });

  it('has copies that nobody changes, in lists that are new with each change', async () => {
    const given = user('a');
    const talk = llm.conversation({ messages: [given] });
    const before = talk.messages;
    given.content = 'changed';
    expect(before).toEqual([user('a')]);
    expect(() => ((before[0] as ChatMessage).content = 'changed')).toThrow(TypeError);
    expect(() => (before as ChatMessage[]).push(given)).toThrow(TypeError);
    backend.will(['A']);
    const stream = talk.regenerate();
    await stream;
    (await stream.result).message.content = 'changed';
    expect(before).toHaveLength(1);
    expect(talk.messages).toEqual([user('a'), answer('A')]);
  });

  it('begins an answer when it is first read, and has the message from then on', async () => {
    const talk = llm.conversation();
    backend.will(['A'], ['B']);
    const stream = talk.send('a');
    expect(talk.messages).toEqual([]);
    await stream.next();
    expect(talk.messages).toEqual([user('a')]);
    await stream;
    expect(talk.messages).toEqual([user('a'), answer('AB')]);
  });

  it('replaces the last answer', async () => {
    const talk = llm.conversation({ messages: exchanged });
    backend.will(['C']);
    await talk.regenerate();
    expect(asked()).toEqual(exchanged.slice(0, 3));
    expect(talk.messages).toEqual([...exchanged.slice(0, 3), answer('C')]);
  });

  it('goes back to a message and answers another text, or another message', async () => {
    const talk = llm.conversation({
      system: 'Be brief.',
      messages: [{ ...user('a'), name: 'me' }, ...exchanged.slice(1)],
    });
    backend.will(['C']);
    await talk.edit(1, 'c');
    expect(talk.messages).toEqual([system, { ...user('c'), name: 'me' }, answer('C')]);
    backend.will(['D']);
    await talk.edit(1, user('d'));
    expect(talk.messages).toEqual([system, user('d'), answer('D')]);
  });

  it('forks, and both go on apart', async () => {
    const talk = llm.conversation({ messages: exchanged, maxTokens: 3 });
    const [fork, short] = [talk.fork(), talk.fork(2)];
    backend.will(['C']);
    await fork.send('c');
    expect(backend.starts[0]).toMatchObject({ maxTokens: 3 });
    expect(talk.messages).toEqual(exchanged);
    expect(fork.messages).toEqual([...exchanged, user('c'), answer('C')]);
    expect(short.messages).toEqual(exchanged.slice(0, 2));
    expect(() => talk.fork(5)).toThrow('n is 5; it must be a whole number from 0 to 4');
  });

  it('takes the last turn back', () => {
    const talk = llm.conversation({ system: 'Be brief.', messages: exchanged });
    expect(talk.undo()).toEqual(exchanged.slice(2));
    expect(talk.undo()).toEqual(exchanged.slice(0, 2));
    expect(talk.undo()).toEqual([]);
    expect(talk.messages).toEqual([system]);
  });

  describe('whose answer does not come to its end', () => {
    const failed: Reply<never> = failure('io_error', 'The disk failed.');

    it.each(['send', 'edit', 'regenerate'] as const)('by an error is as it was before %s()', async (call) => {
      const talk = llm.conversation({ messages: exchanged });
      const stream = { send: () => talk.send('c'), edit: () => talk.edit(0, 'c'), regenerate: () => talk.regenerate() };
      backend.batches = [{ pieces: ['C'] }];
      backend.answers.next = async () => {
        const [value] = backend.batches.splice(0, 1);
        return value ? { ok: true, value } : failed;
      };
      const answering = stream[call]();
      expect(await answering.next()).toEqual({ value: 'C', done: false });
      await expect(answering.text()).rejects.toMatchObject({ code: 'io_error' });
      await expect(answering.result).rejects.toMatchObject({ code: 'io_error' });
      expect(talk.messages).toEqual(exchanged);
      backend.answers.start = async () => failed;
      await expect(stream[call]()).rejects.toMatchObject({ code: 'io_error' });
      expect(talk.messages).toEqual(exchanged);
    });

    it('by an abort keeps what was shown', async () => {
      const talk = llm.conversation({ messages: exchanged });
      const abort = new AbortController();
      backend.will(['C', 'D'], ['E']);
      const stream = talk.send('c', { signal: abort.signal });
      const pieces: string[] = [];
      const reading = (async () => {
        for await (const piece of stream) {
          pieces.push(piece);
          if (piece === 'D') abort.abort(new Error('enough'));
        }
      })();
      await expect(reading).rejects.toThrow('enough');
      await expect(stream.result).rejects.toThrow('enough');
      expect(talk.messages).toEqual([...exchanged, user('c'), answer('CD')]);
    });

    it('by an abort before anything was shown is as it was', async () => {
      const talk = llm.conversation({ messages: exchanged });
      const abort = new AbortController();
      backend.answers.next = () => new Promise(() => undefined);
      const reading = talk.regenerate({ signal: abort.signal }).text();
      await until(() => backend.calls.includes('next'));
      expect(talk.messages).toEqual(exchanged.slice(0, 3));
      abort.abort(new Error('enough'));
      await expect(reading).rejects.toThrow('enough');
      expect(talk.messages).toEqual(exchanged);
      await expect(talk.regenerate({ signal: abort.signal })).rejects.toThrow('enough');
      expect(talk.messages).toEqual(exchanged);
    });

    it('because its loop was left keeps what was shown', async () => {
      const talk = llm.conversation();
      willStop();
      backend.will(['C', 'D'], ['E']);
      const stream = talk.send('c');
      for await (const piece of stream) if (piece === 'D') break;
      expect(await stream.result).toMatchObject({ end: 'cancelled', message: answer('CD') });
      expect(talk.messages).toEqual([user('c'), answer('CD')]);
      expect(await stream).toBe('CD');
    });

    it('because its loop was left after an abort keeps it too', async () => {
      const talk = llm.conversation();
      const abort = new AbortController();
      backend.will(['C', 'D'], ['E']);
      const stream = talk.send('c', { signal: abort.signal });
      for await (const piece of stream)
        if (piece === 'C') {
          abort.abort(new Error('enough'));
          break;
        }
      await expect(stream.result).rejects.toThrow('enough');
      expect(talk.messages).toEqual([user('c'), answer('C')]);
    });

    it('allows no other change meanwhile', async () => {
      const talk = llm.conversation({ messages: exchanged });
      backend.will(['C'], ['D']);
      const stream = talk.send('c');
      await stream.next();
      const refused = { code: 'bad_state', message: expect.stringContaining('is being answered') as string };
      await expect(talk.send('d')).rejects.toMatchObject(refused);
      expect(() => talk.undo()).toThrow(expect.objectContaining(refused) as Error);
      expect(talk.fork().messages).toEqual([...exchanged, user('c')]);
      expect(await stream).toBe('CD');
      expect(talk.undo()).toEqual([user('c'), answer('CD')]);
    });
  });

  describe('saved', () => {
    it('is restored from its JSON, as text and as a value', async () => {
      const talk = llm.conversation({ system: 'Be brief.', messages: exchanged });
      const text = JSON.stringify(talk);
      expect(JSON.parse(text)).toEqual({ version: 1, messages: [system, ...exchanged] });
      for (const data of [text, talk.toJSON(), { ...talk.toJSON(), later: true }]) {
        const restored = Conversation.from(llm, data, { maxTokens: 3 });
        expect(restored.messages).toEqual(talk.messages);
        backend.will(['C']);
        await restored.send('c');
        expect(backend.starts.at(-1)).toMatchObject({ maxTokens: 3 });
      }
      expect(Conversation.from(llm, '{"version":1,"messages":[]}').messages).toEqual([]);
    });

    it('may have values of any depth, which newer browsers write as JSON', () => {
      const nested = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
      const messages = `[{"role":"user","content":"a","more":${nested}}]`;
      const written = vi.spyOn(JSON, 'stringify').mockReturnValue(messages);
      const restored = Conversation.from(llm, `{"version":1,"messages":${messages}}`);
      written.mockRestore();
      expect(Object.isFrozen(restored.messages[0]!['more'])).toBe(true);
    });

    it.each<[unknown, string]>([
      ['{', 'the saved conversation is not JSON: '],
      ['[]', 'the saved conversation is a list; it must be an object'],
      [null, 'the saved conversation is null; it must be an object'],
      [undefined, 'the saved conversation is undefined; it must be an object'],
      [{ messages: [] }, 'the version of the saved conversation is undefined; it must be 1'],
      [{ version: 2, messages: [] }, 'the version of the saved conversation is 2; it must be 1'],
      [{ version: '1', messages: [] }, 'the version of the saved conversation is a string; it must be 1'],
      [{ version: 1 }, 'messages of the saved conversation is undefined; it must be a list'],
      [{ version: 1, messages: 'Hi' }, 'messages of the saved conversation is a string; it must be a list'],
      [{ version: 1, messages: ['Hi'] }, 'they must be a text, or a list of objects with a role'],
      [{ version: 1, messages: [], dropped: {} }, 'dropped of the saved conversation is an object; it must be a list'],
    ])('in another form is refused: %o', (data, sentence) => {
      expect(() => Conversation.from(llm, data as string)).toThrow(
        expect.objectContaining({
          code: 'bad_argument',
          message: expect.stringContaining(sentence) as string,
        }) as Error,
      );
    });
  });

  it.each<[object | null, string]>([
    [null, 'the argument of conversation() is null'],
    [{ sytem: 'x' }, 'conversation() has no option "sytem"; did you mean system?'],
    [{ signal: AbortSignal.timeout(1) }, 'conversation() has no option "signal"'],
    [{ continue: true }, 'conversation() has no option "continue"'],
    [{ system: 5 }, 'system is 5; it must be a text'],
    [{ system: 'x', messages: [system] }, 'two system messages'],
    [{ messages: [5] }, 'they must be a text, or a list of objects with a role'],
    [{ messages: null }, 'the messages are null'],
    [{ messages: [{ role: 'user', content: 5n }] }, 'has no form in JSON'],
    [{ whenFull: 'shift' }, 'whenFull is "shift"; it must be one of end, drop'],
    [{ onDrop: true }, 'onDrop is true; it must be a function'],
    [{ temperature: -1 }, 'temperature is -1'],
    [{ tools: {} }, 'tools is an object'],
    [{ toolChoice: 'auto' }, 'toolChoice is given without tools'],
  ])('is not made of %o', (options, sentence) => {
    const refused = { code: 'bad_argument', message: expect.stringContaining(sentence) as string };
    expect(() => llm.conversation(options as ConversationOptions)).toThrow(expect.objectContaining(refused) as Error);
  });

  it.each<[string, (talk: Conversation) => Promise<unknown>, string]>([
    ['send(null)', (talk) => talk.send(null as never).text(), 'the message is null; it must be a text'],
    ['send({})', (talk) => talk.send({} as never).text(), 'the message is an object; it must be a text'],
    ['send() of a cycle', (talk) => talk.send(cyclic).text(), 'has no form in JSON'],
    ['send() with null', (talk) => talk.send('c', null as never).text(), 'the argument of send() is null'],
    ['send() with another option', (talk) => talk.send('c', { system: 'x' } as never).text(), 'send() has no option'],
    ['send() with another signal', (talk) => talk.send('c', { signal: {} as never }).text(), 'signal is an object'],
    ['an answer that is sent', (talk) => talk.send(answer('c')).text(), 'ends with an answer'],
    ['edit() of no message', (talk) => talk.edit(4, 'c').text(), 'i is 4; it must be a whole number from 0 to 3'],
    ['edit() of a text', (talk) => talk.edit('0' as never, 'c').text(), 'i is "0"; it must be a whole number'],
    ['edit() of an answer', (talk) => talk.edit(1, 'c').text(), 'message 1 has the role assistant'],
    ['countTokens(5)', (talk) => talk.countTokens(5 as never), 'the message is 5; it must be a text'],
  ])('refuses %s and stays as it is', async (_, call, sentence) => {
    const talk = llm.conversation({ messages: exchanged });
    const refused = { name: 'QSFError', code: 'bad_argument', message: expect.stringContaining(sentence) as string };
    await expect(call(talk)).rejects.toMatchObject(refused);
    expect(talk.messages).toEqual(exchanged);
    expect(backend.starts).toEqual([]);
    backend.will(['C']);
    expect(await talk.send('c')).toBe('C');
  });

  it.each([{}, { system: 'Be brief.' }])('of %o has nothing to regenerate', async (options) => {
    await expect(llm.conversation(options).regenerate()).rejects.toMatchObject({ code: 'bad_state' });
  });
});

const cyclic: ChatMessage = user('c');
cyclic.self = cyclic;

describe('the context', () => {
  /** Tokens of the context. The fake renders messages as JSON, whose characters are its tokens. */
  let context = 1000;
  const tokensOf = (messages: ChatMessage[]) =>
    JSON.stringify({ messages, add_generation_prompt: messages.at(-1)!.role !== 'assistant' }).length;
  beforeEach(() => {
    context = 1000;
    backend.answers.stats = async () => ({ ok: true, value: { plan: { maxSeqLen: context } } as Stats });
    backend.answers.render = async ({ values }: ChatRequest) =>
      values.length < context ? { ok: true, value: values } : failure('context_full', 'Too long.');
    backend.answers.start = async () => {
      const { values } = backend.starts.at(-1)!.prompt as ChatRequest;
      return values.length < context ? { ok: true, value: undefined } : failure('context_full', 'Too long.');
    };
  });

  const turns = (n: number) =>
    Array.from({ length: n }, (_, i) => [user(`question ${String(i)}`), answer(`answer ${String(i)}`)]).flat();

  it('is counted, with a further message too', async () => {
    const talk = llm.conversation({ messages: exchanged });
    const tokens = tokensOf(exchanged);
    expect(await talk.countTokens()).toEqual({ tokens, left: context - tokens });
    const more = tokensOf([...exchanged, user('c')]);
    expect(await talk.countTokens('c')).toEqual({ tokens: more, left: context - more });
    expect(talk.messages).toEqual(exchanged);
    expect(await llm.conversation().countTokens()).toEqual({ tokens: 0, left: context });
    context = tokens;
    await expect(talk.countTokens()).rejects.toMatchObject({ code: 'context_full' });
  });

  it('that is full ends the answer, and nothing is dropped', async () => {
    const messages = turns(30);
    const talk = llm.conversation({ messages });
    await expect(talk.send('c')).rejects.toMatchObject({ code: 'context_full' });
    expect([talk.messages, talk.dropped]).toEqual([messages, []]);
  });

  it('that is full loses its oldest turns, and enough of them for a while', async () => {
    const messages = turns(30);
    const drops: (readonly ChatMessage[])[] = [];
    const talk = llm.conversation({
      ...{ system: 'Be brief.', messages, whenFull: 'drop', maxTokens: 100 },
      onDrop: (dropped) => drops.push(dropped),
    });
    backend.will(['C']);
    const stream = talk.send('c');
    await stream.next();
    expect(drops).toEqual([]);
    await stream;
    const n = talk.dropped.length;
    expect(n % 2).toBe(0);
    expect(drops).toEqual([messages.slice(0, n)]);
    expect(talk.dropped).toEqual(messages.slice(0, n));
    expect(asked()).toEqual([system, ...messages.slice(n), user('c')]);
    expect(talk.messages).toEqual([system, ...messages.slice(n), user('c'), answer('C')]);
    // Room for the answer and a quarter of the context are free, and one turn more would not have left it.
    expect(tokensOf(asked())).toBeLessThanOrEqual(1000 - 100 - 250);
    expect(tokensOf([system, ...messages.slice(n - 2), user('c')])).toBeGreaterThan(1000 - 100 - 250);
    backend.will(['D']);
    await talk.send('d');
    expect(drops).toHaveLength(1);
    expect(talk.toJSON().dropped).toEqual(talk.dropped);
    expect(Conversation.from(llm, JSON.stringify(talk)).dropped).toEqual(talk.dropped);
  });

  it('with room for the answer loses nothing, but without it does', async () => {
    const messages = turns(2);
    const options = { messages, whenFull: 'drop', maxTokens: 50 } as const;
    for (const spare of [0, -1]) {
      context = tokensOf([...messages, user('c')]) + 50 + spare;
      const talk = llm.conversation(options);
      backend.will(['C']);
      await talk.send('c');
      expect(talk.dropped.length > 0, String(spare)).toBe(spare < 0);
    }
  });

  it('keeps messages of the system and the last turn whatever they take', async () => {
    const later: ChatMessage = { role: 'system', content: 'Now be long.' };
    const talk = llm.conversation({
      ...{ system: 'Be brief.', whenFull: 'drop', maxTokens: 50 },
      messages: [answer('Welcome.'), user('a'), later, answer('A'), user('b'), answer('B')],
    });
    const rest = [system, later, user('c')];
    context = tokensOf(rest) + 1;
    backend.will(['C']);
    await talk.send('c');
    expect(asked()).toEqual(rest);
    context = 10;
    await expect(talk.send('d')).rejects.toMatchObject({ code: 'context_full' });
    expect(talk.messages).toEqual([...rest, answer('C')]);
  });

  it('gets back what it lost for an answer that fails, and reports no loss', async () => {
    const messages = turns(30);
    const drops: unknown[] = [];
    const talk = llm.conversation({ messages, whenFull: 'drop', onDrop: (dropped) => drops.push(dropped) });
    backend.answers.next = async () => failure('io_error', 'The disk failed.');
    await expect(talk.send('c')).rejects.toMatchObject({ code: 'io_error' });
    expect(asked().length).toBeLessThan(60);
    expect([talk.messages, talk.dropped, drops]).toEqual([messages, [], []]);
  });

  it('that cannot be counted for another reason fails the answer', async () => {
    backend.answers.render = async () => failure('template_refusal', 'Roles must alternate.');
    const talk = llm.conversation({ messages: exchanged, whenFull: 'drop' });
    await expect(talk.send('c')).rejects.toMatchObject({ code: 'template_refusal' });
    expect(talk.messages).toEqual(exchanged);
  });
});
