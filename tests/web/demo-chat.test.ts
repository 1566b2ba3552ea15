// The parts of the demo's conversations that need no page: tools, rounds of calls, Markdown, kept conversations.
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { AnswerPart, ChatMessage, ChatResult, ChatStream, Conversation } from '../../web/src/index.js';
import { calculate } from '../../web/demo/src/calculator.js';
import { hubName, lastName, modelAddress } from '../../web/demo/src/address.js';
import { fromMarkdown, toMarkdown } from '../../web/demo/src/chat-markdown.js';
import {
  allChats,
  fromJson,
  hasText,
  importChats,
  keepChat,
  keepsChats,
  removeChat,
  titleOfChat,
  toJson,
} from '../../web/demo/src/chats.js';
import { converse } from '../../web/demo/src/converse.js';
import { htmlOf } from '../../web/demo/src/markdown.js';
import { partsOf } from '../../web/demo/src/parts.js';
import { inWords } from '../../web/demo/src/progress.js';
import { inSlices } from '../../web/demo/src/slices.js';
import { runTool } from '../../web/demo/src/tools.js';
import { answered, turnsOf } from '../../web/demo/src/turns.js';

afterEach(() => vi.unstubAllGlobals());

describe('the calculator', () => {
  it('computes expressions by their usual order', () => {
    const cases: [string, number][] = [
      ['2 + 3 * 4', 14],
      ['(2 + 3) * 4', 20],
      ['17 / 100 * 4250', 722.5],
      ['-2 ^ 2', -4],
      ['2 ^ 3 ^ 2', 512],
      ['2 ^ -1', 0.5],
      ['10 - 4 - 3', 3],
      ['7 % 4', 3],
      ['0.1 + 0.2', 0.3],
      ['sqrt(16) + abs(-2) × 3 ÷ 2', 7],
      ['1.5e3 - .5', 1499.5],
      ['2 * PI', 6.28318530718],
    ];
    for (const [expression, value] of cases) expect(calculate(expression), expression).toBe(value);
  });

  it('refuses anything else', () => {
    for (const wrong of [
      '',
      '2 +',
      '2 2',
      '(1',
      '1)',
      'alert(1)',
      'constructor',
      'a = 1',
      '2 // 3',
      '"1"',
      '('.repeat(1000),
    ])
      expect(() => calculate(wrong), wrong).toThrow();
  });
});

describe('tools', () => {
  it('answer, and report a failure as text', async () => {
    expect(await runTool('calculator', { expression: '6*7' })).toBe('42');
    expect(await runTool('calculator', { expression: 'x' })).toMatch(/^Error: .*x/);
    expect(await runTool('clock', { time_zone: 'Asia/Tokyo' })).toMatch(/\d{4}.*(GMT\+9|JST)/);
    expect(await runTool('clock', {})).toMatch(/\d{4}/);
    expect(await runTool('clock', { time_zone: 'Nowhere' })).toMatch(/^Error: /);
    expect(await runTool('toString', {})).toBe('Error: there is no tool toString');
  });
});

/** An answer with these parts. */
function answerOf(...parts: AnswerPart[]): ChatStream {
  const calls = parts.flatMap((part) =>
    part.type === 'call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: part.arguments } }]
      : [],
  );
  const result = { message: { role: 'assistant', content: '', ...(calls.length > 0 && { tool_calls: calls }) } };
  return {
    async *parts() {
      yield* parts;
    },
    result: Promise.resolve(result),
  } as unknown as ChatStream;
}

describe('an answer with calls', () => {
  const call = (id: string, expression: string): AnswerPart => ({
    type: 'call',
    id,
    name: 'calculator',
    arguments: { expression },
  });

  async function run(next: () => ChatStream, first: ChatStream) {
    const seen: string[] = [];
    const sent: ChatMessage[] = [];
    const result: ChatResult = await converse(first, {
      part: (part) => seen.push(part.type),
      called: (id, value) => seen.push(`${id}=${value}`),
      extend: (messages) => {
        sent.push(...messages);
        return {} as Conversation;
      },
      send: (_, message) => {
        sent.push(message);
        return next();
      },
    });
    return { seen, sent, result };
  }

  it('runs them in their order, and sends each result by its id', async () => {
    const text: AnswerPart = { type: 'text', text: 'It is 42 and 3.' };
    const { seen, sent } = await run(() => answerOf(text), answerOf(call('one', '6*7'), call('two', '1+2')));
    expect(seen).toEqual(['call', 'call', 'one=42', 'two=3', 'text']);
    expect(sent).toEqual([
      { role: 'tool', name: 'calculator', tool_call_id: 'one', content: '42' },
      { role: 'tool', name: 'calculator', tool_call_id: 'two', content: '3' },
    ]);
  });

  it('ends if the model calls for ever', async () => {
    const { seen } = await run(() => answerOf(call('more', '1')), answerOf(call('first', '1')));
    expect(seen.filter((what) => what === 'call')).toHaveLength(5);
  });
});

describe('a conversation that ends with calls', () => {
  const calls = ['one', 'two'].map((id) => ({ id, type: 'function', function: { name: 'clock', arguments: {} } }));
  const asked = [
    { role: 'user', content: 'When?' },
    { role: 'assistant', content: '', tool_calls: calls },
  ];
  const result = (id: string, content: string) => ({ role: 'tool', name: 'clock', tool_call_id: id, content });
  const end = { role: 'assistant', content: '' };
  const whole = (...messages: ChatMessage[]) => answered({ version: 1, messages }).messages;

  it('gets the missing results and an answer, so that any template takes a question after it', () => {
    const [one, two] = [result('one', 'not run'), result('two', 'not run')];
    expect(whole(...asked)).toEqual([...asked, one, two, end]);
    expect(whole(...asked, result('one', 'Now'))).toEqual([...asked, result('one', 'Now'), two, end]);
    expect(whole(...asked, one, two)).toEqual([...asked, one, two, end]);
  });

  it('is left as it is if it has an answer', () => {
    for (const messages of [[], asked.slice(0, 1), [...asked, result('one', '1'), result('two', '2'), end]]) {
      const data = { version: 1 as const, messages };
      expect(answered(data)).toBe(data);
    }
  });
});

describe('Markdown', () => {
  it('has no element, address or style of the text', () => {
    const html = htmlOf(
      '<script>alert(1)</script> <img src=x onerror=a> [a](javascript:b) ![i](https://c.test/d.png)\n\n```"><b>\n</code><i>\n```\n\n|a|\n|-:|\n|1|',
    );
    expect(html).not.toMatch(/<script|<img|<i>|<b>|javascript:b"|style=/);
    expect(html).toContain('&lt;script&gt;');
    expect(html).toContain('<th class="right">');
  });

  it('has one level of headings', () => {
    expect(htmlOf('# A\n\n###### B')).toBe('<h3 class="level-1">A</h3><h3 class="level-6">B</h3>');
  });

  it('begins on the side of its first letter, with all that is in a block', () => {
    expect(htmlOf('أهلا\n\n- واحد\n  - اثنان\n\n# ثلاثة\n\n> أربعة')).toBe(
      '<p dir="auto">أهلا</p>\n<ul dir="auto">\n<li>واحد\n<ul>\n<li>اثنان</li>\n</ul>\n</li>\n</ul>\n' +
        '<h3 class="level-1" dir="auto">ثلاثة</h3><blockquote dir="auto">\n<p>أربعة</p>\n</blockquote>\n',
    );
    expect(htmlOf('| א |\n|---|\n| ב |')).toMatch(/^<div class="table" tabindex="0" dir="auto"><table>/);
    expect(htmlOf('Text 你好 é 👍')).not.toContain('dir');
  });

  it('grows by its last block', () => {
    expect(partsOf('One block\nwith two lines')).toEqual(['One block\nwith two lines']);
    expect(partsOf('One\r\n\r\nTwo')).toEqual(['One\n', 'Two']);
    expect(partsOf('\nOne\n\n- two\n- three\n\n  four')).toEqual(['\nOne\n', '- two\n- three\n\n  four']);
    expect(partsOf('One\n\n```js\na\n\nb\n')).toEqual(['One\n', '```js\na\n\nb\n']);
    expect(partsOf('')).toEqual(['']);
    const text = '# A\nB\n***\n> c\n\n    d\n\n1. e\n\n| f |\n|---|\n| g |\n\n~~~\n\nh\n~~~\ni\n\nj\n===';
    expect(partsOf(text).map(htmlOf).join('')).toBe(htmlOf(text));
  });
});

describe('turns', () => {
  it('have a question and all messages of its answer', () => {
    const [u, a, t] = ['user', 'assistant', 'tool'].map((role) => ({ role, content: '' })) as ChatMessage[];
    expect(turnsOf([a!, u!, a!, t!, a!, u!])).toEqual([
      { place: -1, question: undefined, answer: [a] },
      { place: 1, question: u, answer: [a, t, a] },
      { place: 5, question: u, answer: [] },
    ]);
    expect(turnsOf([])).toEqual([]);
  });
});

describe('work in slices', () => {
  const begun: string[] = [];
  let clock = 0;
  function* steps(name: string, count: number) {
    for (let i = 0; i < count; i++) {
      begun.push(`${name}${i}`);
      clock += 3;
      yield;
    }
  }

  it('lets others in after each eight milliseconds, and ends when asked', () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    vi.spyOn(performance, 'now').mockImplementation(() => clock);
    let slices = 0;
    const end = inSlices(steps('a', 9), (slice) => {
      slices++;
      slice();
    });
    expect(begun.splice(0)).toEqual(['a0', 'a1', 'a2']);
    vi.runOnlyPendingTimers();
    expect(begun.splice(0)).toEqual(['a3', 'a4', 'a5']);
    end();
    vi.runAllTimers();
    expect(begun).toEqual([]);
    expect(slices).toBe(2);
    inSlices(steps('b', 4), (slice) => slice());
    vi.runAllTimers();
    expect(begun).toEqual(['b0', 'b1', 'b2', 'b3']);
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
});

describe('kept conversations', () => {
  const messages = [
    { role: 'user', content: '  What\nis  17 % of 4,250? Please write the answer with all of its digits. ' },
    {
      role: 'assistant',
      content: '722.5',
      tool_calls: [{ function: { name: 'calculator', arguments: { expression: '1' } } }],
    },
    { role: 'tool', name: 'calculator', content: '1' },
  ];
  const chat = { id: 'a', title: 'A sum', model: 'Some model', time: 1, data: { version: 1 as const, messages } };

  /** Returns the result of work in steps. */
  const whole = <T>(work: Iterator<void, T>): T => {
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
    }
  };

  it('come back from JSON', () => {
    for (const chats of [[], [chat], [chat, { ...chat, id: 'b' }]])
      expect(fromJson(whole(toJson(chats)).join(''))).toEqual(chats);
  });

  it('come from other programs with arguments as text, or without any', () => {
    const read = (given: object) => {
      const call = { role: 'assistant', tool_calls: [{ function: { name: 'clock', ...given } }] };
      const data = { version: 1, messages: [{ role: 'user', content: 'a' }, call], dropped: [call] };
      const [one] = fromJson(JSON.stringify({ version: 1, chats: [{ ...chat, data }] }));
      return [...one!.data.dropped!, one!.data.messages[1]!].map(
        (message) => (message['tool_calls'] as { function: object }[])[0]!.function,
      );
    };
    const empty = { name: 'clock', arguments: {} };
    for (const given of [{}, { arguments: null }, { arguments: '' }, { arguments: {} }, { arguments: '{}' }])
      expect(read(given)).toEqual([empty, empty]);
    expect(read({ arguments: '{"a":1}' })[0]).toEqual({ name: 'clock', arguments: { a: 1 } });
    expect(read({ arguments: 'no JSON' })[0]).toEqual({ name: 'clock', arguments: 'no JSON' });
  });

  it('are not lost when a file with other versions of them is imported', () => {
    const storage = new Map<string, string>();
    vi.stubGlobal('localStorage', {
      getItem: (key: string) => storage.get(key) ?? null,
      setItem: (key: string, value: string) => storage.set(key, value),
      key: (i: number) => [...storage.keys()][i] ?? null,
      get length() {
        return storage.size;
      },
    });
    const version = (time: number, ...texts: string[]) => {
      const said = texts.map((content) => ({ role: 'user', content }));
      return { ...chat, time, data: { version: 1 as const, messages: said } };
    };
    const said = () => whole(allChats()).map(({ data }) => data.messages.map(({ content }) => content));
    keepChat(version(1, 'one', 'two'));
    expect(whole(importChats([version(2, 'one')]))).toBe(0); // older
    expect(said()).toEqual([['one', 'two']]);
    expect(whole(importChats([version(3, 'one', 'two', 'three')]))).toBe(1); // newer
    expect(said()).toEqual([['one', 'two', 'three']]);
    expect(whole(importChats([version(2, 'one', 'other')]))).toBe(1); // another
    expect(said()).toEqual([
      ['one', 'two', 'three'],
      ['one', 'other'],
    ]);
  });

  it('are said to be kept only where the browser keeps them', () => {
    vi.stubGlobal('localStorage', undefined);
    expect(keepsChats()).toBe(false); // not allowed
    let room = 100;
    const setItem = (_: string, value: string) => {
      if (value.length > room) throw new DOMException('no room', 'QuotaExceededError');
    };
    const removeItem = () => void (room = 1000);
    vi.stubGlobal('localStorage', { setItem, removeItem: () => {} });
    expect(keepsChats()).toBe(true);
    expect(() => keepChat(chat)).toThrow('no room');
    expect(keepsChats()).toBe(false); // there is room for less only
    vi.stubGlobal('localStorage', { setItem, removeItem });
    removeChat('b');
    expect(keepsChats()).toBe(true);
    room = 0;
    expect(keepsChats()).toBe(false);
  });

  it('are refused if they are damaged', () => {
    expect(() => fromJson('{')).toThrow('no conversations');
    expect(() => fromJson('{"version":2,"chats":[]}')).toThrow('no conversations');
    let nested: unknown = 1;
    for (let i = 0; i < 200; i++) nested = [nested];
    const wrong: unknown[] = [
      { ...chat, id: 1 },
      { ...chat, time: '1' },
      { ...chat, time: 1e300 }, // no date
      { ...chat, data: { version: 1, messages: [{ role: 'user', content: '', more: nested }] } },
      { ...chat, data: { version: 2, messages } },
      { ...chat, data: { version: 1, messages: [{ content: 'a' }] } },
      { ...chat, data: { version: 1, messages: [{ role: 'user', content: [] }] } },
      { ...chat, data: { version: 1, messages: [{ role: 'assistant', tool_calls: [{}] }] } },
    ];
    for (const one of wrong)
      expect(() => fromJson(JSON.stringify({ version: 1, chats: [chat, one] }))).toThrow(
        'Conversation 2 of the file is damaged',
      );
  });

  it('have a title in one line, and are found by their texts', () => {
    expect(titleOfChat(chat.data)).toBe('What is 17 % of 4,250? Please write the answer with all of…');
    expect(titleOfChat({ version: 1, messages: [] })).toBe('');
    expect(titleOfChat({ version: 1, messages: [{ role: 'system', content: 'Be brief.' }] })).toBe('');
    // One that has a title is kept.
    const silent = [
      { role: 'user', content: ' ' },
      { role: 'assistant', content: 'Well?' },
    ];
    expect(titleOfChat({ version: 1, messages: silent })).toBe('Untitled');
    expect(titleOfChat({ version: 1, messages: [...silent, { role: 'user', content: 'Now' }] })).toBe('Now');
    expect(hasText(chat, 'DIGITS')).toBe(true);
    expect(hasText(chat, 'letters')).toBe(false);
  });

  it('are Markdown for readers', () => {
    expect(toMarkdown(chat)).toMatch(
      /^# A sum\n\n## You\n\n[^]*## Some model\n\n722\.5\n\n`calculator\(\{"expression":"1"\}\)`\n\n## Result of calculator\n\n1\n$/,
    );
  });

  it('come back from Markdown, without thoughts', () => {
    const call = (name: string, id: string, values = {}) => ({
      type: 'function',
      id,
      function: { name, arguments: values },
    });
    const [a, b, c] = ['000000000', '000000001', '000000002'] as const;
    const tricky = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: '## You\n\n## Some heading\n\\## System\n\n\nText ' },
      { role: 'assistant', content: 'I look.', tool_calls: [call('clock', a), call('sum', b, { text: 'a)`\n\nb' })] },
      { role: 'tool', name: 'clock', tool_call_id: a, content: '12:00\n## Some model' },
      { role: 'tool', name: 'sum', tool_call_id: b, content: '2' },
      { role: 'assistant', content: '', tool_calls: [call('clock', c)] },
      { role: 'tool', name: 'clock', tool_call_id: c, content: '12:01' },
      { role: 'assistant', content: '# One\n\n## Two\n\n```\n## Some model\n## Result of x\n```\n\n`f({})`' },
      { role: 'user', content: 'مرحبا 👩‍👩‍👧' },
    ];
    const saved = { ...chat, data: { version: 1 as const, messages: tricky } };
    for (const text of [toMarkdown(saved), toMarkdown(saved).replaceAll('\n', '\r\n')]) {
      const read = fromMarkdown(text);
      expect({ ...read, id: chat.id, time: chat.time }).toEqual(saved);
      expect(read.id).not.toBe(chat.id);
    }
    expect(toMarkdown(saved)).toContain('\n## Two\n');
    const thought = { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' };
    const data = { version: 1 as const, messages: [tricky[1]!, thought] };
    expect(fromMarkdown(toMarkdown({ ...chat, data })).data.messages[1]).toEqual({
      role: 'assistant',
      content: 'Yes.',
    });
    for (const other of ['', '# A title\n\nText\n', '## You\n\nText', '{}'])
      expect(() => fromMarkdown(other)).toThrow('no conversation of this page');
  });
});

describe('names of models', () => {
  it('are those of the Hub, or addresses', () => {
    expect(modelAddress('owner/name')).toBe('hf:owner/name');
    expect(modelAddress('owner/name/a/b.gguf')).toBe('hf:owner/name/a/b.gguf');
    expect(modelAddress('hf:owner/name@v1')).toBe('hf:owner/name@v1');
    expect(modelAddress('models.test/a.qsf')).toBeUndefined();
    expect(modelAddress('hf:owner')).toBeUndefined();
  });

  it('are found in addresses of the Hub', () => {
    const hub = 'https://huggingface.co/owner/name/resolve';
    expect(hubName(`${hub}/main/a.gguf`)).toBe('hf:owner/name/a.gguf');
    expect(hubName(`${hub}/main/`)).toBe('hf:owner/name');
    expect(hubName(`${hub}/v1/a.gguf`)).toBe('hf:owner/name/a.gguf@v1');
    expect(hubName('https://models.test/a.gguf')).toBe('https://models.test/a.gguf');
    expect(lastName(`${hub}/main/`)).toBe('name');
    expect(lastName('https://models.test/a%20b.gguf?key=***')).toBe('a b.gguf');
  });
});

describe('the line about an opening', () => {
  it('has bytes, rate and time, or the next try', () => {
    const progress = { phase: 'download' as const, loaded: 1 << 20, total: 4 << 20, network: 0, cache: 0 };
    expect(inWords('A model')).toBe('Asking for A model …');
    expect(inWords('A model', { ...progress, rate: 1 << 19, secondsLeft: 6.2 })).toBe(
      'A model: 1.0 of 4.2 MB · 0.5 MB/s · 6 s left',
    );
    const expected = { tokensPerSecond: 21.4, residentMemory: 1, residentTokensPerSecond: 30 };
    expect(inWords('A model', { ...progress, expected })).toBe('A model: 1.0 of 4.2 MB · about 21.4 tokens/s');
    expect(inWords('A model', { ...progress, retry: { attempt: 2, tries: 6, seconds: 0.4 } })).toMatch(
      /Try 2 of 6 in 1 s/,
    );
    expect(inWords('A model', { ...progress, phase: 'plan' })).toBe('Opening A model, 4.2 MB …');
  });
});
