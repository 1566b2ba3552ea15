#include "native/sources/http_text.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "native/sources/address.h"
#include "native/sources/curl.h"
#include "native/sources/http_answer.h"
#include "native/sources/refused_memory.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

struct Got {
  HttpAnswer answer;
  std::string body;
  std::uint64_t most = 0;
  bool too_long = false;
  Status memory;
};

/// Returns 0, which ends the transfer, unless `body` succeeds.
template <class Body>
std::size_t taken(Got& got, std::size_t size, Body body) {
  if (const Status status = with_memory(body); !status) got.memory = status;
  return got.memory ? size : 0;
}

std::size_t on_header(char* data, std::size_t size, std::size_t n, void* user) {
  Got& got = *static_cast<Got*>(user);
  return taken(got, size * n, [&] { got.answer.add_line({data, size * n}); });
}

std::size_t on_body(char* data, std::size_t size, std::size_t n, void* user) {
  Got& got = *static_cast<Got*>(user);
  got.too_long = got.body.size() + size * n > got.most;
  if (got.too_long) return 0;
  return taken(got, size * n, [&] { got.body.append(data, size * n); });
}

void pause(std::chrono::milliseconds time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable().wait_for(lock, time);
}

/// Makes one attempt. Sets `passes` if another one may succeed.
Status attempt(const Curl& c, const std::string& url, const SourceOptions& options, Got& got, bool& passes) {
  const auto close = [&c](CURL* easy) { c.easy_cleanup(easy); };
  const std::unique_ptr<CURL, decltype(close)> easy(c.easy_init(), close);
  if (!easy) return make_error(ErrorCode::unsupported_host, "libcurl refused to be set up for HTTP");
  char message[CURL_ERROR_SIZE] = {};
  const auto set = [&](CURLoption option, auto value) { c.easy_setopt(easy.get(), option, value); };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_ERRORBUFFER, &message[0]);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &got);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &got);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 8L);
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  set(CURLOPT_REDIR_PROTOCOLS,
      static_cast<long>(CURLPROTO_HTTPS | (is_https(url) && !options.leave_https ? 0 : CURLPROTO_HTTP)));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall.count()));
  set(CURLOPT_USERAGENT, "qsf");
  if (!options.token.empty()) {
    set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    set(CURLOPT_XOAUTH2_BEARER, options.token.c_str());
  }
  const CURLcode code = c.easy_perform(easy.get());
  QSF_TRY(got.memory);
  if (got.too_long) {
    return make_error(ErrorCode::unsupported, "the answer has more than {} bytes ({:.200})", got.most,
                      without_secrets(url));
  }
  if (code != CURLE_OK) {
    passes = worth_retrying(code);
    return make_error(ErrorCode::network_error, "{} ({:.200})", message[0] != '\0' ? message : c.easy_strerror(code),
                      without_secrets(url));
  }
  const std::uint32_t status = got.answer.status;
  if (status == 200) return {};
  passes = status >= 500 || status == 429 || status == 408;
  return make_error(ErrorCode::http_status, "the server answered with status {} ({:.200})", status,
                    without_secrets(url));
}

}  // namespace

Result<std::string> http_text(const std::string& url, const SourceOptions& options, std::uint64_t most) {
  QSF_LET(curl, load_curl());
  std::chrono::milliseconds wait = options.first_wait;
  for (std::uint32_t n = 1;; ++n) {
    Got got;
    got.most = most;
    bool passes = false;
    const Status status = attempt(*curl, url, options, got, passes);
    if (status) return std::move(got.body);
    if (options.status != nullptr) *options.status = got.answer.status;
    if (!passes || n >= options.attempts) return status.error();
    const std::chrono::milliseconds asked = std::chrono::seconds(got.answer.retry_after);
    pause(std::min(std::max(wait, asked), options.longest_wait));
    wait = std::min(2 * wait, options.longest_wait);
  }
}

}  // namespace qsf
