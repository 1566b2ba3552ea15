// Reads past the page cache: requests become pieces of whole blocks. A large request whose memory has room for its
// blocks is a piece of its own, in place. Neighbours among the other requests are read together into one of a few
// aligned buffers, and their bytes are copied from there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "native/sources/regular_file.h"
#include "native/sources/ring.h"
#include "native/sources/source.h"
#include "qsf/base/align.h"

namespace qsf {

/// Zeroed memory from the system that begins at a page.
class AlignedBuffers {
 public:
  static Result<AlignedBuffers> take(std::size_t n, std::size_t bytes_of_each);
  AlignedBuffers(AlignedBuffers&& other) noexcept;
  AlignedBuffers& operator=(AlignedBuffers&&) = delete;
  ~AlignedBuffers();
  std::size_t count() const { return all_.size() / each_; }
  std::span<std::byte> operator[](std::size_t i) const { return all_.subspan(i * each_, each_); }
  std::span<std::byte> all() const { return all_; }

 private:
  AlignedBuffers(std::span<std::byte> all, std::size_t each) : all_(all), each_(each) {}
  std::span<std::byte> all_;
  std::size_t each_;
};

/// The bytes of a buffer: 512 KiB of requests, wherever they begin. Buffers of 1 MiB read no faster.
inline constexpr std::size_t kPieceBytes = (512u << 10) + 2 * kBlock;

/// Belongs to one thread.
class PieceReads {
 public:
  static constexpr std::size_t kMaxBuffers = 8, kMaxPieces = 2 * kMaxBuffers;
  /// Bytes from which a request is a piece of its own. A smaller request is read with its neighbours, because its own
  /// blocks would cost more than copying it.
  static constexpr std::uint32_t kAlone = 256u << 10;

  /// `fd` reads bytes through the page cache that cannot be read past it. `size` is the file's size at opening.
  PieceReads(int fd, std::uint64_t size, std::uint32_t block, AlignedBuffers buffers);

  /// Takes a request. There is room for kSourceDepth requests that have not left done().
  void add(const ReadRequest& request);
  /// A read of blocks at `offset` into `into`, after which arrived() must be called with the id, which is below
  /// kMaxPieces.
  struct Piece {
    std::size_t id;
    std::uint64_t offset;
    std::span<std::byte> into;
  };
  /// Returns the next piece; nothing if no request waits or no buffer is free for it. A request in the page cache is
  /// copied at once, one in each call, which then returns nothing.
  std::optional<Piece> next();
  /// Takes the first `got` bytes of a piece. Missing bytes are read through the page cache, which either works or gives
  /// the error.
  void arrived(std::size_t id, std::size_t got);
  /// Cancels the bytes that no piece has yet.
  void cancel();
  Completions& done() { return done_; }
  std::size_t under_way() const { return n_pieces_; }
  const AlignedBuffers& buffers() const { return buffers_; }

 private:
  static constexpr std::size_t kMaxParts = 32;
  struct Job {
    ReadRequest request;
    std::uint32_t asked = 0, left = 0;  // bytes that are in pieces; bytes that have not arrived
    Status status;
    std::uint64_t end() const { return request.offset + request.size; }
  };
  /// Bytes [begin, end) of the file, for a job.
  struct Part {
    std::uint8_t job;
    std::uint64_t begin, end;
  };
  struct Parts {
    bool used = false;
    std::uint64_t offset = 0;
    std::byte* into = nullptr;
    std::array<Part, kMaxParts> all{};
    std::size_t n = 0;
  };

  std::span<std::byte> in_place(const ReadRequest& request) const;
  std::optional<std::size_t> free_piece(std::size_t begin, std::size_t end) const;
  std::uint64_t gather(Parts& piece, std::uint64_t limit);
  void settle(std::uint8_t job);

  const int fd_;
  const std::uint64_t size_;
  const std::uint32_t block_;
  AlignedBuffers buffers_;
  std::array<Job, kSourceDepth> jobs_;
  Ring<std::uint8_t, kSourceDepth> free_, waiting_;
  std::array<Parts, kMaxPieces> pieces_;  // first the pieces with a buffer, then those in place
  std::size_t n_pieces_ = 0;
  Completions done_;
};

}  // namespace qsf
