#include "text/normal_forms.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace qsf::unicode {
namespace {

constexpr std::uint32_t kClasses[] = {
#include "text/unicode_classes.inc"
};
constexpr std::uint32_t kCanonical[] = {
#include "text/unicode_canonical.inc"
};
constexpr std::uint16_t kComposed[] = {
#include "text/unicode_composed.inc"
};
constexpr std::uint32_t kCompatibility[] = {
#include "text/unicode_compatibility.inc"
};
constexpr std::uint32_t kLower[] = {
#include "text/unicode_lower.inc"
};

constexpr std::size_t kRecords = [] {
  std::size_t n = 0;
  for (std::size_t at = 0; at < std::size(kCompatibility); at += 2 + kCompatibility[at + 1]) ++n;
  return n;
}();
/// Where each record of kCompatibility begins.
constexpr auto kRecordBegins = [] {
  std::array<std::uint16_t, kRecords> begins{};
  std::size_t at = 0;
  for (std::uint16_t& begin : begins) {
    begin = static_cast<std::uint16_t>(at);
    at += 2 + kCompatibility[at + 1];
  }
  return begins;
}();

// Hangul's syllables are composed by arithmetic: section 3.12 of the standard.
constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

/// The entry of a table of threes that begins with a code; nullptr without one.
const std::uint32_t* find_three(std::span<const std::uint32_t> table, char32_t code) {
  std::size_t low = 0, high = table.size() / 3;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (table[3 * middle] == code) return &table[3 * middle];
    (table[3 * middle] < code ? low : high) = table[3 * middle] < code ? middle + 1 : middle;
  }
  return nullptr;
}

std::size_t canonical(char32_t code, char32_t* out) {
  if (code - kSyllable < kSyllables) {
    const char32_t i = code - kSyllable;
    out[0] = kLead + i / (kVowels * kTrails);
    out[1] = kVowel + i % (kVowels * kTrails) / kTrails;
    out[2] = kTrail + i % kTrails;
    return i % kTrails == 0 ? 2 : 3;
  }
  std::array<char32_t, kMaxDecomposition> behind{};  // last first
  std::size_t n_behind = 0, n = 0;
  for (const std::uint32_t* step = find_three(kCanonical, code); step != nullptr; step = find_three(kCanonical, code)) {
    code = step[1];
    if (step[2] != 0) behind[n_behind++] = step[2];
  }
  out[n++] = code;
  while (n_behind > 0) out[n++] = behind[--n_behind];
  return n;
}

}  // namespace

std::uint8_t combining_class(char32_t code) {
  if (code < 0x300) return 0;
  const auto after = std::upper_bound(std::begin(kClasses), std::end(kClasses), code << 8 | 255u);
  return static_cast<std::uint8_t>(after[-1] & 255u);
}

std::size_t decompose(char32_t code, bool compatibility, Decomposition& out) {
  if (code >= 0xA0 && compatibility) {
    const auto at = std::lower_bound(kRecordBegins.begin(), kRecordBegins.end(), code,
                                     [](std::uint16_t begin, char32_t c) { return kCompatibility[begin] < c; });
    if (at != kRecordBegins.end() && kCompatibility[*at] == code) {
      const std::size_t n = kCompatibility[*at + 1u];
      std::copy_n(kCompatibility + *at + 2, n, out.begin());
      return n;
    }
  }
  if (code >= 0xC0) return canonical(code, out.data());
  out[0] = code;
  return 1;
}

char32_t compose(char32_t first, char32_t second) {
  if (first - kLead < kLeads && second - kVowel < kVowels) {
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTrails;
  }
  if (first - kSyllable < kSyllables && (first - kSyllable) % kTrails == 0 && second > kTrail &&
      second < kTrail + kTrails) {
    return first + (second - kTrail);
  }
  const auto wanted = std::pair(std::uint32_t{first}, std::uint32_t{second});
  const auto at = std::lower_bound(std::begin(kComposed), std::end(kComposed), wanted, [](std::uint16_t i, auto pair) {
    return std::pair(kCanonical[3u * i + 1], kCanonical[3u * i + 2]) < pair;
  });
  if (at == std::end(kComposed)) return 0;
  const std::uint32_t* entry = kCanonical + std::size_t{3} * *at;
  return entry[1] == first && entry[2] == second ? entry[0] : 0;
}

bool composes_behind(char32_t code) {
  if (code < 0x300 || (code > 0x309A && code < 0x110BA)) return false;
  if (code - kVowel < kVowels || (code > kTrail && code < kTrail + kTrails)) return true;
  return std::any_of(std::begin(kComposed), std::end(kComposed),
                     [&](std::uint16_t i) { return kCanonical[3u * i + 2] == code; });
}

std::size_t lower(char32_t code, Decomposition& out) {
  out[0] = code;
  if (code < 0x80) {
    if (code >= 'A' && code <= 'Z') out[0] = code - 'A' + 'a';
    return 1;
  }
  const std::uint32_t* entry = find_three(kLower, code);
  if (entry == nullptr) return 1;
  out[0] = entry[1];
  out[1] = entry[2];
  return entry[2] == 0 ? 1 : 2;
}

}  // namespace qsf::unicode
