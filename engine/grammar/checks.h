// Conditions on the text of a string or a number, followed together byte by byte. The states of all conditions in a
// list are one state of an automaton that is built as texts need it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "grammar/number_check.h"
#include "grammar/terms.h"
#include "qsf/base/store.h"

namespace qsf::grammar {

/// The most conditions in a list, because verdicts are bits of a word.
inline constexpr std::uint32_t kMaxChecks = 64;
/// The longest name, and the most names of a set.
inline constexpr std::uint32_t kMaxName = 60000, kMaxNames = 1u << 20;

enum class CheckKind : std::uint8_t {
  term,    // the text is of a term
  names,   // it is one of a sorted set of names
  number,  // a NumberCheck
};

struct Check {
  CheckKind kind = CheckKind::term;
  std::uint32_t first = 0;  // a term, a set's first name, or a number check
  std::uint32_t count = 0;  // of a set

  bool operator==(const Check&) const = default;
};

/// The verdicts on the conditions of a list at some state, one bit each.
struct Verdicts {
  std::uint64_t yes = 0, no = 0, now = 0;

  /// Returns those of the conditions from number `i` on.
  Verdicts from(std::uint32_t i) const { return i < 64 ? Verdicts{yes >> i, no >> i, now >> i} : Verdicts(); }
};

class Checks {
 public:
  bool init(Store& store, Terms& terms, std::uint32_t memo_size);

  std::uint32_t term(std::uint32_t term) { return add({CheckKind::term, term, 0}); }
  std::uint32_t number(const NumberCheck& check);
  /// Adds a set of names, which must outlive the checks. They are sorted here and must differ.
  std::uint32_t names(std::span<std::string_view> names);
  const Check& operator[](std::uint32_t id) const { return checks_[id]; }
  std::string_view name(std::uint32_t i) const { return names_[i]; }

  /// Returns the state before a text of a list of conditions, which is stored once.
  std::uint32_t begin(std::span<const std::uint32_t> checks);
  std::uint32_t step(std::uint32_t state, std::uint8_t byte);
  const Verdicts& verdicts(std::uint32_t state) const { return states_[state].verdicts; }
  /// Whether the state follows no conditions.
  bool free(std::uint32_t state) const { return lists_[states_[state].list].count == 0; }

  std::uint32_t list_size(std::uint32_t state) const { return lists_[states_[state].list].count; }
  /// Returns condition `i` of the state's list.
  std::uint32_t listed(std::uint32_t state, std::uint32_t i) const {
    return members_[lists_[states_[state].list].first + i];
  }

  /// Whether any text may go on to fulfill condition `i` of the state's list. May miss it.
  bool follows_any(std::uint32_t state, std::uint32_t i) const {
    if (checks_[listed(state, i)].kind != CheckKind::term) return false;
    return terms_->follows_any(static_cast<std::uint32_t>(values_[states_[state].values + i]));
  }

  /// The names of a set that the text so far begins: [first, last) of name(), and how many bytes they share.
  struct Names {
    std::uint32_t first, last, shared;
  };
  /// Returns it for condition `i` of the state's list, which must be of kind names.
  Names names_at(std::uint32_t state, std::uint32_t i) const { return unpack(values_[states_[state].values + i]); }

  /// Whether some number from this state on fulfills every condition. A search that grows too long says yes.
  bool number_alive(std::uint32_t state);

 private:
  struct List {
    std::uint32_t first = 0, count = 0;  // in members_
  };
  struct State {
    std::uint32_t list = 0;
    std::uint32_t values = 0;  // one for each condition
    Verdicts verdicts = {};
    std::uint8_t alive = 0;  // of number_alive(): 0 not known, 1 no, 2 yes
  };
  struct Memo {
    std::uint32_t state, key, result;
  };

  std::uint32_t add(const Check& check);
  static Names unpack(std::uint64_t value) {
    return {static_cast<std::uint32_t>(value & 0xFFFFFF), static_cast<std::uint32_t>(value >> 24 & 0xFFFFFF),
            static_cast<std::uint32_t>(value >> 48)};
  }
  std::uint64_t step_names(std::uint64_t value, std::uint8_t byte) const;
  std::uint32_t intern(std::uint32_t list, std::span<const std::uint64_t> values);
  Verdict verdict(const Check& check, std::uint64_t value);

  Terms* terms_ = nullptr;
  Table<Check> checks_;
  Table<NumberCheck> numbers_;
  Table<std::string_view> names_;
  Table<List> lists_;
  Table<std::uint32_t> members_;
  Table<State> states_;
  Table<std::uint64_t> values_;
  Index by_check_, by_list_, by_state_;
  std::span<Memo> memo_;
};

}  // namespace qsf::grammar
