#include "tests/fuzz/answers_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qsf::test::fuzz_answers({reinterpret_cast<const char*>(data), size});
  return 0;
}
