// A program's arguments, standard files, terminal, and the signals that end it.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <span>
#include <string_view>

namespace qsf::sys {

inline constexpr int kInput = 0, kOutput = 1, kError = 2;  // the standard files' descriptors

/// Calls `body` with the arguments in UTF-8. Standard files transfer unchanged bytes; a console uses UTF-8.
int run_program(int argc, char** argv, int (*body)(int argc, char** argv));

/// Reserves the descriptors of standard input, output and error if the caller closed them, so that no file gets them.
/// Using a closed one then fails. Must be the first call of a program.
void hold_standard_files();

/// Opens a file that takes everything and keeps nothing. Returns null on failure.
std::FILE* open_nowhere();

bool is_terminal(int file);

/// Waits for input or its end, and returns true; returns false after the time is over.
bool wait_readable(int file, int milliseconds);
/// Returns the bytes read, 0 at the end. Fails with -1 and errno, which is EINTR if a signal came first.
std::ptrdiff_t read_some(int file, std::span<char> into);

/// Whether a pipe has no reader any more, so that writes are lost; false if the system does not report it.
bool nobody_reads(int file);

/// Returns the time in the user's time zone.
std::tm local_time(std::time_t time);

/// Makes stops call `caught` instead of ending the program. A stop is Ctrl-C, a request to end, or the end of the
/// terminal. Stops that are already ignored stay ignored. A write to a pipe without a reader, or beyond the largest
/// file size, becomes an error of the write. `caught` may run at any time, on another thread or in a signal's handler.
/// With `resume`, waiting calls continue after it. A second stop before take_stop() removes the files of Unfinished and
/// ends the program at once with its exit_code_of().
void catch_stops(void (*caught)(int signal), bool resume);
/// Marks the stop as handled, so that the next stop calls `caught` again.
void take_stop();
/// Restores the settings from before catch_stops().
void release_stops();

/// Returns the exit status that shells report for a program that this signal ended.
constexpr int exit_code_of(int signal) { return 128 + signal; }

}  // namespace qsf::sys
