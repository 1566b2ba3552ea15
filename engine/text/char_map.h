// SentencePiece's character maps (precompiled_charsmap): keys in a double-array trie (darts-clone), and a text that
// replaces each. The bytes are a u32 with the trie's bytes, its u32 units, and the texts, each closed by a zero byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

class CharMap {
 public:
  /// Fails with bad_tokenizer unless texts are UTF-8, closed by zero bytes and at most 1024 bytes. Offsets in units are
  /// checked at use.
  static Status check(std::string_view map);

  /// `map` must have passed check() and must outlive this object.
  explicit CharMap(std::string_view map);

  /// A path through the trie, character by character.
  struct Walk {
    std::uint32_t node = 0;
    bool found = false;     // the characters so far are a key
    std::string_view text;  // the text that replaces the key
  };
  Walk begin() const;
  /// Extends the path by a character. Returns false if no key continues with it.
  bool on(Walk& walk, char32_t c) const;

 private:
  bool step(Walk& walk, std::uint8_t byte) const;
  std::uint32_t unit(std::uint32_t at) const;

  std::string_view trie_, texts_;
};

}  // namespace qsf
