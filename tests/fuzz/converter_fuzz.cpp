// The fuzzer of the converter's readers. Each reader has a program fuzz_converter-<reader>: a link to this one, which
// is compiled once and takes the reader from the name that it is called by.
#include "tests/fuzz/converter_fuzz.h"

#include <cstdio>

namespace {

std::string_view reader;

}  // namespace

extern "C" int LLVMFuzzerInitialize(const int*, char*** arguments) {
  const std::string_view path = **arguments;
  constexpr std::string_view kPrefix = "fuzz_converter-";
  const std::size_t at = path.rfind(kPrefix);
  if (at != std::string_view::npos) reader = path.substr(at + kPrefix.size());
  for (const auto& known : qsf::test::kConverterReaders)
    if (known.name == reader) return 0;
  std::fprintf(stderr, "fuzz_converter: call it by a name that ends in a reader's, such as fuzz_converter-gguf\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qsf::test::fuzz_converter(reader, {reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
