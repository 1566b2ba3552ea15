#include "qsf/text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/tokn.h"

namespace qsf {

using tokn::f32_at, tokn::u32_at, tokn::u64_at;

namespace {

Status check_header(const tokn::Header& h, std::size_t size, std::uint32_t vocab_size) {
  if (h.version != tokn::kVersion) {
    return make_error(ErrorCode::unsupported, "tokenizer: version is {}; this build reads {}", h.version,
                      tokn::kVersion);
  }
  if (h.kind > static_cast<std::uint32_t>(kLastTokenizerKind)) {
    return make_error(ErrorCode::unsupported, "tokenizer: kind is {}; this build knows 0 to {}", h.kind,
                      static_cast<std::uint32_t>(kLastTokenizerKind));
  }
  const auto kind = static_cast<TokenizerKind>(h.kind);
  const bool words = kind != TokenizerKind::byte_bpe;
  if (words && h.pattern != 0)
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: pattern is {}, not 0", h.pattern);
  if (!words && h.pattern >= kPretokenizers.size()) {
    return make_error(ErrorCode::unsupported, "tokenizer: this build has no pattern {}", h.pattern);
  }
  if ((h.flags & ~tokn::kAllFlags) != 0) {
    return make_error(ErrorCode::unsupported, "tokenizer: flags are 0x{:x}; this build knows 0x{:x}", h.flags,
                      tokn::kAllFlags);
  }
  if ((h.flags & (words ? tokn::kIgnoreMerges : tokn::kOfWords)) != 0) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: flags 0x{:x} do not fit kind {}", h.flags, h.kind);
  }
  if (h.n_tokens == 0 || h.n_tokens > tokn::kMaxTokens || h.n_tokens > vocab_size) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: it has {} tokens, the model {}", h.n_tokens, vocab_size);
  }
  const bool needs_sorted = words || (h.flags & tokn::kIgnoreMerges) != 0;
  if (h.n_sorted > h.n_tokens || h.n_added > h.n_tokens || (!needs_sorted && h.n_sorted != 0)) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: {} sorted and {} added ids do not fit {} tokens",
                      h.n_sorted, h.n_added, h.n_tokens);
  }
  if (h.n_merges > (words ? 0 : tokn::kMaxMerges)) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: n_merges is {}; at most {} are possible", h.n_merges,
                      words ? 0 : tokn::kMaxMerges);
  }
  if (h.unknown != tokn::kNone && h.unknown >= h.n_tokens) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: the unknown token {} is outside {} tokens", h.unknown,
                      h.n_tokens);
  }
  if ((h.max_word == 0) == (kind == TokenizerKind::wordpiece) || h.max_word > tokn::kMaxWord) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: a word of kind {} has {} characters at most", h.kind,
                      h.max_word);
  }
  for (const std::uint32_t reserved : h.reserved) {
    if (reserved != 0) return make_error(ErrorCode::bad_tokenizer, "tokenizer: a reserved field is {}", reserved);
  }
  const std::uint64_t total = tokn::sizes(h).total();
  if (total != size) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: the tables need {} bytes, the section has {}", total, size);
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::open(std::span<const std::byte> section, std::uint32_t vocab_size) {
  if (section.size() < sizeof(tokn::Header)) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: the section has {} bytes, less than its header",
                      section.size());
  }
  const auto header = load_le<tokn::Header>(section.data());
  QSF_TRY(check_header(header, section.size(), vocab_size));

  Tokenizer t;
  t.section_ = section;
  t.kind_ = static_cast<TokenizerKind>(header.kind);
  t.flags_ = header.flags;
  t.n_tokens_ = header.n_tokens;
  t.n_sorted_ = header.n_sorted;
  t.n_added_ = header.n_added;
  t.n_merges_ = header.n_merges;
  t.unknown_ = header.unknown;
  t.max_word_ = header.max_word;
  const bool words = t.kind_ != TokenizerKind::byte_bpe;
  t.pattern_ = header.pattern;

  const tokn::Sizes sizes = tokn::sizes(header);
  const std::byte* at = section.data() + sizeof header;
  const auto table = [&](std::uint64_t size) { return std::exchange(at, at + size); };
  t.begins_ = table(sizes.begins);
  t.bytes_ = table(sizes.bytes);
  t.sorted_ = table(sizes.sorted);
  t.added_ = table(sizes.added);
  t.merge_begins_ = table(sizes.merge_begins);
  t.merges_ = table(sizes.merges);
  t.scores_ = table(sizes.scores);
  t.types_ = table(sizes.types);
  t.attributes_ = table(sizes.attributes);
  if (sizes.attributes == 0) t.attributes_ = nullptr;
  t.normalizer_ = {table(sizes.normalizer), static_cast<std::size_t>(sizes.normalizer)};
  t.blob_ = {reinterpret_cast<const char*>(at), header.blob_size};

  QSF_TRY(t.check_tokens());
  QSF_TRY(t.check_order(t.sorted_, t.n_sorted_, "sorted"));
  QSF_TRY(t.check_order(t.added_, t.n_added_, "added"));
  for (std::uint32_t i = 0; i < t.n_added_; ++i) {
    const std::string_view text = t.stored(u32_at(t.added_, i));
    if (!utf8::is_valid(text)) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: the added token {} is not UTF-8", u32_at(t.added_, i));
    }
    const auto attributes = t.attributes_ != nullptr ? static_cast<std::uint32_t>(t.attributes_[i]) : 0;
    if (attributes > kAllTokenAttributes) {
      return make_error(ErrorCode::unsupported,
                        "tokenizer: the attributes of token {} are 0x{:x}; this build knows 0x{:x}",
                        u32_at(t.added_, i), attributes, std::uint32_t{kAllTokenAttributes});
    }
  }
  if (!words) {
    QSF_TRY(t.check_merges());
  }
  QSF_TRY(check_normalizer(t.normalizer_));
  if (t.kind_ == TokenizerKind::unigram) {
    double least = 0;
    for (std::uint32_t i = 0; i < t.n_sorted_; ++i) {
      const auto score = static_cast<double>(f32_at(t.scores_, u32_at(t.sorted_, i)));
      least = i == 0 ? score : std::min(least, score);
    }
    t.unknown_score_ = least - 10;  // as in SentencePiece
  }
  t.splits_words_ = words;
  for (std::uint32_t i = 0; t.splits_words_ && i < t.n_sorted_; ++i) {
    const std::string_view text = t.stored(u32_at(t.sorted_, i));
    const std::size_t word = text.find_first_not_of(' ');
    t.splits_words_ = word == std::string_view::npos || text.find(' ', word) == std::string_view::npos;
  }
  return t;
}

Status Tokenizer::check_tokens() const {
  std::uint32_t last = u32_at(begins_, 0);
  if (last != 0) return make_error(ErrorCode::bad_tokenizer, "tokenizer: token 0 begins at {}, not 0", last);
  for (std::uint32_t id = 0; id < n_tokens_; ++id) {
    const std::uint32_t end = u32_at(begins_, id + 1);
    if (end < last || end > blob_.size() || end - last > tokn::kMaxTokenBytes) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: token {} is at {} to {} of {} bytes", id, last, end,
                        blob_.size());
    }
    last = end;
    const auto type = static_cast<std::uint32_t>(types_[id]);
    if (type < static_cast<std::uint32_t>(TokenType::normal) || type > static_cast<std::uint32_t>(TokenType::byte)) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: the type of token {} is {}", id, type);
    }
    const bool has_score = kind_ == TokenizerKind::spm_bpe || kind_ == TokenizerKind::unigram;
    if (has_score && !std::isfinite(f32_at(scores_, id))) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: the score of token {} is not a finite number", id);
    }
  }
  if (last != blob_.size()) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: the tokens end at {} of {} bytes", last, blob_.size());
  }
  for (std::uint32_t value = 0; value < 256; ++value) {
    const std::uint32_t id = u32_at(bytes_, value);
    if (id == tokn::kNone) continue;
    if (id >= n_tokens_ || stored(id).size() != 1 || static_cast<std::uint8_t>(stored(id)[0]) != value) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: token {} does not stand for byte {}", id, value);
    }
  }
  return {};
}

Status Tokenizer::check_order(const std::byte* ids, std::uint32_t n, const char* name) const {
  std::string_view last;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t id = u32_at(ids, i);
    if (id >= n_tokens_) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: {} id {} is outside {} tokens", name, id, n_tokens_);
    }
    const std::string_view text = stored(id);
    if (text <= last) {  // also refuses an empty token, because no text is less than the first `last`
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: {} id {} at place {} is out of order", name, id, i);
    }
    last = text;
  }
  return {};
}

Status Tokenizer::check_merges() const {
  std::uint32_t begin = u32_at(merge_begins_, 0);
  if (begin != 0) return make_error(ErrorCode::bad_tokenizer, "tokenizer: merges begin at {}, not 0", begin);
  for (std::uint32_t left = 0; left < n_tokens_; ++left) {
    const std::uint32_t end = u32_at(merge_begins_, left + 1);
    if (end < begin || end > n_merges_) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: merges of token {} are at {} to {} of {}", left, begin,
                        end, n_merges_);
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      const tokn::Merge merge = tokn::unpack(u64_at(merges_, i));
      if (i > begin && merge.right <= tokn::unpack(u64_at(merges_, i - 1)).right) {
        return make_error(ErrorCode::bad_tokenizer, "tokenizer: merge {} is out of order", i);
      }
      if (merge.right >= n_tokens_ || merge.result >= n_tokens_ || merge.rank >= n_merges_) {
        return make_error(ErrorCode::bad_tokenizer, "tokenizer: merge {} names token {}, {} or rank {}, out of range",
                          i, merge.right, merge.result, merge.rank);
      }
      const std::string_view a = stored(left), b = stored(merge.right), whole = stored(merge.result);
      if (whole.size() != a.size() + b.size() || !whole.starts_with(a) || !whole.ends_with(b)) {
        return make_error(ErrorCode::bad_tokenizer, "tokenizer: merge {} of {} and {} does not spell {}", i, left,
                          merge.right, merge.result);
      }
    }
    begin = end;
  }
  if (begin != n_merges_) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer: {} of {} merges have a left token", begin, n_merges_);
  }
  return {};
}

std::string_view Tokenizer::stored(std::uint32_t id) const {
  const std::uint32_t begin = u32_at(begins_, id);
  return blob_.substr(begin, u32_at(begins_, id + 1) - begin);
}

std::string_view Tokenizer::bytes(std::uint32_t id) const {
  if (id >= n_tokens_ || type(id) == TokenType::control || type(id) == TokenType::unused) return {};
  if (type(id) == TokenType::unknown) return utf8::kReplacement;
  return stored(id);
}

bool Tokenizer::is_control(std::uint32_t id) const { return id < n_tokens_ && type(id) == TokenType::control; }

bool Tokenizer::is_added(std::uint32_t id) const {
  return is_control(id) || (id < n_tokens_ && type(id) == TokenType::user_defined);
}

}  // namespace qsf
