// A small HTTP/1.1 server on 127.0.0.1 that serves one file, and can be told to misbehave.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace qsf::test {

struct HttpRequest {
  int number = 0;      // from 0, over all connections
  int connection = 0;  // from 0
  bool has_range = false;
  std::uint64_t first = 0, last = 0;
  std::string if_range;
  std::string path;           // with its query
  std::string authorization;  // the header's value
};

enum class Fault {
  none,
  unavailable,    // 503
  missing,        // 404
  hang_up,        // no answer
  cut_body,       // half of the announced body
  short_range,    // a correct 206 for half of what was asked
  wrong_range,    // a 206 for other bytes
  no_range_told,  // a 206 without Content-Range
  endless_error,  // a 500 whose page never ends
  stall,          // the head, then nothing
  redirect,       // to the same file under another name
  redirect_loop,  // to itself
  compressed,     // a 206 with Content-Encoding
  drip,           // the head, then a byte every 50 ms
  one_byte,       // a correct 206 for one byte, after 20 ms
  zero_is_none,   // "bytes=N-0" is taken for "bytes=N-"
};

class HttpServer {
 public:
  explicit HttpServer(std::vector<std::byte> content);
  ~HttpServer();
  std::string origin() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string url() const { return origin() + "/model.qsf"; }

  // Set these before the requests they are for.
  void set_content(std::vector<std::byte> content, const std::string& etag);
  void set_etag(const std::string& etag);
  void set_ranges(bool ranges);
  /// Serves these by their paths, in place of the content.
  void set_files(std::map<std::string, std::vector<std::byte>> files);
  /// Asked for every request: a whole answer, or nothing.
  void set_reply(std::function<std::optional<std::string>(const HttpRequest&)> reply);
  /// Asked for every request; called on the server's threads.
  void set_fault(std::function<Fault(const HttpRequest&)> fault);

  std::vector<HttpRequest> requests() const;
  int connections() const { return n_connections_; }

 private:
  void accept_loop();
  void serve(int socket, int connection);
  bool answer(int socket, const HttpRequest& request);

  mutable std::mutex mutex_;
  std::shared_ptr<const std::vector<std::byte>> content_;
  std::string etag_ = "\"v1\"";
  bool ranges_ = true;
  std::shared_ptr<const std::map<std::string, std::vector<std::byte>>> files_;
  std::function<std::optional<std::string>(const HttpRequest&)> reply_;
  std::function<Fault(const HttpRequest&)> fault_;
  std::vector<HttpRequest> requests_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::atomic<int> n_connections_{0};
  std::atomic<bool> stop_{false};
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
};

}  // namespace qsf::test
