// Languages of bytes as terms: regular expressions with "both" and "not", and rules that may call each other. What
// remains of a term after a byte is again a term (Brzozowski's derivative), and equal terms are stored once, so that a
// term is the state of a parser. Nothing is built before a text needs it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/base/store.h"

namespace qsf::grammar {

struct ByteSet {
  std::array<std::uint64_t, 4> bits{};

  constexpr bool has(std::uint32_t byte) const { return (bits[byte >> 6] >> (byte & 63u) & 1u) != 0; }
  constexpr void add(std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t b = first; b <= last; ++b) bits[b >> 6] |= std::uint64_t{1} << (b & 63u);
  }
  bool operator==(const ByteSet&) const = default;
};

/// Characters from `first` to `last`.
struct CharRange {
  char32_t first, last;
};

enum class TermOp : std::uint8_t {
  nothing,  // no text
  empty,    // the text without bytes
  set,      // one byte of set a
  cat,      // a, then b, which is no cat at a's end
  alt,      // a or b; b is the rest of a sorted list
  repeat,   // a, from min to max times
  both,     // texts of a that are texts of b
  other,    // texts that are not of a
  rule,     // the body of rule a
};

inline constexpr std::uint32_t kNothing = 0, kEmpty = 1, kAll = 2;  // kAll: every text
inline constexpr std::uint32_t kUnlimited = 0xFFFFFFFF;
/// The largest count of a repetition.
inline constexpr std::uint32_t kMaxCount = 1'000'000;

class Terms {
 public:
  /// Terms that a language may have, and the work of one step or search in visited terms. More would hold memory and
  /// time that a hostile grammar asks for.
  static constexpr std::uint32_t kMaxTerms = 1u << 20;
  static constexpr std::uint64_t kMaxWork = 20'000'000;

  bool init(Store& store, std::uint32_t memo_size);

  std::uint32_t set(const ByteSet& bytes);
  std::uint32_t byte(std::uint8_t b);
  std::uint32_t text(std::string_view bytes);
  /// Returns one character of the ranges, in UTF-8. Surrogates are left out.
  std::uint32_t characters(std::span<const CharRange> ranges);
  std::uint32_t cat(std::uint32_t a, std::uint32_t b);
  std::uint32_t alt(std::uint32_t a, std::uint32_t b);
  std::uint32_t repeat(std::uint32_t a, std::uint32_t min, std::uint32_t max);
  std::uint32_t both(std::uint32_t a, std::uint32_t b);
  std::uint32_t other(std::uint32_t a);
  std::uint32_t rule(std::uint32_t number, bool nullable);
  /// Collects alternatives: begin with mark(), push() each, and join() them.
  std::uint32_t mark() const { return scratch_.size(); }
  void push(std::uint32_t term) { scratch_.add(term); }
  std::uint32_t join(std::uint32_t mark);
  /// Returns the terms since mark(), one after the other.
  std::uint32_t chain(std::uint32_t mark);
  std::uint32_t marked(std::uint32_t i) const { return scratch_[i]; }
  void drop(std::uint32_t mark) { scratch_.shrink(mark); }
  /// Gives a rule its body. Rules must not begin with themselves.
  void set_body(std::uint32_t number, std::uint32_t term);

  TermOp op(std::uint32_t term) const { return terms_[term].op; }
  std::uint32_t first(std::uint32_t term) const { return terms_[term].a; }
  std::uint32_t second(std::uint32_t term) const { return terms_[term].b; }
  bool nullable(std::uint32_t term) const { return terms_[term].nullable; }
  /// Whether nothing but kNothing is without texts among what the term may become.
  bool plain(std::uint32_t term) const { return terms_[term].plain; }
  /// Whether every text begins one of the term's, as of an expression that may occur anywhere. May miss it.
  bool follows_any(std::uint32_t term);
  /// Returns what remains after a byte.
  std::uint32_t step(std::uint32_t term, std::uint8_t byte);
  /// Whether the term has a text. A search that grows too long says yes.
  bool alive(std::uint32_t term);

  /// Whether some work was refused; all results since are worthless.
  bool failed() const { return failed_ || store_->full(); }
  std::uint32_t size() const { return terms_.size(); }
  Store& store() { return *store_; }
  /// Begins a new piece of work.
  void rest() {
    rested_ += work_;
    work_ = 0;
  }
  /// Counts a step of the piece of work that is under way. Returns false after a failure, or if there are too many.
  bool spend();
  /// Returns the steps of all pieces of work so far.
  std::uint64_t steps() const { return rested_ + work_; }
  Error error() const;

 private:
  struct Term {
    TermOp op = TermOp::nothing;
    bool nullable = false, plain = true;
    std::uint32_t a = 0, b = 0, min = 0, max = 0;
  };
  struct Memo {
    std::uint32_t term, key, result;  // key: byte + 1; 0: none
  };

  std::uint32_t add(const Term& term);
  void collect(std::uint32_t term, std::uint8_t byte);
  std::uint32_t derive(std::uint32_t term, std::uint8_t byte);

  Store* store_ = nullptr;
  Table<Term, 256> terms_;
  Table<ByteSet> sets_;
  Table<std::uint32_t> scratch_, bodies_;
  Index by_term_, by_set_, searched_;
  Table<std::uint64_t> verdicts_;  // term << 2 | verdict
  std::span<Memo> memo_;
  std::uint64_t work_ = 0, rested_ = 0;  // steps of this piece of work, and of those before it
  std::uint32_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace qsf::grammar
