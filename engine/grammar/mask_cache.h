// Masks of the parts of texts that do not depend on their surroundings: a string's text under its conditions, or the
// first part of a term. Where a token leaves the part, the walk goes on from an exit.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/base/store.h"
#include "qsf/grammar/token_trie.h"

namespace qsf::grammar {

class MaskCache {
 public:
  static constexpr std::uint32_t kEntries = 32;
  static constexpr std::uint32_t kMaxExits = 2048;

  /// Where a token leaves the part: before the step at `node`, or after it, in a state of the part.
  struct Exit {
    std::uint32_t node = 0, state = 0, chars = 0;
  };
  struct Entry {
    std::uint32_t key = 0;  // 0: none
    std::uint32_t n_exits = 0;
    bool whole = false;  // all exits were stored
    std::span<std::uint64_t> mask = {};
    std::span<Exit> exits = {};

    void add(const Exit& exit) {
      if (n_exits == exits.size()) {
        whole = false;
      } else {
        exits[n_exits++] = exit;
      }
    }
  };

  /// Returns the bytes that prepare() takes.
  static constexpr std::size_t memory_for(std::size_t n_tokens) {
    return kEntries * (mask_words(n_tokens) * sizeof(std::uint64_t) + kMaxExits * sizeof(Exit));
  }
  /// Takes memory for a vocabulary when it is first used with it. Returns false if there is none.
  bool prepare(Store& store, const TokenTrie& trie) {
    if (trie_ == &trie.nodes()[0]) return true;
    const std::size_t words = mask_words(trie.n_tokens());
    if (trie_ != nullptr && words > entries_[0].mask.size()) return false;
    for (Entry& entry : entries_) {
      if (trie_ == nullptr) {
        entry.mask = {store.take_values<std::uint64_t>(words), words};
        entry.exits = {store.take_values<Exit>(kMaxExits), kMaxExits};
        if (store.full()) return false;
      }
      entry.mask = entry.mask.first(words);
      entry.key = 0;
    }
    trie_ = &trie.nodes()[0];
    return true;
  }
  /// Returns the entry of a key, or one to fill, whose key is 0.
  Entry& find(std::uint32_t key) {
    for (Entry& entry : entries_) {
      if (entry.key == key) return entry;
    }
    Entry& oldest = entries_[next_++ % kEntries];
    oldest.key = oldest.n_exits = 0;
    oldest.whole = true;
    for (std::uint64_t& word : oldest.mask) word = 0;
    return oldest;
  }

 private:
  const TokenTrie::Node* trie_ = nullptr;
  Entry entries_[kEntries];
  std::uint32_t next_ = 0;
};

}  // namespace qsf::grammar
