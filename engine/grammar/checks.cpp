#include "grammar/checks.h"

#include <algorithm>

#include "qsf/base/heap_sort.h"

namespace qsf::grammar {
namespace {

constexpr std::uint32_t kMaxSearch = 400;  // states of a search for a number

constexpr std::uint64_t pack(std::uint32_t first, std::uint32_t last, std::uint32_t shared) {
  return std::uint64_t{first} | std::uint64_t{last} << 24 | std::uint64_t{shared} << 48;
}

}  // namespace

bool Checks::init(Store& store, Terms& terms, std::uint32_t memo_size) {
  terms_ = &terms;
  memo_ = {store.take_values<Memo>(memo_size), memo_size};
  return memo_.data() != nullptr && checks_.init(store) && numbers_.init(store) && names_.init(store) &&
         lists_.init(store) && members_.init(store) && states_.init(store) && values_.init(store) &&
         by_check_.init(store) && by_list_.init(store) && by_state_.init(store);
}

std::uint32_t Checks::add(const Check& check) {
  return by_check_.find_or(
      mix(mix(static_cast<std::uint64_t>(check.kind), check.first), check.count),
      [&](std::uint32_t i) { return checks_[i] == check; }, [&] { return checks_.add(check); });
}

std::uint32_t Checks::number(const NumberCheck& check) {
  for (std::uint32_t i = 1; i < numbers_.size(); ++i) {
    if (numbers_[i] == check) return add({CheckKind::number, i, 0});
  }
  return add({CheckKind::number, numbers_.add(check), 0});
}

std::uint32_t Checks::names(std::span<std::string_view> names) {
  heap_sort(names);
  std::uint32_t first = 0;
  for (const std::string_view name : names) {
    const std::uint32_t id = names_.add(name);
    if (first == 0) first = id;
  }
  return add({CheckKind::names, first, static_cast<std::uint32_t>(names.size())});
}

std::uint64_t Checks::step_names(std::uint64_t value, std::uint8_t byte) const {
  const Names at = unpack(value);
  // The names that share `shared` bytes are sorted by the next one; a name that ends here is the first.
  const auto next = [&](std::uint32_t i) {
    const std::string_view name = names_[i];
    return name.size() > at.shared ? static_cast<int>(static_cast<std::uint8_t>(name[at.shared])) : -1;
  };
  const auto first_from = [&](int least) {
    std::uint32_t low = at.first, high = at.last;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (next(middle) < least) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const std::uint32_t first = first_from(byte), last = first_from(byte + 1);
  return first == last ? 0 : pack(first, last, at.shared + 1);
}

Verdict Checks::verdict(const Check& check, std::uint64_t value) {
  if (check.kind == CheckKind::number) return numbers_[check.first].verdict(value);
  if (check.kind == CheckKind::names) {
    const Names at = unpack(value);
    return {false, at.first == at.last, at.first < at.last && names_[at.first].size() == at.shared};
  }
  const auto term = static_cast<std::uint32_t>(value);
  return {term == kAll, !terms_->alive(term), terms_->nullable(term)};
}

std::uint32_t Checks::intern(std::uint32_t list, std::span<const std::uint64_t> values) {
  std::uint64_t hash = mix(0, list);
  for (const std::uint64_t value : values) hash = mix(hash, value);
  return by_state_.find_or(
      hash,
      [&](std::uint32_t i) {
        if (states_[i].list != list) return false;
        for (std::uint32_t j = 0; j < values.size(); ++j) {
          if (values_[states_[i].values + j] != values[j]) return false;
        }
        return true;
      },
      [&] {
        State made;
        made.list = list;
        for (std::uint32_t j = 0; j < values.size(); ++j) {
          const std::uint32_t at = values_.add(values[j]);
          if (j == 0) made.values = at;
          const Verdict v = verdict(checks_[members_[lists_[list].first + j]], values[j]);
          made.verdicts.yes |= std::uint64_t{v.yes} << j;
          made.verdicts.no |= std::uint64_t{v.no} << j;
          made.verdicts.now |= std::uint64_t{v.now} << j;
        }
        return states_.add(made);
      });
}

std::uint32_t Checks::begin(std::span<const std::uint32_t> checks) {
  std::uint64_t hash = checks.size();
  for (const std::uint32_t check : checks) hash = mix(hash, check);
  const std::uint32_t list = by_list_.find_or(
      hash,
      [&](std::uint32_t i) {
        if (lists_[i].count != checks.size()) return false;
        for (std::uint32_t j = 0; j < checks.size(); ++j) {
          if (members_[lists_[i].first + j] != checks[j]) return false;
        }
        return true;
      },
      [&] {
        List made;
        made.first = members_.size();
        made.count = static_cast<std::uint32_t>(checks.size());
        for (const std::uint32_t check : checks) members_.add(check);
        return lists_.add(made);
      });
  std::array<std::uint64_t, kMaxChecks> values{};
  for (std::uint32_t j = 0; j < checks.size(); ++j) {
    const Check& check = checks_[checks[j]];
    values[j] = check.kind == CheckKind::term    ? check.first
                : check.kind == CheckKind::names ? pack(check.first, check.first + check.count, 0)
                                                 : 0;
  }
  return intern(list, {values.data(), checks.size()});
}

std::uint32_t Checks::step(std::uint32_t state, std::uint8_t byte) {
  const State& from = states_[state];
  const List& list = lists_[from.list];
  if (list.count == 0) return state;
  Memo& memo = memo_[(mix(state, byte) >> 20) & (memo_.size() - 1)];
  if (memo.state == state && memo.key == byte + 1u) return memo.result;
  std::array<std::uint64_t, kMaxChecks> values{};
  for (std::uint32_t j = 0; j < list.count; ++j) {
    const Check& check = checks_[members_[list.first + j]];
    const std::uint64_t value = values_[from.values + j];
    values[j] = check.kind == CheckKind::term    ? terms_->step(static_cast<std::uint32_t>(value), byte)
                : check.kind == CheckKind::names ? step_names(value, byte)
                                                 : numbers_[check.first].step(value, byte);
  }
  const std::uint32_t result = intern(from.list, {values.data(), list.count});
  memo = {state, byte + 1u, result};
  return result;
}

bool Checks::number_alive(std::uint32_t state) {
  constexpr std::string_view kBytes = "0123456789.-";
  State& own = states_[state];
  const auto every = [&](std::uint32_t s, std::uint64_t mask) {
    const std::uint32_t n = lists_[states_[s].list].count;
    return mask == (n == kMaxChecks ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1);
  };
  if (own.verdicts.no != 0) return false;
  if (every(state, own.verdicts.now)) return true;
  if (own.alive != 0) return own.alive == 2;
  std::array<std::uint32_t, kMaxSearch> found;
  std::uint32_t n = 1;
  found[0] = state;
  bool alive = false;
  for (std::uint32_t i = 0; i < n && !alive; ++i) {
    for (const char byte : kBytes) {
      const std::uint32_t next = step(found[i], static_cast<std::uint8_t>(byte));
      const State& s = states_[next];
      if (next == 0 || s.verdicts.no != 0 || s.alive == 1) continue;
      if (s.alive == 2 || every(next, s.verdicts.now) || n == kMaxSearch) {
        alive = true;
        break;
      }
      if (std::find(found.begin(), found.begin() + n, next) == found.begin() + n) found[n++] = next;
    }
  }
  if (!alive) {
    for (std::uint32_t i = 0; i < n; ++i) states_[found[i]].alive = 1;
  }
  own.alive = alive ? 2 : 1;
  return alive;
}

}  // namespace qsf::grammar
