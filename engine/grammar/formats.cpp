#include "grammar/formats.h"

#include <algorithm>
#include <array>

#include "grammar/regex_reader.h"

namespace qsf::grammar {
namespace {

struct Format {
  std::string_view name, text;
};

constexpr std::array kFormats{
#define QSF_FORMAT(name, text) Format{name, text},
#include "grammar/formats.inc"
#undef QSF_FORMAT
};

constexpr std::array<std::string_view, 6> kRefused{"idn-email",     "idn-hostname", "iri",
                                                   "iri-reference", "regex",        "uri-template"};

const Format* find(std::string_view name) {
  const auto* const found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return f.name == name; });
  return found == kFormats.end() || name.starts_with('(') ? nullptr : found;
}

/// Writes the times of a leap second, which are those at 23:59:60 in UTC: with an offset below zero, hours and minutes
/// add up to 23 and 59; with one above, the time is a minute before the offset's. Counts only if `out` is null.
std::size_t leap_seconds(char* out) {
  std::size_t n = 0;
  const auto write = [&](std::string_view text) {
    if (out != nullptr) std::copy(text.begin(), text.end(), out + n);
    n += text.size();
  };
  const auto two = [&](std::uint32_t number) {
    const char digits[]{static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
    write({digits, 2});
  };
  // Alternatives of a time's number and the offset's, which looks ahead.
  const auto pairs = [&](std::string_view before, std::uint32_t end, std::string_view between, auto other) {
    write("(?=");
    for (std::uint32_t i = 0; i < end; ++i) {
      if (other(i) >= end) continue;
      if (i != 0) write("|");
      write(before);
      two(i);
      write(between);
      two(other(i));
    }
    write(")");
  };
  write(R"((?:23:59:60(?:\.\d+)?[zZ]|)");
  pairs("", 24, ":.*-", [](std::uint32_t i) { return 23 - i; });
  pairs("..:", 60, ":.*:", [](std::uint32_t i) { return 59 - i; });
  write(R"(..:..:60(?:\.\d+)?-\d\d:\d\d|)");
  pairs("", 24, ":.*[+]", [](std::uint32_t i) { return i; });
  pairs("..:", 60, ":.*:", [](std::uint32_t i) { return i + 1; });
  write(R"(..:..:60(?:\.\d+)?[+]\d\d:\d\d|)");
  pairs("", 24, ":.*[+]", [](std::uint32_t i) { return (i + 1) % 24; });
  write(R"(..:59:60(?:\.\d+)?[+]\d\d:00))");
  return n;
}

/// Writes a format's text with its parts in place of their names; counts only if `out` is null.
std::size_t expand(std::string_view text, char* out) {
  std::size_t n = 0;
  while (!text.empty()) {
    const Format* part = nullptr;
    std::size_t size = 1;
    constexpr std::string_view kLeap = "{(leap)}";
    if (text.starts_with(kLeap)) {
      n += leap_seconds(out == nullptr ? nullptr : out + n);
      text.remove_prefix(kLeap.size());
      continue;
    }
    if (text[0] == '{') {
      for (const Format& f : kFormats) {
        if (text.substr(1).starts_with(f.name) && text.substr(1 + f.name.size()).starts_with('}')) {
          part = &f;
          size = f.name.size() + 2;
        }
      }
    }
    if (part != nullptr) {
      n += expand(part->text, out == nullptr ? nullptr : out + n);
    } else {
      if (out != nullptr) out[n] = text[0];
      ++n;
    }
    text.remove_prefix(size);
  }
  return n;
}

}  // namespace

FormatUse use_of_format(std::string_view name) {
  if (find(name) != nullptr) return FormatUse::held;
  const bool refused = std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end();
  return refused ? FormatUse::refused : FormatUse::none;
}

Result<std::uint32_t> format_term(std::string_view name, Terms& terms) {
  const std::string_view text = find(name)->text;
  char* const whole = reinterpret_cast<char*>(terms.store().take(expand(text, nullptr)));
  if (whole == nullptr) return terms.error();
  return read_regex({whole, expand(text, whole)}, Match::whole, terms);
}

}  // namespace qsf::grammar
