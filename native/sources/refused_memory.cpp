#include "native/sources/refused_memory.h"

#include <cstdlib>

namespace qsf {

bool has_memory() {
  constexpr std::size_t kException = 512;         // bytes, more than one of the standard library's takes
  void* volatile some = std::malloc(kException);  // volatile: an optimizer must keep the call
  const bool any = some != nullptr;
  std::free(some);
  return any;
}

Error no_memory() {
  return make_error(ErrorCode::out_of_memory, "the system refused memory that is needed in addition to the budget");
}

}  // namespace qsf
