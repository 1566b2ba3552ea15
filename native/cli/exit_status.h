// The exit codes that programs share, and the sentences of their manuals about them.
#pragma once

#include <string>
#include <string_view>

namespace qsf {

inline constexpr int kMistaken = 2;
inline constexpr int kUnread = 141;  // of a program that the signal of a broken pipe ended

/// Returns the section "Exit status" of a manual. `errors` states the reasons for 1, and `stopped` adds to the reason
/// for a signal's code.
inline std::string exit_status(std::string_view errors, std::string_view stopped = "") {
  return "0: done.\n\n1: " + std::string(errors) + ".\n\n" + std::to_string(kMistaken) +
         ": a mistake on the command line.\n\n" + std::to_string(kUnread) +
         ": nobody reads standard output any more.\n\n128 and a signal's number: stopped by it" + std::string(stopped) +
         ".";
}

}  // namespace qsf
