// Files that are memory, when they become shorter.
#include "native/sources/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <vector>

#include "native/temp.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

class Mapped : public ::testing::Test {
 protected:
  Mapped() : content_(some_bytes(3 * page_ + 100)) {
    write_bytes(path(), content_);
    fd_ = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~Mapped() override { ::close(fd_); }
  std::string path() const { return dir_ / "file"; }
  MappedFile map() {
    Result<MappedFile> mapped = MappedFile::map(fd_, content_.size());
    EXPECT_TRUE(mapped) << mapped.error().sentence;
    return std::move(*mapped);
  }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  TempDir dir_;
  std::vector<std::byte> content_;
  int fd_ = -1;
};

TEST_F(Mapped, WhatIsGoneIsZeroAndToldUntilItIsRenewed) {
  MappedFile mapped = map();
  EXPECT_TRUE(std::ranges::equal(mapped.bytes(), content_));
  EXPECT_FALSE(mapped.lost());
  std::filesystem::resize_file(path(), page_);
  populate(mapped.bytes());  // tells nothing
  EXPECT_FALSE(mapped.lost());
  EXPECT_EQ(mapped.bytes()[page_ - 1], content_[page_ - 1]);
  EXPECT_EQ(mapped.bytes()[2 * page_ + 7], std::byte{0});
  EXPECT_TRUE(mapped.lost());
  write_bytes(path(), content_);
  EXPECT_EQ(mapped.bytes()[2 * page_ + 7], std::byte{0});
  ASSERT_TRUE(mapped.renew(fd_));
  EXPECT_FALSE(mapped.lost());
  EXPECT_TRUE(std::ranges::equal(mapped.bytes(), content_));
  forget(mapped.bytes());
  EXPECT_TRUE(std::ranges::equal(mapped.bytes(), content_));
}

TEST_F(Mapped, OneThatIsLostIsNotAnother) {
  const MappedFile whole = map(), cut = map();
  write_bytes(dir_ / "other", content_);
  const int fd = ::open((dir_ / "other").c_str(), O_RDONLY | O_CLOEXEC);
  const Result<MappedFile> other = MappedFile::map(fd, content_.size());
  ::close(fd);
  ASSERT_TRUE(other);
  std::filesystem::resize_file(path(), page_);
  EXPECT_EQ(cut.bytes()[page_], std::byte{0});
  EXPECT_TRUE(cut.lost());
  EXPECT_FALSE(whole.lost());
  EXPECT_FALSE(other->lost());
  EXPECT_TRUE(std::ranges::equal(other->bytes(), content_));
}

TEST_F(Mapped, ThereAreSoManyAtATime) {
  std::vector<MappedFile> mapped;
  for (std::size_t i = 0; i < MappedFile::kMost; ++i) mapped.push_back(map());
  const Result<MappedFile> more = MappedFile::map(fd_, content_.size());
  ASSERT_FALSE(more);
  EXPECT_EQ(error_of(more).code, ErrorCode::out_of_memory);
  mapped.pop_back();
  EXPECT_TRUE(MappedFile::map(fd_, content_.size()));
}

#ifndef QSF_SANITIZED  // which has a handler of its own
// A signal that was sent ends the program as it would have.
TEST_F(Mapped, OtherSignalsStayWhatTheyAre) {
  const MappedFile mapped = map();
  EXPECT_EXIT(std::raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
}
#endif

}  // namespace
}  // namespace qsf::test
