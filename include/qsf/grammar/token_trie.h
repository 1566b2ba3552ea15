// The tokens of a vocabulary by their bytes, so that tokens with the same beginning are looked at together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::grammar {

/// The bits of a set of tokens, in words: token t is bit t % 64 of word t / 64.
constexpr std::size_t mask_words(std::size_t n_tokens) { return (n_tokens + 63) / 64; }

class TokenTrie {
 public:
  /// The longest token that a grammar allows, in bytes. Longer ones are left out.
  static constexpr std::uint32_t kMaxToken = 255;
  static constexpr std::uint32_t kMaxTokens = 1u << 20;
  static constexpr std::uint32_t kNoToken = 0xFFFFFF;

  /// One byte of one or more tokens. Nodes are in the order of their bytes, each before those that follow it.
  struct Node {
    std::uint32_t token : 24;  // whose last byte this is, or kNoToken
    std::uint32_t byte : 8;
    std::uint32_t size : 24;  // nodes of the subtree, this one included
    std::uint32_t ups : 8;    // levels from this node up to the parent of the first node after the subtree
  };
  struct Twin {
    std::uint32_t token, other;  // have the same bytes; the first is in the trie
  };
  /// A node at which a token leaves a JSON string or begins an escape, the bytes of the token before it, and their
  /// number of characters.
  struct Exit {
    std::uint32_t node, first, size, chars;
  };

  /// The bytes of memory that build() needs at most for a vocabulary.
  static std::size_t memory_for(std::span<const std::string_view> tokens);
  /// Builds the trie in `memory`, which must outlive it. `tokens` has the bytes of each token; those of control tokens
  /// are empty, and never allowed. Fails with bad_argument for too many tokens, with out_of_memory for too little
  /// memory.
  static Result<TokenTrie> build(std::span<const std::string_view> tokens, std::span<std::byte> memory);

  std::uint32_t n_tokens() const { return n_tokens_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Twin> twins() const { return twins_; }
  /// The tokens that are whole characters inside of any JSON string, as a mask, and where all others leave it.
  std::span<const std::uint64_t> in_string() const { return in_string_; }
  std::span<const Exit> exits() const { return exits_; }
  std::string_view before(const Exit& exit) const { return {before_.data() + exit.first, exit.size}; }
  /// The characters of each token in in_string().
  std::span<const std::uint8_t> chars() const { return chars_; }
  std::uint32_t most_chars() const { return most_chars_; }

 private:
  void visit_strings();

  std::uint32_t n_tokens_ = 0, most_chars_ = 0;
  std::span<Node> nodes_;
  std::span<Twin> twins_;
  std::span<std::uint64_t> in_string_;
  std::span<Exit> exits_;
  std::span<char> before_;
  std::span<std::uint8_t> chars_;
};

}  // namespace qsf::grammar
