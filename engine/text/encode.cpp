// Tokenizer::encode: added tokens are cut out, what lies between is cut into runs, and each run is merged.
#include <algorithm>
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
constexpr int kCutTries = 512;

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

  Result<std::uint32_t> encode(std::string_view text, bool special) {
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
          begins_added[static_cast<std::uint8_t>(text[at])] ? longest_added(text.substr(at), special) : kNone;
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

  /// A place in (0, limit] where no token can span, because none holds what stands on both sides: for byte_bpe a byte
  /// each, for spm_bpe a character each. 0 when none is found. limit < text.size().
  std::size_t safe_cut(std::string_view text, std::size_t limit) const {
    const auto inside = [&](std::size_t at) {
      return t_.kind_ == TokenizerKind::spm_bpe && (static_cast<std::uint8_t>(text[at]) & 0xC0u) == 0x80;
    };
    int tries = kCutTries;
    for (std::size_t cut = limit; cut > 0 && tries > 0; --cut) {
      if (inside(cut)) continue;
      std::size_t before = cut - 1, behind = cut + 1;
      while (before > 0 && inside(before)) --before;
      while (behind < text.size() && inside(behind)) ++behind;
      if (t_.blob_.find(text.substr(before, behind - before)) == std::string_view::npos) return cut;
      --tries;
    }
    return 0;
  }

  bool uncut() {
    error_ =
        make_error(ErrorCode::unsupported,
                   "the text has a run without a place to cut that is longer than {} bytes: too long to merge", most_);
    return false;
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
    while (text.size() > most_) {
      const std::size_t cut = safe_cut(text, most_);
      if (cut == 0) return uncut();
      if (!bytes_run(text.substr(0, cut))) return false;
      text.remove_prefix(cut);
    }
    return bytes_run(text);
  }

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

  /// A byte without a token becomes the unknown token; without one it is left out, as Hugging Face's tokenizers do.
  bool bytes_run(std::string_view text) {
    std::uint32_t n = 0;
    for (const char byte : text) {
      const std::uint32_t known = u32_at(t_.bytes_, static_cast<std::uint8_t>(byte));
      const std::uint32_t id = known != kNone ? known : t_.unknown_;
      if (id == kNone) continue;
      run_.ids[n] = id;
      run_.next[n] = static_cast<std::uint16_t>(n + 1);
      run_.prev[n] = static_cast<std::uint16_t>(n - 1);
      ++n;
    }
    run_.n = n;
    RankRules rules{*this};
    merge_all(run_, rules);
    for (std::uint32_t i = 0; i < run_.n; i = run_.next[i]) {
      if (!emit(run_.ids[i])) return false;
    }
    return true;
  }

  /// Copies the text with U+2581 as a space, a space in front where the model wants one, and merges it in runs.
  bool spm_fragment(std::string_view text) {
    std::size_t n = 0;
    const auto add = [&](std::string_view character) {
      if (t_.splits_words_ && character == " " && n != 0 && words_[n - 1] != ' ') {
        if (!words_run({words_, n})) return false;
        n = 0;
      }
      if (n + character.size() > most_) {
        std::size_t last = n - 1;
        while (last > 0 && (static_cast<std::uint8_t>(words_[last]) & 0xC0u) == 0x80) --last;
        const std::size_t cut = last == 0 ? 0 : safe_cut({words_, n}, last);
        if (cut == 0) return uncut();
        if (!words_run({words_, cut})) return false;
        std::copy(words_ + cut, words_ + n, words_);
        n -= cut;
      }
      std::copy(character.begin(), character.end(), words_ + n);
      n += character.size();
      return true;
    };
    if (t_.strips_leading_space() && !add(" ")) return false;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, utf8::decode(text, at).size);
      if (!add(character == kMetaspace ? " " : character)) return false;
      at += character.size();
    }
    return words_run({words_, n});
  }

  struct ScoreRules {
    const Encoder& e;

    std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
      return e.find({e.words_ + left, e.run_.next[right] - left});
    }
    std::uint32_t key(std::uint32_t left, std::uint32_t right) const {
      const std::uint32_t id = find(left, right);
      return id == kNone ? kNoMerge : key_of(f32_at(e.t_.scores_, id));
    }
    void join(std::uint32_t left, std::uint32_t right) const { e.run_.ids[left] = find(left, right); }
  };

  /// `text` lies at words_.
  bool words_run(std::string_view text) {
    run_.n = static_cast<std::uint32_t>(text.size());
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < run_.n;) {
      const std::uint32_t size = utf8::decode(text, i).size;
      run_.ids[i] = find(text.substr(i, size));
      run_.prev[i] = static_cast<std::uint16_t>(last);
      run_.next[i] = static_cast<std::uint16_t>(i + size);
      last = std::exchange(i, i + size);
    }
    ScoreRules rules{*this};
    merge_all(run_, rules);
    for (std::uint32_t i = 0; i < run_.n; i = run_.next[i]) {
      const bool done = run_.ids[i] != kNone ? emit(run_.ids[i]) : spell(text.substr(i, run_.next[i] - i));
      if (!done) return false;
    }
    return true;
  }

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
  std::size_t most_ = 0;  // bytes of a run that the scratch can hold
  bool last_unknown_ = false;
  Error error_;
};

Result<std::uint32_t> Tokenizer::encode(std::string_view text, bool special, std::span<std::uint32_t> out,
                                        std::span<std::byte> scratch) const {
  if (!open_for_use()) return make_error(ErrorCode::bad_text, "there is no tokenizer to read the text");
  return Encoder(*this, out, scratch).encode(text, special);
}

}  // namespace qsf
