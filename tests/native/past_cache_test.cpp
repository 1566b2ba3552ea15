// Reading past the page cache: pieces, refusals, what is cut or cannot be read so.
#include "native/past_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>

#include "native/sources/piece_reads.h"
#include "native/sources/source.h"
#include "support/seeded.h"
#include "system/memory.h"

namespace qsf {
namespace {

using test::drop_cached;
using test::placed;
using test::request;
using test::SomeFile;

class Pieces : public ::testing::Test {
 protected:
  void make(std::size_t size, std::size_t buffers, std::size_t bytes_of_each) {
    content_ = test::some_bytes(size);
    test::write_bytes(dir_ / "file", content_);
    fd_ = ::open((dir_ / "file").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
    drop_cached(fd_);
    Result<AlignedBuffers> memory = AlignedBuffers::take(buffers, bytes_of_each);
    ASSERT_TRUE(memory);
    reads_.emplace(fd_, size, 4096u, std::move(*memory));
  }
  ~Pieces() override {
    if (fd_ >= 0) ::close(fd_);
  }
  /// As the system would: what lies in the file of the piece.
  std::size_t fill(const PieceReads::Piece& piece) {
    const std::size_t end = std::min<std::size_t>(piece.offset + piece.into.size(), content_.size());
    if (piece.offset >= end) return 0;
    std::copy(content_.begin() + static_cast<std::ptrdiff_t>(piece.offset),
              content_.begin() + static_cast<std::ptrdiff_t>(end), piece.into.begin());
    return end - piece.offset;
  }
  std::map<std::uint32_t, ErrorCode> settled() {
    std::map<std::uint32_t, ErrorCode> out;
    std::array<Completion, 8> some;
    while (const std::size_t n = take_completions(reads_->done(), some)) {
      for (const Completion& c : std::span(some).first(n)) {
        EXPECT_FALSE(out.contains(c.ticket));
        out[c.ticket] = c.status ? ErrorCode::none : c.status.error().code;
      }
    }
    return out;
  }

  test::TempDir dir_;
  std::vector<std::byte> content_;
  int fd_ = -1;
  std::optional<PieceReads> reads_;
};

TEST_F(Pieces, NeighboursAreReadTogether) {
  make(1 << 20, 2, 64 << 10);
  std::vector<std::byte> into(60'000);
  for (std::uint32_t i = 0; i < 6; ++i) reads_->add(request(5000 + i * 10'000, 10'000, i, &into[i * 10'000]));
  const auto piece = reads_->next();
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->offset, 4096u);
  EXPECT_EQ(piece->offset + piece->into.size(), 65536u);
  EXPECT_FALSE(reads_->next());
  reads_->arrived(piece->id, fill(*piece));
  EXPECT_EQ(settled().size(), 6u);
  EXPECT_TRUE(std::equal(into.begin(), into.end(), content_.begin() + 5000));
}

TEST_F(Pieces, WhatIsApartIsReadApart) {
  make(1 << 20, 2, 64 << 10);
  std::vector<std::byte> into(3000);
  reads_->add(request(0, 1000, 0, into.data()));
  reads_->add(request(100'000, 1000, 1, into.data() + 1000));
  reads_->add(request(500, 1000, 2, into.data() + 2000));
  const auto a = reads_->next(), b = reads_->next();
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->into.size(), 4096u);
  EXPECT_EQ(b->offset, 100'000u / 4096 * 4096);
  EXPECT_FALSE(reads_->next()) << "both buffers are taken";
  reads_->arrived(b->id, fill(*b));
  EXPECT_EQ(settled(), (std::map<std::uint32_t, ErrorCode>{{1, ErrorCode::none}}));
  const auto c = reads_->next();
  ASSERT_TRUE(c);
  reads_->arrived(a->id, fill(*a));
  reads_->arrived(c->id, fill(*c));
  EXPECT_EQ(settled().size(), 2u);
  EXPECT_TRUE(std::equal(into.begin() + 2000, into.end(), content_.begin() + 500));
}

TEST_F(Pieces, BytesBehindTheFilesEndAreRefusedAlone) {
  make(10'000, 1, 64 << 10);
  std::vector<std::byte> into(20'000);
  reads_->add(request(9000, 1001, 0, into.data()));
  reads_->add(request(0, 0, 1, into.data()));
  reads_->add(request(9000, 1000, 2, into.data()));
  EXPECT_EQ(settled(), (std::map<std::uint32_t, ErrorCode>{{0, ErrorCode::truncated}, {1, ErrorCode::none}}));
  const auto piece = reads_->next();
  ASSERT_TRUE(piece);
  reads_->arrived(piece->id, fill(*piece));
  EXPECT_EQ(settled(), (std::map<std::uint32_t, ErrorCode>{{2, ErrorCode::none}}));
}

TEST_F(Pieces, CancelledAreThoseThatNoPieceWasMadeOf) {
  make(1 << 20, 1, 64 << 10);
  std::vector<std::byte> into(200'000);
  reads_->add(request(0, 100'000, 0, into.data()));
  reads_->add(request(500'000, 1000, 1, into.data()));
  const auto piece = reads_->next();
  ASSERT_TRUE(piece);
  reads_->cancel();
  EXPECT_EQ(settled(), (std::map<std::uint32_t, ErrorCode>{{1, ErrorCode::cancelled}}));
  reads_->arrived(piece->id, fill(*piece));
  EXPECT_EQ(settled(), (std::map<std::uint32_t, ErrorCode>{{0, ErrorCode::cancelled}}));
  EXPECT_EQ(reads_->under_way(), 0u);
}

// Whatever arrives of a piece, all, nothing or a part, the bytes are the file's, as long as it has them.
TEST_F(Pieces, ShortReadsAndErrorsLoseNothing) {
  make(3'000'001, 3, 96 << 10);
  test::Random random(7);
  std::vector<std::byte> into(3'000'001);
  std::vector<ReadRequest> all;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const std::uint32_t begin = random.below(3'000'001), size = random.below(i % 2 == 0 ? 1'000'000 : 300'000);
    all.push_back(request(begin, std::min(size, 3'000'001 - begin), i, nullptr));
  }
  std::size_t next = 0, done = 0, n_in_place = 0;
  std::vector<std::vector<std::byte>> memory(all.size());
  std::vector<PieceReads::Piece> under_way;
  std::size_t held = 0;
  while (done < all.size()) {
    for (; next < all.size() && held < kSourceDepth; ++next, ++held) {
      all[next].blocks = next % 3 == 0;
      all[next].into = placed(memory[next], all[next], next % 2 == 0 ? 0 : 64);
      reads_->add(all[next]);
    }
    while (const auto piece = reads_->next()) {
      ASSERT_EQ((piece->into.size() | piece->offset | reinterpret_cast<std::uintptr_t>(piece->into.data())) % 4096, 0u);
      ASSERT_TRUE(piece->id >= 3 || piece->into.size() <= 96u << 10);
      n_in_place += piece->id < 3 ? 0 : 1;
      under_way.push_back(*piece);
    }
    if (!under_way.empty()) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(under_way.size()));
      const std::size_t whole = fill(under_way[at]);
      const std::size_t got = random.below(3) != 0 ? whole : random.below(static_cast<std::uint32_t>(whole) + 1);
      reads_->arrived(under_way[at].id, got);
      if (got != whole) drop_cached(fd_);  // what was missing came by way of the page cache
      under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (const auto& [ticket, code] : settled()) {
      EXPECT_EQ(code, ErrorCode::none);
      EXPECT_TRUE(std::equal(all[ticket].into, all[ticket].into + all[ticket].size,
                             content_.begin() + static_cast<std::ptrdiff_t>(all[ticket].offset)));
      memory[ticket] = {};
      ++done, --held;
    }
  }
  EXPECT_GT(n_in_place, 20u);
}

// A large request whose memory lies as the file does is read there, whole blocks of it; nothing is read beside it.
TEST_F(Pieces, WhatLiesInItsBlocksIsReadInPlace) {
  make(4 << 20, 1, 64 << 10);
  std::vector<std::byte> memory[4];
  std::vector<ReadRequest> all{request(4096 * 3 + 48, 300'001, 0, nullptr), request(1'000'000, 262'144, 1, nullptr),
                               request(1'000'000, 262'143, 2, nullptr), request(2'000'000, 300'000, 3, nullptr)};
  for (ReadRequest& r : all) {
    r.into = placed(memory[r.ticket], r, r.ticket == 3 ? 1 : 0);
    r.blocks = true;
    reads_->add(r);
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto piece = reads_->next();
    ASSERT_TRUE(piece);
    EXPECT_EQ(piece->offset, all[i].offset / 4096 * 4096);
    EXPECT_EQ(piece->into.data(), all[i].into - all[i].offset % 4096);
    EXPECT_EQ((all[i].offset + all[i].size + 4095) / 4096 * 4096, piece->offset + piece->into.size());
    reads_->arrived(piece->id, fill(*piece));
    EXPECT_TRUE(std::equal(all[i].into, all[i].into + all[i].size,
                           content_.begin() + static_cast<std::ptrdiff_t>(all[i].offset)));
  }
  while (const auto piece = reads_->next()) {
    EXPECT_EQ(piece->id, 0u) << "into the buffer";
    reads_->arrived(piece->id, fill(*piece));
  }
  for (const ReadRequest& r : std::span(all).subspan(2)) {
    EXPECT_TRUE(std::equal(r.into, r.into + r.size, content_.begin() + static_cast<std::ptrdiff_t>(r.offset)));
  }
  EXPECT_EQ(settled().size(), 4u);
}

TEST_F(Pieces, ReadsInPlaceWaitForNoBuffer) {
  make(8 << 20, 1, 64 << 10);
  std::vector<std::vector<std::byte>> memory(9);
  std::vector<ReadRequest> all;
  for (std::uint32_t i = 0; i < memory.size(); ++i) {
    all.push_back(request(i * 500'000, 300'000, i, nullptr));
    all[i].into = placed(memory[i], all[i], 0);
    all[i].blocks = i != 0;
    reads_->add(all[i]);
  }
  std::vector<PieceReads::Piece> under_way;
  for (int turn = 0; turn < 5; ++turn) {  // the first is read through the buffer, five times
    const auto piece = reads_->next();
    ASSERT_TRUE(piece);
    EXPECT_EQ(piece->id, 0u);
    if (turn < 4) reads_->arrived(piece->id, fill(*piece));
    if (turn == 4) under_way.push_back(*piece);
  }
  while (const auto piece = reads_->next()) under_way.push_back(*piece);
  EXPECT_EQ(under_way.size(), memory.size());
  EXPECT_EQ(reads_->under_way(), memory.size());
  for (const PieceReads::Piece& piece : under_way) reads_->arrived(piece.id, fill(piece));
  for (const ReadRequest& r : all) {
    EXPECT_TRUE(std::equal(r.into, r.into + r.size, content_.begin() + static_cast<std::ptrdiff_t>(r.offset)));
  }
}

TEST_F(Pieces, AFileThatWasCutIsTold) {
  make(200'000, 1, 64 << 10);
  std::filesystem::resize_file(dir_ / "file", 100'000);
  std::vector<std::byte> into(10'000);
  reads_->add(request(95'000, 10'000, 0, into.data()));
  const auto piece = reads_->next();
  ASSERT_TRUE(piece);
  reads_->arrived(piece->id, 100'000 - piece->offset);
  EXPECT_EQ(settled(), (std::map<std::uint32_t, ErrorCode>{{0, ErrorCode::truncated}}));
}

/// What `body` gives in a process of its own.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// From now on `call` fails in this process with `error`.
bool refuse(long call, int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Opens the file by `kind`, reads it and says whether that was by `by` and right.
int reads_by(const SomeFile& file, const char* kind, const char* by, std::uint64_t budget = 0) {
  SourceOptions options;
  options.budget = budget;
  options.kind = kind;
  Result<Source> source = Source::open(file.path, options);
  if (!source) return 2;
  if (source->kind().name != by) return 3;
  std::vector<std::byte> into(file.content.size());
  const ReadRequest all = request(0, static_cast<std::uint32_t>(into.size()), 0, into.data());
  if (source->submit({&all, 1}) != 1) return 4;
  std::array<Completion, 2> done;
  if (source->reap(done, std::chrono::seconds(30)) != 1 || !done[0].status) return 5;
  return into == file.content ? 0 : 6;
}

TEST(PastCache, WithoutIoUringThreadsRead) {
  const SomeFile file;
  for (const int error : {EPERM, ENOSYS, ENOMEM}) {
    EXPECT_EQ(in_child([&] { return refuse(__NR_io_uring_setup, error) ? reads_by(file, "uring", "direct") : 1; }), 0);
  }
}

TEST(PastCache, WithoutRegisteredBuffersTheRingReadsAllTheSame) {
  const SomeFile file;
  drop_cached(file.fd);
  EXPECT_EQ(in_child([&] { return refuse(__NR_io_uring_register, ENOMEM) ? reads_by(file, "uring", "uring") : 1; }), 0);
}

// statx is how a file system says what direct reads must be aligned to.
TEST(PastCache, WithoutDirectReadsThePageCacheReads) {
  const SomeFile file;
  for (const char* kind : {"uring", "direct"}) {
    EXPECT_EQ(in_child([&] { return refuse(__NR_statx, ENOSYS) ? reads_by(file, kind, "pread") : 1; }), 0);
  }
}

TEST(PastCache, AColdFileAndAWarmOneAreTheSame) {
  const SomeFile file;
  for (const char* kind : {"uring", "direct"}) {
    drop_cached(file.fd);
    EXPECT_EQ(reads_by(file, kind, kind), 0);
    bool cached = false;
    for (int i = 0; i < 20 && !cached; ++i) {  // the system may drop pages at any time
      EXPECT_EQ(reads_by(file, "pread", "pread"), 0);
      cached = is_cached(file.fd, 0, file.content.size());
    }
    EXPECT_TRUE(cached);
    EXPECT_EQ(reads_by(file, kind, kind), 0);
  }
}

// What is read through the page cache leaves it where memory has no room for the file, and stays where it has.
TEST(PastCache, WhatHasNoRoomIsGivenBack) {
  const SomeFile file;
  for (const char* kind : {"pread", "mmap"}) {
    for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{1} << 60}) {
      bool as_told = false;
      for (int i = 0; i < 20 && !as_told; ++i) {  // the system may keep and drop pages as it likes
        drop_cached(file.fd);
        EXPECT_EQ(reads_by(file, kind, kind, budget), 0);
        as_told = is_cached(file.fd, 1 << 20, 1 << 20) == (budget == 0);
      }
      EXPECT_TRUE(as_told) << kind << " " << budget;
    }
  }
}

TEST(PastCache, MemoryDecidesWhoReads) {
  const std::uint64_t room = memory_room();
  EXPECT_GT(room, 1u << 20);
  const test::TempDir dir;
  test::write_bytes(dir / "file", test::some_bytes(100'000));
  SourceOptions options;
  Result<Source> much = Source::open(dir / "file", options);
  ASSERT_TRUE(much);
  EXPECT_EQ(much->kind().name, "pread");
  options.budget = std::uint64_t{1} << 60;
  Result<Source> little = Source::open(dir / "file", options);
  ASSERT_TRUE(little);
  EXPECT_NE(little->kind().name, "pread");
}

}  // namespace
}  // namespace qsf
