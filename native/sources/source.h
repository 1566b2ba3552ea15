// The source of a model's bytes: requests go in, completions come out. A kind of source is one SourceKind: a row in
// source.cpp's table. native/made/ has sources over other sources.
//
// A source has one submitting and one reaping thread, which may be the same. A request's memory belongs to the source
// from submit() until reap() has returned its completion, and to the caller otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "native/sources/ring.h"
#include "qsf/base/result.h"
#include "qsf/stream/read_request.h"

namespace qsf {

struct SourceOptions {
  std::string_view kind;     // one of source_kinds(); empty: http for a URL, otherwise by choose_kind()
  std::uint64_t budget = 0;  // bytes of the model, which the page cache cannot have
  /// The caller reads requests that are at_hand() by read_cached() whenever it waits, and passes completions to
  /// finish(); threads of the source do neither.
  bool helped = false;
  /// The type of the matrices, as qsf-convert has it; empty: the file's own.
  std::string_view quant_type;
  /// The folder that caches the fronts of such models; empty: none.
  std::string_view cache;
  // http only
  std::uint32_t attempts = 6;                      // in a row without progress before the error is final
  std::chrono::milliseconds first_wait{250};       // before the second attempt; doubled for each further one
  std::chrono::milliseconds longest_wait{8000};    // no wait is longer
  std::chrono::milliseconds connect{15000};        // to connect
  std::chrono::seconds stall{20};                  // time below the least rate, after which the attempt has failed
  std::uint32_t least_rate = 1000;                 // bytes per second; a lower rate is no progress
  bool leave_https = false;                        // follow a server that leads from https to http
  std::string token;                               // sent to the origin of the address as a bearer's; empty: none
  std::uint32_t* status = nullptr;                 // set to the status of a server that refuses
  std::atomic<std::uint64_t>* received = nullptr;  // counts the arriving bytes; must outlive the source
};

/// The most requests that one source holds, from submit() to reap().
inline constexpr std::size_t kSourceDepth = 64;

/// The outcome of a request.
struct Completion {
  std::uint32_t ticket = 0;
  Status status;  // io_error, network_error, http_status, no_ranges, truncated, file_changed or cancelled; see finish()
  std::uint32_t job = kFinished;  // of the source: the work of finish()

  static constexpr std::uint32_t kFinished = ~0u;
};
using Completions = Ring<Completion, kSourceDepth>;

/// The work of one read_cached(): nothing, some of a request, or the last of one.
enum class Helped : std::uint8_t { nothing, some, last };

/// The functions that Source calls, with the state that open() made, on the threads that Source states.
struct SourceKind {
  std::string_view name;
  bool url;  // takes http(s) URLs; the others take paths
  /// Returns the source's state. Sets the file's size in bytes.
  Result<void*> (*open)(const std::string& where, const SourceOptions& options, std::uint64_t& size);
  void (*submit)(void* state, std::span<const ReadRequest> requests);  // there is room for them
  std::size_t (*reap)(void* state, std::span<Completion> out, std::chrono::milliseconds timeout);
  void (*cancel)(void* state);
  void (*close)(void* state);
  /// May be nullptr. As in Source.
  Helped (*read_cached)(void* state, Completion& out) = nullptr;
  std::size_t (*at_hand)(void* state) = nullptr;
  const SourceKind* instead = nullptr;  // opened if this one is an unsupported_host
  bool past_cache = false;              // so that the depth of the ring decides the speed of reading
  /// May be nullptr. As in Source.
  bool (*is_cached)(void* state, const ReadRequest& request) = nullptr;
  Status (*copy)(void* state, const ReadRequest& request) = nullptr;
  std::span<const std::byte> (*mapped)(void* state) = nullptr;
  Status (*intact)(void* state) = nullptr;
  bool (*finish)(void* state, Completion& done) = nullptr;
  std::string (*identity)(void* state) = nullptr;
  std::uint64_t (*memory)(void* state) = nullptr;
  bool makes = false;  // computes the file and checks it: OpenOptions::vouched
};
/// Returns all kinds, in the order of the table.
std::span<const SourceKind* const> source_kinds();

/// An open source.
class Source {
 public:
  /// `where` is a path or an http(s) URL. Errors: io_error, network_error, http_status, no_ranges, truncated (an empty
  /// file), unsupported_host (no libcurl), bad_argument (a kind that does not fit).
  static Result<Source> open(const std::string& where, const SourceOptions& options);
  /// Takes the state that a kind outside the table has made.
  static Source of(const SourceKind& kind, void* state, std::uint64_t size, const SourceOptions& options) {
    return Source(&kind, state, size, options.helped);
  }
  /// Must precede the first submit().
  Source(Source&& other) noexcept;
  Source& operator=(Source&&) = delete;
  /// Ends all reads; their memory belongs to the caller again. No other thread may be in a method.
  ~Source();

  std::uint64_t size() const { return size_; }
  const SourceKind& kind() const { return *kind_; }

  /// Submitting thread. Takes requests from the front as far as there is room, and returns their number. Never waits
  /// for bytes, allocates nothing. Requests may complete in any order; each completes exactly once.
  std::size_t submit(std::span<const ReadRequest> requests);
  /// Any thread. Returns the requests that submit() takes at least, if the submitting thread asks.
  std::size_t room() const { return kSourceDepth - under_way(); }
  /// Any thread. Returns the requests that are submitted and not reaped.
  std::size_t under_way() const { return under_way_.load(std::memory_order_acquire); }
  /// Reaping thread. Waits until a request has completed or the time is over. Writes the completions and returns their
  /// number, at most out.size(). Once cancelled, does not wait for new requests. A source may read in this call, so a
  /// host with requests under way must keep calling.
  std::size_t reap(std::span<Completion> out, std::chrono::milliseconds timeout);
  /// Any number of threads, also during reap(). Reads bytes of the request that has waited longest, if that means
  /// copying from the page cache, not waiting: with SourceOptions::helped a part, so that several threads read one
  /// request. After `last` all of it has arrived, and `out` is its completion, which reap() then does not return.
  Helped read_cached(Completion& out);
  /// Any thread. Returns the requests that read_cached() would find now: with SourceOptions::helped all, otherwise 1 at
  /// most.
  std::size_t at_hand() const;
  /// Any thread. Whether copy() would copy these bytes from the page cache, not wait. False for kinds that cannot.
  bool is_cached(const ReadRequest& request) const;
  /// Any number of threads, also during reap(). Reads bytes at once, if is_cached() was true before. They are no
  /// request that completes.
  Status copy(const ReadRequest& request) { return kind_->copy(state_, request); }
  /// Returns the whole file if it is mapped, as long as the source exists; otherwise empty. Reading a part of it to its
  /// own place brings it into memory.
  std::span<const std::byte> mapped() const;
  /// Returns truncated once after parts of mapped() were lost and read as zeros: results since the last call may be
  /// wrong. The file is then mapped again. Must be called while nothing is computed.
  Status intact();
  /// Any thread. Makes the requested bytes of those that have arrived. With SourceOptions::helped it must be called for
  /// every completion of reap() before the bytes are used; otherwise reap() calls it. Returns false if more must be
  /// read first: the request is then not complete, and reap() will return it again. May change the status to any error
  /// of the model's files.
  bool finish(Completion& done);
  /// Returns a text that differs for another content of the same address; empty for files. Reaping thread.
  std::string identity() const { return kind_->identity == nullptr ? std::string() : kind_->identity(state_); }
  /// Returns the bytes of memory that the source holds in addition to those of other kinds.
  std::uint64_t memory() const { return kind_->memory == nullptr ? 0 : kind_->memory(state_); }
  /// Any thread, not a signal handler. Cancels for good: requests under way and later ones complete with `cancelled`,
  /// unless their bytes have arrived, and must still be reaped before their memory is used again.
  void cancel();

 private:
  Source(const SourceKind* kind, void* state, std::uint64_t size, bool helped)
      : kind_(kind), state_(state), size_(size), leaves_finishing_(helped && kind->finish != nullptr) {}

  const SourceKind* kind_;
  void* state_;
  std::uint64_t size_;
  bool leaves_finishing_;
  std::atomic<std::size_t> under_way_{0};
};

/// Moves completions from `from` to `to` as far as there is room. Returns their number.
std::size_t take_completions(Completions& from, std::span<Completion> to);
/// Returns truncated unless the request's bytes are in a file of `size` bytes.
Status check_range(const ReadRequest& request, std::uint64_t size);

}  // namespace qsf
