#include "text/normalizer.h"

#include <algorithm>
#include <utility>

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

/// A step in the file: u16 operation, u16 upper half of the bytes of `to`, u16 bytes of `from`, u16 lower half of the
/// bytes of `to`, the texts.
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

/// Whether BERT's text cleaning drops the character: controls, formats, private characters.
bool is_unclean(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xFFFD || unicode::category_of(c) == Category::other;
}

/// Whether BERT puts spaces around the ideograph.
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
    const auto kind = static_cast<NormalizerOp>(op);
    const bool maps = has_char_map(kind);
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
    const bool takes_from = kind == NormalizerOp::replace;
    const bool takes_to = takes_from || kind == NormalizerOp::prepend;
    if (!utf8::is_valid(from) || !utf8::is_valid(to) || from.empty() == takes_from || (!takes_to && !to.empty()) ||
        characters(from) > Normalizer::kMaxText) {
      return make_error(ErrorCode::bad_tokenizer,
                        "tokenizer: the texts of step {} of the normalizer do not fit its operation {}", i, op);
    }
  }
  return {};
}

Normalizer::Normalizer(std::span<const std::byte> steps, std::string_view text, TextWork& work)
    : text_(text), work_(work) {
  ByteReader in(steps);
  while (in.left() >= kStepHeader && n_steps_ < kMaxSteps) {
    const StoredStep stored = read_step(in);
    Step& step = steps_[n_steps_++];
    step.op = static_cast<NormalizerOp>(stored.op);
    step.from = stored.from;
    step.to = stored.to;
  }
}

/// Reads a character after the first `n_steps` steps. Returns false at the end, or if the work is spent.
bool Normalizer::pull(std::size_t n_steps, char32_t& out) {
  if (!work_.spend()) return false;
  if (n_steps == 0) {
    if (at_ == text_.size()) return false;
    const utf8::Decoded next = utf8::decode(text_, at_);
    at_ += next.size;
    out = next.code;
    return true;
  }
  const std::size_t i = n_steps - 1;
  Step& step = steps_[i];
  if (step.op == NormalizerOp::prepend) return prepend(i, out);
  if (step.op == NormalizerOp::replace) return replace(i, out);
  if (has_char_map(step.op)) return map(i, out);
  while (step.at == step.n) {
    if (!refill(i)) return false;
  }
  out = step.queue[step.at++];
  return true;
}

/// Reads the first character of a text that is not empty; take_held() reads the others.
bool Normalizer::hold(Step& step, std::string_view text, char32_t& out) {
  step.text = text;
  step.held = 0;
  return take_held(step, out);
}

/// Reads the next character of the step's text, in which `held` is the offset.
bool Normalizer::take_held(Step& step, char32_t& out) {
  const utf8::Decoded next = utf8::decode(step.text, step.held);
  out = next.code;
  step.held += next.size;
  step.holds = step.held < step.text.size();
  return true;
}

/// Reads until the queue has a character n places ahead. Returns false at the end of the text.
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

/// Reads the next character from the queue. Returns false at the end of the text.
bool Normalizer::take_queued(std::size_t i, char32_t& out) {
  Step& step = steps_[i];
  if (step.at == step.n) return false;
  out = step.queue[step.at++];
  return true;
}

/// Puts a text before the first character, if there is one.
bool Normalizer::prepend(std::size_t i, char32_t& out) {
  Step& step = steps_[i];
  if (step.holds) return take_held(step, out);
  if (!ahead(i, 0)) return false;
  if (!std::exchange(step.begun, true) && !step.to.empty()) return hold(step, step.to, out);
  return take_queued(i, out);
}

/// Returns the characters of the longest key among the next `n` characters at most, of cluster_map the shortest, and
/// sets the step's text to the key's. Returns 0 if there is no key.
std::size_t Normalizer::matched_key(std::size_t i, std::size_t n) {
  Step& step = steps_[i];
  const CharMap characters(step.to);
  CharMap::Walk walk = characters.begin();
  std::size_t matched = 0, k = 0;
  for (; k < n && ahead(i, k) && characters.on(walk, step.queue[step.at + k]); ++k) {
    if (!walk.found) continue;
    matched = k + 1;
    step.text = walk.text;
    if (step.op == NormalizerOp::cluster_map) break;
  }
  work_.spend(k);
  return matched;
}

/// Returns the number of characters in the cluster that begins with the next character, if it has at most kShortCluster
/// bytes. Returns 1 for a longer cluster, and for a character inside of one.
std::size_t Normalizer::short_cluster(std::size_t i) {
  const Step& step = steps_[i];
  Clusters clusters = step.clusters;
  if (!clusters.begins(step.queue[step.at])) return 1;
  std::array<char, 4> bytes{};
  std::size_t n = 0, size = 0;
  do {
    size += utf8::encode(step.queue[step.at + n], bytes.data());
    if (size > kShortCluster) return 1;
    ++n;
  } while (ahead(i, n) && !clusters.begins(step.queue[step.at + n]));
  return n;
}

/// Replaces the longest key that begins the next characters with its text. cluster_map replaces a whole short cluster
/// that begins with a key with the shortest such key's text, and of all others each character that is a key. Without a
/// key, a character stays.
bool Normalizer::map(std::size_t i, char32_t& out) {
  Step& step = steps_[i];
  while (!step.holds) {
    if (!ahead(i, 0)) return false;
    const bool by_clusters = step.op == NormalizerOp::cluster_map;
    const std::size_t n = by_clusters ? short_cluster(i) : kMaxKey;
    const std::size_t matched = matched_key(i, n);
    if (work_.spent()) return false;
    const std::size_t taken = by_clusters && matched != 0 ? n : std::max<std::size_t>(matched, 1);
    for (std::size_t k = 0; k < taken && by_clusters; ++k) step.clusters.begins(step.queue[step.at + k]);
    if (matched == 0) return take_queued(i, out);
    step.at += taken;
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
    if (!same) return take_queued(i, out);
    step.at += n;
    if (!step.to.empty()) return hold(step, step.to, out);
  }
}

/// Fills a step's queue from the next character, or for a normal form from all up to a place that nothing composes
/// over. Returns false at the end.
bool Normalizer::refill(std::size_t i) {
  Step& step = steps_[i];
  step.at = step.n = 0;
  unicode::Decomposition some{};
  char32_t c = 0;
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
    case NormalizerOp::join_spaces:
      if (c != ' ' || step.held != ' ') step.queue[step.n++] = c;
      step.held = c;
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

/// Sorts marks by their class, then composes: the canonical ordering and composition algorithms of the standard.
void Normalizer::order(Step& step, bool composes) const {
  auto& queue = step.queue;
  std::array<std::uint8_t, kQueue> kinds{};
  for (std::size_t i = 0; i < step.n; ++i) {
    const char32_t c = queue[i];
    const std::uint8_t kind = unicode::combining_class(c);
    std::size_t at = i;
    for (; kind != 0 && at > 0 && kinds[at - 1] > kind; --at) {
      queue[at] = queue[at - 1];
      kinds[at] = kinds[at - 1];
    }
    queue[at] = c;
    kinds[at] = kind;
  }
  if (!composes) return;
  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t n = 0, starter = kNone;
  std::uint8_t last = 0;
  for (std::size_t i = 0; i < step.n; ++i) {
    const char32_t c = queue[i];
    const std::uint8_t kind = kinds[i];
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

bool has_form(std::span<const std::byte> steps, std::string_view text, std::string_view form, TextWork& work) {
  Normalizer normalizer(steps, text, work);
  std::array<char, 4> bytes{};
  std::size_t at = 0;
  for (char32_t c = 0; normalizer.next(c);) {
    const std::string_view character(bytes.data(), utf8::encode(c, bytes.data()));
    if (!form.substr(at).starts_with(character)) return false;
    at += character.size();
  }
  return at == form.size() && !normalizer.failed() && !work.spent();
}

}  // namespace qsf
