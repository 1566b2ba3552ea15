// Reads of files past the page cache, several at a time: overlapped reads with a completion port.
#include <windows.h>
//
#include <io.h>

#include <array>
#include <chrono>

#include "native/sources/piece_source.h"

namespace qsf {
namespace {

constexpr ULONG_PTR kRead = 0, kWoken = 1;

struct Overlapped {
  static constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(INFINITE);

  HANDLE file = nullptr, port = nullptr;
  std::array<OVERLAPPED, PieceReads::kMaxPieces> places{};  // of the pieces, by id

  Overlapped() = default;
  Overlapped(const Overlapped&) = delete;
  Overlapped& operator=(const Overlapped&) = delete;
  ~Overlapped() {
    if (port != nullptr) ::CloseHandle(port);
  }

  Status open(const DirectFile& direct, std::span<std::byte>) {
    file = reinterpret_cast<HANDLE>(::_get_osfhandle(direct.fd));
    port = ::CreateIoCompletionPort(file, nullptr, kRead, 1);
    if (port == nullptr) return make_error(ErrorCode::unsupported_host, "this system refuses a completion port");
    return {};
  }

  /// Takes one completion or wake-up. Returns false if none came in time.
  bool take_one(PieceReads& reads, std::chrono::nanoseconds at_most) {
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
    DWORD got = 0;
    ULONG_PTR what = kWoken;
    OVERLAPPED* place = nullptr;
    const bool read = ::GetQueuedCompletionStatus(port, &got, &what, &place, static_cast<DWORD>(milliseconds)) != 0;
    if (place != nullptr) reads.arrived(static_cast<std::size_t>(place - places.data()), read ? got : 0);
    return read || place != nullptr;
  }

  void take_ready(PieceReads& reads) {
    while (take_one(reads, std::chrono::nanoseconds::zero())) {
    }
  }

  void wake() const { ::PostQueuedCompletionStatus(port, 0, kWoken, nullptr); }

  void start(PieceReads& reads) {
    while (const std::optional<PieceReads::Piece> piece = reads.next()) {
      OVERLAPPED& place = places[piece->id];
      place = {};
      place.Offset = static_cast<DWORD>(piece->offset);
      place.OffsetHigh = static_cast<DWORD>(piece->offset >> 32);
      // A read that is refused at once never reaches the port.
      const bool begun =
          ::ReadFile(file, piece->into.data(), static_cast<DWORD>(piece->into.size()), nullptr, &place) != 0 ||
          ::GetLastError() == ERROR_IO_PENDING;
      if (!begun) reads.arrived(piece->id, 0);
    }
  }
};

}  // namespace

extern const SourceKind kOverlappedSource, kDirectSource;
const SourceKind kOverlappedSource = PieceSource<Overlapped>::kind("overlapped", &kDirectSource);

}  // namespace qsf
