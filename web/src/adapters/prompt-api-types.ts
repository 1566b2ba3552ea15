// The Prompt API's types. A test compares them with those of `@types/dom-chromium-ai`.

/** A part of a message. Only texts are supported. */
export interface MessageContent {
  type: 'text' | 'image' | 'audio';
  value: unknown;
}

export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string | MessageContent[];
  /** An answer's beginning, which is not supported. */
  prefix?: boolean | undefined;
}

export type PromptInput = string | Message[];

/** A tool that prompt() and promptStreaming() call by themselves. */
export interface Tool {
  name: string;
  description: string;
  inputSchema: object;
  /** Gets the arguments as one object. Returns the text for the model. */
  execute: (...args: never[]) => Promise<string>;
}

export interface Expected {
  type: 'text' | 'image' | 'audio';
  languages?: string[] | undefined;
}

export type SamplingMode = 'most-predictable' | 'predictable' | 'balanced' | 'creative' | 'most-creative';

export interface CoreOptions {
  expectedInputs?: Expected[] | undefined;
  expectedOutputs?: Expected[] | undefined;
  tools?: Tool[] | undefined;
  /** Excludes `topK` and `temperature`. */
  samplingMode?: SamplingMode | undefined;
  topK?: number | undefined;
  temperature?: number | undefined;
}

export interface CreateMonitor extends EventTarget {
  ondownloadprogress: ((event: ProgressEvent) => unknown) | null;
}

export interface CreateOptions extends CoreOptions {
  /** An abort rejects create(), and destroys the session later. */
  signal?: AbortSignal | undefined;
  monitor?: ((monitor: CreateMonitor) => void) | undefined;
  /** The beginning of each conversation. Only its first message may be of the system. */
  initialPrompts?: Message[] | undefined;
}

export interface AppendOptions {
  signal?: AbortSignal | undefined;
}

export interface PromptOptions extends AppendOptions {
  /** A JSON schema, or a regular expression, that the answer follows. */
  responseConstraint?: object | undefined;
  /** Has no effect: the model never sees the constraint. */
  omitResponseConstraintInput?: boolean | undefined;
}

export type Availability = 'unavailable' | 'downloadable' | 'downloading' | 'available';
