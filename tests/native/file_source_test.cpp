// Every source of files that this build has.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "native/source_reads.h"
#include "native/sources/regular_file.h"

namespace qsf::test {
namespace {

TEST(SystemError, NamesMemoryThatIsRefused) {
  errno = ENOMEM;
  EXPECT_EQ(system_error("cannot map", "the model file").code, ErrorCode::out_of_memory);
  errno = EIO;
  const Error error = system_error("cannot read", "the model file");
  EXPECT_EQ(error.code, ErrorCode::io_error);
  EXPECT_EQ(std::string_view(error.sentence).find("cannot read the model file: "), 0u) << error.sentence;
}

// At awkward places and in several pieces.
TEST(FileSource, EveryKindReadsTheSame) {
  const std::vector<std::byte> content = some_bytes(3'000'001);
  const TempDir dir;
  write_bytes(dir / "file", content);
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->url) expect_bytes(*kind, dir / "file", content);
  }
}

TEST(FileSource, HoldsAsManyRequestsAsItSays) {
  const std::vector<std::byte> content = some_bytes(300'000);
  const TempDir dir;
  write_bytes(dir / "file", content);
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->url) expect_room(*kind, dir / "file", content);
  }
}

TEST(FileSource, FilesThatCannotBeRead) {
  const TempDir dir;
  write_bytes(dir / "empty", {});
  EXPECT_EQ(open_error(dir / "absent", {}), ErrorCode::io_error);
  EXPECT_EQ(open_error(dir / "", {}), ErrorCode::io_error);  // a folder
  EXPECT_EQ(open_error(dir / "empty", {}), ErrorCode::truncated);
  SourceOptions options;
  options.kind = "tape";
  EXPECT_EQ(open_error(dir / "empty", options), ErrorCode::bad_argument);
  options.kind = "http";
  EXPECT_EQ(open_error(dir / "empty", options), ErrorCode::bad_argument);
  options.kind = "pread";
  EXPECT_EQ(open_error("http://127.0.0.1:1/x", options), ErrorCode::bad_argument);
}

TEST(FileSource, AFileThatShrinksIsTruncated) {
  for (const SourceKind* kind : source_kinds()) {
    if (kind->url) continue;
    const TempDir dir;
    write_bytes(dir / "file", some_bytes(100'000));
    SourceOptions options;
    options.kind = kind->name;
    Result<Source> source = Source::open(dir / "file", options);
    ASSERT_TRUE(source);
    std::filesystem::resize_file(dir / "file", 50'000);
    EXPECT_EQ(read(*source, 40'000, 20'000).code, ErrorCode::truncated) << kind->name;
    EXPECT_EQ(read(*source, 60'000, 1).code, ErrorCode::truncated) << kind->name;
    EXPECT_EQ(read(*source, 10'000, 40'000).code, ErrorCode::none) << kind->name << ": what is left is read";
  }
}

}  // namespace
}  // namespace qsf::test
