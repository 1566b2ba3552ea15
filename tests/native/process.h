// Runs a program and gives what it said.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace qsf::test {

struct Ran {
  int code = -1;  // exit code; 128 + n when signal n ended it
  std::string out, err;
  std::uint64_t peak_resident_bytes = 0;  // only with measured()
};

struct Around {
  std::string input;                     // standard input, then its end
  std::vector<std::string> environment;  // NAME=value, in addition to the caller's own
  std::function<void(pid_t)> meanwhile;  // called while the program runs
  std::string out = {};                  // where standard output goes instead of to Ran::out; "-": nowhere, closed
};

Ran run(const std::vector<std::string>& command, const Around& around = {});

/// As run(), through a small program of its own whose child's peak is not mixed with this process's.
Ran measured(std::vector<std::string> command, const Around& around = {});

/// A program of this build.
std::string program(const std::string& name);

/// Returns whether a text has these words.
inline bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace qsf::test
