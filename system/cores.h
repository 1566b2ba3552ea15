// The processor's cores as this process may use them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <thread>

namespace qsf {

/// Physical cores this process may use: by affinity, and by the control group's processor quota. At least 1.
std::uint32_t usable_cores();

/// Keeps each thread on a physical core of its own, as far as there are enough; the first core is left to the caller.
/// Nothing where the system takes no such wishes.
void pin_to_cores(std::span<std::thread> threads);

/// What the processor calls itself; "unknown" where the system does not tell.
std::string processor_name();

/// Has the calling thread's reads, or the thread itself, served before others', as far as that needs no rights.
void raise_reading_thread();

}  // namespace qsf
