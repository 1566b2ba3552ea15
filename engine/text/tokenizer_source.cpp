// A TOKN section as the source that it can be made from.
#include <algorithm>
#include <array>
#include <utility>

#include "qsf/base/try.h"
#include "qsf/base/utf8.h"
#include "qsf/text/tokenizer_builder.h"
#include "text/tokn.h"

namespace qsf {
namespace {

std::string_view text_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, size};
}

/// Returns the characters of GPT-2's alphabet for all bytes: printable Latin-1 stands for itself, and the characters
/// from U+0100 on for the other bytes.
std::array<std::string, 256> byte_alphabet() {
  std::array<std::string, 256> out;
  char32_t next = 0x100;
  for (std::size_t b = 0; b < out.size(); ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    const char32_t c = printable ? static_cast<char32_t>(b) : next++;
    if (c < 0x80) {
      out[b] = {static_cast<char>(c)};
    } else {
      out[b] = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return out;
}

/// A section that Tokenizer::open() has checked, taken apart.
class Parts {
 public:
  explicit Parts(std::span<const std::byte> section)
      : section_(section), h_(load_header(section)), sizes_(tokn::sizes(h_)) {
    std::uint64_t at = sizeof(tokn::Header);
    for (std::uint64_t tokn::Sizes::* const each : kTables) {
      begins_.push_back(at);
      at += sizes_.*each;
    }
  }

  TokenizerSource source() const {
    TokenizerSource out;
    out.kind = static_cast<TokenizerKind>(h_.kind);
    const bool words = out.kind != TokenizerKind::byte_bpe;
    const auto has = [&](std::uint32_t flag) { return (h_.flags & flag) != 0; };
    out.ignore_merges = has(tokn::kIgnoreMerges);
    out.add_bos = has(tokn::kAddBos);
    out.add_eos = has(tokn::kAddEos);
    out.trim_spaces = has(tokn::kTrimSpaces);
    out.prefix_unless_space = has(tokn::kPrefixUnlessSpace);
    out.prefix_once = has(tokn::kPrefixOnce);
    out.add_space_prefix = has(tokn::kAddSpacePrefix);
    if (out.kind == TokenizerKind::wordpiece) out.max_word = h_.max_word;
    for (const std::string_view step : words ? decltype(Pretokenizer::steps){} : kPretokenizers[h_.pattern].steps) {
      if (!out.pattern.empty() && !step.empty()) out.pattern += '\n';
      out.pattern += step;
    }
    tokens(words, out);
    if (!words) merges(out);
    normalizer(out);
    return out;
  }

 private:
  static constexpr std::array kTables{&tokn::Sizes::begins,     &tokn::Sizes::bytes,        &tokn::Sizes::sorted,
                                      &tokn::Sizes::added,      &tokn::Sizes::merge_begins, &tokn::Sizes::merges,
                                      &tokn::Sizes::scores,     &tokn::Sizes::types,        &tokn::Sizes::attributes,
                                      &tokn::Sizes::normalizer, &tokn::Sizes::blob};

  static tokn::Header load_header(std::span<const std::byte> section) { return load_le<tokn::Header>(section.data()); }
  std::size_t begin_of(std::uint64_t tokn::Sizes::* table) const {
    return begins_[static_cast<std::size_t>(std::ranges::find(kTables, table) - kTables.begin())];
  }
  const std::byte* at(std::uint64_t tokn::Sizes::* table) const { return section_.data() + begin_of(table); }

  void tokens(bool words, TokenizerSource& out) const {
    const std::array<std::string, 256> alphabet = byte_alphabet();
    const std::byte* const begins = at(&tokn::Sizes::begins);
    for (std::uint32_t id = 0; id < h_.n_tokens; ++id) {
      const std::uint32_t from = tokn::u32_at(begins, id), to = tokn::u32_at(begins, id + 1);
      TokenizerSource::Token token;
      token.type = static_cast<TokenType>(at(&tokn::Sizes::types)[id]);
      const std::string_view bytes = text_at(section_, begin_of(&tokn::Sizes::blob) + from, to - from);
      const bool plain = token.type == TokenType::control || token.type == TokenType::unknown ||
                         (!words && token.type == TokenType::user_defined);
      if (words && token.type == TokenType::byte) {
        constexpr std::string_view kHex = "0123456789ABCDEF";
        const auto value = static_cast<unsigned char>(bytes.front());
        token.text = {'<', '0', 'x', kHex[value >> 4], kHex[value & 15], '>'};
      } else if (plain) {
        token.text = bytes;
      } else {
        for (const char c : bytes) {
          if (words && c == ' ') token.text += "\xE2\x96\x81";
          if (words && c != ' ') token.text += c;
          if (!words) token.text += alphabet[static_cast<unsigned char>(c)];
        }
      }
      if (sizes_.scores != 0) token.score = tokn::f32_at(at(&tokn::Sizes::scores), id);
      out.tokens.push_back(std::move(token));
    }
    for (std::uint32_t i = 0; sizes_.attributes != 0 && i < h_.n_added; ++i) {
      out.tokens[tokn::u32_at(at(&tokn::Sizes::added), i)].attributes =
          std::to_integer<std::uint8_t>(at(&tokn::Sizes::attributes)[i]);
    }
  }

  void merges(TokenizerSource& out) const {
    out.merges.resize(h_.n_merges);
    const std::byte* const begins = at(&tokn::Sizes::merge_begins);
    for (std::uint32_t left = 0; left < h_.n_tokens; ++left) {
      for (std::uint32_t i = tokn::u32_at(begins, left); i < tokn::u32_at(begins, left + 1); ++i) {
        const tokn::Merge merge = tokn::unpack(tokn::u64_at(at(&tokn::Sizes::merges), i));
        out.merges[merge.rank] = {out.tokens[left].text, out.tokens[merge.right].text};
      }
    }
    // Merges of equal rank are those of a tiktoken file, which its tokens spell.
    const auto missing = std::ranges::find(out.merges, std::string(), &std::pair<std::string, std::string>::first);
    if (missing != out.merges.end()) out.merges.clear();
  }

  void normalizer(TokenizerSource& out) const {
    const std::size_t begin = begin_of(&tokn::Sizes::normalizer);
    for (std::size_t i = 0; i < sizes_.normalizer;) {
      const auto number = [&](std::size_t n) { return load_le<std::uint16_t>(section_.data() + begin + i + 2 * n); };
      NormalizerStep step;
      step.op = static_cast<NormalizerOp>(number(0));
      const std::size_t from = number(2), to = number(3) | std::size_t{number(1)} << 16;
      step.from = text_at(section_, begin + i + 8, from);
      step.to = text_at(section_, begin + i + 8 + from, to);
      i += 8 + from + to;
      out.normalizer.push_back(std::move(step));
    }
  }

  std::span<const std::byte> section_;
  tokn::Header h_;
  tokn::Sizes sizes_;
  std::vector<std::uint64_t> begins_;
};

}  // namespace

Result<TokenizerSource> tokenizer_source(std::span<const std::byte> section, std::uint32_t vocab_size) {
  QSF_TRY(Tokenizer::open(section, vocab_size));
  return Parts(section).source();
}

}  // namespace qsf
