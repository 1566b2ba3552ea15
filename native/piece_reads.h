// What is read past the page cache: requests become pieces of whole blocks. A large one whose memory has room for them
// is a piece of its own, in place; of others neighbouring ones are read together into one of a few aligned buffers, and
// what arrived is copied to where it was asked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "native/regular_file.h"
#include "native/ring.h"
#include "native/source.h"
#include "qsf/base/align.h"

namespace qsf {

/// Zeroed memory of the system's, at the beginning of a page.
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

/// A segment of a MiB in one piece, wherever it begins.
inline constexpr std::size_t kPieceBytes = (1u << 20) + 2 * kBlock;

/// Of one thread.
class PieceReads {
 public:
  static constexpr std::size_t kMaxBuffers = 8, kMaxPieces = 2 * kMaxBuffers;
  /// A smaller request is read with its neighbours: its blocks cost more than copying it.
  static constexpr std::uint32_t kAlone = 256u << 10;

  /// `fd` reads by way of the page cache what cannot be read otherwise. `size`: the file's, when it was opened.
  PieceReads(int fd, std::uint64_t size, std::uint32_t block, AlignedBuffers buffers);

  /// There is room for kSourceDepth requests that have not come out of done().
  void add(const ReadRequest& request);
  /// Read blocks at `offset` into `into`, then call arrived() with the id, which is below kMaxPieces.
  struct Piece {
    std::size_t id;
    std::uint64_t offset;
    std::span<std::byte> into;
  };
  /// While there is something to read and a free buffer for it, where it needs one. What the page cache holds is copied
  /// from there at once, one request at a call, which then gives nothing.
  std::optional<Piece> next();
  /// The first `got` bytes of a piece are there. What is missing is read by way of the page cache, which either works
  /// or says what is wrong.
  void arrived(std::size_t id, std::size_t got);
  /// Of what no piece was made of yet.
  void cancel();
  Completions& done() { return done_; }
  std::size_t under_way() const { return n_pieces_; }
  const AlignedBuffers& buffers() const { return buffers_; }

 private:
  static constexpr std::size_t kMaxParts = 32;
  struct Job {
    ReadRequest request;
    std::uint32_t asked = 0, left = 0;  // bytes that pieces were made of; that are not there yet
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
  std::array<Parts, kMaxPieces> pieces_;  // the first into buffers, as many as there are, the others in place
  std::size_t n_pieces_ = 0;
  Completions done_;
};

}  // namespace qsf
