#include "text/normalizer.h"

#include <algorithm>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"
#include "text/char_map.h"
#include "text/tokn.h"
#include "text/unicode.h"

namespace qsf {
namespace {

using unicode::Category;

constexpr std::size_t kStepHeader = 8;

/// u16 operation, u16 the upper half of the bytes of `to`, u16 bytes of `from`, u16 bytes of `to`, the texts.
struct StoredStep {
  std::uint16_t op;
  std::size_t to_size;
  std::string_view from, to;
};
StoredStep read_step(ByteReader& in) {
  StoredStep out{};
  out.op = in.read<std::uint16_t>();
  const auto high = in.read<std::uint16_t>();
  const auto from_size = in.read<std::uint16_t>();
  out.to_size = std::size_t{high} << 16 | in.read<std::uint16_t>();
  out.from = in.text(from_size);
  out.to = in.text(out.to_size);
  return out;
}

/// What BERT's text cleaning leaves out: controls, formats, private characters.
bool is_unclean(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xFFFD || unicode::category_of(c) == Category::other;
}

/// The ideographs that BERT sets between spaces.
bool is_ideograph(char32_t c) {
  struct Block {
    char32_t first, last;
  };
  constexpr Block kBlocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                               {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [&](const Block& block) { return c >= block.first && c <= block.last; });
}

bool is_mark(Category category) {
  return category == Category::nonspacing || category == Category::spacing || category == Category::enclosing;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<std::uint8_t>(c) & 0xC0u) != 0x80; }));
}

}  // namespace

Status check_normalizer(std::span<const std::byte> steps) {
  ByteReader in(steps);
  for (std::size_t i = 0; in.left() > 0; ++i) {
    const auto [op, to_size, from, to] = read_step(in);
    const bool maps = op == static_cast<std::uint16_t>(NormalizerOp::char_map);
    if (in.bad() || to_size > (maps ? tokn::kMaxCharMap : 0xffff) || i == Normalizer::kMaxSteps) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: step {} of the normalizer is cut short or one too many",
                        i);
    }
    if (op < static_cast<std::uint16_t>(NormalizerOp::nfc) || op > static_cast<std::uint16_t>(kLastNormalizerOp)) {
      return make_error(ErrorCode::unsupported, "tokenizer: this build has no normalizer {}", op);
    }
    if (maps) {
      QSF_TRY(CharMap::check(to));
      if (from.empty()) continue;
    }
    const auto kind = static_cast<NormalizerOp>(op);
    const bool takes_from = kind == NormalizerOp::replace;
    const bool takes_to = takes_from || kind == NormalizerOp::prepend;
    if (!utf8::is_valid(from) || !utf8::is_valid(to) || from.empty() == takes_from || (!takes_to && !to.empty()) ||
        characters(from) > Normalizer::kMaxText) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: the texts of step {} of the normalizer make no sense", i);
    }
  }
  return {};
}

Normalizer::Normalizer(std::span<const std::byte> steps, std::string_view text) : text_(text) {
  ByteReader in(steps);
  while (in.left() >= kStepHeader && n_steps_ < kMaxSteps) {
    const StoredStep stored = read_step(in);
    Step& step = steps_[n_steps_++];
    step.op = static_cast<NormalizerOp>(stored.op);
    step.from = stored.from;
    step.to = stored.to;
  }
}

/// A character behind the first `n_steps` steps.
bool Normalizer::pull(std::size_t n_steps, char32_t& out) {
  if (n_steps == 0) {
    if (at_ == text_.size()) return false;
    const utf8::Decoded next = utf8::decode(text_, at_);
    at_ += next.size;
    out = next.code;
    return true;
  }
  const std::size_t i = n_steps - 1;
  Step& step = steps_[i];
  if (step.op == NormalizerOp::replace) return replace(i, out);
  if (step.op == NormalizerOp::char_map) return map(i, out);
  while (step.at == step.n) {
    if (!refill(i)) return false;
  }
  out = step.queue[step.at++];
  return true;
}

/// The next character of the text that replaces another; `held` is its place there.
bool Normalizer::take_held(Step& step, char32_t& out) {
  const utf8::Decoded next = utf8::decode(step.text, step.held);
  out = next.code;
  step.held += next.size;
  step.holds = step.held < step.text.size();
  return true;
}

/// Reads until the queue has a character n places ahead; false at the end of the text.
bool Normalizer::ahead(std::size_t i, std::size_t n) {
  Step& step = steps_[i];
  if (n < step.n - step.at) return true;
  std::copy(step.queue.begin() + static_cast<std::ptrdiff_t>(step.at),
            step.queue.begin() + static_cast<std::ptrdiff_t>(step.n), step.queue.begin());
  step.n -= step.at;
  step.at = 0;
  while (step.n <= n) {
    if (!pull(i, step.queue[step.n])) return false;
    ++step.n;
  }
  return true;
}

/// The longest key at the next characters becomes its text; where there is none, a character stays.
bool Normalizer::map(std::size_t i, char32_t& out) {
  Step& step = steps_[i];
  const CharMap characters(step.to);
  while (!step.holds) {
    std::size_t matched = 0;
    CharMap::Walk walk = characters.begin();
    for (std::size_t n = 0; n < kMaxKey && ahead(i, n) && characters.on(walk, step.queue[step.at + n]); ++n) {
      if (!walk.found) continue;
      matched = n + 1;
      step.text = walk.text;
    }
    if (matched == 0) {
      if (step.at == step.n) return false;
      out = step.queue[step.at++];
      return true;
    }
    step.at += matched;
    step.held = 0;
    step.holds = !step.text.empty();
  }
  return take_held(step, out);
}

bool Normalizer::replace(std::size_t i, char32_t& out) {
  Step& step = steps_[i];
  if (step.holds) return take_held(step, out);
  while (true) {
    std::size_t n = 0;
    bool same = true;
    for (std::size_t at = 0; at < step.from.size() && same; ++n) {
      if (!ahead(i, n)) {
        same = false;
        break;
      }
      const utf8::Decoded wanted = utf8::decode(step.from, at);
      same = step.queue[step.at + n] == wanted.code;
      at += wanted.size;
    }
    if (!same) {
      if (step.at == step.n) return false;
      out = step.queue[step.at++];
      return true;
    }
    step.at += n;
    if (step.to.empty()) continue;
    step.text = step.to;
    step.held = 0;
    return take_held(step, out);
  }
}

/// Fills a step's queue with what the next character or, for a normal form, the next characters up to a place where
/// nothing composes become; false at the end.
bool Normalizer::refill(std::size_t i) {
  Step& step = steps_[i];
  step.at = step.n = 0;
  unicode::Decomposition some{};
  char32_t c = 0;
  if (step.op == NormalizerOp::prepend) {
    if (!pull(i, c)) return false;
    if (!step.begun) {
      for (std::size_t at = 0; at < step.to.size() && step.n + 1 < step.queue.size();) {
        const utf8::Decoded next = utf8::decode(step.to, at);
        step.queue[step.n++] = next.code;
        at += next.size;
      }
    }
    step.begun = true;
    step.queue[step.n++] = c;
    return true;
  }
  const bool compatibility = step.op == NormalizerOp::nfkc || step.op == NormalizerOp::nfkd;
  const bool composes = step.op == NormalizerOp::nfc || step.op == NormalizerOp::nfkc;
  if (composes || step.op == NormalizerOp::nfd || step.op == NormalizerOp::nfkd) {
    while (true) {
      if (step.holds) {
        c = step.held;
        step.holds = false;
      } else if (!pull(i, c)) {
        break;
      }
      const std::size_t n = unicode::decompose(c, compatibility, some);
      const bool begins = unicode::combining_class(some[0]) == 0;
      if (step.n != 0 && begins && (!composes || !unicode::composes_behind(some[0]) || step.n >= kMaxMarks)) {
        step.held = c;
        step.holds = true;
        break;
      }
      if (step.n + n > step.queue.size()) {
        failed_ = true;
        return false;
      }
      std::copy_n(some.begin(), n, step.queue.begin() + static_cast<std::ptrdiff_t>(step.n));
      step.n += n;
    }
    order(step, composes);
    return step.n != 0;
  }
  if (!pull(i, c)) return false;
  switch (step.op) {
    case NormalizerOp::lowercase:
      step.n = unicode::lower(c, some);
      std::copy_n(some.begin(), step.n, step.queue.begin());
      return true;
    case NormalizerOp::strip_marks:
      if (!is_mark(unicode::category_of(c))) step.queue[step.n++] = c;
      return true;
    case NormalizerOp::strip_accents:
      if (unicode::category_of(c) != Category::nonspacing) step.queue[step.n++] = c;
      return true;
    case NormalizerOp::clean:
      if (!is_unclean(c)) step.queue[step.n++] = unicode::category_of(c) == Category::white ? U' ' : c;
      return true;
    case NormalizerOp::space_ideographs:
      if (is_ideograph(c)) {
        step.queue = {U' ', c, U' '};
        step.n = 3;
        return true;
      }
      [[fallthrough]];
    default:
      step.queue[step.n++] = c;
      return true;
  }
}

/// Marks by their class, then what composes: the canonical ordering and composition algorithms of the standard.
void Normalizer::order(Step& step, bool composes) const {
  auto& queue = step.queue;
  for (std::size_t i = 1; i < step.n; ++i) {
    const char32_t c = queue[i];
    const std::uint8_t kind = unicode::combining_class(c);
    std::size_t at = i;
    for (; kind != 0 && at > 0 && unicode::combining_class(queue[at - 1]) > kind; --at) queue[at] = queue[at - 1];
    queue[at] = c;
  }
  if (!composes) return;
  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t n = 0, starter = kNone;
  std::uint8_t last = 0;
  for (std::size_t i = 0; i < step.n; ++i) {
    const char32_t c = queue[i];
    const std::uint8_t kind = unicode::combining_class(c);
    if (starter != kNone && (n == starter + 1 || last < kind)) {
      if (const char32_t whole = unicode::compose(queue[starter], c); whole != 0) {
        queue[starter] = whole;
        continue;
      }
    }
    if (kind == 0) starter = n;
    last = kind;
    queue[n++] = c;
  }
  step.n = n;
}

}  // namespace qsf
