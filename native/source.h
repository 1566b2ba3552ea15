// Where a model's bytes come from. A kind of source is one SourceKind: a row in source.cpp's table and nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

struct SourceOptions {
  std::string_view kind;  // one of source_kinds(); empty: http for a URL, else pread
  // http only
  std::uint32_t attempts = 6;                    // in a row without a byte of progress, then the error is final
  std::chrono::milliseconds first_wait{250};     // before the second attempt; doubled for each further one
  std::chrono::milliseconds longest_wait{8000};  // no wait is longer
  std::chrono::milliseconds connect{15000};      // to be connected
  std::chrono::seconds stall{30};                // without a byte arriving
};

/// Consecutive pieces of the file, each with its own place in memory.
using Pieces = std::span<const std::span<std::byte>>;

struct SourceKind {
  std::string_view name;
  bool url;                   // takes http(s) URLs; the others take paths
  std::uint64_t merge_bytes;  // consecutive requests are worth joining up to this size; 0: not worth it
  /// Gives the source's state and the file's size in bytes.
  Result<void*> (*open)(const std::string& where, const SourceOptions& options, std::uint64_t& size);
  Status (*read)(void* state, std::uint64_t offset, Pieces into);
  void (*cancel)(void* state);  // may be called from any thread
  void (*close)(void* state);
};
/// The names of all kinds, in the order of the table.
std::span<const SourceKind* const> source_kinds();
bool is_url(std::string_view where);

/// An open source. read() is called from one thread at a time.
class Source {
 public:
  /// `where` is a path or an http(s) URL. Errors: io_error, network_error, http_status, no_ranges, truncated (an empty
  /// file), unsupported_host (no libcurl), bad_argument (a kind that does not fit).
  static Result<Source> open(const std::string& where, const SourceOptions& options);
  Source(Source&& other) noexcept;
  Source& operator=(Source&&) = delete;
  ~Source();

  std::uint64_t size() const { return size_; }
  const SourceKind& kind() const { return *kind_; }
  /// Fills the pieces in turn from `offset` on. Errors as in open(), and truncated, file_changed, cancelled.
  Status read(std::uint64_t offset, Pieces into);
  /// Ends a read() that is under way in another thread, and every later one, with `cancelled`.
  void cancel();

 private:
  Source(const SourceKind* kind, void* state, std::uint64_t size) : kind_(kind), state_(state), size_(size) {}

  const SourceKind* kind_;
  void* state_;
  std::uint64_t size_;
};

}  // namespace qsf
