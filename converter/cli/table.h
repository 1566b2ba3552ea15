// Aligned columns of text for people.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace qsf::convert {

class Table {
 public:
  explicit Table(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }
  /// Adds a row, with '?' for control characters.
  void add(std::vector<std::string> row);
  /// Prints all rows. Columns of numbers are aligned to the right.
  void print(std::FILE* out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Digits in groups of three: "1 234 567".
std::string grouped(unsigned long long n);
/// A size with its unit: "12.3 MiB".
std::string human_bytes(double bytes);

}  // namespace qsf::convert
