// HTTP ranges over kept connections. A broken transfer is tried again with growing waits; a changed file is an error.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "native/sources/http_transfer.h"
#include "native/sources/source.h"
#include "qsf/base/try.h"
#include "system/memory.h"

namespace qsf {
namespace {

using std::chrono::milliseconds;

/// One transfer receives while the other waits for its answer. More would split joined requests into more and shorter
/// ranges.
constexpr std::size_t kTransfers = 2;

struct Http {
  HttpShared server;  // before the transfers, so that it outlives them
  std::uint64_t size = 0;
  std::array<HttpTransfer, kTransfers> transfers;
  std::mutex mutex;
  Ring<ReadRequest, kSourceDepth> waiting;  // guarded by the mutex
  std::atomic<bool> cancelled{false};
};

void start_waiting(Http& http) {
  const std::lock_guard lock(http.mutex);
  for (HttpTransfer& transfer : http.transfers) {
    if (transfer.state() != HttpTransfer::State::idle) continue;
    while (!http.waiting.empty()) {
      const ReadRequest& next = http.waiting.front();
      if (const Status fits = check_range(next, http.size); !fits && http.server.known) {
        http.server.done.push({next.ticket, fits});
      } else if (!transfer.add(next)) {
        break;
      }
      http.waiting.pop();
    }
    if (transfer.has_requests()) transfer.start();
  }
}

void drop_everything(Http& http) {
  const Error error = make_error(ErrorCode::cancelled, "reading from the server was cancelled");
  for (HttpTransfer& transfer : http.transfers) transfer.fail(error);
  const std::lock_guard lock(http.mutex);
  for (; !http.waiting.empty(); http.waiting.pop()) http.server.done.push({http.waiting.front().ticket, error});
}

/// Lets libcurl work without waiting.
void advance(Http& http) {
  if (http.cancelled) return drop_everything(http);
  const Curl& c = *http.server.curl;
  const Clock::time_point now = Clock::now();
  for (HttpTransfer& transfer : http.transfers) transfer.start_if_due(now);
  start_waiting(http);
  int running = 0;
  c.multi_perform(http.server.multi, &running);
  int left = 0;
  while (const CURLMsg* done = c.multi_info_read(http.server.multi, &left)) {
    if (done->msg != CURLMSG_DONE) continue;
    const CURLcode code = done->data.result;  // read before the handle leaves, which ends `done`
    CURL* easy = done->easy_handle;
    for (HttpTransfer& transfer : http.transfers) {
      if (transfer.owns(easy)) transfer.end_attempt(code);
    }
  }
}

/// Waits until something may happen, or until `end`.
void wait(Http& http, Clock::time_point end) {
  for (const HttpTransfer& transfer : http.transfers) {
    if (transfer.state() == HttpTransfer::State::waiting) end = std::min(end, transfer.due());
  }
  const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
  if (left.count() <= 0) return;
  http.server.curl->multi_poll(http.server.multi, nullptr, 0, static_cast<int>(std::min(left.count(), 1000l)), nullptr);
}

std::size_t reap(void* state, std::span<Completion> out, milliseconds timeout) {
  Http& http = *static_cast<Http*>(state);
  const Clock::time_point end = Clock::now() + timeout;
  while (true) {
    advance(http);
    if (!http.server.done.empty() || http.cancelled || Clock::now() >= end) {
      return take_completions(http.server.done, out);
    }
    wait(http, end);
  }
}

void submit(void* state, std::span<const ReadRequest> requests) {
  Http& http = *static_cast<Http*>(state);
  {
    const std::lock_guard lock(http.mutex);
    for (const ReadRequest& request : requests) http.waiting.push(request);
  }
  http.server.curl->multi_wakeup(http.server.multi);
}

void cancel(void* state) {
  Http& http = *static_cast<Http*>(state);
  http.cancelled = true;
  http.server.curl->multi_wakeup(http.server.multi);
}

void close(void* state) {
  delete static_cast<Http*>(state);
  drop_code_pages();  // the libraries' own ends, at the end of the process, read as much again
}

/// Reads the first two bytes, for the headers that come with them. Some servers take the last byte of "0-0" as missing.
Status probe(Http& http) {
  std::array<std::byte, 2> bytes{};
  ReadRequest request;
  request.size = 2;
  request.into = bytes.data();
  submit(&http, std::span(&request, 1));
  Completion done;
  while (reap(&http, std::span(&done, 1), std::chrono::hours(1)) == 0) {
  }
  return done.status;
}

Result<void*> open(const std::string& where, const SourceOptions& options, std::uint64_t& size) {
  QSF_LET(curl, load_curl());
  auto http = std::make_unique<Http>();
  HttpShared& server = http->server;
  server.url = where;
  server.options = options;
  server.curl = curl;
  server.multi = curl->multi_init();
  bool good = server.multi != nullptr;
  for (HttpTransfer& transfer : http->transfers) good = good && transfer.open(server);
  if (!good) return make_error(ErrorCode::unsupported_host, "libcurl refused to be set up for HTTP");
  QSF_TRY(probe(*http));
  const HttpAnswer& answer = http->transfers[0].answer();
  server.identity = {answer.etag, answer.last_modified, answer.total};
  server.known = true;
  if (const std::string value = if_range_value(server.identity); !value.empty()) {
    server.headers = curl->slist_append(nullptr, ("If-Range: " + value).c_str());
  }
  size = http->size = answer.total;
  return static_cast<void*>(http.release());
}

std::string identity(void* state) {
  const HttpIdentity& known = static_cast<Http*>(state)->server.identity;
  return known.etag + "\n" + known.last_modified + "\n" + std::to_string(known.size);
}

}  // namespace

extern const SourceKind kHttpSource;
const SourceKind kHttpSource{
    .name = "http",
    .url = true,
    .open = open,
    .submit = submit,
    .reap = reap,
    .cancel = cancel,
    .close = close,
    .identity = identity,
};

}  // namespace qsf
