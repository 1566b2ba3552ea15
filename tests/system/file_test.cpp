#include "system/file.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "native/temp.h"

namespace qsf::sys {
namespace {

using test::read_text;
using test::some_bytes;
using test::TempDir;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}

/// A file of these bytes, under the name that is wanted.
void make(const std::string& path, std::span<const std::byte> bytes) {
  const int file = create_file(path);
  ASSERT_GE(file, 0) << path;
  EXPECT_EQ(write_some(file, bytes), static_cast<std::ptrdiff_t>(bytes.size()));
  EXPECT_TRUE(close_file(file));
}

// Letters beyond ASCII, and beyond what 16 bits name.
TEST(File, NamesAreUtf8) {
  const TempDir dir;
  const std::string path = dir / "für-\xe6\xa8\xa1\xe5\x9e\x8b-\xf0\x9f\xa6\x8a.bin";
  make(path, bytes_of("fox"));
  FileInfo info;
  ASSERT_TRUE(look(path, info));
  EXPECT_EQ(info.kind, FileKind::regular);
  EXPECT_EQ(info.size, 3u);
  EXPECT_TRUE(std::filesystem::exists(path_of(path)));
  const std::filesystem::path folder = path_of(dir / "");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++seen;
    EXPECT_EQ(text_of(entry.path().filename()), path.substr(folder_of(path).size()));
  }
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(remove_file(path));
  EXPECT_FALSE(look(path, info));
  EXPECT_EQ(errno, ENOENT);
}

TEST(File, BytesStayAsTheyAre) {
  const TempDir dir;
  const std::string text("a\r\nb\n\x1a\0c", 8);
  make(dir / "file", bytes_of(text));
  EXPECT_EQ(read_text(dir / "file"), text);
  const int file = open_file(dir / "file");
  ASSERT_GE(file, 0);
  std::array<std::byte, 16> got{};
  EXPECT_EQ(read_at(file, 0, got), 8);
  EXPECT_EQ(std::memcmp(got.data(), text.data(), 8), 0);
  EXPECT_EQ(read_at(file, 8, got), 0) << "the end";
  EXPECT_EQ(read_at(file, 1u << 20, got), 0);
  EXPECT_TRUE(close_file(file));
}

TEST(File, PlacesMayLieBeyondFourGiB) {
  const TempDir dir;
  constexpr std::uint64_t kFar = (std::uint64_t{5} << 30) + 7;
  const int out = create_file(dir / "file");
  ASSERT_GE(out, 0);
  ASSERT_EQ(write_at(out, kFar, bytes_of("far")), 3);
  ASSERT_EQ(write_at(out, 1, bytes_of("near")), 4);
  FileInfo info;
  ASSERT_TRUE(look(out, info));
  EXPECT_EQ(info.size, kFar + 3);
  EXPECT_TRUE(close_file(out));
  const int in = open_file(dir / "file");
  std::array<std::byte, 4> got{};
  EXPECT_EQ(read_at(in, kFar, got), 3);
  EXPECT_EQ(got[2], std::byte{'r'});
  EXPECT_EQ(read_at(in, 1, got), 4);
  EXPECT_EQ(got[3], std::byte{'r'});
  EXPECT_TRUE(close_file(in));
}

TEST(File, ThreadsReadOneFileAtTheirOwnPlaces) {
  const TempDir dir;
  const std::vector<std::byte> content = some_bytes(1'000'000);
  make(dir / "file", content);
  const int file = open_file(dir / "file");
  std::vector<std::byte> got(content.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t at = i * 1000; at < got.size(); at += 4000) {
        EXPECT_EQ(read_at(file, at, std::span(got).subspan(at, 1000)), 1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(got == content);
  EXPECT_TRUE(close_file(file));
}

TEST(File, ANewOneTakesAnOldOnesPlaceWhileItIsOpen) {
  const TempDir dir;
  make(dir / "file", bytes_of("old"));
  EXPECT_EQ(create_file(dir / "file"), -1);
  EXPECT_EQ(errno, EEXIST);
  const int old = open_file(dir / "file");
  const int made = create_file(dir / "new");
  ASSERT_EQ(write_some(made, bytes_of("newer")), 5);
  EXPECT_TRUE(flush_file(made));
  FileInfo before, after;
  ASSERT_TRUE(look(old, before));
#ifdef _WIN32  // where an open file keeps its name
  EXPECT_FALSE(replace_file(dir / "new", dir / "file"));
  EXPECT_EQ(errno, EACCES);
  EXPECT_TRUE(close_file(old));
#endif
  EXPECT_TRUE(replace_file(dir / "new", dir / "file"));
  EXPECT_TRUE(close_file(made));
  ASSERT_TRUE(look(dir / "file", after));
  EXPECT_FALSE(before.is(after));
  EXPECT_EQ(after.size, 5u);
#ifndef _WIN32
  std::array<std::byte, 8> got{};
  EXPECT_EQ(read_at(old, 0, got), 3) << "who has it open reads on";
  EXPECT_TRUE(close_file(old));
#endif
  EXPECT_FALSE(look(dir / "new", after));
}

TEST(File, KindsAreTold) {
  const TempDir dir;
  make(dir / "file", bytes_of("x"));
  FileInfo file, folder;
  ASSERT_TRUE(look(dir / "file", file));
  ASSERT_TRUE(look(dir / "", folder));
  EXPECT_EQ(file.kind, FileKind::regular);
  EXPECT_EQ(folder.kind, FileKind::folder);
  EXPECT_FALSE(file.is(folder));
  EXPECT_TRUE(is_writable(dir / "file"));
  EXPECT_FALSE(is_writable(dir / "none"));
  EXPECT_EQ(open_file(dir / "none"), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(File, NamesAndPathsAreToldApart) {
  EXPECT_TRUE(is_single_name("model-00001.safetensors"));
  EXPECT_TRUE(is_single_name("..."));
  for (const char* text : {"", ".", "..", "a/b", "/a", "../a"}) EXPECT_FALSE(is_single_name(text)) << text;
  EXPECT_EQ(folder_of("a/b/c"), "a/b/");
  EXPECT_EQ(folder_of("c"), "");
#ifdef _WIN32
  for (const char* text : {"a\\b", "c:x", "x:stream"}) EXPECT_FALSE(is_single_name(text)) << text;
  EXPECT_EQ(folder_of("c:\\a\\b"), "c:\\a\\");
#endif
}

TEST(File, RandomBytesDiffer) {
  std::array<std::byte, 16> a{}, b{};
  EXPECT_TRUE(random_bytes(a));
  EXPECT_TRUE(random_bytes(b));
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace qsf::sys
