// Text that goes to the user's terminal, and signals that come from it.
#pragma once

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns the text with '?' for control characters, so that the contents of a file cannot steer a terminal.
std::string printable(std::string_view text);

/// Flushes standard output. Returns io_error if output was lost, and sets `unread` if nobody reads it any more.
Status finish_stdout(bool& unread);

/// While it exists, the first SIGINT, SIGTERM or SIGHUP is noted and does not end the program, except signals that were
/// ignored before. The second one ends it at once. SIGPIPE and SIGXFSZ become errors of the calls that cause them.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Returns the number of the last signal, or 0.
  int caught() const;
};

}  // namespace qsf::convert
