/** The policies by which keys and values of a text stay in memory. */
export type KvPolicy = 'all' | `window:${number}` | `sinks:${number}+${number}` | `h2o:${number}` | `snapkv:${number}`;

export interface KvPolicyOptions {
  /**
   * The positions whose keys and values stay. `all`, the default: every position of the text. `window:N`: the last N.
   * `sinks:A+N`: the last N and the first A (StreamingLLM, Xiao et al. 2023). `h2o:N`: N, half of them the last ones, the
   * others those with the largest sums of attention (H2O, Zhang et al. 2023). `snapkv:N`: at most N, of which the last
   * ones choose half by their attention whenever that many are kept (SnapKV, Li et al. 2024). Then a text can be many
   * times as long as the part that the model sees; positions go on ascending. Layers with a sliding window keep their
   * own.
   */
  kvPolicy?: KvPolicy | undefined;
}

/** The numbers of `kvPolicy` in a plan. */
export interface KvKept {
  /** Positions that layers without a window of their own keep; 0: all. */
  kvWindow: number;
  /** First positions that they keep in addition. */
  kvSinks: number;
  /** The way in which attention chooses positions. 0: it does not; 1: `h2o`; 2: `snapkv`. */
  kvChosen: number;
}
