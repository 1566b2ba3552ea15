#include "native/piece_reads.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace qsf {

Result<AlignedBuffers> AlignedBuffers::take(std::size_t n, std::size_t bytes_of_each) {
  const std::size_t bytes = n * bytes_of_each;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    return make_error(ErrorCode::out_of_memory, "the system refused {} bytes for reading", std::uint64_t{bytes});
  }
  return AlignedBuffers({static_cast<std::byte*>(at), bytes}, bytes_of_each);
}

AlignedBuffers::AlignedBuffers(AlignedBuffers&& other) noexcept
    : all_(std::exchange(other.all_, {})), each_(other.each_) {}

AlignedBuffers::~AlignedBuffers() {
  if (!all_.empty()) ::munmap(all_.data(), all_.size());
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

std::optional<PieceReads::Piece> PieceReads::next() {
  if (waiting_.empty()) return std::nullopt;
  if (const std::uint8_t at = waiting_.front(); jobs_[at].asked == 0) {
    const ReadRequest& request = jobs_[at].request;
    if (is_cached(fd_, request.offset, request.size)) {
      jobs_[at].status = read_all(fd_, request.offset, {request.into, request.size});
      waiting_.pop();
      settle(at);
      return std::nullopt;  // it is used while the next is copied
    }
  }
  if (n_pieces_ == std::min(buffers_.count(), kMaxPieces)) return std::nullopt;
  const auto buffer = static_cast<std::size_t>(std::ranges::find(pieces_, false, &Parts::used) - pieces_.begin());
  Parts& piece = pieces_[buffer];
  const std::uint64_t first = jobs_[waiting_.front()].request.offset + jobs_[waiting_.front()].asked;
  piece.used = true;
  piece.offset = first / block_ * block_;
  piece.n = 0;
  const std::uint64_t limit = piece.offset + buffers_[buffer].size() / block_ * block_;
  std::uint64_t end = first;
  while (!waiting_.empty() && piece.n < kMaxParts) {
    Job& job = jobs_[waiting_.front()];
    const std::uint64_t begin = job.request.offset + job.asked;
    // A neighbour begins in the block where the one before it ends, or in the next.
    if (begin < piece.offset || begin > end + block_ || begin >= limit) break;
    const std::uint64_t stop = std::min(job.end(), limit);
    piece.all[piece.n++] = {waiting_.front(), begin, stop};
    job.asked += static_cast<std::uint32_t>(stop - begin);
    end = std::max(end, stop);
    if (stop != job.end()) break;
    waiting_.pop();
  }
  ++n_pieces_;
  return Piece{buffer, piece.offset, static_cast<std::uint32_t>((end + block_ - 1) / block_ * block_ - piece.offset)};
}

void PieceReads::arrived(std::size_t buffer, std::size_t got) {
  Parts& piece = pieces_[buffer];
  for (const Part& part : std::span(piece.all).first(piece.n)) {
    Job& job = jobs_[part.job];
    const std::uint64_t there = std::clamp(piece.offset + got, part.begin, part.end);
    std::byte* const into = job.request.into + (part.begin - job.request.offset);
    const auto copied = static_cast<std::size_t>(there - part.begin);
    if (copied != 0) std::memcpy(into, buffers_[buffer].data() + (part.begin - piece.offset), copied);
    const std::span<std::byte> missing(into + copied, static_cast<std::size_t>(part.end - there));
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
