// Memory that the system refuses, as an Error.
#pragma once

#include <new>
#include <stdexcept>

#include "qsf/base/result.h"

namespace qsf {

/// Whether there is any memory. Without memory for the exception itself, throwing ends the program.
bool has_memory();
Error no_memory();

/// Returns out_of_memory if body() throws for lack of memory. Takes none itself: for bodies that keep the memory of
/// their first calls. An exception then comes from the reserve of the language's library.
template <class Body>
Status with_kept_memory(Body&& body) {
  try {
    body();
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {  // more than there can be
    return no_memory();
  }
}

/// The same, also if there is no memory for an exception. Serves the boundaries that no exception may cross: functions
/// of the C API and callbacks of C libraries. In programs, refused memory ends the program earlier: see
/// system/out_of_memory.h.
template <class Body>
Status with_memory(Body&& body) {
  return has_memory() ? with_kept_memory(body) : no_memory();
}

}  // namespace qsf
