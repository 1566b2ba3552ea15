#include "native/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace qsf::test {
namespace {

bool send_all(int socket, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::send(socket, at, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_text(int socket, const std::string& text) { return send_all(socket, text.data(), text.size()); }

/// The value of a header in a request's head, empty when it is not there.
std::string header(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

std::string content_range(std::uint64_t first, std::uint64_t last, std::uint64_t total) {
  return "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(total) +
         "\r\n";
}

std::string content_length(std::uint64_t n) { return "Content-Length: " + std::to_string(n) + "\r\n"; }

}  // namespace

HttpServer::HttpServer(std::vector<std::byte> content)
    : content_(std::make_shared<const std::vector<std::byte>>(std::move(content))) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::perror("the test's server cannot listen on 127.0.0.1");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

void HttpServer::set_content(std::vector<std::byte> content, const std::string& etag) {
  const std::lock_guard lock(mutex_);
  content_ = std::make_shared<const std::vector<std::byte>>(std::move(content));
  etag_ = etag;
}
void HttpServer::set_etag(const std::string& etag) {
  const std::lock_guard lock(mutex_);
  etag_ = etag;
}
void HttpServer::set_ranges(bool ranges) {
  const std::lock_guard lock(mutex_);
  ranges_ = ranges;
}
void HttpServer::set_files(std::map<std::string, std::vector<std::byte>> files) {
  const std::lock_guard lock(mutex_);
  files_ = std::make_shared<const std::map<std::string, std::vector<std::byte>>>(std::move(files));
}
void HttpServer::set_reply(std::function<std::optional<std::string>(const HttpRequest&)> reply) {
  const std::lock_guard lock(mutex_);
  reply_ = std::move(reply);
}
void HttpServer::set_fault(std::function<Fault(const HttpRequest&)> fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}
std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::accept_loop() {
  while (!stop_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const int on = 1;  // else each small answer waits for the acknowledgement of its head
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket, n = n_connections_++] { serve(socket, n); });
  }
}

void HttpServer::serve(int socket, int connection) {
  std::string received;
  char buffer[4096];
  while (!stop_) {
    const std::size_t end = received.find("\r\n\r\n");
    if (end == std::string::npos) {
      const ssize_t n = ::recv(socket, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      received.append(buffer, static_cast<std::size_t>(n));
      continue;
    }
    const std::string head = received.substr(0, end + 2);
    received.erase(0, end + 4);
    HttpRequest request;
    request.connection = connection;
    request.if_range = header(head, "If-Range");
    request.authorization = header(head, "Authorization");
    const std::size_t path = head.find(' ') + 1;
    request.path = head.substr(path, head.find(' ', path) - path);
    unsigned long long first = 0, last = 0;
    if (std::sscanf(header(head, "Range").c_str(), "bytes=%llu-%llu", &first, &last) == 2) {
      request.has_range = true;
      request.first = first;
      request.last = last;
    }
    {
      const std::lock_guard lock(mutex_);
      request.number = static_cast<int>(requests_.size());
      requests_.push_back(request);
    }
    if (!answer(socket, request)) break;
  }
  ::shutdown(socket, SHUT_RDWR);
}

/// false when the connection is to be closed.
bool HttpServer::answer(int socket, const HttpRequest& request) {
  std::shared_ptr<const std::vector<std::byte>> held;
  std::string etag;
  bool ranges = false;
  std::function<Fault(const HttpRequest&)> ask;
  std::function<std::optional<std::string>(const HttpRequest&)> reply;
  std::shared_ptr<const std::map<std::string, std::vector<std::byte>>> files;
  {
    const std::lock_guard lock(mutex_);
    held = content_;
    reply = reply_;
    files = files_;
    etag = etag_;
    ranges = ranges_;
    ask = fault_;
  }
  const std::optional<std::string> replied = reply ? reply(request) : std::nullopt;
  if (replied) return send_text(socket, *replied);
  const Fault fault = ask ? ask(request) : Fault::none;
  const auto file = files ? files->find(request.path.substr(0, request.path.find('?')))
                          : std::map<std::string, std::vector<std::byte>>::const_iterator();
  if (files && file == files->end()) {
    return send_text(socket, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
  }
  const std::vector<std::byte>& content = files ? file->second : *held;
  const std::uint64_t total = content.size();
  const std::string tag = etag.empty() ? "" : "ETag: " + etag + "\r\n";
  switch (fault) {
    case Fault::hang_up:
      return false;
    case Fault::unavailable:
      return send_text(socket, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
    case Fault::missing:
      return send_text(socket, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
    case Fault::endless_error:
      if (!send_text(socket, "HTTP/1.1 500 Internal Server Error\r\n\r\n")) return false;
      while (!stop_ && send_text(socket, std::string(4096, 'x'))) {
      }
      return false;
    case Fault::redirect:
      return send_text(socket,
                       "HTTP/1.1 302 Found\r\nLocation: /other.qsf\r\nETag: \"of-the-redirection\"\r\n"
                       "Content-Length: 0\r\n\r\n");
    case Fault::redirect_loop:
      return send_text(socket, "HTTP/1.1 302 Found\r\nLocation: /model.qsf\r\nContent-Length: 0\r\n\r\n");
    default:
      break;
  }
  const bool matches = request.if_range.empty() || request.if_range == etag;
  if (!ranges || !request.has_range || !matches) {
    return send_text(socket, "HTTP/1.1 200 OK\r\n" + tag + content_length(total) + "\r\n") &&
           send_all(socket, content.data(), content.size());
  }
  if (request.first >= total) {
    return send_text(socket, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */" + std::to_string(total) +
                                 "\r\nContent-Length: 0\r\n\r\n");
  }
  std::uint64_t first = request.first, last = std::min(request.last, total - 1);
  if (fault == Fault::zero_is_none && request.last == 0) last = total - 1;
  if (fault == Fault::short_range) last = first + (last - first) / 2;
  if (fault == Fault::one_byte) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    last = first;
  }
  if (fault == Fault::wrong_range) ++first, last = std::min(last + 1, total - 1);
  const std::uint64_t n = last - first + 1;
  std::string head = "HTTP/1.1 206 Partial Content\r\n" + tag + content_length(n);
  if (fault != Fault::no_range_told) head += content_range(first, last, total);
  if (fault == Fault::compressed) head += "Content-Encoding: gzip\r\n";
  if (!send_text(socket, head + "\r\n")) return false;
  if (fault == Fault::stall) {
    while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return false;
  }
  if (fault == Fault::drip) {
    for (std::uint64_t i = first; i <= last && !stop_; ++i) {
      if (!send_all(socket, content.data() + i, 1)) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  const std::uint64_t sent = fault == Fault::cut_body ? n / 2 : n;
  return send_all(socket, content.data() + first, sent) && sent == n;
}

}  // namespace qsf::test
