#include <cmath>

#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/bytes.h"

namespace qsf::convert {
namespace {

constexpr std::array<std::string_view, 3> kFirst{"<unk>", "<s>", "</s>"};  // ids 0, 1, 2

std::string with_marks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

// llama2.c's exporter writes spaces for U+2581, and line breaks around <s> and </s>. Both are reversed.
Result<TokenizerSource> read_llama2c_tokenizer(std::span<const std::byte> bytes) {
  TokenizerSource out;
  out.kind = TokenizerKind::spm_bpe;
  out.add_bos = true;
  out.add_space_prefix = true;
  ByteReader reader(bytes);
  const auto longest = reader.read<std::uint32_t>();
  while (!reader.bad() && reader.left() > 0) {
    const std::size_t id = out.tokens.size();
    TokenizerSource::Token token;
    token.score = reader.read<float>();
    const auto length = reader.read<std::uint32_t>();
    const std::string_view text = reader.text(length);
    if (reader.bad() || length > kMaxCheckpointToken || length > longest || !std::isfinite(token.score) ||
        id == kMaxVocab) {
      return make_error(
          ErrorCode::bad_tokenizer,
          "token {} of the llama2.c tokenizer makes no sense (length {}, longest {}): is it another kind of file?", id,
          length, longest);
    }
    if (id < kFirst.size()) {
      token.text = kFirst[id];
      token.type = id == 0 ? TokenType::unknown : TokenType::control;
    } else {
      token.text = with_marks(text);
      token.type = is_byte_token(text) ? TokenType::byte : TokenType::normal;
    }
    out.tokens.push_back(std::move(token));
  }
  if (reader.bad() || out.tokens.size() < kFirst.size()) {
    return make_error(ErrorCode::bad_tokenizer, "the llama2.c tokenizer ends after {} tokens", out.tokens.size());
  }
  return out;
}

}  // namespace qsf::convert
