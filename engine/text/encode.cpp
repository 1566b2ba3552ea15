// Tokenizer::encode: added tokens are cut out, what lies between is cut into runs, and each run is merged.
#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <utility>

#include "qsf/text/tokenizer.h"
#include "text/merge.h"
#include "text/pretokenizer.h"
#include "text/tokn.h"
#include "text/utf8.h"

namespace qsf {

using tokn::f32_at, tokn::kNone, tokn::u32_at, tokn::u64_at;

namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, how SentencePiece writes a space
constexpr std::size_t kScratchPerByte = kMergeBytesPerByte + 1;
constexpr std::size_t kMaxRun = 0xffff;  // MergeRun's indices
constexpr std::size_t kMinRun = 16;
constexpr std::size_t kPlaces = 8;

/// Ascending with falling score, so that the smallest key is the best; finite scores never give kNoMerge.
std::uint32_t key_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 becomes 0
  return ~((bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u);
}

}  // namespace

class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, std::span<std::uint32_t> out, std::span<std::byte> scratch)
      : t_(tokenizer), out_(out) {
    const std::size_t skipped = (alignof(std::uint32_t) - reinterpret_cast<std::uintptr_t>(scratch.data())) % 4;
    if (scratch.size() < skipped) return;
    most_ = std::min(kMaxRun, (scratch.size() - skipped) / kScratchPerByte);
    std::byte* at = scratch.data() + skipped;
    run_.ids = reinterpret_cast<std::uint32_t*>(at);
    run_.keys = run_.ids + most_;
    run_.next = reinterpret_cast<std::uint16_t*>(run_.keys + most_);
    run_.prev = run_.next + most_;
    run_.tree = run_.prev + most_;
    words_ = reinterpret_cast<char*>(run_.tree + most_);
  }

  Result<std::uint32_t> encode(std::string_view text, bool special, std::span<const TextRange> plain) {
    if (most_ < kMinRun) return make_error(ErrorCode::bad_argument, "encode: the scratch holds {} bytes", most_);
    if (const std::size_t valid = utf8::valid_prefix(text); valid != text.size()) {
      return make_error(ErrorCode::bad_text, "the text is not valid UTF-8 at byte {} (0x{:02x})", valid,
                        static_cast<std::uint8_t>(text[valid]));
    }
    std::bitset<256> begins_added;
    for (std::uint32_t i = 0; i < t_.n_added_; ++i) {
      begins_added.set(static_cast<std::uint8_t>(t_.stored(u32_at(t_.added_, i))[0]));
    }
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::uint32_t id =
          begins_added[static_cast<std::uint8_t>(text[at])] ? added_at(text, at, special, plain) : kNone;
      if (id == kNone) {
        ++at;
        continue;
      }
      if (!fragment(text.substr(begin, at - begin)) || !emit(id)) return error_;
      at += t_.stored(id).size();
      begin = at;
    }
    if (!fragment(text.substr(begin))) return error_;
    return n_out_;
  }

 private:
  bool emit(std::uint32_t id) {
    if (n_out_ == out_.size()) {
      error_ = make_error(ErrorCode::context_full, "the text has more than {} tokens", out_.size());
      return false;
    }
    out_[n_out_++] = id;
    last_unknown_ = false;
    return true;
  }

  /// The added token that is meant at text[at]; kNone without one.
  std::uint32_t added_at(std::string_view text, std::size_t at, bool special, std::span<const TextRange> plain) const {
    const auto next = std::ranges::find_if(plain, [&](const TextRange& range) { return range.end > at; });
    const bool own = next == plain.end() || at < next->begin;
    const std::uint32_t id = longest_added(text.substr(at), special && own);
    if (plain.empty() || id == kNone) return id;
    const std::string_view token = t_.stored(id);
    if (next == plain.end() || at + token.size() <= next->begin) return id;
    if (own) return longest_added(text.substr(at, next->begin - at), special);
    return token.find_first_not_of(" \t\r\n") == token.npos || !stands_outside(text, token, plain) ? id : kNone;
  }

  static bool stands_outside(std::string_view text, std::string_view token, std::span<const TextRange> plain) {
    std::size_t begin = 0;
    for (const TextRange& range : plain) {
      if (text.substr(begin, range.begin - begin).find(token) != text.npos) return true;
      begin = range.end;
    }
    return text.substr(begin).find(token) != text.npos;
  }

  /// The longest added token that `text` begins with; kNone without one.
  std::uint32_t longest_added(std::string_view text, bool special) const {
    std::uint32_t found = kNone;
    std::uint32_t low = 0, high = t_.n_added_;
    const auto token = [&](std::uint32_t i) { return t_.stored(u32_at(t_.added_, i)); };
    for (std::size_t depth = 0; depth < text.size() && low < high; ++depth) {
      // All tokens in [low, high) begin with the first `depth` bytes of the text.
      const auto byte = static_cast<std::uint8_t>(text[depth]);
      const auto first = [&](std::uint32_t from, auto&& reached) {
        std::uint32_t to = high;
        while (from < to) {
          const std::uint32_t middle = from + (to - from) / 2;
          const std::string_view each = token(middle);
          if (each.size() > depth && reached(static_cast<std::uint8_t>(each[depth]))) {
            to = middle;
          } else {
            from = middle + 1;
          }
        }
        return from;
      };
      low = first(low, [&](std::uint8_t b) { return b >= byte; });
      high = first(low, [&](std::uint8_t b) { return b > byte; });
      if (low == high || token(low).size() != depth + 1) continue;
      const std::uint32_t id = u32_at(t_.added_, low);
      if (special || t_.type(id) == TokenType::user_defined) found = id;
    }
    return found;
  }

  std::uint32_t find(std::string_view bytes) const {
    std::uint32_t low = 0, high = t_.n_sorted_;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      const std::uint32_t id = u32_at(t_.sorted_, middle);
      const int order = t_.stored(id).compare(bytes);
      if (order == 0) return id;
      (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
    }
    return kNone;
  }

  bool fragment(std::string_view text) {
    if (text.empty()) return true;
    if (t_.kind_ == TokenizerKind::spm_bpe) return spm_fragment(text);
    Cutter cutter(*t_.pretokenizer_, text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = cutter.next();
      if (!pretoken(text.substr(at, end - at))) return false;
      at = end;
    }
    return true;
  }

  bool pretoken(std::string_view text) {
    if (t_.n_sorted_ != 0) {
      if (const std::uint32_t id = find(text); id != kNone) return emit(id);
    }
    // A byte without a token becomes the unknown token; without one it is left out, as Hugging Face's tokenizers do.
    for (const char byte : text) {
      if (byte_token(byte) == kNone && t_.unknown_ == kNone) continue;
      if (n_words_ == most_ && !merge_window(false)) return false;
      words_[n_words_++] = byte;
    }
    return merge_window(true);
  }

  std::uint32_t byte_token(char byte) const { return u32_at(t_.bytes_, static_cast<std::uint8_t>(byte)); }

  /// A token that was given out, where it may be that all that follows is merged by itself.
  struct Place {
    std::size_t at, size;  // in words_
    std::uint32_t n_out;   // with this token
    bool last_unknown;
  };

  /// Merges what is in words_ and gives it out. A run that is longer than words_ is merged in windows: merging is
  /// local, so a row of tokens is that of its text if each two neighbours are that of theirs. The first half and more
  /// of a window is given out; the next window begins with the last token of these, and must find that token again:
  /// then all neighbours are right. If not, it begins with one of the tokens before.
  bool merge_window(bool last) {
    while (n_words_ != 0) {
      const std::string_view window(words_ + base_, n_words_ - base_);
      link(window);
      if (again_ != 0 && run_.next[0] != again_) {
        if (n_places_ == 0) return uncut();
        resume(places_[--n_places_]);
        continue;
      }
      n_places_ = 0;
      std::size_t apart = 0;
      for (std::size_t i = again_ != 0 ? run_.next[0] : 0; i < window.size(); i = run_.next[i]) {
        if (!last && i > window.size() / 4 * 3) break;
        const std::size_t size = run_.next[i] - i;
        if (!give(static_cast<std::uint32_t>(i), window.substr(i, size))) return false;
        if (last || i < window.size() / 2 || i < apart || n_places_ == kPlaces) continue;
        places_[n_places_++] = {base_ + i, size, n_out_, last_unknown_};
        apart = i + window.size() / (4 * kPlaces);
      }
      if (last) break;
      if (n_places_ == 0) return uncut();
      resume(places_[n_places_ - 1]);
      const std::size_t first = places_[0].at;
      std::copy(words_ + first, words_ + n_words_, words_);
      n_words_ -= first;
      base_ -= first;
      for (std::size_t i = 0; i < n_places_; ++i) places_[i].at -= first;
      --n_places_;
      return true;
    }
    n_words_ = base_ = again_ = n_places_ = 0;
    return true;
  }

  bool uncut() {
    error_ = make_error(ErrorCode::unsupported,
                        "the text has a run in which {} bytes hold no place to go on from: too long to merge", most_);
    return false;
  }

  void resume(const Place& place) {
    base_ = place.at;
    again_ = place.size;
    n_out_ = place.n_out;
    last_unknown_ = place.last_unknown;
  }

  /// Merges the symbols of the window: bytes, or characters.
  void link(std::string_view window) {
    run_.n = static_cast<std::uint32_t>(window.size());
    if (t_.kind_ == TokenizerKind::byte_bpe) {
      for (std::uint32_t i = 0; i < run_.n; ++i) {
        const std::uint32_t known = byte_token(window[i]);
        run_.ids[i] = known != kNone ? known : t_.unknown_;
        run_.next[i] = static_cast<std::uint16_t>(i + 1);
        run_.prev[i] = static_cast<std::uint16_t>(i - 1);
      }
      RankRules rules{*this};
      merge_all(run_, rules);
      return;
    }
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < run_.n;) {
      const std::uint32_t size = utf8::decode(window, i).size;
      run_.ids[i] = find(window.substr(i, size));
      run_.prev[i] = static_cast<std::uint16_t>(last);
      run_.next[i] = static_cast<std::uint16_t>(i + size);
      last = std::exchange(i, i + size);
    }
    ScoreRules rules{*this};
    merge_all(run_, rules);
  }

  bool give(std::uint32_t i, std::string_view text) { return run_.ids[i] != kNone ? emit(run_.ids[i]) : spell(text); }

  struct RankRules {
    const Encoder& e;

    tokn::Merge find(std::uint32_t left, std::uint32_t right) const {
      const Tokenizer& t = e.t_;
      const std::uint32_t id = e.run_.ids[left], wanted = e.run_.ids[right];
      std::uint32_t low = u32_at(t.merge_begins_, id), high = u32_at(t.merge_begins_, id + 1);
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        const tokn::Merge merge = tokn::unpack(u64_at(t.merges_, middle));
        if (merge.right == wanted) return merge;
        (merge.right < wanted ? low : high) = merge.right < wanted ? middle + 1 : middle;
      }
      return {kNone, kNone, kNoMerge};
    }
    std::uint32_t key(std::uint32_t left, std::uint32_t right) const { return find(left, right).rank; }
    void join(std::uint32_t left, std::uint32_t right) const { e.run_.ids[left] = find(left, right).result; }
  };

  /// Copies the text with U+2581 as a space, a space in front where the model wants one, and merges it.
  bool spm_fragment(std::string_view text) {
    const auto add = [&](std::string_view character) {
      if (t_.splits_words_ && character == " " && n_words_ != 0 && words_[n_words_ - 1] != ' ' && !merge_window(true)) {
        return false;
      }
      if (n_words_ + character.size() > most_ && !merge_window(false)) return false;
      std::copy(character.begin(), character.end(), words_ + n_words_);
      n_words_ += character.size();
      return true;
    };
    if (t_.strips_leading_space() && !add(" ")) return false;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, utf8::decode(text, at).size);
      if (!add(character == kMetaspace ? " " : character)) return false;
      at += character.size();
    }
    return merge_window(true);
  }

  struct ScoreRules {
    const Encoder& e;

    std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
      return e.find({e.words_ + e.base_ + left, e.run_.next[right] - left});
    }
    std::uint32_t key(std::uint32_t left, std::uint32_t right) const {
      const std::uint32_t id = find(left, right);
      return id == kNone ? kNoMerge : key_of(f32_at(e.t_.scores_, id));
    }
    void join(std::uint32_t left, std::uint32_t right) const { e.run_.ids[left] = find(left, right); }
  };

  /// A character without a token: its bytes if all have one, else the unknown token, once for a row of them.
  bool spell(std::string_view character) {
    const auto token = [&](char c) { return u32_at(t_.bytes_, static_cast<std::uint8_t>(c)); };
    if (std::all_of(character.begin(), character.end(), [&](char c) { return token(c) != kNone; })) {
      return std::all_of(character.begin(), character.end(), [&](char c) { return emit(token(c)); });
    }
    if (t_.unknown_ == kNone) {
      error_ =
          make_error(ErrorCode::bad_text, "the vocabulary has no token for \"{}\" and none for the unknown", character);
      return false;
    }
    if (last_unknown_) return true;
    const bool done = emit(t_.unknown_);
    last_unknown_ = true;
    return done;
  }

  const Tokenizer& t_;
  std::span<std::uint32_t> out_;
  std::uint32_t n_out_ = 0;
  MergeRun run_{};
  char* words_ = nullptr;
  std::size_t most_ = 0;     // bytes that words_ holds
  std::size_t n_words_ = 0;  // and has
  std::size_t base_ = 0;     // where the window begins in it
  std::size_t again_ = 0;    // bytes of the token that the window begins with and that was given out; 0: none
  std::array<Place, kPlaces> places_{};
  std::size_t n_places_ = 0;
  bool last_unknown_ = false;
  Error error_;
};

Result<std::uint32_t> Tokenizer::encode(std::string_view text, bool special, std::span<std::uint32_t> out,
                                        std::span<std::byte> scratch, std::span<const TextRange> plain) const {
  if (!open_for_use()) return make_error(ErrorCode::bad_text, "there is no tokenizer to read the text");
  std::size_t last = 0;
  for (const TextRange& range : plain) {
    if (range.begin < last || range.end < range.begin || range.end > text.size()) {
      return make_error(ErrorCode::bad_argument, "bytes {} to {} of a text of {} are no range behind {}", range.begin,
                        range.end, text.size(), last);
    }
    last = range.end;
  }
  return Encoder(*this, out, scratch).encode(text, special, plain);
}

}  // namespace qsf
