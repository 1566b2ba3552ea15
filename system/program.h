// What a program has from the system: its arguments, standard files, terminal, and the signals that end it.
#pragma once

#include <csignal>
#include <cstddef>
#include <ctime>
#include <span>
#include <string_view>

namespace qsf::sys {

inline constexpr int kInput = 0, kOutput = 1, kError = 2;  // the standard files' descriptors

/// Calls `body` with the arguments in UTF-8. Standard files take bytes as they are, a console UTF-8.
int run_program(int argc, char** argv, int (*body)(int argc, char** argv));

/// Keeps the numbers of standard input, output and error from being given to files, where the caller closed them: what
/// is written to a closed one fails instead. The first call of a program.
void hold_standard_files();

bool is_terminal(int file);
/// Whether text that is read may end lines by a carriage return and a line feed.
extern const bool kCarriageReturns;

/// Waits until there is something to read, or the end, or the time is over: then false.
bool wait_readable(int file, int milliseconds);
/// Bytes read, 0 at the end; -1 and errno, which is EINTR where a signal came first.
std::ptrdiff_t read_some(int file, std::span<char> into);

/// As the user's clock shows it.
std::tm local_time(std::time_t time);

/// From here on `caught` is called for Ctrl-C, a request to end and a terminal that goes, instead of ending the
/// program, as far as they are not ignored already; writing to a pipe that nobody reads, or beyond the largest file, is
/// an error of the write. `caught` may run at any time, on another thread or in a signal's handler. With `resume`,
/// calls that wait go on after it.
void catch_stops(void (*caught)(int signal), bool resume);
/// As it was before.
void release_stops();

}  // namespace qsf::sys
