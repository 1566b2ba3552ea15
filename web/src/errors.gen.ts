// Made by scripts/gen-errors.mjs from include/qsf/base/errors.def.
export const errorNumbers = {
  /** An option or an argument of a call is outside its allowed range. */
  bad_argument: 1,
  /** The call is not allowed in the session's current state, such as a generation before the model is open. */
  bad_state: 2,
  /** The file does not begin with a known magic number. */
  bad_magic: 3,
  /** This build does not read the file's format version. */
  bad_version: 4,
  /** A field of the file header is impossible or contradicts another. */
  bad_header: 5,
  /** A layer index entry is impossible or contradicts the segment table. */
  bad_index: 6,
  /** A section directory entry or a section's content is impossible, or a needed section is missing. */
  bad_section: 7,
  /** A segment table entry is impossible, or segments do not cover their section exactly. */
  bad_segment: 8,
  /** A tensor header is impossible, contradicts the tensor table, or a needed tensor is missing. */
  bad_tensor: 9,
  /** Bytes do not have the checksum that the file states, because the file is damaged or was changed. */
  bad_checksum: 10,
  /** Compressed bytes do not decompress to the stated size. */
  bad_compression: 11,
  /** The tokenizer's data is damaged or contradicts itself. */
  bad_tokenizer: 12,
  /** The file ends before a part that its tables state. */
  truncated: 13,
  /** The input is well formed but needs a feature that this build does not have. */
  unsupported: 14,
  /** The memory budget cannot hold the smallest plan for this model. */
  budget_too_small: 15,
  /** The prompt or the conversation is longer than the planned context. */
  context_full: 16,
  /** A token id is outside the vocabulary. */
  bad_token: 17,
  /** The text is not valid UTF-8 or the model has no tokenizer to read it. */
  bad_text: 18,
  /** The operating system failed to open, read or write a file. */
  io_error: 19,
  /** A connection failed and retries did not help. */
  network_error: 20,
  /** The server answered with an error status. */
  http_status: 21,
  /** The server does not answer range requests. */
  no_ranges: 22,
  /** The file changed while it was being read. */
  file_changed: 23,
  /** The caller cancelled the operation. */
  cancelled: 24,
  /** The host refused the requested memory. */
  out_of_memory: 25,
  /** A file that is read, such as a model to convert or saved logits, is damaged, contradicts itself or lacks a part. */
  bad_input: 26,
  /** The browser or machine lacks a feature that is required. */
  unsupported_host: 27,
  /** A state that should be impossible, which is a defect in QSF. */
  internal: 28,
  /** Values that a model computes, or logits from the caller, are not finite numbers. */
  not_finite: 29,
  /** A chat template is not valid, uses a part of Jinja that is not supported, or exceeds a limit. */
  bad_template: 30,
  /** A chat template refuses the messages; the sentence is its own. */
  template_refusal: 31,
  /** A saved sequence does not fit the open session, because it is of another model, KV type or kind of context. */
  mismatch: 32,
} as const;
