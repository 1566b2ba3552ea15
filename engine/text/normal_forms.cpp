#include "text/normal_forms.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/packed_table.h"

namespace qsf::unicode {
namespace {

constexpr std::uint8_t kPackedClasses[] = {
#include "text/unicode_classes.inc"
};
constexpr std::uint8_t kPackedCanonical[] = {
#include "text/unicode_canonical.inc"
};
constexpr std::uint8_t kPackedComposed[] = {
#include "text/unicode_composed.inc"
};
constexpr std::uint8_t kPackedCompatibility[] = {
#include "text/unicode_compatibility.inc"
};
constexpr std::uint8_t kPackedLower[] = {
#include "text/unicode_lower.inc"
};

/// Start and class of each range.
const auto kClasses = unpack_columns<std::uint32_t, 2, count_packed(kPackedClasses) / 2>(PackedNumbers(kPackedClasses));
/// A code, and the first and second character of its decomposition.
const auto kCanonical =
    unpack_columns<std::uint32_t, 3, count_packed(kPackedCanonical) / 3>(PackedNumbers(kPackedCanonical));
/// Rows of kCanonical, ordered by their decompositions.
const auto kComposed = unpack_columns<std::uint16_t, 1, count_packed(kPackedComposed)>(PackedNumbers(kPackedComposed));
/// A code, and the first and second character of its lower case.
const auto kLower = unpack_columns<std::uint32_t, 3, count_packed(kPackedLower) / 3>(PackedNumbers(kPackedLower));

/// Characters and their decompositions: that of record i is [begins[i], begins[i + 1]) in texts.
struct Compatibility {
  static constexpr std::size_t kRecords = PackedNumbers(kPackedCompatibility).next();
  static constexpr std::size_t kTexts = count_packed(kPackedCompatibility) - 1 - 2 * kRecords;

  Compatibility() {
    PackedNumbers numbers(kPackedCompatibility);
    numbers.next();
    std::uint32_t code = 0, length = 0;
    for (std::uint32_t& each : codes) each = code += numbers.difference();
    for (std::size_t i = 0; i < kRecords; ++i) {
      length += numbers.difference();
      begins[i + 1] = static_cast<std::uint16_t>(begins[i] + length);
    }
    Decomposition before{};
    for (std::size_t i = 0; i < kRecords; ++i) {
      for (std::size_t at = begins[i]; at < begins[i + 1]; ++at) {
        texts[at] = before[at - begins[i]] += numbers.difference();
      }
    }
  }

  std::array<std::uint32_t, kRecords> codes{};
  std::array<std::uint16_t, kRecords + 1> begins{};
  std::array<char32_t, kTexts> texts{};
};
const Compatibility kCompatibility;

// Hangul syllables are composed by arithmetic: section 3.12 of the standard.
constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

/// Returns the row of a table that begins with `code`, or null.
template <std::size_t kRows>
const std::array<std::uint32_t, 3>* find_row(const std::array<std::array<std::uint32_t, 3>, kRows>& table,
                                             char32_t code) {
  const auto at = std::ranges::lower_bound(table, std::uint32_t{code}, {}, [](const auto& row) { return row[0]; });
  return at != table.end() && (*at)[0] == code ? &*at : nullptr;
}

std::size_t canonical(char32_t code, char32_t* out) {
  if (code - kSyllable < kSyllables) {
    const char32_t i = code - kSyllable;
    out[0] = kLead + i / (kVowels * kTrails);
    out[1] = kVowel + i % (kVowels * kTrails) / kTrails;
    out[2] = kTrail + i % kTrails;
    return i % kTrails == 0 ? 2 : 3;
  }
  std::array<char32_t, kMaxDecomposition> behind{};  // in reverse order
  std::size_t n_behind = 0, n = 0;
  for (const auto* step = find_row(kCanonical, code); step != nullptr; step = find_row(kCanonical, code)) {
    code = (*step)[1];
    if ((*step)[2] != 0) behind[n_behind++] = (*step)[2];
  }
  out[n++] = code;
  while (n_behind > 0) out[n++] = behind[--n_behind];
  return n;
}

}  // namespace

std::uint8_t combining_class(char32_t code) {
  if (code < 0x300) return 0;
  return static_cast<std::uint8_t>(in_range(kClasses, code));
}

std::size_t decompose(char32_t code, bool compatibility, Decomposition& out) {
  if (code >= 0xA0 && compatibility) {
    const auto& [codes, begins, texts] = kCompatibility;
    const auto at = std::ranges::lower_bound(codes, std::uint32_t{code});
    if (at != codes.end() && *at == code) {
      const std::size_t i = static_cast<std::size_t>(at - codes.begin()), n = begins[i + 1] - std::size_t{begins[i]};
      std::copy_n(texts.begin() + begins[i], n, out.begin());
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
  const auto made_of = [](const auto& row) {
    const auto& [code, a, b] = kCanonical[row[0]];
    return std::pair(a, b);
  };
  const std::pair<std::uint32_t, std::uint32_t> wanted(first, second);
  const auto at = std::ranges::lower_bound(kComposed, wanted, {}, made_of);
  return at != kComposed.end() && made_of(*at) == wanted ? kCanonical[(*at)[0]][0] : 0;
}

bool composes_behind(char32_t code) {
  if (code < 0x300 || (code > 0x309A && code < 0x110BA)) return false;
  if (code - kVowel < kVowels || (code > kTrail && code < kTrail + kTrails)) return true;
  return std::ranges::any_of(kComposed, [&](const auto& row) { return kCanonical[row[0]][2] == code; });
}

std::size_t lower(char32_t code, Decomposition& out) {
  out[0] = code;
  if (code < 0x80) {
    if (code >= 'A' && code <= 'Z') out[0] = code - 'A' + 'a';
    return 1;
  }
  const auto* row = find_row(kLower, code);
  if (row == nullptr) return 1;
  out[0] = (*row)[1];
  out[1] = (*row)[2];
  return out[1] == 0 ? 1 : 2;
}

}  // namespace qsf::unicode
