// The types of scores of texts for a query.

export interface RerankOptions {
  /** Ends the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A text's place among those that were given, and how well it answers the query. */
export interface Ranked {
  /** Index in the list of texts. */
  index: number;
  /** A larger one is a better text for the same query. From 0 to 1 for models that answer yes or no, else any number. */
  score: number;
}
