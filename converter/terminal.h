// What goes to the user's terminal and what comes from it.
#pragma once

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::convert {

/// The text with '?' for control characters, so that what a file holds cannot steer a terminal.
std::string printable(std::string_view text);

/// Flushes standard output; io_error when anything written to it was lost.
Status finish_stdout();

/// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the program, unless they were ignored;
/// SIGPIPE and SIGXFSZ become errors of the calls that cause them.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// The last one's number; 0 for none.
  int caught() const;
};

}  // namespace qsf::convert
