// Numbers as Python reads and writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "templates/work.h"

namespace qsf::templates {

/// The most bytes of a number's text. A fixed form has at most kMostDigits digits after the point.
inline constexpr std::size_t kNumberBytes = 400;
inline constexpr std::uint32_t kMostDigits = 60;

/// The steps of a number whose digits all count, and of any other.
inline constexpr std::uint32_t kSlowSteps = 2000, kQuickSteps = 50;

/// Reads an int with an optional sign between white space. Base 0 means 10, or the base of a prefix; bases are at most
/// 36. Returns infinity outside 64 bits, and a missing value for anything else. Counts the time that it takes.
Value read_whole(Work& work, std::string_view text, int base);
/// Reads a float, correctly rounded. Returns a missing value for anything else. Counts the time that it takes.
Value read_real(Work& work, std::string_view text);

/// Writes at most kNumberBytes and returns their number.
std::size_t write_whole(std::int64_t number, char* out);
/// Writes the shortest text that reads as the same number, as repr() does, or at most `precision` digits, as a format
/// without a type does; they are at most kMostDigits. Counts the time that it takes.
std::size_t write_real(Work& work, double number, char* out, int precision = -1);
/// Writes a finite number below 10^300 with `digits` digits after the point.
std::size_t write_fixed(double number, std::uint32_t digits, char* out);

}  // namespace qsf::templates
