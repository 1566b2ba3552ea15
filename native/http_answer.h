// What a server answered to a range request, and whether it will do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

/// The headers of one answer that matter (RFC 9110).
struct HttpAnswer {
  std::uint32_t status = 0;
  std::string etag, last_modified, encoding;
  bool has_range = false;  // a Content-Range that could be read
  std::uint64_t first = 0, last = 0;
  bool has_total = false;  // the range's complete length was given
  std::uint64_t total = 0;
  bool has_length = false;
  std::uint64_t length = 0;       // Content-Length
  std::uint32_t retry_after = 0;  // seconds; 0 when not given as a number

  /// One line of the head, with or without its line end. A status line begins a new answer, so that only the last one
  /// counts after redirections.
  void add_line(std::string_view line);
};

/// What was noted at the first answer, and what a later one is compared with.
struct HttpIdentity {
  std::string etag, last_modified;
  std::uint64_t size = 0;
};

enum class Verdict : std::uint8_t { take, retry, refuse };
struct Judged {
  Verdict verdict = Verdict::take;
  Error error;  // why, unless it is taken
};

/// Judges the answer to "bytes first..first + size - 1". `known` is null for the very first answer.
Judged judge(const HttpAnswer& answer, const HttpIdentity* known, std::uint64_t first, std::uint64_t size);

/// The If-Range value that makes a changed file come back whole (200): a strong ETag or the date; empty for neither.
std::string if_range_value(const HttpIdentity& identity);

}  // namespace qsf
