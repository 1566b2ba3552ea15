#include "qsf/text/tokenizer_builder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/tokn.h"

namespace qsf {
namespace {

static_assert(kMaxTokenText == 3 * tokn::kMaxTokenBytes);

/// Returns the byte of a character in GPT-2's alphabet, or -1. Printable Latin-1 stands for itself; the characters from
/// U+0100 on stand for the other bytes in ascending order.
int byte_of(char32_t c) {
  static const std::array<std::int16_t, 0x144> kBytes = [] {
    std::array<std::int16_t, 0x144> bytes{};
    bytes.fill(-1);
    std::size_t next = 0x100;
    for (std::int16_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      bytes[printable ? static_cast<std::size_t>(b) : next++] = b;
    }
    return bytes;
  }();
  return c < kBytes.size() ? kBytes[c] : -1;
}

/// Returns the bytes of a token in GPT-2's alphabet, or the text itself if a character is not in the alphabet.
std::string from_byte_alphabet(const std::string& text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Decoded next = utf8::decode(text, at);
    const int byte = next.form == utf8::Form::valid ? byte_of(next.code) : -1;
    if (byte < 0) return text;
    bytes.push_back(static_cast<char>(byte));
    at += next.size;
  }
  return bytes;
}

/// Returns the text with spaces for U+2581.
std::string with_spaces(std::string_view text) {
  constexpr std::string_view kMetaspace = "\xE2\x96\x81";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at).starts_with(kMetaspace);
    out += space ? ' ' : text[at];
    at += space ? kMetaspace.size() : 1;
  }
  return out;
}

/// The most steps for finding merges, which are the sum of the squares of the tokens' bytes; as 256 tokens of
/// kMaxTokenBytes need.
constexpr std::uint64_t kMostCuts = 1u << 28;

/// Ids by tokens' texts; of equal texts, the first. The search is binary, because a file's texts could make any hash
/// table slow.
class IdsByText {
 public:
  void reserve(std::size_t n) { ids_.reserve(n); }
  void add(std::string_view text, std::uint32_t id) {
    ids_.push_back({text, static_cast<std::uint32_t>(ids_.size()), id});
  }
  void sort() {
    heap_sort(ids_);
    const auto [first, last] = std::ranges::unique(ids_, {}, &Entry::text);
    ids_.erase(first, last);
  }
  /// Returns the id, or tokn::kNone.
  std::uint32_t find(std::string_view text) const {
    const auto at = std::ranges::lower_bound(ids_, text, {}, &Entry::text);
    return at != ids_.end() && at->text == text ? at->id : tokn::kNone;
  }

 private:
  struct Entry {
    std::string_view text;
    std::uint32_t order;
    std::uint32_t id;

    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> ids_;
};

/// Returns the value of a text such as "<0x0A>", or -1 for any other.
int byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

class Builder {
 public:
  explicit Builder(const TokenizerSource& source)
      : source_(source), words_(source.kind != TokenizerKind::byte_bpe), bytes_of_value_(256, tokn::kNone) {}

  Result<std::vector<std::byte>> build() {
    if (source_.tokens.empty() || source_.tokens.size() > tokn::kMaxTokens) {
      return make_error(ErrorCode::unsupported, "tokenizer: {} tokens; 1 to {} are possible", source_.tokens.size(),
                        tokn::kMaxTokens);
    }
    header_.version = tokn::kVersion;
    header_.kind = static_cast<std::uint32_t>(source_.kind);
    header_.n_tokens = static_cast<std::uint32_t>(source_.tokens.size());
    header_.unknown = tokn::kNone;
    if (source_.add_bos) header_.flags |= tokn::kAddBos;
    if (source_.add_eos) header_.flags |= tokn::kAddEos;
    if (words_ && source_.add_space_prefix) header_.flags |= tokn::kAddSpacePrefix;
    if (words_ && source_.prefix_unless_space) header_.flags |= tokn::kPrefixUnlessSpace;
    if (words_ && source_.prefix_once) header_.flags |= tokn::kPrefixOnce;
    if (words_ && source_.trim_spaces) header_.flags |= tokn::kTrimSpaces;
    if (source_.kind == TokenizerKind::wordpiece) header_.max_word = source_.max_word;
    if (!words_) {
      QSF_TRY(choose_pattern());
    }
    QSF_TRY(store_normalizer());
    QSF_TRY(store_tokens());
    if (source_.tiktoken) {
      QSF_TRY(make_merges());
    } else if (!words_) {
      QSF_TRY(store_merges());
    } else if (!source_.merges.empty()) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer: only byte_bpe merges by rank, but {} merges are given",
                        source_.merges.size());
    }
    return write();
  }

 private:
  Status choose_pattern() {
    bool ignore_merges = source_.ignore_merges;
    const Pretokenizer* found = nullptr;
    for (const GgufPretokenizer& each : kGgufPretokenizers) {
      if (each.name != source_.pattern) continue;
      found = &kPretokenizers[each.id];
      ignore_merges = ignore_merges || each.ignore_merges;
    }
    for (const Pretokenizer& each : kPretokenizers) {
      std::string joined;
      for (const std::string_view step : each.steps) {
        if (!joined.empty() && !step.empty()) joined += '\n';
        joined += step;
      }
      if (joined == source_.pattern) found = &each;
    }
    if (found == nullptr) {
      return make_error(ErrorCode::unsupported, "tokenizer: the pre-tokenizer \"{:.160}\" is not known",
                        source_.pattern);
    }
    header_.pattern = found->id;
    if (ignore_merges) header_.flags |= tokn::kIgnoreMerges;
    return {};
  }

  Status store_tokens() {
    stored_.reserve(source_.tokens.size());
    for (std::uint32_t id = 0; id < header_.n_tokens; ++id) {
      const TokenizerSource::Token& token = source_.tokens[id];
      const bool plain =
          token.type == TokenType::user_defined || token.type == TokenType::control || token.type == TokenType::unknown;
      const bool written = plain || source_.tiktoken;
      std::string bytes = words_ ? with_spaces(token.text) : written ? token.text : from_byte_alphabet(token.text);
      if (words_ && token.type == TokenType::byte) {
        const int value = byte_token(token.text);
        if (value < 0) {
          return make_error(ErrorCode::bad_tokenizer,
                            "tokenizer: the byte token {} is \"{:.40}\", not <0x00> to <0xFF>", id, token.text);
        }
        bytes.assign(1, static_cast<char>(value));
      }
      if (bytes.size() > tokn::kMaxTokenBytes) {
        return make_error(ErrorCode::unsupported, "tokenizer: token {} has {} bytes; {} are possible", id, bytes.size(),
                          tokn::kMaxTokenBytes);
      }
      if (bytes.size() == 1 && token.type == (words_ ? TokenType::byte : TokenType::normal)) {
        std::uint32_t& of_value = bytes_of_value_[static_cast<std::uint8_t>(bytes[0])];
        if (of_value == tokn::kNone) of_value = id;
      }
      if (token.type == TokenType::unknown && header_.unknown == tokn::kNone) header_.unknown = id;
      stored_.push_back(std::move(bytes));
    }
    added_ = by_bytes([&](TokenType type) {
      return type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
    });
    for (const std::uint32_t id : added_) {
      if (!utf8::is_valid(stored_[id])) {
        return make_error(ErrorCode::bad_tokenizer, "tokenizer: the added token {} is not UTF-8", id);
      }
    }
    choose_attributes();
    // A user-defined token that is not found next to a word is no token of ordinary text either.
    const bool keeps_added = words_ && (header_.flags & tokn::kAttributes) == 0;
    if (words_ || (header_.flags & tokn::kIgnoreMerges) != 0) {
      sorted_ = by_bytes([&](TokenType type) {
        return type == TokenType::normal || (keeps_added && type == TokenType::user_defined);
      });
    }
    return {};
  }

  /// Takes the attributes of the added tokens, if they make a difference. Normal forms NFC and NFD alone make none for
  /// tokens that are found in a normal form.
  void choose_attributes() {
    constexpr auto kNormalized = static_cast<std::uint8_t>(TokenAttribute::normalized);
    const bool rewrites = std::ranges::any_of(source_.normalizer, [](const NormalizerStep& step) {
      return step.op != NormalizerOp::nfc && step.op != NormalizerOp::nfd;
    });
    bool any = false;
    for (const std::uint32_t id : added_) {
      const std::uint8_t attributes = source_.tokens[id].attributes & kAllTokenAttributes;
      any = any || (attributes & ~kNormalized) != 0 || (attributes != 0 && rewrites);
      attributes_.push_back(attributes);
    }
    if (any) header_.flags |= tokn::kAttributes;
  }

  /// Returns ids of the wanted types with distinct bytes, in the order of their bytes.
  template <class Wanted>
  std::vector<std::uint32_t> by_bytes(Wanted wanted) const {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t id = 0; id < header_.n_tokens; ++id) {
      if (!stored_[id].empty() && wanted(source_.tokens[id].type)) ids.push_back(id);
    }
    heap_sort(ids, [&](std::uint32_t a, std::uint32_t b) {
      const int order = stored_[a].compare(stored_[b]);
      if (order != 0) return order < 0;
      const bool normal_a = source_.tokens[a].type == TokenType::normal;
      const bool normal_b = source_.tokens[b].type == TokenType::normal;
      return normal_a != normal_b ? normal_a : a < b;
    });
    ids.erase(
        std::unique(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) { return stored_[a] == stored_[b]; }),
        ids.end());
    return ids;
  }

  Status store_normalizer() {
    for (const NormalizerStep& step : source_.normalizer) {
      const std::array<std::uint16_t, 4> numbers{
          static_cast<std::uint16_t>(step.op), static_cast<std::uint16_t>(step.to.size() >> 16),
          static_cast<std::uint16_t>(step.from.size()), static_cast<std::uint16_t>(step.to.size())};
      const std::size_t most = has_char_map(step.op) ? tokn::kMaxCharMap : 0xffff;
      if (step.from.size() > 0xffff || step.to.size() > most) {
        return make_error(ErrorCode::unsupported, "tokenizer: a text of the normalizer has {} bytes",
                          std::max(step.from.size(), step.to.size()));
      }
      for (const std::uint16_t number : numbers) {
        normalizer_.push_back(static_cast<char>(number & 255u));
        normalizer_.push_back(static_cast<char>(number >> 8));
      }
      normalizer_ += step.from + step.to;
    }
    header_.normalizer_size = static_cast<std::uint32_t>(normalizer_.size());
    return check_normalizer(std::as_bytes(std::span(normalizer_)));
  }

  /// Makes a merge of every two tokens that spell a token, with that token's rank among all merged tokens. Equal ranks
  /// merge the leftmost pair first.
  Status make_merges() {
    IdsByText ids;
    std::uint64_t cuts = 0;
    for (std::uint32_t id = 0; id < header_.n_tokens; ++id) {
      if (source_.tokens[id].type != TokenType::normal) continue;
      ids.add(stored_[id], id);
      cuts += std::uint64_t{stored_[id].size()} * stored_[id].size();
    }
    if (cuts > kMostCuts) {
      return make_error(ErrorCode::unsupported, "tokenizer: finding its merges takes {} steps; {} are possible", cuts,
                        kMostCuts);
    }
    ids.sort();
    std::uint32_t rank = 0;
    for (std::uint32_t id = 0; id < header_.n_tokens; ++id) {
      if (source_.tokens[id].type != TokenType::normal) continue;
      const std::string_view whole = stored_[id];
      const std::size_t before = merges_.size();
      for (std::size_t cut = 1; cut < whole.size(); ++cut) {
        const std::uint32_t left = ids.find(whole.substr(0, cut));
        const std::uint32_t right = left == tokn::kNone ? left : ids.find(whole.substr(cut));
        if (right == tokn::kNone) continue;
        if (merges_.size() == tokn::kMaxMerges) {
          return make_error(ErrorCode::unsupported, "tokenizer: there are more than {} merges", tokn::kMaxMerges);
        }
        merges_.push_back({left, tokn::pack({right, id, rank})});
      }
      if (merges_.size() != before) ++rank;
    }
    heap_sort(merges_);
    return {};
  }

  Status store_merges() {
    if (source_.merges.size() > tokn::kMaxMerges) {
      return make_error(ErrorCode::unsupported, "tokenizer: {} merges; {} are possible", source_.merges.size(),
                        tokn::kMaxMerges);
    }
    IdsByText ids;
    ids.reserve(header_.n_tokens);
    for (const bool normal : {true, false}) {
      for (std::uint32_t id = 0; id < header_.n_tokens; ++id) {
        const TokenizerSource::Token& token = source_.tokens[id];
        if ((token.type == TokenType::normal) == normal) ids.add(token.text, id);
      }
    }
    ids.sort();
    for (std::uint32_t rank = 0; rank < source_.merges.size(); ++rank) {
      const auto& [left, right] = source_.merges[rank];
      const std::string whole = left + right;
      const std::uint32_t a = ids.find(left), b = ids.find(right), result = ids.find(whole);
      if (a == tokn::kNone || b == tokn::kNone || result == tokn::kNone || stored_[a] + stored_[b] != stored_[result]) {
        return make_error(ErrorCode::bad_tokenizer, "tokenizer: merge {}, \"{:.80} {:.80}\", is not of three tokens",
                          rank, left, right);
      }
      merges_.push_back({a, tokn::pack({b, result, rank})});
    }
    heap_sort(merges_);
    for (std::size_t i = 1; i < merges_.size(); ++i) {
      if (merges_[i].first == merges_[i - 1].first &&
          tokn::unpack(merges_[i].second).right == tokn::unpack(merges_[i - 1].second).right) {
        return make_error(ErrorCode::bad_tokenizer, "tokenizer: merges {} and {} are the same",
                          tokn::unpack(merges_[i - 1].second).rank, tokn::unpack(merges_[i].second).rank);
      }
    }
    return {};
  }

  template <class T>
  void put(T value) {
    const std::size_t at = section_.size();
    section_.resize(at + sizeof value);
    store_le(section_.data() + at, value);
  }

  Result<std::vector<std::byte>> write() {
    std::uint64_t blob_size = 0;
    for (const std::string& bytes : stored_) blob_size += bytes.size();
    header_.blob_size = static_cast<std::uint32_t>(blob_size);
    header_.n_sorted = static_cast<std::uint32_t>(sorted_.size());
    header_.n_added = static_cast<std::uint32_t>(added_.size());
    header_.n_merges = static_cast<std::uint32_t>(merges_.size());
    const std::uint64_t total = tokn::sizes(header_).total();
    if (blob_size > 0xffffffffu || total > 0xffffffffu) {
      return make_error(ErrorCode::unsupported, "tokenizer: the section would have {} bytes",
                        std::max(blob_size, total));
    }
    section_.reserve(static_cast<std::size_t>(total));
    put(header_);
    std::uint32_t at = 0;
    for (const std::string& bytes : stored_) {
      put(at);
      at += static_cast<std::uint32_t>(bytes.size());
    }
    put(at);
    for (const std::uint32_t id : bytes_of_value_) put(id);
    for (const std::uint32_t id : sorted_) put(id);
    for (const std::uint32_t id : added_) put(id);
    if (!words_) {
      std::uint32_t begin = 0;
      for (std::uint32_t left = 0; left < header_.n_tokens; ++left) {
        put(begin);
        while (begin < merges_.size() && merges_[begin].first == left) ++begin;
      }
      put(begin);
    }
    for (const auto& merge : merges_) put(merge.second);
    for (const TokenizerSource::Token& token : source_.tokens) {
      if (source_.kind == TokenizerKind::spm_bpe || source_.kind == TokenizerKind::unigram) put(token.score);
    }
    for (const TokenizerSource::Token& token : source_.tokens) put(static_cast<std::uint8_t>(token.type));
    for (const std::uint8_t each : attributes_) {
      if ((header_.flags & tokn::kAttributes) != 0) put(each);
    }
    for (const char c : normalizer_) put(c);
    for (const std::string& bytes : stored_) {
      const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
      section_.insert(section_.end(), begin, begin + bytes.size());
    }
    if (Result<Tokenizer> check = Tokenizer::open(section_, header_.n_tokens); !check) return check.error();
    return std::move(section_);
  }

  const TokenizerSource& source_;
  const bool words_;  // any kind but byte_bpe
  tokn::Header header_{};
  std::string normalizer_;
  std::vector<std::string> stored_;  // by id
  std::vector<std::uint32_t> bytes_of_value_, sorted_, added_;
  std::vector<std::uint8_t> attributes_;                         // of added_
  std::vector<std::pair<std::uint32_t, std::uint64_t>> merges_;  // left id, tokn::pack
  std::vector<std::byte> section_;
};

}  // namespace

Result<std::vector<std::byte>> build_tokenizer(const TokenizerSource& source) { return Builder(source).build(); }

}  // namespace qsf
