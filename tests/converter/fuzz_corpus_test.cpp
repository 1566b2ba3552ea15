// The fuzzers' corpora, replayed. Files named valid-* must be taken, all others may or may not.
#include <filesystem>

#include "converter/support.h"
#include "tests/fuzz/converter_fuzz.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFileOfEveryReader) {
  for (const ConverterReader& reader : kConverterReaders) {
    int n_valid = 0, n_files = 0;
    const std::string folder = kSource + "/tests/fuzz/corpus/converter-" + std::string(reader.name);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path().string());
      const bool taken = reader.read(read_bytes(entry.path().string()));
      ++n_files;
      if (!entry.path().filename().string().starts_with("valid-")) continue;
      EXPECT_TRUE(taken);
      ++n_valid;
    }
    EXPECT_GE(n_valid, 1) << reader.name;
    EXPECT_GT(n_files, n_valid) << reader.name;
  }
}

}  // namespace
}  // namespace qsf::test
