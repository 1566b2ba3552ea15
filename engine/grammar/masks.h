// The tokens that a machine allows, found by walking the trie only where the machine still follows.
#pragma once

#include <array>
#include <span>

#include "grammar/json_machine.h"
#include "grammar/terms.h"
#include "qsf/grammar/token_trie.h"

namespace qsf::grammar {

/// A machine whose states are terms.
class TermMachine {
 public:
  using State = std::uint32_t;

  explicit TermMachine(Terms& terms) : terms_(terms) {}
  bool step(State from, std::uint8_t byte, State& to) {
    to = terms_.step(from, byte);
    return terms_.alive(to);
  }

 private:
  Terms& terms_;
};

/// Walks a subtree, which begins at node `begin`, from a state before it. `visit(token)` is called for each token that
/// the machine follows to its end; `leave(node, byte, state)` before each step, which it replaces if it returns true.
template <class Machine, class Visit, class Leave>
void walk(const TokenTrie& trie, std::uint32_t begin, std::uint32_t end, Machine& machine,
          const typename Machine::State& from, std::span<typename Machine::State> stack, const Visit& visit,
          const Leave& leave) {
  const std::span<const TokenTrie::Node> nodes = trie.nodes();
  stack[0] = from;
  std::uint32_t depth = 0;
  for (std::uint32_t i = begin; i < end;) {
    const TokenTrie::Node node = nodes[i];
    const auto byte = static_cast<std::uint8_t>(node.byte);
    if (leave(i, byte, stack[depth]) || !machine.step(stack[depth], byte, stack[depth + 1])) {
      i += node.size;
      depth -= node.ups;
      continue;
    }
    if (node.token != TokenTrie::kNoToken) visit(node.token);
    if (node.size > 1) {
      ++depth;
    } else {
      depth -= node.ups;
    }
    ++i;
  }
}

}  // namespace qsf::grammar
