// Files of tiktoken: on each line a token in base64 and its rank. The rest of a tokenizer follows from the number of
// ranks.
#include <algorithm>
#include <array>
#include <charconv>

#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

struct Added {
  std::uint32_t id;
  std::string_view text;
};

struct Encoding {
  std::uint32_t n_ranks;
  std::string_view pattern;
  std::span<const Added> added;
  std::uint32_t n_reserved;  // Llama 3: ids after the ranks; those without a name are reserved
};

constexpr std::array kGpt2Added{Added{50256, "<|endoftext|>"}};
constexpr std::array kCl100kAdded{Added{100257, "<|endoftext|>"}, Added{100258, "<|fim_prefix|>"},
                                  Added{100259, "<|fim_middle|>"}, Added{100260, "<|fim_suffix|>"},
                                  Added{100276, "<|endofprompt|>"}};
constexpr std::array kO200kAdded{Added{199999, "<|endoftext|>"}, Added{200018, "<|endofprompt|>"}};
constexpr std::array kLlama3Added{Added{128000, "<|begin_of_text|>"},
                                  Added{128001, "<|end_of_text|>"},
                                  Added{128004, "<|finetune_right_pad_id|>"},
                                  Added{128006, "<|start_header_id|>"},
                                  Added{128007, "<|end_header_id|>"},
                                  Added{128008, "<|eom_id|>"},
                                  Added{128009, "<|eot_id|>"},
                                  Added{128010, "<|python_tag|>"}};

constexpr std::array kEncodings{Encoding{50256, pattern::kGpt2, kGpt2Added, 0},  // r50k
                                Encoding{50280, pattern::kGpt2, kGpt2Added, 0},  // p50k
                                Encoding{100256, pattern::kLlama3, kCl100kAdded, 0},
                                Encoding{199998, pattern::kO200k, kO200kAdded, 0},
                                Encoding{128000, pattern::kLlama3, kLlama3Added, 256}};

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// Reads a line's token and rank. Returns false if it has none.
bool read_line(std::string_view line, std::string& token, std::uint32_t& rank) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t space = line.find(' ');
  if (space == line.npos || !from_base64(line.substr(0, space), token)) return false;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + space + 1, end, rank);
  return error == std::errc() && stop == end;
}

}  // namespace

bool from_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  while (text.ends_with('=')) text.remove_suffix(1);
  std::uint32_t bits = 0, n_bits = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) return false;
    bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xfffu;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    out += static_cast<char>(bits >> n_bits & 255u);
  }
  return !out.empty();
}

bool is_tiktoken(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t end = text.find('\n');
  std::string token;
  std::uint32_t rank = 0;
  return end != text.npos && read_line(text.substr(0, end), token, rank);
}

Result<TokenizerSource> read_tiktoken(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TokenizerSource out;
  out.tiktoken = true;
  out.ignore_merges = true;
  std::uint32_t n_ranks = 0;
  std::string token;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    std::uint32_t rank = 0;
    if (!read_line(line, token, rank) || rank > n_ranks + 1) {
      return make_error(ErrorCode::bad_tokenizer, "tiktoken: line {} is not a token in base64 and the next rank",
                        n_ranks + 1);
    }
    QSF_TRY(check_token_text(rank, token));
    if (rank >= kMaxVocab) return make_error(ErrorCode::bad_tokenizer, "tiktoken: there are too many tokens");
    if (rank >= out.tokens.size()) out.tokens.resize(rank + 1, {{}, 0, TokenType::unused});
    out.tokens[rank] = {token, 0, TokenType::normal};
    ++n_ranks;
  }
  const auto found =
      std::find_if(kEncodings.begin(), kEncodings.end(), [&](const Encoding& each) { return each.n_ranks == n_ranks; });
  if (found == kEncodings.end()) {
    return make_error(ErrorCode::unsupported,
                      "tiktoken: no encoding with {} ranks is known, so how it cuts text is not known either", n_ranks);
  }
  out.pattern = found->pattern;
  out.add_bos = found->n_reserved != 0;
  const auto add = [&](std::uint32_t id, std::string added) {
    if (id >= out.tokens.size()) out.tokens.resize(id + 1, {{}, 0, TokenType::unused});
    out.tokens[id] = {std::move(added), 0, TokenType::control};
  };
  for (std::uint32_t i = 0; i < found->n_reserved; ++i) {
    add(n_ranks + i, "<|reserved_special_token_" + std::to_string(i) + "|>");
  }
  for (const Added& each : found->added) add(each.id, std::string(each.text));
  return out;
}

}  // namespace qsf::convert
