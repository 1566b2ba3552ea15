#include "tests/fuzz/receipts_fuzz.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qsf::test::fuzz_receipts({reinterpret_cast<const char*>(data), size});
  return 0;
}
