#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr float kNoMerge = -1e5f;  // the exporter writes -log(rank + 1), and -1e6 for tokens that no merge makes
constexpr std::uint64_t kMaxSteps = 32 << 20;  // of the search for merges

/// Each byte in GPT-2's alphabet: printable Latin-1 characters are themselves, the others are U+0100 and on in
/// ascending order.
const std::array<std::string, 256>& byte_alphabet() {
  static const std::array<std::string, 256> kLetters = [] {
    std::array<std::string, 256> out;
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      const unsigned c = printable ? b : next++;
      if (c < 0x80) {
        out[b] = static_cast<char>(c);
      } else {
        out[b] = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
      }
    }
    return out;
  }();
  return kLetters;
}

std::string in_alphabet(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += byte_alphabet()[static_cast<unsigned char>(c)];
  return out;
}

struct Merged {
  std::uint32_t id;
  float score;
  std::string_view text;
};

/// Returns the position of the cut between the two tokens that `token` is merged from, found by merging its bytes with
/// all earlier ranks. Returns 0 if the result is not two tokens.
std::size_t cut_of(const Merged& token, std::uint32_t rank, const std::map<std::string_view, std::uint32_t>& ranks) {
  std::vector<std::size_t> begins(token.text.size() + 1);
  for (std::size_t i = 0; i < begins.size(); ++i) begins[i] = i;
  while (begins.size() > 3) {
    std::uint32_t best = rank;
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 2 < begins.size(); ++i) {
      const auto found = ranks.find(token.text.substr(begins[i], begins[i + 2] - begins[i]));
      if (found == ranks.end() || found->second >= best) continue;
      best = found->second;
      best_at = i + 1;
    }
    if (best == rank) return 0;
    begins.erase(begins.begin() + static_cast<std::ptrdiff_t>(best_at));
  }
  return begins[1];
}

}  // namespace

Result<Qwen3cTokenizer> read_qwen3c_tokenizer(std::span<const std::byte> bytes, std::uint32_t vocab_size) {
  Qwen3cTokenizer out;
  out.source.kind = TokenizerKind::byte_bpe;
  out.source.pattern = "qwen2";
  ByteReader reader(bytes);
  const auto longest = reader.read<std::uint32_t>();
  out.bos = reader.read<std::uint32_t>();
  out.eos = reader.read<std::uint32_t>();
  std::vector<Merged> merged;
  std::uint64_t steps = 0;
  while (!reader.bad() && reader.left() > 0) {
    const auto id = static_cast<std::uint32_t>(out.source.tokens.size());
    const auto score = reader.read<float>();
    const auto length = reader.read<std::uint32_t>();
    const std::string_view text = reader.text(length);
    if (reader.bad() || length == 0 || length > kMaxCheckpointToken || length > longest || !std::isfinite(score) ||
        id >= vocab_size) {
      return make_error(ErrorCode::bad_tokenizer,
                        "token {} of the qwen3.c tokenizer makes no sense (length {}, longest {}): is it another file?",
                        id, length, longest);
    }
    const bool plain = length == 1 || score > kNoMerge;
    out.source.tokens.push_back(
        {plain ? in_alphabet(text) : std::string(text), 0, plain ? TokenType::normal : TokenType::control});
    QSF_TRY(check_token_text(id, out.source.tokens.back().text));
    if (length == 1 || !plain) continue;
    merged.push_back({id, score, text});
    steps += std::uint64_t{length} * length;
  }
  if (reader.bad() || out.source.tokens.empty() || steps > kMaxSteps) {
    return make_error(ErrorCode::bad_tokenizer,
                      "the qwen3.c tokenizer has {} tokens and {} steps of merging, {} at most",
                      out.source.tokens.size(), steps, kMaxSteps);
  }
  std::ranges::sort(
      merged, [](const Merged& a, const Merged& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; });
  std::map<std::string_view, std::uint32_t> ranks;  // not a hash table: a hostile file could make all keys collide
  for (std::uint32_t rank = 0; rank < merged.size(); ++rank) {
    const Merged& token = merged[rank];
    const std::size_t cut = cut_of(token, rank, ranks);
    if (cut == 0) {
      return make_error(ErrorCode::bad_tokenizer, "token {} of the qwen3.c tokenizer is not two others merged",
                        token.id);
    }
    out.source.merges.emplace_back(in_alphabet(token.text.substr(0, cut)), in_alphabet(token.text.substr(cut)));
    ranks.emplace(token.text, rank);
  }
  return out;
}

}  // namespace qsf::convert
