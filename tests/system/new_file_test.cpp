// Files that appear whole or not at all.
#include "system/new_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "native/temp.h"

namespace qsf::sys {
namespace {

using test::read_text;
using test::TempDir;

std::size_t count(const TempDir& dir) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir / ""), {}));
}

TEST(NewFile, TakesItsPlaceAtTheEnd) {
  const TempDir dir;
  std::ofstream(dir / "there", std::ios::binary) << "old";
  {
    NewFile file = NewFile::create(dir / "there");
    ASSERT_TRUE(file);
    const std::vector<std::byte> bytes = test::some_bytes(100'000);
    EXPECT_TRUE(file.write(bytes));
    EXPECT_EQ(read_text(dir / "there"), "old");
    EXPECT_EQ(count(dir), 2u);
    NewFile moved(std::move(file));
    EXPECT_TRUE(moved.commit());
    EXPECT_EQ(test::read_bytes(dir / "there"), bytes);
  }
  EXPECT_EQ(count(dir), 1u);
}

TEST(NewFile, LeavesWhatWasThereIfItDoesNot) {
  const TempDir dir;
  std::ofstream(dir / "there", std::ios::binary) << "old";
  {
    const NewFile file = NewFile::create(dir / "there"), other = NewFile::create(dir / "new");
    ASSERT_TRUE(file && other);
    EXPECT_TRUE(file.write(test::some_bytes(10)));
  }
  EXPECT_EQ(read_text(dir / "there"), "old");
  EXPECT_EQ(count(dir), 1u);
  EXPECT_FALSE(NewFile::create(dir / "no/folder"));
  EXPECT_FALSE(NewFile());
}

}  // namespace
}  // namespace qsf::sys
