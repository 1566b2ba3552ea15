#include "grammar/terms.h"

#include <algorithm>

#include "qsf/base/utf8.h"

namespace qsf::grammar {
namespace {

constexpr std::uint32_t kMaxDepth = 2000;   // of terms in terms, on the way to a derivative
constexpr std::uint32_t kMaxSearch = 1000;  // terms of a search for a text

}  // namespace

bool Terms::init(Store& store, std::uint32_t memo_size) {
  store_ = &store;
  bool fits = terms_.init(store) && sets_.init(store) && scratch_.init(store) && bodies_.init(store) &&
              by_term_.init(store) && by_set_.init(store) && searched_.init(store) && verdicts_.init(store);
  memo_ = {store.take_values<Memo>(memo_size), memo_size};
  fits = fits && memo_.data() != nullptr;
  if (!fits) return false;
  Term empty;
  empty.op = TermOp::empty;
  empty.nullable = true;
  if (add(empty) != kEmpty) return false;
  ByteSet every;
  every.add(0, 255);
  Term all;  // made by hand, because set() comes after it
  all.op = TermOp::repeat;
  all.nullable = true;
  all.a = kAll + 1;
  all.max = kUnlimited;
  if (add(all) != kAll) return false;
  return set(every) == kAll + 1;
}

Error Terms::error() const {
  if (store_->full()) {
    return make_error(ErrorCode::out_of_memory, "the grammar needs more than the {} bytes of memory that it may use",
                      store_->size());
  }
  return make_error(ErrorCode::unsupported,
                    "the grammar needs more than {} steps or {} states for one byte; write it with fewer choices and "
                    "counts",
                    kMaxWork, kMaxTerms);
}

bool Terms::spend() {
  if (++work_ > kMaxWork) failed_ = true;
  return !failed_;
}

std::uint32_t Terms::add(const Term& t) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(t.op), std::uint64_t{t.a} << 32 | t.b);
  hash = mix(hash, std::uint64_t{t.min} << 32 | t.max);
  if (terms_.size() >= kMaxTerms) failed_ = true;
  if (failed_) return kNothing;
  return by_term_.find_or(
      hash,
      [&](std::uint32_t i) {
        const Term& u = terms_[i];
        return u.op == t.op && u.a == t.a && u.b == t.b && u.min == t.min && u.max == t.max;
      },
      [&] { return terms_.add(t); });
}

std::uint32_t Terms::set(const ByteSet& bytes) {
  if (bytes == ByteSet()) return kNothing;
  std::uint64_t hash = 0;
  for (const std::uint64_t word : bytes.bits) hash = mix(hash, word);
  Term made;
  made.op = TermOp::set;
  made.a = by_set_.find_or(hash, [&](std::uint32_t i) { return sets_[i] == bytes; }, [&] { return sets_.add(bytes); });
  return add(made);
}

std::uint32_t Terms::byte(std::uint8_t b) {
  ByteSet bytes;
  bytes.add(b, b);
  return set(bytes);
}

std::uint32_t Terms::text(std::string_view bytes) {
  std::uint32_t made = kEmpty;
  for (std::size_t i = bytes.size(); i-- > 0;) made = cat(byte(static_cast<std::uint8_t>(bytes[i])), made);
  return made;
}

std::uint32_t Terms::characters(std::span<const CharRange> ranges) {
  const std::uint32_t begin = mark();
  // Characters whose bytes agree but for the last ones form products of byte ranges.
  const auto split = [&](auto& self, char32_t first, char32_t last) -> void {
    constexpr char32_t kLast[]{0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    for (const char32_t end : kLast) {
      if (first <= end && last > end) {
        self(self, first, end);
        self(self, end + 1, last);
        return;
      }
    }
    char low[4], high[4];
    const std::size_t size = utf8::encode(first, low);
    utf8::encode(last, high);
    for (std::size_t i = size - 1; i > 0; --i) {  // the last i bytes are to be all or one
      const char32_t block = (char32_t{1} << (6 * i)) - 1;
      if ((first & ~block) == (last & ~block)) continue;
      if ((first & block) != 0) {
        self(self, first, first | block);
        self(self, (first | block) + 1, last);
        return;
      }
      if ((last & block) != block) {
        self(self, first, (last & ~block) - 1);
        self(self, last & ~block, last);
        return;
      }
    }
    std::uint32_t made = kEmpty;
    for (std::size_t i = size; i-- > 0;) {
      ByteSet bytes;
      bytes.add(static_cast<std::uint8_t>(low[i]), static_cast<std::uint8_t>(high[i]));
      made = cat(set(bytes), made);
    }
    push(made);
  };
  for (CharRange range : ranges) {
    range.last = std::min<char32_t>(range.last, 0x10FFFF);
    if (range.first > range.last) continue;
    if (range.first < 0xD800 && range.last >= 0xD800) {
      split(split, range.first, 0xD7FF);
      range.first = 0xD800;
    }
    if (range.first >= 0xD800) range.first = std::max<char32_t>(range.first, 0xE000);
    if (range.first <= range.last) split(split, range.first, range.last);
  }
  return join(begin);
}

std::uint32_t Terms::cat(std::uint32_t a, std::uint32_t b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == kEmpty) return b;
  if (b == kEmpty || (a == kAll && b == kAll)) return a;
  if (terms_[a].op == TermOp::cat) {  // to the right, from a's last part on
    const std::uint32_t begin = mark();
    for (; terms_[a].op == TermOp::cat; a = terms_[a].b) push(terms_[a].a);
    push(a);
    for (std::uint32_t i = scratch_.size(); i-- > begin;) b = cat(scratch_[i], b);
    scratch_.shrink(begin);
    return b;
  }
  Term made;
  made.op = TermOp::cat;
  made.a = a;
  made.b = b;
  made.nullable = nullable(a) && nullable(b);
  made.plain = plain(a) && plain(b);
  return add(made);
}

std::uint32_t Terms::alt(std::uint32_t a, std::uint32_t b) {
  if (a == b || b == kNothing) return a;
  if (a == kNothing) return b;
  const std::uint32_t begin = mark();
  push(a);
  push(b);
  return join(begin);
}

std::uint32_t Terms::join(std::uint32_t begin) {
  // Lists are taken apart, sets become one, and the rest is sorted, so that equal languages mostly become equal terms.
  ByteSet bytes;
  const std::uint32_t n = scratch_.size();
  const std::uint32_t flat = n;
  bool all = false;
  const auto take = [&](std::uint32_t t) {
    if (terms_[t].op == TermOp::set) {
      for (std::size_t i = 0; i < 4; ++i) bytes.bits[i] |= sets_[terms_[t].a].bits[i];
    } else if (t != kNothing) {
      all = all || t == kAll;
      push(t);
    }
  };
  for (std::uint32_t i = begin; i < n && spend(); ++i) {
    std::uint32_t t = scratch_[i];
    for (; terms_[t].op == TermOp::alt && spend(); t = terms_[t].b) take(terms_[t].a);
    take(t);
  }
  if (failed() || all) {
    scratch_.shrink(begin);
    return all && !failed() ? kAll : kNothing;
  }
  if (!(bytes == ByteSet())) push(set(bytes));
  // The table has pieces, so the values move to its beginning and are sorted by a heap.
  std::uint32_t count = scratch_.size() - flat;
  const auto at = [&](std::uint32_t i) -> std::uint32_t& { return scratch_[flat + i]; };
  const auto sift = [&](std::uint32_t i, std::uint32_t end) {
    while (2 * i + 1 < end) {
      std::uint32_t child = 2 * i + 1;
      if (child + 1 < end && at(child) < at(child + 1)) ++child;
      if (at(i) >= at(child)) return;
      std::swap(at(i), at(child));
      i = child;
    }
  };
  for (std::uint32_t i = count / 2; i-- > 0;) sift(i, count);
  for (std::uint32_t end = count; end > 1;) {
    std::swap(at(0), at(--end));
    sift(0, end);
  }
  std::uint32_t made = kNothing;
  for (std::uint32_t i = count; i-- > 0;) {
    const std::uint32_t t = at(i);
    if (i + 1 < count && t == at(i + 1)) continue;
    if (made == kNothing) {
      made = t;
      continue;
    }
    Term list;
    list.op = TermOp::alt;
    list.a = t;
    list.b = made;
    list.nullable = nullable(t) || nullable(made);
    list.plain = plain(t) && plain(made);
    made = add(list);
  }
  scratch_.shrink(begin);
  return made;
}

std::uint32_t Terms::chain(std::uint32_t begin) {
  std::uint32_t made = kEmpty;
  for (std::uint32_t i = scratch_.size(); i-- > begin;) made = cat(scratch_[i], made);
  scratch_.shrink(begin);
  return made;
}

std::uint32_t Terms::repeat(std::uint32_t a, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || a == kEmpty) return kEmpty;
  if (a == kNothing) return min == 0 ? kEmpty : kNothing;
  if (a == kAll) return kAll;
  if (nullable(a)) min = 0;
  if (min == 1 && max == 1) return a;
  if (terms_[a].op == TermOp::repeat && terms_[a].min == 0) {
    // (x{0,n}){0,m} is x{0,nm}
    const std::uint64_t product =
        max == kUnlimited || terms_[a].max == kUnlimited ? kUnlimited : std::uint64_t{max} * terms_[a].max;
    if (product <= kMaxCount || product == kUnlimited) {
      return repeat(terms_[a].a, 0, static_cast<std::uint32_t>(product));
    }
  }
  Term made;
  made.op = TermOp::repeat;
  made.a = a;
  made.min = min;
  made.max = max;
  made.nullable = min == 0;
  made.plain = plain(a);
  return add(made);
}

std::uint32_t Terms::both(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  if (a == kNothing) return kNothing;
  if (a == b || b == kAll) return a;
  if (a == kAll) return b;
  if (a == kEmpty) return nullable(b) ? kEmpty : kNothing;
  Term made;
  made.op = TermOp::both;
  made.a = a;
  made.b = b;
  made.nullable = nullable(a) && nullable(b);
  made.plain = false;
  return add(made);
}

std::uint32_t Terms::other(std::uint32_t a) {
  if (a == kNothing) return kAll;
  if (a == kAll) return kNothing;
  if (terms_[a].op == TermOp::other) return terms_[a].a;
  Term made;
  made.op = TermOp::other;
  made.a = a;
  made.nullable = !nullable(a);
  made.plain = false;
  return add(made);
}

std::uint32_t Terms::rule(std::uint32_t number, bool nullable) {
  Term made;
  made.op = TermOp::rule;
  made.a = number;
  made.nullable = nullable;
  return add(made);
}

void Terms::set_body(std::uint32_t number, std::uint32_t term) {
  while (bodies_.size() <= number && !store_->full()) bodies_.add(kNothing);
  if (number < bodies_.size()) bodies_[number] = term;
}

std::uint32_t Terms::step(std::uint32_t term, std::uint8_t byte) {
  if (term <= kAll) return term == kAll ? kAll : kNothing;
  const std::uint64_t hash = mix(term, byte);
  Memo& memo = memo_[(hash >> 20) & (memo_.size() - 1)];
  if (memo.term == term && memo.key == byte + 1u) return memo.result;
  const std::uint32_t result = derive(term, byte);
  if (!failed()) memo = {term, byte + 1u, result};
  return result;
}

std::uint32_t Terms::derive(std::uint32_t term, std::uint8_t byte) {
  if (depth_ >= kMaxDepth) failed_ = true;
  if (!spend()) return kNothing;
  ++depth_;
  std::uint32_t result = kNothing;
  switch (terms_[term].op) {
    case TermOp::both: {
      const std::uint32_t left = step(terms_[term].a, byte);
      result = left == kNothing ? kNothing : both(left, step(terms_[term].b, byte));
      break;
    }
    case TermOp::other:
      result = other(step(terms_[term].a, byte));
      break;
    case TermOp::rule:
      result = step(bodies_[terms_[term].a], byte);
      break;
    default: {
      const std::uint32_t begin = mark();
      collect(term, byte);
      result = join(begin);
    }
  }
  --depth_;
  return result;
}

void Terms::collect(std::uint32_t term, std::uint8_t byte) {
  while (spend()) {
    const Term& t = terms_[term];
    switch (t.op) {
      case TermOp::set:
        if (sets_[t.a].has(byte)) push(kEmpty);
        return;
      case TermOp::alt:
        collect(t.a, byte);
        term = t.b;
        continue;
      case TermOp::cat: {
        const std::uint32_t head = step(t.a, byte);
        if (head != kNothing) push(cat(head, t.b));
        if (!nullable(t.a)) return;
        term = t.b;
        continue;
      }
      case TermOp::repeat: {
        const std::uint32_t head = step(t.a, byte);
        if (head == kNothing) return;
        push(cat(head, repeat(t.a, t.min == 0 ? 0 : t.min - 1, t.max == kUnlimited ? kUnlimited : t.max - 1)));
        return;
      }
      case TermOp::nothing:
      case TermOp::empty:
        return;
      default: {
        const std::uint32_t made = step(term, byte);
        if (made != kNothing) push(made);
        return;
      }
    }
  }
}

bool Terms::follows_any(std::uint32_t term) {
  for (bool last = false; !last; term = second(term)) {
    last = op(term) != TermOp::alt;
    const std::uint32_t part = last ? term : first(term);
    if (part == kAll || (op(part) == TermOp::cat && first(part) == kAll && alive(second(part)))) return true;
  }
  return false;
}

bool Terms::alive(std::uint32_t term) {
  if (term == kNothing) return false;
  if (nullable(term) || plain(term)) return true;
  // The verdict of a term is stored: 1 while it is on the way, 2 for a text, 3 for no text.
  const auto entry = [&](std::uint32_t t) {
    return searched_.find_or(
        mix(t, 7), [&](std::uint32_t i) { return verdicts_[i] >> 2 == t; },
        [&] { return verdicts_.add(std::uint64_t{t} << 2); });
  };
  const std::uint32_t own = entry(term);
  if ((verdicts_[own] & 3u) != 0) return (verdicts_[own] & 3u) == 2;
  // Searched in depth, since most terms have a short text. The list holds pairs of a term and its byte to try next; a
  // term that is left stays in the list of the seen ones, from `begin` on.
  const std::uint32_t begin = mark();
  std::uint32_t n = 0, top = 0;
  const auto enter = [&](std::uint32_t t, std::uint32_t before) {
    push(t);
    push(before);
    push(0);
    verdicts_[entry(t)] |= 1;
    top = n++;
  };
  enter(term, 0);
  bool found = false;
  while (!found && !failed()) {
    const std::uint32_t at = begin + 3 * top, t = scratch_[at];
    std::uint32_t& byte = scratch_[at + 2];
    if (byte == 256) {
      if (top == 0) break;
      top = scratch_[at + 1];
      continue;
    }
    const std::uint32_t next = step(t, static_cast<std::uint8_t>(byte++));
    if (next == kNothing) continue;
    const std::uint64_t known = nullable(next) || plain(next) ? 2 : verdicts_[entry(next)] & 3u;
    found = known == 2 || (known == 0 && n > kMaxSearch);
    if (known == 0 && !found) enter(next, top);
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint64_t& verdict = verdicts_[entry(scratch_[begin + 3 * i])];
    verdict = (verdict & ~std::uint64_t{3}) | (found ? 0u : 3u);
  }
  for (std::uint32_t i = top; found; i = scratch_[begin + 3 * i + 1]) {  // the terms on the way to the text
    verdicts_[entry(scratch_[begin + 3 * i])] |= 2;
    if (i == 0) break;
  }
  scratch_.shrink(begin);
  return found || failed();
}

}  // namespace qsf::grammar
