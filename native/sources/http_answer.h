// The answer of a server to a range request, and the verdict on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

/// The headers of one answer that matter (RFC 9110).
struct HttpAnswer {
  std::uint32_t status = 0;
  std::string etag, last_modified, encoding, location, content_type;
  bool has_range = false;  // whether a Content-Range could be read
  std::uint64_t first = 0, last = 0;
  bool has_total = false;  // the range's complete length was given
  std::uint64_t total = 0;
  bool has_length = false;
  std::uint64_t length = 0;       // Content-Length
  std::uint32_t retry_after = 0;  // seconds; 0 if it is not given as a number

  /// Takes one line of the head, with or without its line end. A status line begins a new answer, so that after
  /// redirections only the last one counts.
  void add_line(std::string_view line);
};

/// The file's properties from the first answer, with which later answers are compared.
struct HttpIdentity {
  std::string etag, last_modified;
  std::uint64_t size = 0;
};

enum class Verdict : std::uint8_t { take, retry, refuse };
struct Judged {
  Verdict verdict = Verdict::take;
  Error error;  // why, unless it is taken
};

/// Judges the answer to "bytes first..first + size - 1". `known` is null for the first answer.
Judged judge(const HttpAnswer& answer, const HttpIdentity* known, std::uint64_t first, std::uint64_t size);

/// Returns the If-Range value with which a changed file comes back whole (200): a strong ETag or the date; empty for
/// neither.
std::string if_range_value(const HttpIdentity& identity);

}  // namespace qsf
