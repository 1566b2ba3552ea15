// The public type of texts that a model may write.

/**
 * Texts that a model may write: JSON that a schema of draft 2020-12 allows, any JSON object, texts of a regular
 * expression (of ECMAScript, for the whole text), or texts of a grammar in GBNF. The first two are also understood in
 * the form of OpenAI's interface.
 */
export type ResponseFormat =
  | { type: 'json_schema'; schema: object | boolean }
  | { type: 'json_schema'; json_schema: { schema: object | boolean; name?: string; strict?: boolean } }
  | { type: 'json_object' }
  | { type: 'regex'; pattern: string }
  | { type: 'gbnf'; grammar: string };
