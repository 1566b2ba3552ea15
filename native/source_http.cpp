// HTTP ranges over one kept connection: what breaks is tried again with growing waits, what changed is an error.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "native/curl.h"
#include "native/http_answer.h"
#include "native/resident.h"
#include "native/source.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMaxErrorPage = 64u << 10;  // read to keep the connection; a longer one is cut off

/// The pieces as one run of bytes that is filled from its beginning.
struct Filler {
  Pieces pieces;
  std::size_t piece = 0;
  std::size_t at = 0;  // in that piece
  std::uint64_t left = 0;

  explicit Filler(Pieces into) : pieces(into) {
    for (const std::span<std::byte> p : into) left += p.size();
  }
  /// false when there are more bytes than room.
  bool add(std::span<const std::byte> bytes) {
    if (bytes.size() > left) return false;
    left -= bytes.size();
    while (!bytes.empty()) {
      const std::span<std::byte> room = pieces[piece].subspan(at);
      const std::size_t n = std::min(room.size(), bytes.size());
      if (n != 0) std::memcpy(room.data(), bytes.data(), n);
      bytes = bytes.subspan(n);
      at += n;
      if (at == pieces[piece].size()) {
        ++piece;
        at = 0;
      }
    }
    return true;
  }
};

struct Http {
  std::string url;
  SourceOptions options;
  const Curl* curl = nullptr;
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  curl_slist* headers = nullptr;
  char message[CURL_ERROR_SIZE] = {};

  bool known = false;
  HttpIdentity identity;

  // the request under way
  HttpAnswer answer;
  Judged judged;
  bool judged_yet = false;
  Filler* filler = nullptr;
  std::uint64_t first = 0;
  std::uint64_t answer_left = 0;  // bytes that the taken answer still owes
  std::uint64_t discarded = 0;    // bytes of an error page

  std::mutex mutex;
  std::condition_variable cancel_signal;
  std::atomic<bool> cancelled{false};

  ~Http() {
    if (multi != nullptr) curl->multi_cleanup(multi);
    if (easy != nullptr) curl->easy_cleanup(easy);
    if (headers != nullptr) curl->slist_free_all(headers);
  }
};

Error was_cancelled() { return make_error(ErrorCode::cancelled, "reading from the server was cancelled"); }

std::size_t on_header(char* data, std::size_t size, std::size_t n, void* user) {
  static_cast<Http*>(user)->answer.add_line({data, size * n});
  return size * n;
}

void judge_once(Http& http) {
  if (http.judged_yet) return;
  http.judged_yet = true;
  http.judged = judge(http.answer, http.known ? &http.identity : nullptr, http.first, http.filler->left);
  if (http.judged.verdict == Verdict::take) http.answer_left = http.answer.last - http.answer.first + 1;
}

/// Any other return value than the size makes libcurl end the transfer.
std::size_t on_body(char* data, std::size_t size, std::size_t n, void* user) {
  Http& http = *static_cast<Http*>(user);
  const std::size_t bytes = size * n;
  judge_once(http);
  if (http.judged.verdict != Verdict::take) {
    http.discarded += bytes;
    return http.answer.status >= 400 && http.discarded <= kMaxErrorPage ? bytes : 0;
  }
  if (bytes > http.answer_left) {
    http.judged = {Verdict::refuse,
                   make_error(ErrorCode::network_error, "the server sent more bytes than it announced")};
    return 0;
  }
  http.answer_left -= bytes;
  http.filler->add(std::as_bytes(std::span(data, bytes)));
  return bytes;
}

/// libcurl's result of one transfer.
CURLcode transfer(Http& http) {
  const Curl& c = *http.curl;
  if (c.multi_add_handle(http.multi, http.easy) != CURLM_OK) return CURLE_FAILED_INIT;
  CURLcode result = CURLE_ABORTED_BY_CALLBACK;
  int running = 1;
  while (running != 0 && !http.cancelled) {
    if (c.multi_perform(http.multi, &running) != CURLM_OK) break;
    if (running != 0) c.multi_poll(http.multi, nullptr, 0, 1000, nullptr);
  }
  int left = 0;
  while (const CURLMsg* done = c.multi_info_read(http.multi, &left)) {
    if (done->msg == CURLMSG_DONE) result = done->data.result;
  }
  c.multi_remove_handle(http.multi, http.easy);
  return result;
}

bool worth_retrying(CURLcode code) {
  constexpr CURLcode kFinal[] = {
      CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_TOO_MANY_REDIRECTS, CURLE_PEER_FAILED_VERIFICATION,
      CURLE_SSL_CACERT_BADFILE,   CURLE_FAILED_INIT,   CURLE_OUT_OF_MEMORY,      CURLE_NOT_BUILT_IN};
  return std::find(std::begin(kFinal), std::end(kFinal), code) == std::end(kFinal);
}

/// One request for the rest of the filler, from `offset` on.
Judged attempt(Http& http, std::uint64_t offset, Filler& filler) {
  const Curl& c = *http.curl;
  char range[64];
  std::snprintf(range, sizeof range, "%llu-%llu", static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(offset + filler.left - 1));
  c.easy_setopt(http.easy, CURLOPT_RANGE, range);
  http.answer = {};
  http.judged = {};
  http.judged_yet = false;
  http.filler = &filler;
  http.first = offset;
  http.answer_left = 0;
  http.discarded = 0;
  http.message[0] = '\0';
  const CURLcode code = transfer(http);
  if (http.cancelled) return {Verdict::refuse, was_cancelled()};
  if (http.judged_yet && http.judged.verdict != Verdict::take) return http.judged;
  if (code != CURLE_OK) {
    return {worth_retrying(code) ? Verdict::retry : Verdict::refuse,
            make_error(ErrorCode::network_error, "{}", http.message[0] != '\0' ? http.message : c.easy_strerror(code))};
  }
  judge_once(http);  // an answer without a body
  if (http.judged.verdict == Verdict::take && http.answer_left != 0) {
    return {Verdict::retry, make_error(ErrorCode::network_error, "the answer ended {} bytes early", http.answer_left)};
  }
  return http.judged;
}

/// false when cancelled.
bool wait_before_retry(Http& http, std::uint32_t failures) {
  milliseconds wait = http.options.first_wait;
  for (std::uint32_t i = 1; i < failures && wait < http.options.longest_wait; ++i) wait *= 2;
  wait = std::max<milliseconds>(wait, std::chrono::seconds(http.answer.retry_after));
  wait = std::min(wait, http.options.longest_wait);
  std::unique_lock lock(http.mutex);
  return !http.cancel_signal.wait_for(lock, wait, [&] { return http.cancelled.load(); });
}

Status read_http(void* state, std::uint64_t offset, Pieces into) {
  Http& http = *static_cast<Http*>(state);
  Filler filler(into);
  std::uint32_t failures = 0;
  while (filler.left != 0) {
    if (http.cancelled) return was_cancelled();
    const std::uint64_t before = filler.left;
    const Judged judged = attempt(http, offset, filler);
    offset += before - filler.left;
    if (judged.verdict == Verdict::take) continue;  // a server may send less than was asked: then for the rest
    if (judged.verdict == Verdict::refuse) return judged.error;
    failures = filler.left != before ? 1 : failures + 1;
    if (failures >= http.options.attempts) {
      return make_error(judged.error.code, "{}, after {} attempts", judged.error.sentence, failures);
    }
    if (!wait_before_retry(http, failures)) return was_cancelled();
  }
  return {};
}

void close_http(void* state) { delete static_cast<Http*>(state); }

void cancel_http(void* state) {
  Http& http = *static_cast<Http*>(state);
  {
    const std::lock_guard lock(http.mutex);
    http.cancelled = true;
  }
  http.cancel_signal.notify_all();
  http.curl->multi_wakeup(http.multi);
}

bool set_options(Http& http) {
  const Curl& c = *http.curl;
  const auto set = [&](CURLoption option, auto value) { return c.easy_setopt(http.easy, option, value) == CURLE_OK; };
  return set(CURLOPT_URL, http.url.c_str()) && set(CURLOPT_ERRORBUFFER, &http.message[0]) &&
         set(CURLOPT_HEADERFUNCTION, on_header) && set(CURLOPT_HEADERDATA, &http) &&
         set(CURLOPT_WRITEFUNCTION, on_body) && set(CURLOPT_WRITEDATA, &http) && set(CURLOPT_NOSIGNAL, 1L) &&
         set(CURLOPT_FOLLOWLOCATION, 1L) && set(CURLOPT_MAXREDIRS, 8L) &&
         set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS)) &&
         set(CURLOPT_REDIR_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS)) &&
         set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(http.options.connect.count())) &&
         set(CURLOPT_LOW_SPEED_LIMIT, 1L) &&
         set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(http.options.stall.count())) && set(CURLOPT_USERAGENT, "qsf");
}

Result<void*> open_http(const std::string& where, const SourceOptions& options, std::uint64_t& size) {
  const Result<const Curl*> curl = load_curl();
  if (!curl) return curl.error();
  auto http = std::make_unique<Http>();
  http->url = where;
  http->options = options;
  http->curl = *curl;
  http->easy = (*curl)->easy_init();
  http->multi = (*curl)->multi_init();
  if (http->easy == nullptr || http->multi == nullptr || !set_options(*http)) {
    return make_error(ErrorCode::unsupported_host, "libcurl refused to be set up for HTTP");
  }
  std::array<std::byte, 2> probe{};  // some servers take the last byte of "0-0" for none given
  const std::span<std::byte> piece(probe);
  QSF_TRY(read_http(http.get(), 0, Pieces(&piece, 1)));
  http->identity = {http->answer.etag, http->answer.last_modified, http->answer.total};
  http->known = true;
  if (const std::string value = if_range_value(http->identity); !value.empty()) {
    http->headers = (*curl)->slist_append(nullptr, ("If-Range: " + value).c_str());
    (*curl)->easy_setopt(http->easy, CURLOPT_HTTPHEADER, http->headers);
  }
  size = http->answer.total;
  drop_code_pages();  // libcurl and what it loads touch megabytes at their start that are not needed again
  return static_cast<void*>(http.release());
}

}  // namespace

extern const SourceKind kHttpSource;
const SourceKind kHttpSource{"http", true, 4u << 20, open_http, read_http, cancel_http, close_http};

}  // namespace qsf
