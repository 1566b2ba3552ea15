#include "system/out_of_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

#include "native/temp.h"
#include "system/unfinished.h"

namespace qsf::sys {
namespace {

std::string made(const std::string& path) {
  std::ofstream(path) << "x";
  return path;
}

TEST(Unfinished, FilesGoUnlessTheyAreKept) {
  const test::TempDir dir;
  const std::string gone = dir / "gone", kept = dir / "kept", moved = dir / "moved", other = dir / "other";
  {
    const Unfinished a(made(gone));
    Unfinished b(made(kept)), c(made(moved)), d;
    EXPECT_EQ(b.path(), kept);
    EXPECT_EQ(d.path(), "");
    b.keep();
    EXPECT_EQ(b.path(), "");
    d = std::move(c);
    EXPECT_EQ(d.path(), moved);
    const Unfinished e(std::move(d));
    EXPECT_EQ(e.path(), moved);
    EXPECT_TRUE(std::filesystem::exists(moved));
  }
  EXPECT_FALSE(std::filesystem::exists(gone));
  EXPECT_TRUE(std::filesystem::exists(kept));
  EXPECT_FALSE(std::filesystem::exists(moved));
}

#ifndef _WIN32  // where the test would run anew in another folder
TEST(Unfinished, FilesGoWithAProgramThatHasNoMemory) {
  const test::TempDir dir;
  const Unfinished a(made(dir / "a")), b(made(dir / "b"));
  Unfinished c(made(dir / "c"));
  c.keep();
  const auto end = [] {
    end_without_memory(7, "no memory here\n");
    std::get_new_handler()();  // as operator new does
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(7), "^no memory here\n$");
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
  EXPECT_FALSE(std::filesystem::exists(dir / "b"));
  EXPECT_TRUE(std::filesystem::exists(dir / "c"));
}
#endif

}  // namespace
}  // namespace qsf::sys
