#include "native/sources/piece_reads.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "system/memory.h"

namespace qsf {

Result<AlignedBuffers> AlignedBuffers::take(std::size_t n, std::size_t bytes_of_each) {
  const std::size_t bytes = n * bytes_of_each;
  const std::span<std::byte> pages = take_pages(bytes);
  if (pages.empty()) {
    return make_error(ErrorCode::out_of_memory, "the system refused {} bytes for reading", std::uint64_t{bytes});
  }
  return AlignedBuffers(pages, bytes_of_each);
}

AlignedBuffers::AlignedBuffers(AlignedBuffers&& other) noexcept
    : all_(std::exchange(other.all_, {})), each_(other.each_) {}

AlignedBuffers::~AlignedBuffers() {
  if (!all_.empty()) give_pages(all_);
}

PieceReads::PieceReads(int fd, std::uint64_t size, std::uint32_t block, AlignedBuffers buffers)
    : fd_(fd), size_(size), block_(block), buffers_(std::move(buffers)) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) free_.push(static_cast<std::uint8_t>(i));
}

void PieceReads::add(const ReadRequest& request) {
  const std::uint8_t at = free_.front();
  free_.pop();
  jobs_[at] = {request, 0, request.size, check_range(request, size_)};
  if (jobs_[at].status && request.size != 0) {
    waiting_.push(at);
  } else {
    settle(at);
  }
}

void PieceReads::settle(std::uint8_t job) {
  done_.push({jobs_[job].request.ticket, jobs_[job].status});
  free_.push(job);
}

std::span<std::byte> PieceReads::in_place(const ReadRequest& request) const {
  return request.size < kAlone ? std::span<std::byte>() : whole_blocks(request, block_);
}

std::optional<std::size_t> PieceReads::free_piece(std::size_t begin, std::size_t end) const {
  const auto among = std::span(pieces_).subspan(begin, end - begin);
  const auto found = std::ranges::find(among, false, &Parts::used);
  if (found == among.end()) return std::nullopt;
  return begin + static_cast<std::size_t>(found - among.begin());
}

std::optional<PieceReads::Piece> PieceReads::next() {
  if (waiting_.empty()) return std::nullopt;
  const std::uint8_t front = waiting_.front();
  const ReadRequest& request = jobs_[front].request;
  if (jobs_[front].asked == 0 && is_cached(fd_, request.offset, request.size)) {
    jobs_[front].status = read_all(fd_, request.offset, {request.into, request.size});
    waiting_.pop();
    settle(front);
    return std::nullopt;  // the caller uses it while the next is copied
  }
  const std::size_t n_buffers = std::min(buffers_.count(), kMaxBuffers);
  std::span<std::byte> into = in_place(request);
  const std::optional<std::size_t> id = into.empty() ? free_piece(0, n_buffers) : free_piece(n_buffers, kMaxPieces);
  if (!id) return std::nullopt;
  Parts& piece = pieces_[*id];
  piece.used = true;
  if (into.empty()) {
    const std::uint64_t first = request.offset + jobs_[front].asked;
    const std::span<std::byte> buffer = buffers_[*id];
    piece.offset = first / block_ * block_;
    const std::uint64_t end = gather(piece, piece.offset + buffer.size() / block_ * block_);
    into = buffer.first(align_up(end - piece.offset, block_));
  } else {
    piece.offset = request.offset / block_ * block_;
    piece.all[0] = {front, request.offset, jobs_[front].end()};
    piece.n = 1;
    jobs_[front].asked = request.size;
    waiting_.pop();
  }
  piece.into = into.data();
  ++n_pieces_;
  return Piece{*id, piece.offset, into};
}

/// Puts the first waiting request and its neighbours into the piece, as far as `limit`. Returns the offset where they
/// end.
std::uint64_t PieceReads::gather(Parts& piece, std::uint64_t limit) {
  std::uint64_t end = jobs_[waiting_.front()].request.offset + jobs_[waiting_.front()].asked;
  piece.n = 0;
  while (!waiting_.empty() && piece.n < kMaxParts) {
    Job& job = jobs_[waiting_.front()];
    const std::uint64_t begin = job.request.offset + job.asked;
    // A neighbour begins in the block where the one before it ends, or in the next.
    if (begin < piece.offset || begin > end + block_ || begin >= limit) break;
    if (piece.n != 0 && !in_place(job.request).empty()) break;
    const std::uint64_t stop = std::min(job.end(), limit);
    piece.all[piece.n++] = {waiting_.front(), begin, stop};
    job.asked += static_cast<std::uint32_t>(stop - begin);
    end = std::max(end, stop);
    if (stop != job.end()) break;
    waiting_.pop();
  }
  return end;
}

void PieceReads::arrived(std::size_t id, std::size_t got) {
  Parts& piece = pieces_[id];
  for (const Part& part : std::span(piece.all).first(piece.n)) {
    Job& job = jobs_[part.job];
    const std::uint64_t there = std::clamp(piece.offset + got, part.begin, part.end);
    std::byte* const into = job.request.into + (part.begin - job.request.offset);
    const std::byte* const from = piece.into + (part.begin - piece.offset);
    const auto come = static_cast<std::size_t>(there - part.begin);
    if (come != 0 && from != into) std::memcpy(into, from, come);
    const std::span<std::byte> missing(into + come, static_cast<std::size_t>(part.end - there));
    if (const Status status = read_all(fd_, there, missing); !status && job.status) job.status = status;
    job.left -= static_cast<std::uint32_t>(part.end - part.begin);
    if (job.left == 0) settle(part.job);
  }
  piece.used = false;
  --n_pieces_;
}

void PieceReads::cancel() {
  for (; !waiting_.empty(); waiting_.pop()) {
    Job& job = jobs_[waiting_.front()];
    job.status = make_error(ErrorCode::cancelled, "reading was cancelled");
    job.left -= job.request.size - job.asked;
    if (job.left == 0) settle(waiting_.front());
  }
}

}  // namespace qsf
