#include "native/cli/input.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "native/cli/signal.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

/// The longest token is taken to have at least so many bytes, because tokens that are never printed report none.
constexpr std::size_t kLongestSpecial = 128;

/// Returns the bytes read, 0 at the end, -1 after an error or a signal.
std::ptrdiff_t read_some(int from, std::span<char> to) {
  // A signal that comes just before the wait, or to another thread, does not end it: hence the limit.
  constexpr int kMilliseconds = 100;
  std::ptrdiff_t n;
  do {
    while (!cancelled() && !sys::wait_readable(from, kMilliseconds)) {
    }
    errno = EINTR;
    n = cancelled() ? -1 : sys::read_some(from, to);
  } while (n < 0 && (errno == EINTR || errno == EAGAIN) && !cancelled());
  return n;
}

/// Does the same at a place of a regular file.
std::ptrdiff_t read_at(int from, std::uint64_t at, std::span<char> to) {
  return cancelled() ? -1 : sys::read_at(from, at, std::as_writable_bytes(to));
}

/// Removes the carriage return that some systems put before a line feed.
void drop_return(std::string& line) {
  if (line.ends_with('\r')) line.pop_back();
}

/// Removes the byte order mark that some editors put in front of a text.
void drop_mark(std::string& text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
}

/// Returns all of the text without byte order mark and last line feed. Sets `feed` if there was one.
Result<std::string> read_whole(const std::string& path, std::size_t limit, std::string_view holder, bool& feed) {
  const std::string name = path.empty() ? "standard input" : path;
  const auto error = [&] { return make_error(ErrorCode::io_error, "cannot read {}: {}", name, std::strerror(errno)); };
  const int from = path.empty() ? sys::kInput : sys::open_input(path);
  if (from < 0) return error();
  std::string text;
  char buffer[4096];
  Status status;
  while (status) {
    const std::ptrdiff_t n = read_some(from, buffer);
    if (n == 0) break;
    if (n < 0) {
      status = cancelled() ? make_error(ErrorCode::cancelled, "stopped while reading {}", name) : error();
    } else if (text.size() + static_cast<std::size_t>(n) > limit) {
      status =
          make_error(ErrorCode::context_full, "{} has more than {} bytes, more than {} can hold", name, limit, holder);
    } else {
      text.append(buffer, static_cast<std::size_t>(n));
    }
  }
  if (!path.empty()) sys::close_file(from);
  if (!status) return status.error();
  feed = text.ends_with('\n');
  if (feed) text.pop_back();
  drop_mark(text);
  return text;
}

}  // namespace

std::size_t longest_text(const Session& session) {
  const Stats stats = session.stats();
  std::size_t longest = kLongestSpecial;
  for (std::uint32_t id = 0; id < stats.vocab_size; ++id) longest = std::max(longest, session.detokenize(id).size());
  return longest * stats.max_seq_len;
}

Result<std::string> read_text(const std::string& path, std::size_t limit, std::string_view holder) {
  bool feed = false;
  return read_whole(path, limit, holder, feed);
}

Result<std::string> read_prompt(const std::string& path, std::size_t limit) {
  bool feed = false;
  Result<std::string> text = read_whole(path, limit, "the context", feed);
  if (text && feed) drop_return(*text);
  return text;
}

Lines::Kind Lines::next(std::string& line) {
  line.clear();
  bool too_long = false;
  const bool first = place() == 0;
  while (true) {
    if (at_ == size_) {
      const std::ptrdiff_t n = at_place_ ? read_at(from_, read_, buffer_) : read_some(from_, buffer_);
      if (n < 0 && !cancelled()) error_ = errno;
      if (n < 0 || (n == 0 && line.empty() && !too_long)) return Kind::end;
      if (n == 0) break;
      at_ = 0;
      size_ = static_cast<std::size_t>(n);
      read_ += size_;
    }
    const char* begin = buffer_ + at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', size_ - at_));
    const std::size_t n = end == nullptr ? size_ - at_ : static_cast<std::size_t>(end - begin);
    too_long = too_long || line.size() + n > limit_;
    if (!too_long) line.append(begin, n);
    at_ += n + (end != nullptr ? 1 : 0);
    if (end != nullptr) {
      drop_return(line);
      break;
    }
  }
  ++count_;
  if (first) drop_mark(line);
  return too_long ? Kind::too_long : Kind::line;
}

}  // namespace qsf::run
