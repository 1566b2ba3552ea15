// Signals that stop qsf-run: it stops where it is, keeps its output so far and leaves no temporary file.
#pragma once

#include <atomic>

namespace qsf::run {

/// Makes SIGINT, SIGTERM and SIGHUP set a flag instead of ending the process, except those that are ignored already. A
/// write to a pipe that nobody reads becomes an error of the write. Another signal before go_on() ends the process at
/// once. Before this call there is nothing to clean up.
void catch_signals();

/// Has each of these signals call `action` first, which may do only what is safe in a handler; null for nothing.
void when_stopped(void (*action)());

const std::atomic<bool>& cancelled();
/// Clears the flag after a signal was handled.
void go_on();

/// Returns the last signal, 0 for none.
int caught_signal();

/// Returns the number of SIGINTs since forget_interrupts().
int interrupts();
void forget_interrupts();

/// Returns the exit code that shells give for a program that this signal ended; 0 counts as Ctrl-C.
int exit_code_of(int signal);

}  // namespace qsf::run
