#include "tests/fuzz/run_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)qsf::test::fuzz_saved({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
