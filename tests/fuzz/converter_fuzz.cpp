#include "tests/fuzz/converter_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qsf::test::fuzz_converter(QSF_FUZZ_READER, {reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
