#include "system/memory.h"

namespace qsf {
namespace {

/// Reads a decimal number up to 100 that ends with the text or a space.
std::optional<double> read_percent(std::string_view text) {
  double value = 0, unit = 1;
  std::size_t at = 0, whole = 0;
  for (; at < text.size() && text[at] != ' '; ++at) {
    const char c = text[at];
    if (c == '.' && unit == 1 && whole == at && at != 0) {
      unit = 0.1;
    } else if (c < '0' || c > '9' || at > 8) {
      return {};
    } else if (unit == 1) {
      value = 10 * value + (c - '0');
      ++whole;
    } else {
      value += unit * (c - '0');
      unit /= 10;
    }
  }
  return whole != 0 && value <= 100 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> read_pressure(std::string_view text) {
  constexpr std::string_view kLine = "full avg10=";
  while (!text.empty()) {  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" comes first
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};  // cut
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(kLine)) return read_percent(line.substr(kLine.size()));
    text.remove_prefix(end + 1);
  }
  return {};
}

}  // namespace qsf
