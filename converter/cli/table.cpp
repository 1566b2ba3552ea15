#include "converter/cli/table.h"

#include <algorithm>
#include <array>

#include "converter/cli/terminal.h"

namespace qsf::convert {
namespace {

bool numeric(const std::string& text) {
  return text.find_first_not_of("0123456789 .-+x%") == std::string::npos ||
         (text.starts_with("0x") && text.find_first_not_of("0123456789abcdef", 2) == std::string::npos);
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

void Table::print(std::FILE* out) const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    widths.resize(std::max(widths.size(), rows_[r].size()), 0);
    right.resize(widths.size(), true);
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      widths[c] = std::max(widths[c], rows_[r][c].size());
      if (r > 0 && !numeric(rows_[r][c])) right[c] = false;
    }
  }
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t pad = widths[c] - row[c].size();
      line.append(2, ' ');
      if (right[c]) line.append(pad, ' ');
      line += row[c];
      if (!right[c]) line.append(pad, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::fprintf(out, "%s\n", line.c_str());
  }
}

std::string grouped(unsigned long long n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ' ');
  }
  return text;
}

std::string human_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace qsf::convert
