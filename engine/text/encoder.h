// Tokenizer::encode: added tokens are cut out of the text, the rest is normalized and cut into runs, and each run is
// merged.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "qsf/base/utf8.h"
#include "qsf/text/tokenizer.h"
#include "text/added_tokens.h"
#include "text/merge.h"
#include "text/normalizer.h"
#include "text/prefix.h"
#include "text/pretokenizer.h"
#include "text/text_work.h"
#include "text/tokn.h"
#include "text/unicode.h"

namespace qsf {

class Encoder {
 public:
  /// `work` counts the work of the texts that are encoded. All arguments must outlive this object.
  Encoder(const Tokenizer& tokenizer, std::span<std::uint32_t> out, std::span<std::byte> scratch, TextWork& work)
      : t_(tokenizer), out_(out), work_(work) {
    const std::size_t skipped = (alignof(std::uint32_t) - reinterpret_cast<std::uintptr_t>(scratch.data())) % 4;
    const bool normalizes = t_.kind_ == TokenizerKind::byte_bpe && !t_.normalizer_.empty();
    const std::size_t normal_bytes = normalizes ? kNormalBytes : 0;
    if (scratch.size() < skipped + normal_bytes) return;
    normal_ = reinterpret_cast<char*>(scratch.data() + scratch.size() - normal_bytes);
    scratch = scratch.first(scratch.size() - normal_bytes);
    most_ = std::min(kMaxRun, (scratch.size() - skipped) / kScratchPerByte);
    std::byte* at = scratch.data() + skipped;
    run_.ids = reinterpret_cast<std::uint32_t*>(at);
    run_.keys = run_.ids + most_;
    run_.next = reinterpret_cast<std::uint16_t*>(run_.keys + most_);
    run_.prev = run_.next + most_;
    run_.tree = run_.prev + most_;
    words_ = reinterpret_cast<char*>(run_.tree + most_);
  }

  /// `begin`: as in Tokenizer::encode(), or kNone.
  Result<std::uint32_t> encode(std::string_view text, bool special, std::span<const TextRange> plain,
                               std::uint32_t begin = tokn::kNone) {
    if (most_ < kMinRun) return make_error(ErrorCode::bad_argument, "encode: the scratch holds {} bytes", most_);
    if (const std::size_t valid = utf8::valid_prefix(text); valid != text.size()) {
      return make_error(ErrorCode::bad_text, "the text is not valid UTF-8 at byte {} (0x{:02x})", valid,
                        static_cast<std::uint8_t>(text[valid]));
    }
    if (begin != kNone) emit(begin);
    const std::uint32_t added = n_out_;
    AddedTokens tokens(t_, text, special, plain, work_);
    const bool done = tokens.cut([&](std::string_view between) { return fragment(between); },
                                 [&](std::uint32_t id) {
                                   is_first_ = false;
                                   const bool again = n_out_ == 1 && id == std::exchange(begin, kNone);
                                   return again || emit(id);
                                 });
    if (!done && work_.spent()) return work_.error();
    if (!done) return error_;
    if (n_out_ > out_.size()) {
      return make_error(ErrorCode::context_full, "the text has {} tokens, and there is room for {}", n_out_ - added,
                        out_.size() - std::min<std::size_t>(added, out_.size()));
    }
    return n_out_;
  }

 private:
  static constexpr std::uint32_t kNone = tokn::kNone;
  static constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, SentencePiece's way to write a space
  static constexpr std::size_t kScratchPerByte = kMergeBytesPerByte + 1;
  static constexpr std::size_t kMaxRun = 0xffff;  // the largest index in MergeRun
  static constexpr std::size_t kMinRun = 16;
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::size_t kNormalBytes = 64 * 1024;  // scratch bytes for byte_bpe with a normalizer

  /// Returns a key that falls as the score rises, so that the smallest key is the best. Finite scores never give
  /// kNoMerge.
  static std::uint32_t key_of(float score) {
    const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 becomes 0
    return ~((bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u);
  }

  /// Counts work. Returns false, with an error, if it is spent.
  bool spend(std::uint64_t n) {
    if (work_.spend(n)) return true;
    error_ = work_.error();
    return false;
  }

  bool emit(std::uint32_t id) {
    if (n_out_ < out_.size()) out_[n_out_] = id;  // tokens without room are only counted
    ++n_out_;
    last_unknown_ = false;
    return true;
  }

  /// Calls found(id) for every token that `text` begins with and that text may become, shortest first. Returns false,
  /// with an error, if the work is spent.
  template <class Found>
  bool each_token(std::string_view text, const Found& found) {
    return spend(each_prefix(
        t_.n_sorted_, text, [&](std::uint32_t i) { return t_.stored(tokn::u32_at(t_.sorted_, i)); },
        [&](std::uint32_t i) { found(tokn::u32_at(t_.sorted_, i)); }));
  }

  std::uint32_t find(std::string_view bytes) const {
    std::uint32_t low = 0, high = t_.n_sorted_;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      const std::uint32_t id = tokn::u32_at(t_.sorted_, middle);
      const int order = t_.stored(id).compare(bytes);
      if (order == 0) return id;
      (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
    }
    return kNone;
  }

  bool fragment(std::string_view text) {
    if (text.empty()) return true;
    if (t_.kind_ == TokenizerKind::wordpiece) return pieces_fragment(text);
    if (t_.kind_ != TokenizerKind::byte_bpe) return spm_fragment(text);
    if (is_normal(t_.normalizer_, text, work_)) return cut(text, text.size());
    return normalized_fragment(text);
  }

  /// Cuts the text's normal form, in parts that fit. Each ends after the last line break before a character that is not
  /// white space, where every pre-tokenizer cuts, whatever follows.
  bool normalized_fragment(std::string_view text) {
    Normalizer normalizer(t_.normalizer_, text, work_);
    std::size_t n = 0, after_break = 0;
    char32_t last = 0;
    for (char32_t c = 0; normalizer.next(c); last = c) {
      if (last == '\n' && unicode::category_of(c) != unicode::Category::white) after_break = n;
      n += utf8::encode(c, normal_ + n);
      if (n + 4 <= kNormalBytes) continue;
      if (after_break < 4) {
        error_ = make_error(ErrorCode::unsupported,
                            "the text has a line of more than {} bytes that is not in normal form", kNormalBytes);
        return false;
      }
      if (!cut({normal_, n}, after_break)) return false;
      std::copy(normal_ + after_break, normal_ + n, normal_);
      n -= after_break;
      after_break = 0;
    }
    return normalized(normalizer) && cut({normal_, n}, n);
  }

  bool normalized(const Normalizer& normalizer) {
    if (normalizer.failed()) {
      error_ =
          make_error(ErrorCode::bad_text, "the text has a character with more than {} marks", Normalizer::kMaxMarks);
      return false;
    }
    return spend(0);
  }

  /// Emits the pre-tokens of the text up to `limit`, which is the end of one.
  bool cut(std::string_view text, std::size_t limit) {
    Cutter cutter(t_.pattern_, text);
    for (std::size_t at = 0; at < limit;) {
      const std::uint64_t before = cutter.steps();
      const std::size_t end = cutter.next();
      if (!spend(cutter.steps() - before) || !pretoken(text.substr(at, end - at))) return false;
      at = end;
    }
    return true;
  }

  bool pretoken(std::string_view text) {
    if (t_.n_sorted_ != 0) {
      if (const std::uint32_t id = find(text); id != kNone) return emit(id);
    }
    // A byte without a token becomes the unknown token; without that it is dropped, as in Hugging Face's tokenizers.
    for (const char byte : text) {
      if (byte_token(byte) == kNone && t_.unknown_ == kNone) continue;
      if (n_words_ == most_ && !merge_window(false)) return false;
      words_[n_words_++] = byte;
    }
    return merge_window(true);
  }

  std::uint32_t byte_token(char byte) const { return tokn::u32_at(t_.bytes_, static_cast<std::uint8_t>(byte)); }

  /// A token that was emitted, after which the rest may be merged by itself.
  struct Place {
    std::size_t at, size;  // in words_
    std::uint32_t n_out;   // including this token
    bool last_unknown;
  };

  /// Merges and emits the symbols in words_. A run longer than words_ is merged in windows. Merging is local: a row of
  /// tokens is that of its text if every two neighbours are those of their text. More than half of a window is emitted.
  /// The next window begins with the last of these tokens and must find it again; then all neighbours are right. If
  /// not, it begins with one of the tokens before. A window is merged at most 1 + kPlaces times, and the next one
  /// begins after its first half, so that a byte is merged O(kPlaces) times.
  bool merge_window(bool last) {
    if (t_.kind_ == TokenizerKind::unigram) return likeliest(last);
    while (n_words_ != 0) {
      const std::string_view window(words_ + base_, n_words_ - base_);
      if (!spend(window.size())) return false;
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

  /// Merges the symbols of the window, which are bytes or characters.
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
      std::uint32_t low = tokn::u32_at(t.merge_begins_, id), high = tokn::u32_at(t.merge_begins_, id + 1);
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        const tokn::Merge merge = tokn::unpack(tokn::u64_at(t.merges_, middle));
        if (merge.right == wanted) return merge;
        (merge.right < wanted ? low : high) = merge.right < wanted ? middle + 1 : middle;
      }
      return {kNone, kNone, kNoMerge};
    }
    std::uint32_t key(std::uint32_t left, std::uint32_t right) const { return find(left, right).rank; }
    void join(std::uint32_t left, std::uint32_t right) const { e.run_.ids[left] = find(left, right).result; }
  };

  /// Calls add(character) for each character of the text's normal form. Returns false if a call does, or on an error.
  template <class Add>
  bool each_character(std::string_view text, const Add& add) {
    Normalizer normalizer(t_.normalizer_, text, work_);
    std::array<char, 4> bytes{};
    for (char32_t c = 0; normalizer.next(c);) {
      if (!add(std::string_view(bytes.data(), utf8::encode(c, bytes.data())))) return false;
    }
    return normalized(normalizer);
  }

  /// Merges the text with spaces for U+2581, and with a space before it if the model needs one.
  bool spm_fragment(std::string_view text) {
    const std::size_t most = t_.kind_ == TokenizerKind::unigram ? most_ - 1 : most_;
    const auto add = [&](std::string_view character) {
      if (t_.splits_words_ && character == " " && n_words_ != 0 && words_[n_words_ - 1] != ' ' && !merge_window(true)) {
        return false;
      }
      if (n_words_ + character.size() > most && !merge_window(false)) return false;
      std::copy(character.begin(), character.end(), words_ + n_words_);
      n_words_ += character.size();
      return true;
    };
    const bool trims = (t_.flags_ & tokn::kTrimSpaces) != 0;
    const bool unless = (t_.flags_ & tokn::kPrefixUnlessSpace) != 0;
    const bool prefixes = t_.strips_leading_space() && (is_first_ || (t_.flags_ & tokn::kPrefixOnce) == 0);
    bool begun = false, space = prefixes;  // whether a space must precede the next character
    const bool done = each_character(text, [&](std::string_view character) {
      if (character == kMetaspace) character = " ";
      if (!trims) {
        const bool due = std::exchange(space, false) && !(unless && character == " ");
        return (!due || add(" ")) && add(character);
      }
      if (character == " ") {
        space = space || begun;
        return true;
      }
      begun = true;
      if (std::exchange(space, false) && !add(" ")) return false;
      return add(character);
    });
    return done && merge_window(true);
  }

  /// The scores of a unigram's paths are in the memory of a merge's keys and links: 8 bytes for each place.
  double path(std::size_t at) const {
    double score = 0;
    std::memcpy(&score, run_.keys + 2 * at, sizeof score);
    return score;
  }
  void set_path(std::size_t at, double score, std::uint32_t id, std::size_t size) {
    std::memcpy(run_.keys + 2 * at, &score, sizeof score);
    run_.ids[at] = id;
    run_.tree[at] = static_cast<std::uint16_t>(size);
  }

  bool likeliest(bool last);
  bool pieces_fragment(std::string_view text);
  bool word();

  struct ScoreRules {
    const Encoder& e;

    std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
      return e.find({e.words_ + e.base_ + left, e.run_.next[right] - left});
    }
    std::uint32_t key(std::uint32_t left, std::uint32_t right) const {
      const std::uint32_t id = find(left, right);
      return id == kNone ? kNoMerge : key_of(tokn::f32_at(e.t_.scores_, id));
    }
    void join(std::uint32_t left, std::uint32_t right) const { e.run_.ids[left] = find(left, right); }
  };

  /// Emits a character without a token: its bytes if all have tokens, else the unknown token, once for a row of them.
  bool spell(std::string_view character) {
    const auto token = [&](char c) { return tokn::u32_at(t_.bytes_, static_cast<std::uint8_t>(c)); };
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
  TextWork& work_;
  std::uint32_t n_out_ = 0;
  MergeRun run_{};
  char* words_ = nullptr;
  std::size_t most_ = 0;     // most bytes in words_
  std::size_t n_words_ = 0;  // bytes in words_
  std::size_t base_ = 0;     // start of the window in words_
  std::size_t again_ = 0;    // bytes of the token that begins the window and was emitted; 0: none
  std::array<Place, kPlaces> places_{};
  std::size_t n_places_ = 0;
  std::size_t n_characters_ = 0;  // in a word
  char* normal_ = nullptr;        // kNormalBytes for a text in normal form
  bool is_first_ = true;          // no added token precedes
  bool last_unknown_ = false;
  Error error_;
};

}  // namespace qsf
