// The processor's cores that this process may use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <thread>

namespace qsf {

using ThreadHandle = std::thread::native_handle_type;

/// Returns the number of physical cores that this process may use by its affinity and its control group's processor
/// quota, at least 1.
std::uint32_t usable_cores();

/// Binds each thread to its own physical core, and leaves the first core to the caller. Threads share cores if there
/// are too few. Does nothing if the system does not support it.
void pin_to_cores(std::span<const ThreadHandle> threads);

/// Returns the processor's name, or "unknown" if the system does not report it.
std::string processor_name();

/// Raises the priority of the calling thread's reads, or of the thread itself, as far as that needs no rights.
void raise_reading_thread();

}  // namespace qsf
