// Reads of files past the page cache, several at a time: io_uring with registered memory.
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>

#include "native/sources/piece_source.h"

namespace qsf {
namespace {

constexpr std::uint64_t kWoken = PieceReads::kMaxPieces;
constexpr std::size_t kPlaces = 64;             // registered runs of memory for reads in place
constexpr std::size_t kWidestPlace = 16 << 20;  // in bytes; growing takes as long as registering anew

/// Returns the memory from the first byte of both to the last.
std::span<std::byte> joined(std::span<std::byte> a, std::span<std::byte> b) {
  std::byte* const begin = std::min(a.data(), b.data());
  return {begin, std::max(a.data() + a.size(), b.data() + b.size())};
}

bool within(std::span<const std::byte> all, std::span<const std::byte> part) {
  return part.data() >= all.data() && part.data() < all.data() + all.size();
}

struct Uring {
  // Once (Linux 6.18, a virtual machine) four reads and a wake-up had ended and the waiting thread was not woken. Any
  // return from the kernel finds them.
  static constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(50);

  int file = -1, event = -1;
  io_uring ring{};
  bool has_ring = false, listening = false;
  bool fixed = false, places_grow = false;
  std::span<std::byte> buffers;
  std::array<std::span<std::byte>, kPlaces> places;  // registered after the buffers
  std::size_t n_places = 0;
  std::uint64_t woken = 0;  // the value that is read from the event

  Uring() = default;
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;
  ~Uring() {
    if (has_ring) ::io_uring_queue_exit(&ring);
    if (event >= 0) ::close(event);
  }

  Status open(const DirectFile& direct, std::span<std::byte> memory) {
    file = direct.fd;
    buffers = memory;
    has_ring = ::io_uring_queue_init(2 * PieceReads::kMaxPieces, &ring, 0) == 0;
    event = ::eventfd(0, EFD_CLOEXEC);
    if (!has_ring || (ring.features & IORING_FEAT_EXT_ARG) == 0 || event < 0) {
      return make_error(ErrorCode::unsupported_host, "this system refuses io_uring");
    }
    register_buffers(memory);
    return {};
  }

  bool take_one(PieceReads& reads, std::chrono::nanoseconds at_most) {
    io_uring_cqe* cqe = nullptr;
    __kernel_timespec timeout{0, at_most.count()};
    const int status = ::io_uring_wait_cqe_timeout(&ring, &cqe, &timeout);
    if (status < 0) return status == -EINTR || status == -ETIME;
    take(reads, cqe);
    return true;
  }

  void take_ready(PieceReads& reads) {
    for (io_uring_cqe* cqe = nullptr; ::io_uring_peek_cqe(&ring, &cqe) == 0;) take(reads, cqe);
  }

  void take(PieceReads& reads, io_uring_cqe* cqe) {
    const std::uint64_t what = cqe->user_data;
    const int result = cqe->res;
    ::io_uring_cqe_seen(&ring, cqe);
    if (what == kWoken) {
      listening = false;
    } else {
      reads.arrived(static_cast<std::size_t>(what), result < 0 ? 0 : static_cast<std::size_t>(result));
    }
  }

  void wake() const {
    const std::uint64_t one = 1;
    while (::write(event, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  /// Registers as much as the system allows: locked memory may be limited, and older systems cannot fill places later.
  /// Memory that is not registered is looked up for each read.
  void register_buffers(std::span<std::byte> all) {
    const iovec memory{all.data(), all.size()};
    if (::io_uring_register_buffers_sparse(&ring, 1 + kPlaces) == 0) {
      fixed = places_grow = ::io_uring_register_buffers_update_tag(&ring, 0, &memory, nullptr, 1) == 1;
    } else {
      fixed = ::io_uring_register_buffers(&ring, &memory, 1) == 0;
    }
  }

  /// Returns the registered place for a read in place. Registers new memory, joined with a place that it continues,
  /// because segments may be anywhere in a ring. Reads under way keep their earlier place.
  std::optional<int> place_of(std::span<std::byte> into) {
    const std::span<std::span<std::byte>> known(places.data(), n_places);
    const auto index = [&](auto place) { return static_cast<int>(1 + (place - known.begin())); };
    const auto whole =
        std::ranges::find_if(known, [&](auto place) { return joined(place, into).size() == place.size(); });
    if (whole != known.end()) return index(whole);
    if (!places_grow) return std::nullopt;
    const auto place = std::ranges::find_if(known, [&](auto of) {
      const std::size_t size = joined(of, into).size();
      return size <= of.size() + into.size() && size <= kWidestPlace;
    });
    if (place == known.end() && n_places == places.size()) return std::nullopt;
    const std::span<std::byte> grown = place == known.end() ? into : joined(*place, into);
    const iovec memory{grown.data(), grown.size()};
    const int at = index(place);
    places_grow = ::io_uring_register_buffers_update_tag(&ring, static_cast<unsigned>(at), &memory, nullptr, 1) == 1;
    if (!places_grow) return std::nullopt;
    if (place == known.end()) ++n_places;
    places[static_cast<std::size_t>(at) - 1] = grown;
    return at;
  }

  /// Puts the pieces that can begin into the ring, as far as there is room.
  void start(PieceReads& reads) {
    if (!listening) {
      io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);
      ::io_uring_prep_read(sqe, event, &woken, sizeof woken, 0);
      sqe->user_data = kWoken;
      listening = true;
    }
    while (const std::optional<PieceReads::Piece> piece = reads.next()) {
      io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);  // the ring has more entries than there are pieces
      const auto size = static_cast<std::uint32_t>(piece->into.size());
      const bool of_buffers = within(buffers, piece->into);
      const std::optional<int> index = !fixed ? std::nullopt : of_buffers ? std::optional(0) : place_of(piece->into);
      if (index) {
        ::io_uring_prep_read_fixed(sqe, file, piece->into.data(), size, piece->offset, *index);
      } else {
        ::io_uring_prep_read(sqe, file, piece->into.data(), size, piece->offset);
      }
      sqe->user_data = piece->id;
    }
    ::io_uring_submit(&ring);
  }
};

}  // namespace

extern const SourceKind kUringSource, kDirectSource;
const SourceKind kUringSource = PieceSource<Uring>::kind("uring", &kDirectSource);

}  // namespace qsf
