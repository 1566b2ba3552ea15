// The levels of a format in ascending order.
#pragma once

#include <array>
#include <cstdint>

#include "formats/trellis.h"
#include "qsf/formats/format.h"

namespace qsf {

/// Levels without the format's offset.
struct LevelTable {
  bool whole = false;  // every integer from low to high
  float low = 0, high = 0;
  std::uint32_t n = 0;
  std::array<float, 16> value{};
  std::array<float, 16> above{};  // the middle between this level and the next
  std::array<float, 16> step{};   // from this level to the next
  std::array<std::uint8_t, 16> code{};
};

/// Returns the levels of the codes that may be written. The most negative code of 8 bits and the fourth code of ternary
/// weights are excluded.
constexpr LevelTable make_level_table(const Format& f) {
  constexpr FormatId kScaledTernary = own_type(21);
  const bool ternary = f.packing == Packing::sign_and_zero || f.packing == Packing::trits || f.id == kScaledTernary;
  const int first = f.code_bits == 8 ? 1 : 0, last = ternary ? 2 : (1 << f.code_bits) - 1;
  LevelTable out;
  if (f.levels == Levels::codes) {
    out.whole = true;
    out.low = static_cast<float>(first - f.offset);
    out.high = static_cast<float>((f.packing == Packing::trellis ? (1 << kTrellisBits) - 1 : last) - f.offset);
    return out;
  }
  for (int code = first; code <= last; ++code) {
    const auto value = static_cast<float>(level(f, static_cast<std::uint8_t>(code)) - f.offset);
    std::uint32_t at = 0;
    while (at < out.n && out.value[at] < value) ++at;
    if (at < out.n && out.value[at] == value) continue;
    for (std::uint32_t i = out.n; i > at; --i) {
      out.value[i] = out.value[i - 1];
      out.code[i] = out.code[i - 1];
    }
    out.value[at] = value;
    out.code[at] = static_cast<std::uint8_t>(code);
    ++out.n;
  }
  for (std::uint32_t k = 0; k + 1 < out.n; ++k) {
    out.step[k] = out.value[k + 1] - out.value[k];
    out.above[k] = 0.5f * (out.value[k + 1] + out.value[k]);
  }
  out.low = out.value[0];
  out.high = out.value[out.n - 1];
  return out;
}

inline constexpr std::array<LevelTable, kFormats.size()> kLevelTables = [] {
  std::array<LevelTable, kFormats.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (kFormats[i].quantized()) out[i] = make_level_table(kFormats[i]);
  }
  return out;
}();
inline const LevelTable& level_table(const Format& f) {
  return kLevelTables[static_cast<std::size_t>(format_index(f.id))];
}

}  // namespace qsf
