#include "native/sources/http_answer.h"

#include <charconv>

#include "native/sources/ascii.h"

namespace qsf {
namespace {

bool number(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != text.npos) text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = qsf::lower(c);
  return out;
}

/// Reads "bytes 0-127/4096", "bytes 0-127/*" or "bytes */4096".
void read_content_range(std::string_view value, HttpAnswer& answer) {
  if (!value.starts_with("bytes ")) return;
  value = trimmed(value.substr(6));
  const std::size_t slash = value.find('/');
  if (slash == value.npos) return;
  answer.has_total = number(value.substr(slash + 1), answer.total);
  const std::string_view range = value.substr(0, slash);
  const std::size_t dash = range.find('-');
  if (dash == range.npos) return;
  answer.has_range = number(range.substr(0, dash), answer.first) && number(range.substr(dash + 1), answer.last);
}

std::string_view opaque(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  return etag;
}

/// Returns the name of the property that differs, or nullptr.
const char* difference(const HttpAnswer& answer, const HttpIdentity& known) {
  if (!known.etag.empty() && !answer.etag.empty()) {
    return opaque(known.etag) != opaque(answer.etag) ? "ETag" : nullptr;
  }
  if (!known.last_modified.empty() && !answer.last_modified.empty() && known.last_modified != answer.last_modified) {
    return "Last-Modified date";
  }
  return nullptr;
}

Error changed(const char* what) {
  return make_error(ErrorCode::file_changed, "the file changed on the server while it was being read: its {} differs",
                    what);
}

Judged judge_range(const HttpAnswer& answer, const HttpIdentity* known, std::uint64_t first, std::uint64_t size) {
  using enum Verdict;
  if (known != nullptr) {
    if (const char* what = difference(answer, *known)) return {refuse, changed(what)};
    if (answer.has_total && answer.total != known->size) return {refuse, changed("size")};
  }
  if (!answer.encoding.empty() && answer.encoding != "identity") {
    return {refuse, make_error(ErrorCode::no_ranges,
                               "the server sends ranges with Content-Encoding {}, not as they are", answer.encoding)};
  }
  if (!answer.has_range) {
    return {refuse, make_error(ErrorCode::no_ranges, "the server answered 206 without a usable Content-Range")};
  }
  if (known == nullptr && !answer.has_total) {
    return {refuse,
            make_error(ErrorCode::no_ranges, "the server does not state the size of the file in Content-Range")};
  }
  if (answer.first != first || answer.last < first || answer.last - first >= size) {
    return {refuse, make_error(ErrorCode::network_error, "the server sent bytes {}-{} instead of {}-{}", answer.first,
                               answer.last, first, first + size - 1)};
  }
  return {};
}

}  // namespace

void HttpAnswer::add_line(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("HTTP/")) {
    *this = {};
    const std::size_t space = line.find(' ');
    std::uint64_t code = 0;
    if (space != line.npos && number(line.substr(space + 1, 3), code)) status = static_cast<std::uint32_t>(code);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  std::uint64_t seconds = 0;
  if (name == "etag") etag = value;
  if (name == "last-modified") last_modified = value;
  if (name == "content-encoding") encoding = lower(value);
  if (name == "location") location = value;
  if (name == "content-type") content_type = lower(value);
  if (name == "content-range") read_content_range(value, *this);
  if (name == "content-length") has_length = number(value, length);
  if (name == "retry-after" && number(value, seconds)) {
    retry_after = static_cast<std::uint32_t>(seconds < 3600 ? seconds : 3600);
  }
}

Judged judge(const HttpAnswer& answer, const HttpIdentity* known, std::uint64_t first, std::uint64_t size) {
  using enum Verdict;
  if (answer.status == 206) return judge_range(answer, known, first, size);
  if (answer.status == 200) {
    if (known != nullptr) {
      if (const char* what = difference(answer, *known)) return {refuse, changed(what)};
      if (answer.has_length && answer.length != known->size) return {refuse, changed("size")};
    }
    if (known == nullptr && answer.content_type.starts_with("text/html")) {
      return {refuse,
              make_error(ErrorCode::bad_magic, "the server answers with a web page: is the address the file's own?")};
    }
    return {refuse, make_error(ErrorCode::no_ranges, "the server answers range requests with the whole file (200)")};
  }
  if (answer.status == 416) {
    if (known != nullptr) return {refuse, changed("size")};
    if (answer.has_total && answer.total == 0) {
      return {refuse, make_error(ErrorCode::truncated, "the file on the server is empty")};
    }
    return {refuse, make_error(ErrorCode::no_ranges, "the server refuses range requests (416)")};
  }
  const bool passing = answer.status >= 500 || answer.status == 429 || answer.status == 408;
  return {passing ? retry : refuse,
          make_error(ErrorCode::http_status, "the server answered with status {}", answer.status)};
}

std::string if_range_value(const HttpIdentity& identity) {
  if (!identity.etag.empty() && !identity.etag.starts_with("W/")) return identity.etag;
  return identity.last_modified;
}

}  // namespace qsf
