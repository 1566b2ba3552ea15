// Signals that end qsf-run: it stops where it is, keeps what was made and leaves no temporary file.
#pragma once

#include <atomic>

namespace qsf::run {

/// From here on SIGINT, SIGTERM and SIGHUP set a flag instead of ending the process, those that are
/// not ignored already, and a write to a pipe that nobody
/// reads is an error of the write. Before, nothing is there to be cleaned up.
void catch_signals();

/// The flag.
std::atomic<bool>& cancelled();

/// The signal that came last, 0 for none.
int caught_signal();

/// How many SIGINTs came since forget_interrupts().
int interrupts();
void forget_interrupts();

/// What shells give for a program that this signal ended; for none, for Ctrl-C.
int exit_code_of(int signal);

}  // namespace qsf::run
