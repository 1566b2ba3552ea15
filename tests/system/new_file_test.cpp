// Files that appear whole or not at all.
#include "system/new_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "native/temp.h"
#include "system/temporary.h"

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

TEST(NewFile, IsNotMadeInPlaceOfALinkToNothing) {
  const TempDir dir;
  std::error_code error;
  std::filesystem::create_symlink(dir / "gone", dir / "link", error);
  if (error) GTEST_SKIP() << "this system makes no links";
  EXPECT_FALSE(NewFile::create(dir / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  std::ofstream(dir / "gone", std::ios::binary) << "old";
  EXPECT_TRUE(NewFile::create(dir / "link").commit());
  EXPECT_EQ(read_text(dir / "gone"), "");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
}

TEST(NewFile, FilesOfKilledProcessesAreRemoved) {
  const TempDir dir;
  const std::string old = dir / ".qsf-0123456789abcdef.tmp", fresh = dir / ".qsf-fedcba9876543210.tmp",
                    others = dir / ".qsf-notes.tmp";
  for (const std::string& path : {old, fresh, others}) {
    std::ofstream(path, std::ios::binary) << "some";
    const auto now = std::filesystem::file_time_type::clock::now();
    if (path != fresh) std::filesystem::last_write_time(path, now - std::chrono::hours(2));
  }
  remove_abandoned(dir / "");
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(fresh)) << "its process may write to it";
  EXPECT_TRUE(std::filesystem::exists(others)) << "it is the user's";
}

}  // namespace
}  // namespace qsf::sys
