// The progress of a conversion on stderr: one overwritten line on a terminal, otherwise a line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace qsf::convert {

class Progress {
 public:
  explicit Progress(bool quiet);
  /// Reports `done` of `total` under the word `what`, which begins a line of its own when it changes. With `bytes` the
  /// numbers are bytes.
  void update(std::string_view what, std::uint64_t done, std::uint64_t total, bool bytes = false);
  /// Clears the line on a terminal.
  void finish();

 private:
  bool quiet_;
  bool terminal_;
  std::string what_;
  int shown_ = -1;  // per cent
  std::chrono::steady_clock::time_point begin_, next_;
};

}  // namespace qsf::convert
