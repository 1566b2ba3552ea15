// SentencePiece's character maps (precompiled_charsmap): keys in a double-array trie (darts-clone), each with the text
// that it becomes. A u32 with the trie's bytes, the trie's u32 units, and the texts, each closed by a zero byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

class CharMap {
 public:
  /// Texts are UTF-8, closed and of at most 1024 bytes; places that units name are checked where they are used.
  static Status check(std::string_view map);

  /// A map that has passed check().
  explicit CharMap(std::string_view map);

  /// A way through the trie, character by character.
  struct Walk {
    std::uint32_t node = 0;
    bool found = false;     // the characters so far are a key
    std::string_view text;  // what it becomes
  };
  Walk begin() const;
  /// False when no key goes on with this character.
  bool on(Walk& walk, char32_t c) const;

 private:
  bool step(Walk& walk, std::uint8_t byte) const;
  std::uint32_t unit(std::uint32_t at) const;

  std::string_view trie_, texts_;
};

}  // namespace qsf
