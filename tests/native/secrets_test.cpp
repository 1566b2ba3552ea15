// What of an address reaches files, terminals and other hosts.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdarg>
#include <thread>

#include "native/http_server.h"
#include "native/models.h"
#include "native/sources/http_transfer.h"

namespace qsf::test {
namespace {

TEST(Secrets, AreInNothingThatIsToldOrStored) {
  HttpServer server(read_bytes(stories("8bit")));
  // Slow enough for a line of progress.
  server.set_fault([](const HttpRequest& r) {
    if (r.number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1700));
    return Fault::none;
  });
  const std::string host = server.url().substr(7);
  const std::string url = "http://somebody:pass-word@" + host + "?X-Signature=0a1b2c&other=d4e5f6";
  const std::string seen = "http://***@" + host + "?X-Signature=***&other=***";
  const TempDir dir;
  const Ran ran = run({program("qsf-run"), url, "-p", "x", "-n", "1", "--verbose", "--receipt", dir / "receipt"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string receipt = read_text(dir / "receipt");
  EXPECT_EQ(Json::parse(receipt).at("model").at("file"), seen);
  EXPECT_TRUE(has(ran.err, "model      " + seen)) << ran.err;
  EXPECT_TRUE(has(ran.err, "reading " + seen + ": ")) << ran.err;
  const Ran mistaken = run({program("qsf-run"), "model", "-p", "x", url});
  EXPECT_TRUE(has(mistaken.err, "not expected: " + seen)) << mistaken.err;
  server.set_fault([](const HttpRequest&) { return Fault::missing; });
  const Ran missing = run({program("qsf-run"), url, "-p", "x"});
  EXPECT_EQ(missing.code, 1);
  for (const std::string& text : {ran.out + ran.err, receipt, mistaken.err, missing.err}) {
    for (const char* secret : {"somebody", "pass-word", "0a1b2c", "d4e5f6"}) EXPECT_FALSE(has(text, secret)) << text;
  }
}

/// What libcurl was told of the protocols that a redirection may lead to.
long protocols = 0;
/// A place for the handles, which are not looked into.
int handle = 0;

// libcurl's signature: the last named parameter is an enumeration, which is as wide as what it is promoted to.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvarargs"
CURLcode note_protocols(CURL*, CURLoption option, ...) {
  va_list more;
  va_start(more, option);
  if (option == CURLOPT_REDIR_PROTOCOLS) protocols = va_arg(more, long);
  va_end(more);
  return CURLE_OK;
}
#pragma GCC diagnostic pop

CURLcode know_nothing(CURL*, CURLINFO, ...) { return CURLE_UNKNOWN_OPTION; }

Curl fake_curl() {
  Curl curl{};
  curl.easy_init = []() -> CURL* { return &handle; };
  curl.easy_setopt = note_protocols;
  curl.easy_getinfo = know_nothing;
  curl.easy_cleanup = [](CURL*) {};
  curl.easy_strerror = [](CURLcode) { return "libcurl's own words"; };
  curl.multi_add_handle = [](CURLM*, CURL*) { return CURLM_OK; };
  curl.multi_remove_handle = [](CURLM*, CURL*) { return CURLM_OK; };
  curl.multi_cleanup = [](CURLM*) { return CURLM_OK; };
  return curl;
}

TEST(Secrets, HttpsIsNotLeftUnlessItIsAllowed) {
  const Curl curl = fake_curl();
  const auto allowed = [&](const char* url, bool leave) {
    HttpShared server;
    server.url = url;
    server.options.leave_https = leave;
    server.curl = &curl;
    HttpTransfer transfer;
    EXPECT_TRUE(transfer.open(server));
    return protocols;
  };
  EXPECT_EQ(allowed("https://host/m", false), CURLPROTO_HTTPS);
  EXPECT_EQ(allowed("HTTPS://host/m", false), CURLPROTO_HTTPS);
  EXPECT_EQ(allowed("https://host/m", true), CURLPROTO_HTTPS | CURLPROTO_HTTP);
  EXPECT_EQ(allowed("http://host/m", false), CURLPROTO_HTTPS | CURLPROTO_HTTP);
}

TEST(Secrets, ARefusedRedirectionIsToldWithItsAddress) {
  const Curl curl = fake_curl();
  const auto told = [&](const std::string& location) {
    HttpShared server;
    server.url = "https://host/m";
    server.curl = &curl;
    HttpTransfer transfer;
    EXPECT_TRUE(transfer.open(server));
    ReadRequest request;
    std::byte into[2];
    request.size = 2;
    request.into = into;
    EXPECT_TRUE(transfer.add(request));
    transfer.start();
    const_cast<HttpAnswer&>(transfer.answer()).add_line("HTTP/1.1 302 Found");
    const_cast<HttpAnswer&>(transfer.answer()).add_line("Location: " + location);
    transfer.end_attempt(CURLE_UNSUPPORTED_PROTOCOL);
    EXPECT_FALSE(server.done.empty());
    return server.done.front().status.error();
  };
  const Error http = told("http://other:word@host/m?sig=1");
  EXPECT_EQ(http.code, ErrorCode::network_error);
  EXPECT_TRUE(has(http.sentence, "the server redirects from https to http://***@host/m?sig=***, and others"))
      << http.sentence;
  EXPECT_STREQ(told("ftp://host/m").sentence, "libcurl's own words (https://host/m)");
}

}  // namespace
}  // namespace qsf::test
