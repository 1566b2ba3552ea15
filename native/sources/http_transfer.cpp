#include "native/sources/http_transfer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "native/sources/address.h"
#include "native/sources/refused_memory.h"
#include "system/memory.h"

namespace qsf {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMaxErrorPage = 64u << 10;  // read to keep the connection; a longer one is cut off
constexpr std::uint64_t kMaxBytes = 4u << 20;       // of one transfer; a single request may be larger
/// CURLINFO_CAINFO and CURLINFO_CAPATH, which headers before 7.84 do not have and such libraries refuse.
constexpr auto kAuthoritiesFile = static_cast<CURLINFO>(CURLINFO_STRING + 61);
constexpr auto kAuthoritiesFolder = static_cast<CURLINFO>(CURLINFO_STRING + 62);

milliseconds wait_after(const SourceOptions& options, std::uint32_t failures, std::uint32_t retry_after) {
  milliseconds wait = options.first_wait;
  for (std::uint32_t i = 1; i < failures && wait < options.longest_wait; ++i) wait *= 2;
  return std::min(std::max<milliseconds>(wait, std::chrono::seconds(retry_after)), options.longest_wait);
}

}  // namespace

HttpTransfer::~HttpTransfer() {
  if (easy_ == nullptr) return;
  if (state_ == State::running) server_->curl->multi_remove_handle(server_->multi, easy_);
  server_->curl->easy_cleanup(easy_);
}

bool HttpTransfer::open(HttpShared& server) {
  server_ = &server;
  const Curl& c = *server.curl;
  easy_ = c.easy_init();
  if (easy_ == nullptr) return false;
  const SourceOptions& options = server.options;
  const char *file = nullptr, *folder = nullptr;
  if (c.easy_getinfo(easy_, kAuthoritiesFile, &file) == CURLE_OK && file != nullptr &&
      c.easy_getinfo(easy_, kAuthoritiesFolder, &folder) == CURLE_OK && folder != nullptr) {
    server.authorities = file;
  }
  const long next = CURLPROTO_HTTPS | (is_https(server.url) && !options.leave_https ? 0 : CURLPROTO_HTTP);
  const auto set = [&](CURLoption option, auto value) { return c.easy_setopt(easy_, option, value) == CURLE_OK; };
  return set(CURLOPT_URL, server.url.c_str()) && set(CURLOPT_ERRORBUFFER, &message_[0]) &&
         set(CURLOPT_HEADERFUNCTION, on_header) && set(CURLOPT_HEADERDATA, this) &&
         set(CURLOPT_WRITEFUNCTION, on_body) && set(CURLOPT_WRITEDATA, this) && set(CURLOPT_NOSIGNAL, 1L) &&
         set(CURLOPT_FOLLOWLOCATION, 1L) && set(CURLOPT_MAXREDIRS, 8L) &&
         set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS)) &&
         set(CURLOPT_REDIR_PROTOCOLS, next) &&
         set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect.count())) &&
         set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options.least_rate)) &&
         set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall.count())) && set(CURLOPT_USERAGENT, "qsf");
}

/// Sets the certificate authorities of the next attempt. A file is read as a whole, which takes 1 MB for each
/// connection unless there is no folder; of a folder the one that the server needs is read.
void HttpTransfer::take_authorities() {
  if (server_->authorities.empty()) return;
  const Curl& c = *server_->curl;
  c.easy_setopt(easy_, CURLOPT_CAINFO, server_->by_file ? server_->authorities.c_str() : nullptr);
  if (server_->by_file) c.easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
}

/// Sets the address of the next attempt. A token goes to the origin of the first address only: curl sends none to
/// those that it redirects to, and none is given to it for an address that a redirection has led to.
void HttpTransfer::take_address() {
  const Curl& c = *server_->curl;
  directly_ = !server_->direct.empty() && !anew_;
  const std::string& token = server_->options.token;
  const bool named = !token.empty() && (!directly_ || same_origin(server_->url, server_->direct));
  c.easy_setopt(easy_, CURLOPT_URL, (directly_ ? server_->direct : server_->url).c_str());
  c.easy_setopt(easy_, CURLOPT_HTTPAUTH, named ? CURLAUTH_BEARER : CURLAUTH_BASIC);
  c.easy_setopt(easy_, CURLOPT_XOAUTH2_BEARER, named ? token.c_str() : nullptr);
}

bool HttpTransfer::add(const ReadRequest& request) {
  if (n_ == parts_.size()) return false;
  if (n_ > 0 && (request.offset != offset_ + left_ || left_ + request.size > kMaxBytes)) return false;
  if (n_ == 0) offset_ = request.offset;
  left_ += request.size;
  parts_[n_++] = request;
  return true;
}

void HttpTransfer::start() {
  failures_ = attempts_ = 0;
  anew_ = false;
  window_ = Clock::now();
  window_offset_ = offset_;
  complete_filled();  // requests of no bytes
  attempt();
}

void HttpTransfer::start_if_due(Clock::time_point now) {
  if (state_ == State::waiting && now >= due_) attempt();
}

void HttpTransfer::attempt() {
  if (left_ == 0) {
    n_ = part_ = 0;
    state_ = State::idle;
    return;
  }
  ++attempts_;
  const Curl& c = *server_->curl;
  char range[64];
  std::snprintf(range, sizeof range, "%llu-%llu", static_cast<unsigned long long>(offset_),
                static_cast<unsigned long long>(offset_ + left_ - 1));
  c.easy_setopt(easy_, CURLOPT_RANGE, range);
  take_address();
  take_authorities();
  if (server_->headers != nullptr) c.easy_setopt(easy_, CURLOPT_HTTPHEADER, server_->headers);
  answer_ = {};
  judged_ = {};
  judged_yet_ = false;
  first_ = offset_;
  answer_left_ = 0;
  discarded_ = 0;
  message_[0] = '\0';
  if (c.multi_add_handle(server_->multi, easy_) != CURLM_OK) {
    return fail(make_error(ErrorCode::network_error, "libcurl refused a request"));
  }
  state_ = State::running;
}

/// Any return value other than the size makes libcurl end the transfer.
std::size_t HttpTransfer::on_header(char* data, std::size_t size, std::size_t n, void* user) {
  HttpTransfer& t = *static_cast<HttpTransfer*>(user);
  const Status added = with_memory([&] { t.answer_.add_line({data, size * n}); });
  if (added) return size * n;
  t.judged_ = {Verdict::refuse, added.error()};
  t.judged_yet_ = true;
  return 0;
}

void HttpTransfer::judge_once() {
  if (judged_yet_) return;
  judged_yet_ = true;
  judged_ = judge(answer_, server_->known ? &server_->identity : nullptr, first_, left_);
  if (judged_.verdict == Verdict::take) answer_left_ = answer_.last - answer_.first + 1;
}

/// Returns as on_header().
std::size_t HttpTransfer::on_body(char* data, std::size_t size, std::size_t n, void* user) {
  HttpTransfer& t = *static_cast<HttpTransfer*>(user);
  const std::size_t bytes = size * n;
  t.judge_once();
  if (t.judged_.verdict != Verdict::take) {
    t.discarded_ += bytes;
    return t.answer_.status >= 400 && t.discarded_ <= kMaxErrorPage ? bytes : 0;
  }
  if (bytes > t.answer_left_) {
    t.judged_ = {Verdict::refuse, make_error(ErrorCode::network_error, "the server sent more bytes than it announced")};
    return 0;
  }
  t.answer_left_ -= bytes;
  if (t.server_->options.received != nullptr) t.server_->options.received->fetch_add(bytes, std::memory_order_relaxed);
  t.fill(std::as_bytes(std::span(data, bytes)));
  return bytes;
}

/// Copies the bytes to their requests. judge() has checked that there is room for them.
void HttpTransfer::fill(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  left_ -= bytes.size();
  while (!bytes.empty()) {
    const ReadRequest& part = parts_[part_];
    const std::size_t n = std::min<std::size_t>(part.size - at_, bytes.size());
    std::memcpy(part.into + at_, bytes.data(), n);
    at_ += static_cast<std::uint32_t>(n);
    bytes = bytes.subspan(n);
    complete_filled();
  }
}

void HttpTransfer::complete_filled() {
  for (; part_ < n_ && at_ == parts_[part_].size; at_ = 0) server_->done.push({parts_[part_++].ticket, {}});
}

Judged HttpTransfer::outcome(CURLcode code) {
  if (judged_yet_ && judged_.verdict != Verdict::take) return judged_;
  if (code == CURLE_UNSUPPORTED_PROTOCOL && is_url(answer_.location)) {
    return {
        Verdict::refuse,
        make_error(ErrorCode::network_error,
                   "the server redirects from https to {}, and others can read and change the traffic there (qsf-run "
                   "--leave-https follows it)",
                   without_secrets(answer_.location))};
  }
  if (code != CURLE_OK) {
    return {worth_retrying(code) ? Verdict::retry : Verdict::refuse,
            make_error(ErrorCode::network_error, "{}",
                       message_[0] != '\0' ? message_ : server_->curl->easy_strerror(code))};
  }
  judge_once();  // an answer without a body
  if (judged_.verdict == Verdict::take && answer_left_ != 0) {
    return {Verdict::retry, make_error(ErrorCode::network_error, "the answer ended {} bytes early", answer_left_)};
  }
  return judged_;
}

void HttpTransfer::end_attempt(CURLcode code) {
  server_->curl->multi_remove_handle(server_->multi, easy_);
  state_ = State::idle;
  // A connection, above all of TLS, runs megabytes of code and reads all certificates, which transfers do not need.
  long connections = 0;
  server_->curl->easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &connections);
  if (connections > 0) drop_code_pages();
  if (code == CURLE_PEER_FAILED_VERIFICATION && !server_->authorities.empty() && !server_->by_file) {
    server_->by_file = true;
    return attempt();
  }
  Judged judged = outcome(code);
  // The address that a redirection leads to may hold for some minutes. This transfer then takes a redirection of its
  // own, because another transfer's address may expire before it is asked.
  const bool expired = directly_ && answer_.status >= 400 && answer_.status < 500 && judged.verdict == Verdict::refuse;
  if (expired) {
    server_->direct.clear();
    anew_ = true;
    judged.verdict = Verdict::retry;
  }
  if (judged.verdict == Verdict::refuse) return fail(judged.error);
  if (judged.verdict == Verdict::take && !directly_) {
    char* at = nullptr;
    const bool known = server_->curl->easy_getinfo(easy_, CURLINFO_EFFECTIVE_URL, &at) == CURLE_OK && at != nullptr;
    if (known && server_->url != at) server_->direct = at;
    anew_ = false;
  }
  const bool whole = judged.verdict == Verdict::take;  // all announced bytes, which may be fewer than requested
  const bool slow = too_slow();
  const bool progress = offset_ != first_ && !slow;
  const std::uint32_t counts = expired ? 1 : code == CURLE_OPERATION_TIMEDOUT ? (server_->options.attempts + 1) / 2 : 1;
  failures_ = (progress ? 0 : failures_) + (progress && whole ? 0 : counts);
  if (left_ == 0 || (whole && progress)) return attempt();
  if (slow) {
    judged.error = make_error(ErrorCode::network_error, "the server sends less than {} bytes a second",
                              server_->options.least_rate);
  }
  if (failures_ >= server_->options.attempts) {
    return fail(make_error(judged.error.code, "{}, after {} attempts", judged.error.sentence, attempts_));
  }
  due_ = Clock::now() + wait_after(server_->options, failures_, answer_.retry_after);
  state_ = State::waiting;
}

/// Judges once enough time has passed. Bytes that come now and then, over many short answers or one long answer, are no
/// progress.
bool HttpTransfer::too_slow() {
  const Clock::time_point now = Clock::now();
  if (now - window_ < server_->options.stall) return false;
  const double least = std::chrono::duration<double>(now - window_).count() * server_->options.least_rate;
  if (static_cast<double>(offset_ - window_offset_) < least) return true;
  window_ = now;
  window_offset_ = offset_;
  return false;
}

void HttpTransfer::fail(const Error& reason) {
  if (server_->options.status != nullptr) *server_->options.status = answer_.status;
  const Error error = reason.code == ErrorCode::cancelled
                          ? reason
                          : make_error(reason.code, "{} ({:.200})", reason.sentence, without_secrets(server_->url));
  if (state_ == State::running) server_->curl->multi_remove_handle(server_->multi, easy_);
  for (; part_ < n_; ++part_) server_->done.push({parts_[part_].ticket, error});
  n_ = part_ = 0;
  at_ = 0;
  left_ = 0;
  state_ = State::idle;
}

}  // namespace qsf
