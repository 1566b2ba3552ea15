// Aligned columns of text for people.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace qsf::convert {

class Table {
 public:
  explicit Table(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }
  /// Control characters become '?'.
  void add(std::vector<std::string> row);
  /// Columns of numbers are set to the right.
  void print(std::FILE* out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "1 234 567": digits in groups of three.
std::string grouped(unsigned long long n);
/// "12.3 MiB".
std::string human_bytes(double bytes);

}  // namespace qsf::convert
