// Any bytes as a grammar and a text: nothing may crash, and masks and accept() must agree.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/grammar/grammar.h"

namespace qsf::test {

/// The trie of all single bytes, in memory that lasts.
inline const grammar::TokenTrie& trie_of_bytes() {
  static std::vector<std::byte> memory;
  static const grammar::TokenTrie trie = [] {
    static std::array<char, 256> bytes;
    std::array<std::string_view, 256> tokens;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(i);
      tokens[i] = {&bytes[i], 1};
    }
    memory.resize(grammar::TokenTrie::memory_for(tokens));
    Result<grammar::TokenTrie> built = grammar::TokenTrie::build(tokens, memory);
    if (!built) std::abort();
    return *built;
  }();
  return trie;
}

/// The first byte is the kind: g (GBNF), r (a regular expression), anything else (a JSON schema). The grammar ends at a
/// zero byte, and the text follows. Returns whether the grammar is made and the text is one of its texts.
inline bool fuzz_grammar(std::string_view data) {
  using grammar::Grammar;
  if (data.empty()) return false;
  const std::size_t end = std::min(data.find('\0'), data.size());
  const std::string_view source = data.substr(1, end - 1);
  const std::string_view text = end < data.size() ? data.substr(end + 1) : std::string_view();
  static std::vector<std::byte> memory(Grammar::kMemory /
                                       2);  // used again, because zeroing it takes longer than a text
  const auto sentence = [](const Error& error) {
    if (error.sentence[0] == 0) std::abort();
    return false;
  };
  Result<Grammar> made = data[0] == 'g'   ? Grammar::gbnf(source, memory)
                         : data[0] == 'r' ? Grammar::regex(source, memory)
                                          : Grammar::json_schema(source, memory);
  if (!made) return sentence(made.error());
  std::array<std::uint64_t, grammar::mask_words(256)> bits;
  for (const char c : text) {
    const Status masked = made->mask(trie_of_bytes(), bits);
    if (!masked) return sentence(masked.error());
    const Result<bool> accepted = made->accept({&c, 1});
    if (!accepted) return sentence(accepted.error());
    const auto byte = static_cast<std::uint8_t>(c);
    if (*accepted != ((bits[byte / 64] >> byte % 64 & 1) != 0)) std::abort();
    if (!*accepted) return false;
  }
  return made->can_end();
}

}  // namespace qsf::test
