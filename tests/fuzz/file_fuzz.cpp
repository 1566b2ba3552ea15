#include "tests/fuzz/file_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qsf::test::fuzz_file({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
