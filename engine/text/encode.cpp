// The kinds of tokenizer that do not merge, and the entry of all kinds.
#include "text/encoder.h"

namespace qsf {

using tokn::f32_at, tokn::kNone, tokn::u32_at;

/// Emits the tokens of words_ with the greatest sum of scores (Viterbi's algorithm). If more text follows, stops at the
/// last place that is on the best paths to all places where a token could continue. That may be after one token of
/// many, and tokens of any length may continue each place, so that only the work bounds the time.
bool Encoder::likeliest(bool last) {
  const std::string_view text(words_, n_words_);
  if (text.empty()) return true;
  if (!spend(text.size())) return false;
  for (std::size_t at = 0; at <= text.size(); ++at) set_path(at, 0, kNone, 0);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t character = utf8::decode(text, at).size;
    bool alone = false;  // the character is a token by itself
    const auto reach = [&](std::size_t size, double score, std::uint32_t id) {
      const std::size_t to = at + size;
      if (run_.tree[to] == 0 || path(at) + score > path(to)) set_path(to, path(at) + score, id, size);
    };
    const bool goes_on = each_token(text.substr(at), [&](std::uint32_t id) {
      const std::size_t size = t_.stored(id).size();
      if ((static_cast<std::uint8_t>(at + size < text.size() ? text[at + size] : 0) & 0xC0u) == 0x80) return;
      alone = alone || size == character;
      reach(size, static_cast<double>(f32_at(t_.scores_, id)), id);
    });
    if (!goes_on) return false;
    if (!alone) reach(character, t_.unknown_score_, kNone);
    at += character;
  }
  std::size_t end = text.size();
  if (!last) {
    // From the end: while several places could be continued, the last is replaced by the previous place of its best
    // path.
    const std::size_t first = end - std::min<std::size_t>(end, tokn::kMaxTokenBytes);
    std::size_t n_live = 0;
    const auto live = [&](std::size_t at) { return (run_.keys[2 * at] & 1u) != 0; };
    const auto mark = [&](std::size_t at, bool on) { run_.keys[2 * at] = on ? 1 : 0; };
    for (std::size_t at = 0; at <= end; ++at) {
      mark(at, at > first && run_.tree[at] != 0);
      n_live += live(at) ? 1 : 0;
    }
    for (; end > 0 && (!live(end) || n_live > 1); --end) {
      if (!live(end)) continue;
      mark(end, false);
      const std::size_t before = end - run_.tree[end];
      if (live(before)) --n_live;
      mark(before, true);
    }
    if (end == 0) return uncut();
  }
  // Moves sizes and ids from the ends of their tokens to the beginnings.
  std::size_t size = run_.tree[end];
  std::uint32_t id = run_.ids[end];
  for (std::size_t at = end; at > 0;) {
    at -= size;
    const std::size_t size_before = run_.tree[at];
    const std::uint32_t id_before = run_.ids[at];
    run_.tree[at] = static_cast<std::uint16_t>(size);
    run_.ids[at] = id;
    size = size_before;
    id = id_before;
  }
  for (std::size_t at = 0; at < end; at += run_.tree[at]) {
    if (!give(static_cast<std::uint32_t>(at), text.substr(at, run_.tree[at]))) return false;
  }
  std::copy(words_ + end, words_ + n_words_, words_);
  n_words_ -= end;
  return true;
}

/// Emits BERT's words. The text is cut at white space, which is dropped, and around punctuation.
bool Encoder::pieces_fragment(std::string_view text) {
  const bool done = each_character(text, [&](std::string_view character) {
    const char32_t c = utf8::decode(character, 0).code;
    const unicode::Category category = unicode::category_of(c);
    if (category == unicode::Category::white) return word();
    const bool alone =
        category == unicode::Category::punctuation || (c < 0x80 && category == unicode::Category::symbol);
    if (alone && !word()) return false;
    if (n_words_ == 0) words_[n_words_++] = ' ';
    if (++n_characters_ <= t_.max_word_ && n_words_ + character.size() <= most_) {
      std::copy(character.begin(), character.end(), words_ + n_words_);
      n_words_ += character.size();
    } else {
      n_characters_ = t_.max_word_ + 1;
    }
    return !alone || word();
  });
  return done && word();
}

/// Emits the longest token that begins the word, then the same for the rest. A word that tokens do not spell, or that
/// is too long, becomes the unknown token; without one it fails with bad_text.
bool Encoder::word() {
  const std::string_view text(words_, std::exchange(n_words_, 0));
  bool known = std::exchange(n_characters_, 0) <= t_.max_word_;
  const std::uint32_t begin = n_out_;
  for (std::size_t at = 0; known && at < text.size();) {
    std::uint32_t longest = kNone;
    if (!each_token(text.substr(at), [&](std::uint32_t id) { longest = id; })) return false;
    known = longest != kNone && (at != 0 || t_.stored(longest).size() > 1);
    if (!known) break;
    if (!emit(longest)) return false;
    at += t_.stored(longest).size();
  }
  if (known) return true;
  n_out_ = begin;
  if (t_.unknown_ != kNone) return emit(t_.unknown_);
  error_ = make_error(ErrorCode::bad_text, "the vocabulary has no token for \"{:.80}\" and none for the unknown", text);
  return false;
}

Result<std::uint32_t> Tokenizer::encode(std::string_view text, bool special, std::span<std::uint32_t> out,
                                        std::span<std::byte> scratch, std::span<const TextRange> plain,
                                        const std::atomic<bool>* cancel, std::optional<std::uint32_t> begin) const {
  if (!open_for_use()) return make_error(ErrorCode::bad_text, "there is no tokenizer to read the text");
  std::size_t last = 0;
  for (const TextRange& range : plain) {
    if (range.begin < last || range.end < range.begin || range.end > text.size()) {
      return make_error(ErrorCode::bad_argument, "bytes {} to {} of a text of {} bytes are no range after byte {}",
                        range.begin, range.end, text.size(), last);
    }
    last = range.end;
  }
  TextWork work(text.size(), cancel);
  return Encoder(*this, out, scratch, work).encode(text, special, plain, begin.value_or(kNone));
}

}  // namespace qsf
