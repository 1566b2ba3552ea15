// Threads that the host lends, and the division of work among them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace qsf {

/// run() calls task(context, i) once for every i in [0, n), on any threads, and returns after all calls.
struct Workers {
  void (*run)(void* host, void (*task)(void* context, std::uint32_t index), void* context, std::uint32_t n) = nullptr;
  void* host = nullptr;
  std::uint32_t count = 1;
};

/// Calls body(i) for every i in [0, n).
template <class Body>
void parallel_for(const Workers& workers, std::uint32_t n, Body&& body) {
  if (workers.run == nullptr || workers.count < 2 || n < 2) {
    for (std::uint32_t i = 0; i < n; ++i) body(i);
    return;
  }
  using B = std::remove_reference_t<Body>;
  workers.run(workers.host, [](void* context, std::uint32_t i) { (*static_cast<B*>(context))(i); }, &body, n);
}

}  // namespace qsf
