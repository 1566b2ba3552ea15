// Grammars: which texts a model may write, and which tokens it may write next. A grammar is made from GBNF, from a
// regular expression, from a list of texts or from a JSON schema, and follows one text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/grammar/token_trie.h"

namespace qsf::grammar {

/// The forms of whole numbers, and of those of `const` and `enum`, in texts under a JSON schema.
enum class Integers : std::uint8_t {
  any,            // as the schema's draft says, which may be 1.000
  without_point,  // and without zeros at the end, for texts that are generated: models may go on with zeros for ever
};

class Grammar {
 public:
  /// Bytes of memory that suffice for grammars in use. A grammar that needs more is refused with out_of_memory.
  static constexpr std::size_t kMemory = 8u << 20;
  /// The least that a grammar can be made in.
  static constexpr std::size_t kLeastMemory = 1u << 20;
  /// Returns the bytes in which a small grammar follows a text with masks of that many tokens.
  static std::size_t memory_for(std::size_t n_tokens);
  /// The longest text of a grammar or a schema, in bytes.
  static constexpr std::size_t kMaxText = 4u << 20;

  Grammar() = default;
  // Each of these makes a grammar inside `memory`, which must outlive it, as must its text. They fail with bad_input
  // for a mistake in the text, with unsupported for a feature that is not held, which the sentence names, and with
  // out_of_memory.
  static Result<Grammar> gbnf(std::string_view text, std::span<std::byte> memory);
  /// A regular expression of ECMAScript, for the whole text.
  static Result<Grammar> regex(std::string_view text, std::span<std::byte> memory);
  static Result<Grammar> choices(std::span<const std::string_view> texts, std::span<std::byte> memory);
  /// A JSON value that a JSON schema allows, with white space as JSON has it.
  static Result<Grammar> json_schema(std::string_view schema, std::span<std::byte> memory, Integers integers);
  static Result<Grammar> json_schema(std::string_view schema, std::span<std::byte> memory) {
    return json_schema(schema, memory, Integers::any);
  }
  /// Any JSON value.
  static Result<Grammar> json(std::span<std::byte> memory);

  /// Goes back to the beginning of the text.
  void reset();
  /// Adds bytes to the text. Returns false, and adds none, if no allowed text begins so. Fails with out_of_memory or
  /// unsupported if the text needs more memory or steps than the grammar may use.
  Result<bool> accept(std::string_view bytes);
  /// Whether the text may end here.
  bool can_end() const;
  /// Sets the bit of each token that may come next, and clears all others. `bits` has mask_words(trie.n_tokens()).
  /// Errors as accept().
  Status mask(const TokenTrie& trie, std::span<std::uint64_t> bits);
  /// Writes the bytes that come next, as far as there is no choice and they fit, and returns their number. In JSON,
  /// escapes and white space are no choice: strings have no escapes, and a space follows a colon and a comma.
  std::size_t forced(std::span<char> out);
  /// Returns the steps of making it and of all texts and masks since: terms that were visited or joined, and parts of a
  /// grammar whose rules were compared.
  std::uint64_t steps() const;
  /// The bytes of memory in use.
  std::size_t used() const;

 private:
  struct Impl;
  class Masking;

  static Result<Impl*> begin(std::string_view text, std::span<std::byte> memory);
  static Result<Grammar> of_term(Impl* impl, const Result<std::uint32_t>& term);

  Impl* impl_ = nullptr;
};

}  // namespace qsf::grammar
