#include "text/pretokenizer.h"

#include <algorithm>

#include "qsf/text/tokenizer_patterns.h"
#include "text/utf8.h"

namespace qsf {
namespace {

constexpr std::uint32_t kClassRanges[] = {
#include "text/unicode_table.inc"
};

enum class Class : std::uint8_t { other = 0, letter = 1, number = 2, space, newline, end };

/// \s of Oniguruma and of Rust's regular expressions: the property White_Space.
constexpr bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Class class_of(char32_t c) {
  if (c == '\r' || c == '\n') return Class::newline;
  if (is_space(c)) return Class::space;
  const auto after = std::upper_bound(std::begin(kClassRanges), std::end(kClassRanges), c << 2 | 3u);
  return static_cast<Class>(after[-1] & 3u);
}

/// One character ahead of a position in the text.
struct Ahead {
  Class kind;
  std::uint8_t size;
};

/// With kDigits numbers are cut out first, one by one: what lies before a number ends there.
template <bool kDigits>
Ahead ahead(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {Class::end, 0};
  const utf8::Decoded next = utf8::decode(text, at);
  const Class kind = next.form == utf8::Form::valid ? class_of(next.code) : Class::other;
  if (kDigits && kind == Class::number) return {Class::end, 0};
  return {kind, next.size};
}

constexpr bool white(Class kind) { return kind == Class::space || kind == Class::newline; }

/// Past all characters of one class from `at` on, at most `most` of them.
template <bool kDigits>
std::size_t skip(std::string_view text, std::size_t at, Class kind, std::size_t most = ~std::size_t{0}) {
  for (; most > 0; --most) {
    const Ahead next = ahead<kDigits>(text, at);
    if (next.kind != kind) break;
    at += next.size;
  }
  return at;
}

struct WhiteRun {
  std::size_t end;
  std::size_t last;         // where its last character begins
  std::size_t newline_end;  // after its last CR or LF; 0 without one
};

template <bool kDigits>
WhiteRun white_run(std::string_view text, std::size_t at) {
  WhiteRun run{at, at, 0};
  for (Ahead next = ahead<kDigits>(text, at); white(next.kind); next = ahead<kDigits>(text, run.end)) {
    run.last = run.end;
    run.end += next.size;
    if (next.kind == Class::newline) run.newline_end = run.end;
  }
  return run;
}

/// \s+(?!\S)|\s+ : a run at the end of the text whole, else all but its last character, which is left to what follows.
template <bool kDigits>
std::size_t white_end(std::string_view text, std::size_t at, const WhiteRun& run) {
  if (ahead<kDigits>(text, run.end).kind == Class::end || run.last == at) return run.end;
  return run.last;
}

/// The end of 's 't 're 've 'm 'll 'd at `at`, or `at`. With `fold`, of any case: U+017F is an s then.
std::size_t contraction(std::string_view text, std::size_t at, bool fold) {
  if (text[at] != '\'') return at;
  const auto letter = [&](std::size_t i) -> char {
    if (i >= text.size()) return 0;
    const char c = text[i];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(at + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const char second = letter(at + 2);
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  if (fold && text.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  return at;
}

template <bool kDigits>
std::size_t next_gpt2(std::string_view text, std::size_t at) {
  if (kDigits && ahead<false>(text, at).kind == Class::number) return at + ahead<false>(text, at).size;
  if (const std::size_t end = contraction(text, at, false); end != at) return end;
  const std::size_t begin = text[at] == ' ' ? at + 1 : at;
  const Class kind = ahead<kDigits>(text, begin).kind;
  if (kind == Class::letter || kind == Class::number || kind == Class::other) return skip<kDigits>(text, begin, kind);
  return white_end<kDigits>(text, at, white_run<kDigits>(text, at));
}

/// Numbers in groups of at most kNumbers.
template <std::size_t kNumbers>
std::size_t next_cl100k(std::string_view text, std::size_t at) {
  if (const std::size_t end = contraction(text, at, true); end != at) return end;
  const Ahead first = ahead<false>(text, at);
  if (first.kind == Class::letter) return skip<false>(text, at, Class::letter);
  if (first.kind == Class::number) return skip<false>(text, at, Class::number, kNumbers);
  if (first.kind != Class::newline && ahead<false>(text, at + first.size).kind == Class::letter) {
    return skip<false>(text, at + first.size, Class::letter);
  }
  const std::size_t begin = text[at] == ' ' ? at + 1 : at;
  if (ahead<false>(text, begin).kind == Class::other) {
    return skip<false>(text, skip<false>(text, begin, Class::other), Class::newline);
  }
  const WhiteRun run = white_run<false>(text, at);
  return run.newline_end != 0 ? run.newline_end : white_end<false>(text, at, run);
}

constexpr Pretokenizer kPretokenizers[] = {
    {0, "gpt2", {pattern::kGpt2}, next_gpt2<false>},
    {1, "gpt2-digits", {pattern::kDigits, pattern::kGpt2}, next_gpt2<true>},
    {2, "llama3", {pattern::kLlama3}, next_cl100k<3>},
    {3, "qwen2", {pattern::kQwen2}, next_cl100k<1>},
};

constexpr PretokenizerName kNames[] = {
    {"gpt-2", 0, false},     {"phi-2", 0, false},
    {"mpt", 0, false},       {"olmo", 0, false},
    {"smollm", 1, false},    {"refact", 1, false},
    {"starcoder", 1, false}, {"command-r", 1, false},
    {"llama3", 2, true},     {"llama-v3", 2, true},
    {"llama-bpe", 2, true},  {"smaug-bpe", 2, false},
    {"qwen2", 3, false},     {"deepseek-r1-qwen", 3, false},
};

}  // namespace

std::span<const Pretokenizer> pretokenizers() { return kPretokenizers; }

const Pretokenizer* find_pretokenizer(std::uint32_t id) {
  for (const Pretokenizer& each : kPretokenizers) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

std::span<const PretokenizerName> pretokenizer_names() { return kNames; }

}  // namespace qsf
