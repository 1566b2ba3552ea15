#include "qsf/grammar/token_trie.h"

#include <algorithm>
#include <array>

#include "grammar/utf8_state.h"
#include "qsf/base/store.h"

namespace qsf::grammar {
namespace {

bool is_used(std::string_view token) { return !token.empty() && token.size() <= TokenTrie::kMaxToken; }

std::size_t shared(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

std::size_t TokenTrie::memory_for(std::span<const std::string_view> tokens) {
  std::size_t bytes = 0, exits = 0, before = 0;
  for (const std::string_view token : tokens) {
    if (!is_used(token)) continue;
    bytes += token.size();
    const std::size_t at = token.find_first_of("\"\\");
    if (at == token.npos) continue;
    ++exits;
    before += at;
  }
  // Ids to sort, nodes, twins, exits, the mask and the counts of characters, each aligned.
  return tokens.size() * (4 + sizeof(Twin) + 1) + bytes * sizeof(Node) + exits * sizeof(Exit) + before +
         mask_words(tokens.size()) * 8 + 256;
}

Result<TokenTrie> TokenTrie::build(std::span<const std::string_view> tokens, std::span<std::byte> memory) {
  if (tokens.size() > kMaxTokens) {
    return make_error(ErrorCode::bad_argument, "the vocabulary has {} tokens; a grammar takes at most {}",
                      tokens.size(), kMaxTokens);
  }
  Store store(memory);
  TokenTrie trie;
  trie.n_tokens_ = static_cast<std::uint32_t>(tokens.size());
  const auto no_memory = [&] {
    return make_error(ErrorCode::out_of_memory, "the vocabulary's trie needs up to {} bytes of memory, not {}",
                      memory_for(tokens), memory.size());
  };
  trie.in_string_ = {store.take_values<std::uint64_t>(mask_words(tokens.size())), mask_words(tokens.size())};
  trie.chars_ = {store.take_values<std::uint8_t>(tokens.size()), tokens.size()};
  std::uint32_t* const ids = store.take_values<std::uint32_t>(tokens.size());
  if (store.full()) return no_memory();
  std::size_t n = 0;
  for (std::uint32_t t = 0; t < tokens.size(); ++t) {
    if (is_used(tokens[t])) ids[n++] = t;
  }
  std::sort(ids, ids + n,
            [&](std::uint32_t a, std::uint32_t b) { return tokens[a] != tokens[b] ? tokens[a] < tokens[b] : a < b; });
  std::size_t n_nodes = 0, n_twins = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t known = i == 0 ? 0 : shared(tokens[ids[i - 1]], tokens[ids[i]]);
    n_nodes += tokens[ids[i]].size() - known;
    n_twins += known == tokens[ids[i]].size() ? 1 : 0;
  }
  trie.nodes_ = {store.take_values<Node>(n_nodes), n_nodes};
  trie.twins_ = {store.take_values<Twin>(n_twins), n_twins};
  if (store.full() || n_nodes >= kNoToken) return no_memory();
  // Nodes in order; `open` are those whose subtrees go on.
  std::array<std::uint32_t, kMaxToken> open;
  std::size_t depth = 0, made = 0, twins = 0;
  std::uint32_t last = 0;
  const auto close = [&](std::size_t to) {
    for (std::size_t d = depth; d > to; --d) {
      Node& node = trie.nodes_[open[d - 1]];
      node.size = static_cast<std::uint32_t>(made - open[d - 1]);
      node.ups = static_cast<std::uint32_t>(d - 1 - to);
    }
    depth = to;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view token = tokens[ids[i]];
    const std::size_t known = i == 0 ? 0 : shared(tokens[last], token);
    if (i != 0 && known == token.size()) {
      trie.twins_[twins++] = {last, ids[i]};
      continue;
    }
    close(known);
    for (std::size_t at = known; at < token.size(); ++at) {
      open[depth++] = static_cast<std::uint32_t>(made);
      Node& node = trie.nodes_[made++];
      node.token = at + 1 == token.size() ? ids[i] : kNoToken;
      node.byte = static_cast<std::uint8_t>(token[at]);
    }
    last = ids[i];
  }
  close(0);
  trie.visit_strings();  // counts the exits
  const std::size_t n_exits = trie.exits_.size(), n_before = trie.before_.size();
  trie.exits_ = {store.take_values<Exit>(n_exits), n_exits};
  trie.before_ = {store.take_values<char>(n_before), n_before};
  if (store.full()) return no_memory();
  trie.visit_strings();
  return trie;
}

void TokenTrie::visit_strings() {
  struct At {
    Utf8State utf8;
    std::uint8_t chars;
  };
  std::array<At, kMaxToken + 1> stack{};
  std::array<char, kMaxToken + 1> path{};
  std::size_t depth = 0, n_exits = 0, n_before = 0;
  Exit* const exits = exits_.data();
  char* const before = before_.data();
  for (std::uint32_t i = 0; i < nodes_.size();) {
    const Node node = nodes_[i];
    const At& at = stack[depth];
    const auto byte = static_cast<std::uint8_t>(node.byte);
    const bool leaves = at.utf8 == 0 && (byte == '"' || byte == '\\');
    const Utf8State next = leaves || byte < 0x20 ? kNoUtf8 : utf8_step(at.utf8, byte);
    if (leaves) {
      if (exits != nullptr) {
        exits[n_exits] = {i, static_cast<std::uint32_t>(n_before), static_cast<std::uint32_t>(depth), at.chars};
        std::copy(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth), before + n_before);
      }
      ++n_exits;
      n_before += depth;
    }
    if (next == kNoUtf8) {
      i += node.size;
      depth -= node.ups;
      continue;
    }
    const auto chars = static_cast<std::uint8_t>(at.chars + (at.utf8 == 0 ? 1 : 0));
    if (node.token != kNoToken) {
      in_string_[node.token / 64] |= std::uint64_t{1} << node.token % 64;
      chars_[node.token] = chars;
      most_chars_ = std::max<std::uint32_t>(most_chars_, chars);
    }
    if (node.size > 1) {
      path[depth] = static_cast<char>(byte);
      stack[++depth] = {next, chars};
    } else {
      depth -= node.ups;
    }
    ++i;
  }
  exits_ = {exits, n_exits};
  before_ = {before, n_before};
}

}  // namespace qsf::grammar
