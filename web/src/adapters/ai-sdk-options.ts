// The AI SDK's options of a call as messages and options of chat().
import type { CallOptions, ModelMessage, TextPart, ToolCallPart, ToolResultPart, Warning } from './ai-sdk-types.js';
import type { ResponseFormat } from '../format-types.js';
import type { ChatMessage, ChatOptions } from '../types.js';

/** The AI SDK's names of options that chat() has under its own. */
const NAMES = {
  maxOutputTokens: 'maxTokens',
  temperature: 'temperature',
  topP: 'topP',
  topK: 'topK',
  presencePenalty: 'presencePenalty',
  frequencyPenalty: 'frequencyPenalty',
  seed: 'seed',
  stopSequences: 'stop',
} as const;

/** Returns a call's messages and options, with warnings of settings that have no effect. */
export function optionsOf(
  call: CallOptions,
  provider: string,
): { messages: ChatMessage[]; chat: ChatOptions; warnings: Warning[] } {
  const warnings: Warning[] = [];
  const tools = toolsOf(call, warnings);
  const { reasoning = 'provider-default' } = call;
  const thinking = { reasoning_effort: reasoning, ...(reasoning === 'none' && { enable_thinking: false }) };
  const own = (call.providerOptions?.[provider] ?? {}) as ChatOptions;
  const responseFormat = formatOf(call.responseFormat);
  const toolChoice = tools && choiceOf(call);
  const isForced = toolChoice !== undefined && toolChoice !== 'auto';
  if (responseFormat && tools)
    warnings.push({
      type: 'compatibility',
      feature: 'tools with responseFormat',
      details: isForced
        ? 'The answer begins with a call, so its text follows no format.'
        : 'The format holds the whole answer, so the model calls no tool.',
    });
  const named = Object.entries(NAMES).map(([name, ours]) => [ours, call[name as keyof typeof NAMES]]);
  return {
    messages: call.prompt.flatMap(messagesOf),
    chat: {
      ...(Object.fromEntries(named) as ChatOptions),
      ...(tools && { tools }),
      ...(responseFormat && !isForced && { responseFormat }),
      ...(toolChoice && (isForced || !responseFormat) && { toolChoice }),
      ...own,
      ...(reasoning !== 'provider-default' && { templateArgs: { ...thinking, ...own.templateArgs } }),
    },
    warnings,
  };
}

function formatOf(format: CallOptions['responseFormat']): ResponseFormat | undefined {
  if (format?.type !== 'json') return undefined;
  if (format.schema === undefined) return { type: 'json_object' };
  return { type: 'json_schema', schema: format.schema as object };
}

/** Returns the calls that are held: required ones, and all if a tool is strict. */
function choiceOf({ tools = [], toolChoice }: CallOptions): ChatOptions['toolChoice'] {
  if (toolChoice?.type === 'required') return 'required';
  if (toolChoice?.type === 'tool') return { name: toolChoice.toolName };
  return tools.some((tool) => tool.type === 'function' && tool.strict === true) ? 'auto' : undefined;
}

/** Returns the tools in the form of templates, or undefined if there are none. */
function toolsOf({ tools = [], toolChoice }: CallOptions, warnings: Warning[]): object[] | undefined {
  if (toolChoice?.type === 'none') return undefined;
  const functions = tools.flatMap((tool) => {
    if (tool.type !== 'function') {
      warnings.push({ type: 'unsupported', feature: `provider tool ${tool.name}` });
      return [];
    }
    const { name, description, inputSchema: parameters } = tool;
    return [{ type: 'function', function: { name, ...(description !== undefined && { description }), parameters } }];
  });
  return functions.length > 0 ? functions : undefined;
}

/** Returns one of the SDK's messages as messages of a template: each result of a tool is one. */
function messagesOf(message: ModelMessage): ChatMessage[] {
  const { role } = message;
  if (role === 'system') return [{ role, content: message.content }];
  const { content: parts } = message;
  if (role === 'tool')
    return parts
      .filter((part): part is ToolResultPart => part.type === 'tool-result')
      .map(({ toolCallId, toolName, output }) => ({
        ...{ role, tool_call_id: toolCallId, name: toolName, content: resultOf(output) },
      }));
  const known = role === 'user' ? ['text'] : ['text', 'reasoning', 'tool-call'];
  const stranger = parts.find(({ type }) => !known.includes(type));
  if (stranger) throw unsupported(`parts of the type ${stranger.type} in a message of the role ${role}`);
  const join = (type: string, between: string) =>
    parts
      .filter((part): part is TextPart => part.type === type)
      .map(({ text }) => text)
      .join(between);
  if (role === 'user') return [{ role, content: join('text', '\n') }];
  const calls = parts
    .filter((part): part is ToolCallPart => part.type === 'tool-call')
    .map(({ toolCallId: id, toolName: name, input }) => ({
      id,
      type: 'function',
      function: { name, arguments: input },
    }));
  const thought = join('reasoning', '');
  return [
    {
      ...{ role, content: join('text', '') },
      ...(thought !== '' && { reasoning_content: thought }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}

/** Returns the result of a tool as text. */
function resultOf({ type, value, reason }: ToolResultPart['output']): string {
  if (type === 'execution-denied') return reason ?? 'The execution was denied.';
  if (type !== 'content') return typeof value === 'string' ? value : JSON.stringify(value);
  return (value as TextPart[])
    .map((part) => {
      if (part.type !== 'text') throw unsupported(`parts of the type ${String(part.type)} in the result of a tool`);
      return part.text;
    })
    .join('\n');
}

/** Returns the SDK's own error of this kind, which it knows by its marks. */
function unsupported(functionality: string): Error {
  const name = 'AI_UnsupportedFunctionalityError';
  const marks = Object.fromEntries(['', `.${name}`].map((mark) => [Symbol.for(`vercel.ai.error${mark}`), true]));
  const error = new Error(`The model does not have ${functionality}.`);
  return Object.assign(error, { name, functionality, ...marks });
}
