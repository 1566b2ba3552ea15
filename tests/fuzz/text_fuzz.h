// Any bytes as a tokenizer section with a text to encode: what opens must work, and nothing may crash.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/text/tokenizer.h"
#include "text/text_stream.h"

namespace qsf::test {

/// u8 flags (bit 0: special; bit 1: scratch for normal forms; bit 2: the last token begins the text; bit 3: the middle
/// of the text is plain), u8 length of the text, the text, the section. Returns whether the section opens.
inline bool fuzz_tokenizer(std::span<const std::byte> data) {
  ByteReader in(data);
  const auto flags = in.read<std::uint8_t>();
  const std::string text(in.text(in.read<std::uint8_t>()));
  const std::span<const std::byte> rest = in.take(in.left());
  const std::vector<std::byte> section(rest.begin(), rest.end());
  constexpr std::uint32_t kVocabSize = 4096;

  TextStream stream;
  const std::string_view stops[]{"ab", "\n\n"};
  if (!stream.begin(stops)) std::abort();
  if (stream.push(text).size() > 3 * text.size()) std::abort();
  stream.finish();

  const Result<Tokenizer> tokenizer = Tokenizer::open(section, kVocabSize);
  if (!tokenizer) {
    if (tokenizer.error().sentence[0] == 0) std::abort();
    return false;
  }
  std::vector<std::byte> scratch((flags & 2) != 0 ? 68 * 1024 : 2048);
  std::vector<std::uint32_t> ids(64);
  const TextRange middle{text.size() / 3, text.size() / 3 * 2};
  const auto plain = std::span(&middle, (flags & 8) != 0 ? 1 : 0);
  const std::uint32_t begin = tokenizer->n_tokens() - 1;
  const Result<std::uint32_t> n = tokenizer->encode(text, (flags & 1) != 0, ids, scratch, plain, nullptr,
                                                    (flags & 4) != 0 ? std::optional(begin) : std::nullopt);
  if (n && *n > ids.size()) std::abort();
  for (std::uint32_t i = 0; n && i < *n; ++i) {
    if (ids[i] >= tokenizer->n_tokens()) std::abort();
    stream.push(tokenizer->bytes(ids[i]));
  }
  stream.finish();
  for (std::uint32_t id = 0; id < tokenizer->n_tokens(); ++id) {
    if (tokenizer->bytes(id).size() > TextStream::kMaxTokenBytes) std::abort();
  }
  return true;
}

}  // namespace qsf::test
