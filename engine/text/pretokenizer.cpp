#include "text/pretokenizer.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "qsf/base/utf8.h"

namespace qsf {
namespace {

using regex::Alternative, regex::Element, regex::Ending, regex::Expression, regex::kUnlimited, regex::Set;
using unicode::Category;

constexpr std::size_t kNoMatch = ~std::size_t{0};

/// The machine of all expressions, and their indices by row and pass. A program has no copy of their texts.
struct Compiled {
  regex::Machine machine;
  std::array<std::array<std::uint8_t, kMaxPasses>, kPretokenizers.size()> passes{};
  std::array<std::uint8_t, kPretokenizers.size()> n_passes{};
};

/// The machine of the first rows, with the texts of its expressions, which later rows may share.
struct Compiling {
  Compiled out;
  std::array<std::string_view, std::tuple_size_v<decltype(Compiled{}.machine.expressions)>> texts{};
};

constexpr Compiling with_row(Compiling before, std::size_t row) {
  Compiled& out = before.out;
  for (const std::string_view step : kPretokenizers[row].steps) {
    if (step.empty()) continue;
    std::size_t known = 0;
    while (known < out.machine.n_expressions && before.texts[known] != step) ++known;
    if (known == out.machine.n_expressions) {
      before.texts[known] = step;
      regex::Compiler(out.machine, step).compile();
    }
    out.passes[row][out.n_passes[row]++] = static_cast<std::uint8_t>(known);
  }
  return before;
}

/// Each row is a constant of its own, because compilers limit the steps of one.
template <std::size_t kRows>
constexpr Compiling kCompiling = with_row(kCompiling<kRows - 1>, kRows - 1);
template <>
constexpr Compiling kCompiling<0> = {};

constexpr Compiled kCompiled = kCompiling<kPretokenizers.size()>.out;
constexpr const regex::Machine& kMachine = kCompiled.machine;

static_assert(
    [] {
      for (std::size_t row = 0; row < kPretokenizers.size(); ++row) {
        if (kPretokenizers[row].id != row) return false;
      }
      return true;
    }(),
    "a row's place is its number");

/// Whether the category is white space, which is the only kind of set before $ in these expressions.
constexpr bool is_white(Category category) { return category == Category::white; }

}  // namespace

Cutter::Cutter(std::uint32_t pretokenizer, std::string_view text)
    : text_(text), n_passes_(kCompiled.n_passes[pretokenizer]) {
  for (std::size_t i = 0; i < n_passes_; ++i) {
    passes_[i].expression = &kMachine.expressions[kCompiled.passes[pretokenizer][i]];
  }
}

std::size_t Cutter::next() {
  std::size_t limit = text_.size();
  for (std::size_t i = 0; i < n_passes_; ++i) {
    if (passes_[i].end <= at_) cut(passes_[i], limit);
    limit = passes_[i].end;
  }
  return at_ = limit;
}

/// Sets the end of the pass's piece that begins at at_, in the piece that ends at `limit`.
void Cutter::cut(Pass& pass, std::size_t limit) {
  if (pass.match_begin == at_ && pass.match_end > at_) {
    pass.end = pass.match_end;
    return;
  }
  for (std::size_t at = at_; at < limit; at += character(at, limit).size) {
    const std::size_t end = match(pass, at, limit);
    if (end == kNoMatch) continue;
    pass.match_begin = at;
    pass.match_end = end;
    pass.end = at == at_ ? end : at;
    return;
  }
  pass.end = limit;
}

std::size_t Cutter::match(Pass& pass, std::size_t at, std::size_t limit) {
  ++steps_;
  const Expression& expression = *pass.expression;
  const auto byte = static_cast<std::uint8_t>(text_[at]);
  unsigned candidates = byte < 0x80
                            ? unsigned{expression.with_ascii[byte]}
                            : unsigned{expression.with_range} |
                                  expression.with_category[static_cast<std::size_t>(character(at, limit).category)];
  for (; candidates != 0; candidates &= candidates - 1) {
    const Alternative& alternative =
        kMachine.alternatives[expression.first + static_cast<std::size_t>(std::countr_zero(candidates))];
    if (alternative.ending == Ending::at_end) {
      if (at >= tail_of(pass, limit)) return limit;
      continue;
    }
    if (const std::size_t end = match_from(alternative, 0, at, limit); end != kNoMatch) return end;
  }
  return kNoMatch;
}

/// Returns the end of a match of the elements from i on, or kNoMatch.
std::size_t Cutter::match_from(const Alternative& alternative, std::size_t i, std::size_t at, std::size_t limit) {
  ++steps_;
  if (i == alternative.count) {
    const bool text_behind =
        alternative.ending == Ending::no_text_behind && at < limit && !is_white(character(at, limit).category);
    return text_behind ? kNoMatch : at;
  }
  const Element& element = kMachine.elements[alternative.first + i];
  if (element.n_words != 0) return match_words(element, alternative, i, at, limit);
  const Set& set = kMachine.sets[element.set];
  std::size_t end = at, n = 0;
  for (; n < element.max || element.max == kUnlimited; ++n) {
    const std::size_t size = size_in(set, end, limit);
    if (size == 0) break;
    end += size;
  }
  if (n < element.min) return kNoMatch;
  while (true) {
    const std::size_t whole = match_from(alternative, i + 1, end, limit);
    if (whole != kNoMatch || n == element.min || element.possessive) return whole;
    --n;
    do --end;
    while (end > at && (static_cast<std::uint8_t>(text_[end]) & 0xC0u) == 0x80);
  }
}

std::size_t Cutter::match_words(const Element& element, const Alternative& alternative, std::size_t i, std::size_t at,
                                std::size_t limit) {
  if (element.max == kUnlimited) return match_rows(element, at, limit);
  for (std::size_t word = 0; word < element.n_words; ++word) {
    const std::size_t end = match_from(kMachine.alternatives[element.first_word + word], 0, at, limit);
    if (end == kNoMatch) continue;
    if (const std::size_t whole = match_from(alternative, i + 1, end, limit); whole != kNoMatch) return whole;
  }
  return element.min == 0 ? match_from(alternative, i + 1, at, limit) : kNoMatch;
}

/// Returns the end of as many words in a row as match, which end their alternative.
std::size_t Cutter::match_rows(const Element& element, std::size_t at, std::size_t limit) {
  std::size_t end = element.min == 0 ? at : kNoMatch;
  for (std::size_t word = 0; word < element.n_words;) {
    const std::size_t from = end == kNoMatch ? at : end;
    const std::size_t next = match_from(kMachine.alternatives[element.first_word + word], 0, from, limit);
    word = next == kNoMatch ? word + 1 : 0;
    if (next != kNoMatch) end = next;
  }
  return end;
}

/// Returns the bytes of the character at `at` if it is in the set, else 0.
std::size_t Cutter::size_in(const Set& set, std::size_t at, std::size_t limit) {
  ++steps_;
  if (at >= limit) return 0;
  const auto byte = static_cast<std::uint8_t>(text_[at]);
  if (byte < 0x80) return set.has_ascii(byte) ? 1 : 0;
  const Character& c = character(at, limit);
  bool has = (set.categories >> static_cast<std::uint32_t>(c.category) & 1u) != 0;
  for (std::size_t i = 0; i < set.n_ranges && has == set.excludes; ++i) {
    const regex::Range& range = kMachine.ranges[set.first_range + i];
    if (c.code >= range.first && c.code <= range.last) has = !set.excludes;
  }
  return has != set.negated ? c.size : 0;
}

/// Returns the start of the white space at a piece's end. It is found once for each piece, so that a search takes
/// linear time.
std::size_t Cutter::tail_of(Pass& pass, std::size_t limit) {
  if (pass.tail_end == limit) return pass.tail_begin;
  pass.tail_end = pass.tail_begin = limit;
  for (std::size_t at = limit; at > at_;) {
    do --at;
    while (at > at_ && (static_cast<std::uint8_t>(text_[at]) & 0xC0u) == 0x80);
    ++steps_;
    if (!is_white(character(at, limit).category)) break;
    pass.tail_begin = at;
  }
  return pass.tail_begin;
}

const Cutter::Character& Cutter::character(std::size_t at, std::size_t limit) {
  if (last_.at == at) return last_;
  const utf8::Decoded next = utf8::decode(text_.substr(0, limit), at);
  const bool valid = next.form == utf8::Form::valid;
  last_ = {at, valid ? next.code : 0x110000, valid ? unicode::category_of(next.code) : Category::other, next.size};
  return last_;
}

}  // namespace qsf
