// One request for a run of neighbouring bytes, which several ReadRequests wait for: its state between libcurl's calls,
// and the effects of its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "native/sources/clock.h"
#include "native/sources/curl.h"
#include "native/sources/http_answer.h"
#include "native/sources/source.h"

namespace qsf {

/// The state that one source's transfers share. Belongs to the reaping thread once the source is open.
struct HttpShared {
  std::string url;
  std::string direct;  // where `url` has led to; empty: nowhere else, or not known
  SourceOptions options;
  const Curl* curl = nullptr;
  CURLM* multi = nullptr;
  curl_slist* headers = nullptr;
  std::string authorities;  // libcurl's file of all certificate authorities, if it also has a folder of them
  bool by_file = false;     // whether certificates are checked by that file, since the folder's were not enough
  bool known = false;       // whether there is an identity
  HttpIdentity identity;
  Completions done;

  HttpShared() = default;
  HttpShared(const HttpShared&) = delete;
  HttpShared& operator=(const HttpShared&) = delete;
  ~HttpShared() {
    if (multi != nullptr) curl->multi_cleanup(multi);
    if (headers != nullptr) curl->slist_free_all(headers);
  }
};

/// Belongs to the reaping thread.
class HttpTransfer {
 public:
  enum class State : std::uint8_t { idle, running, waiting };  // waiting: for the next attempt

  HttpTransfer() = default;
  ~HttpTransfer();
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  /// Returns false if libcurl refuses. `server` must outlive the transfer.
  bool open(HttpShared& server);
  State state() const { return state_; }
  bool owns(CURL* easy) const { return easy == easy_; }
  const HttpAnswer& answer() const { return answer_; }

  /// Takes the request. Returns false if it does not continue the last one or makes the transfer too long. Must be
  /// idle.
  bool add(const ReadRequest& request);
  bool has_requests() const { return n_ > 0; }
  /// Begins the first attempt.
  void start();
  /// Begins the next attempt if it is time.
  void start_if_due(Clock::time_point now);
  Clock::time_point due() const { return due_; }
  /// Handles an attempt that libcurl has ended. Requests complete, or another attempt will follow.
  void end_attempt(CURLcode code);
  /// Fails all requests that are not complete. Adds the address to the sentence, without its secrets. Sets
  /// SourceOptions::status.
  void fail(const Error& reason);

 private:
  void attempt();
  void take_address();
  void take_authorities();
  void judge_once();
  void fill(std::span<const std::byte> bytes);
  void complete_filled();
  Judged outcome(CURLcode code);
  bool too_slow();
  static std::size_t on_header(char* data, std::size_t size, std::size_t n, void* user);
  static std::size_t on_body(char* data, std::size_t size, std::size_t n, void* user);

  HttpShared* server_ = nullptr;
  CURL* easy_ = nullptr;
  char message_[CURL_ERROR_SIZE] = {};
  State state_ = State::idle;

  std::array<ReadRequest, kSourceDepth> parts_{};
  std::size_t n_ = 0, part_ = 0;  // part_: the first that is not complete
  std::uint32_t at_ = 0;          // its bytes that have arrived
  std::uint64_t offset_ = 0;      // of the next byte
  std::uint64_t left_ = 0;        // bytes of all parts that have not arrived

  HttpAnswer answer_;
  Judged judged_;
  bool judged_yet_ = false;
  std::uint64_t first_ = 0;        // offset that this attempt requests
  std::uint64_t answer_left_ = 0;  // bytes that the taken answer still owes
  std::uint64_t discarded_ = 0;    // bytes of an error page
  std::uint32_t failures_ = 0;     // in a row without progress; a time-out counts as half of the allowed ones
  std::uint32_t attempts_ = 0;
  bool directly_ = false;            // this attempt asks at HttpShared::direct
  bool anew_ = false;                // the address at HttpShared::direct expired, and attempts ask at the first one
  Clock::time_point due_;            // when the next attempt may start
  Clock::time_point window_;         // the rate is measured from this time
  std::uint64_t window_offset_ = 0;  // and from this offset on
};

}  // namespace qsf
