// The public types of a model's sequences.

export interface SequenceOptions {
  /**
   * The sequence that the call uses, from 0 to one less than `sequences` of load(). Default: for a call that begins
   * anew, a sequence that is free; with `continue`, for rewind() and for save() the sequence of this model's last
   * generation.
   */
  sequence?: number | undefined;
}

/** The sequence of a generation or of a restored file. */
export interface InSequence {
  sequence: number;
}
