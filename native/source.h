// Where a model's bytes come from: requests go in, completions come out. A kind of source is one SourceKind: a row in
// source.cpp's table and nothing else.
//
// A source has one submitting and one reaping thread, which may be the same. A request's memory is the source's from
// submit() until its completion came out of reap(), and the caller's otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "native/ring.h"
#include "qsf/base/result.h"
#include "qsf/stream/read_request.h"

namespace qsf {

struct SourceOptions {
  std::string_view kind;     // one of source_kinds(); empty: http for a URL, else what choose_kind() says
  std::uint64_t beside = 0;  // bytes of memory that are not the page cache's: the model's budget
  /// The caller reads what is at_hand() itself, by read_cached(), whenever it waits: then no thread of the source does.
  bool helped = false;
  // http only
  std::uint32_t attempts = 6;                      // in a row without progress, then the error is final
  std::chrono::milliseconds first_wait{250};       // before the second attempt; doubled for each further one
  std::chrono::milliseconds longest_wait{8000};    // no wait is longer
  std::chrono::milliseconds connect{15000};        // to be connected
  std::chrono::seconds stall{20};                  // below the least rate; then the attempt has failed
  std::uint32_t least_rate = 1000;                 // bytes a second; slower is no progress
  std::atomic<std::uint64_t>* received = nullptr;  // what arrives is added here; must outlive the source
};

/// Requests that one source holds at most, from submit() to reap().
inline constexpr std::size_t kSourceDepth = 64;

/// What became of a request.
struct Completion {
  std::uint32_t ticket = 0;
  Status status;  // io_error, network_error, http_status, no_ranges, truncated, file_changed or cancelled
};
using Completions = Ring<Completion, kSourceDepth>;

/// What read_cached() has done: nothing, some of a request, or the last of one.
enum class Helped : std::uint8_t { nothing, some, last };

/// The functions that Source calls, with the state that open() made; threads as Source says.
struct SourceKind {
  std::string_view name;
  bool url;  // takes http(s) URLs; the others take paths
  /// Gives the source's state and the file's size in bytes.
  Result<void*> (*open)(const std::string& where, const SourceOptions& options, std::uint64_t& size);
  void (*submit)(void* state, std::span<const ReadRequest> requests);  // there is room for them
  std::size_t (*reap)(void* state, std::span<Completion> out, std::chrono::milliseconds timeout);
  void (*cancel)(void* state);
  void (*close)(void* state);
  /// Or nullptr. As Source's.
  Helped (*read_cached)(void* state, Completion& out) = nullptr;
  std::size_t (*at_hand)(void* state) = nullptr;
  const SourceKind* instead = nullptr;  // opened where this one is an unsupported_host
  bool past_cache = false;              // so that how deep the ring is decides how fast it reads
  /// Or nullptr. As Source's.
  std::span<const std::byte> (*mapped)(void* state) = nullptr;
  Status (*intact)(void* state) = nullptr;
};
/// The names of all kinds, in the order of the table.
std::span<const SourceKind* const> source_kinds();
bool is_url(std::string_view where);

/// An open source.
class Source {
 public:
  /// `where` is a path or an http(s) URL. Errors: io_error, network_error, http_status, no_ranges, truncated (an empty
  /// file), unsupported_host (no libcurl), bad_argument (a kind that does not fit).
  static Result<Source> open(const std::string& where, const SourceOptions& options);
  /// Only before the first submit().
  Source(Source&& other) noexcept;
  Source& operator=(Source&&) = delete;
  /// Ends what is under way; its memory is the caller's again. No other thread may be in a method.
  ~Source();

  std::uint64_t size() const { return size_; }
  const SourceKind& kind() const { return *kind_; }

  /// Submitting thread. Takes requests from the front as far as there is room, and gives how many. Never waits for
  /// bytes, allocates nothing. Requests may complete in any order; each completes exactly once.
  std::size_t submit(std::span<const ReadRequest> requests);
  /// Any thread. Requests that submit() takes at least, if the submitting thread asks.
  std::size_t room() const { return kSourceDepth - under_way(); }
  /// Any thread. Requests submitted and not reaped.
  std::size_t under_way() const { return under_way_.load(std::memory_order_acquire); }
  /// Reaping thread. Waits until a request has completed or the time is over, and writes what has completed: how many,
  /// at most out.size(). Once cancelled, does not wait for requests to come. A source may do its reading in here, so a
  /// host that has requests under way keeps calling.
  std::size_t reap(std::span<Completion> out, std::chrono::milliseconds timeout);
  /// Any thread, besides the reaping one and beside others. Reads of the request that waits longest where that means
  /// copying from the page cache, not waiting: with SourceOptions::helped a part, so that several threads read one.
  /// `last`: all of it is there, and `out` is its completion, which reap() then does not give.
  Helped read_cached(Completion& out);
  /// Any thread. Requests that read_cached() would find now: with SourceOptions::helped all such, else 1 at most.
  std::size_t at_hand() const;
  /// The whole file where it lies in this process's memory, until the source goes; else empty. Reading a part of it to
  /// its own place brings it there.
  std::span<const std::byte> mapped() const;
  /// truncated, once, after something of mapped() could not be had any more and was read as zeros: what was computed
  /// since the last call may be wrong. The file is then looked for anew. While nothing is computed.
  Status intact();
  /// Any thread, not a signal handler. For good: what is under way and what is submitted later completes with
  /// `cancelled`, unless its bytes are there already, and still has to be reaped before its memory is used again.
  void cancel();

 private:
  Source(const SourceKind* kind, void* state, std::uint64_t size) : kind_(kind), state_(state), size_(size) {}

  const SourceKind* kind_;
  void* state_;
  std::uint64_t size_;
  std::atomic<std::size_t> under_way_{0};
};

/// Moves completions from `from` to `to`, as far as there are; gives how many.
std::size_t take_completions(Completions& from, std::span<Completion> to);
/// truncated unless the request's bytes lie in a file of `size` bytes.
Status check_range(const ReadRequest& request, std::uint64_t size);

}  // namespace qsf
