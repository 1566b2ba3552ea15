// How far a conversion is, on stderr: one line that is overwritten on a terminal, else a line now and then.
#pragma once

#include <chrono>
#include <cstdint>

namespace qsf::convert {

class Progress {
 public:
  explicit Progress(bool quiet);
  void update(std::uint64_t done, std::uint64_t total);
  /// Clears the line on a terminal.
  void finish();

 private:
  bool quiet_;
  bool terminal_;
  int shown_ = -1;  // per cent
  std::chrono::steady_clock::time_point next_;
};

}  // namespace qsf::convert
