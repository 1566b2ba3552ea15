#include "native/sources/http_answer.h"

#include <gtest/gtest.h>

namespace qsf {
namespace {

HttpAnswer answer_of(std::initializer_list<const char*> lines) {
  HttpAnswer answer;
  for (const char* line : lines) answer.add_line(std::string(line) + "\r\n");
  return answer;
}

TEST(HttpAnswer, ReadsTheHeadersThatMatter) {
  const HttpAnswer a = answer_of({"HTTP/1.1 206 Partial Content", "ETAG:  \"abc\" ", "content-range: bytes 5-9/4096",
                                  "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT", "Content-Length: 5", "Retry-After: 7",
                                  "Content-Encoding: GZIP", "X-Other: bytes 1-2/3", ""});
  EXPECT_EQ(a.status, 206u);
  EXPECT_EQ(a.etag, "\"abc\"");
  EXPECT_TRUE(a.has_range && a.has_total && a.has_length);
  EXPECT_EQ(a.first, 5u);
  EXPECT_EQ(a.last, 9u);
  EXPECT_EQ(a.total, 4096u);
  EXPECT_EQ(a.length, 5u);
  EXPECT_EQ(a.retry_after, 7u);
  EXPECT_EQ(a.encoding, "gzip");
  EXPECT_EQ(a.last_modified, "Sat, 01 Jan 2000 00:00:00 GMT");
}

TEST(HttpAnswer, AStatusLineBeginsAnew) {
  const HttpAnswer a = answer_of({"HTTP/1.1 302 Found", "ETag: \"redirection\"", "HTTP/2 206", "Content-Length: 1"});
  EXPECT_EQ(a.status, 206u);
  EXPECT_EQ(a.etag, "");
}

TEST(HttpAnswer, OddContentRangesAreNotBelieved) {
  for (const char* value : {"bytes 5-/9", "bytes -5/9", "bytes 5-9", "items 5-9/20", "bytes 5-99999999999999999999/7",
                            "bytes 0x5-9/20", "bytes 5 -9/20", ""}) {
    const HttpAnswer a = answer_of({"HTTP/1.1 206 OK", (std::string("Content-Range: ") + value).c_str()});
    EXPECT_FALSE(a.has_range) << value;
  }
  EXPECT_FALSE(answer_of({"HTTP/1.1 206 OK", "Content-Range: bytes 5-9/*"}).has_total);
  EXPECT_TRUE(answer_of({"HTTP/1.1 416 No", "Content-Range: bytes */0"}).has_total);
}

struct Case {
  const char* name;
  std::initializer_list<const char*> lines;
  bool first;  // judged as the very first answer
  Verdict verdict;
  ErrorCode code;
};

TEST(HttpAnswer, IsJudged) {
  using enum Verdict;
  using enum ErrorCode;
  const HttpIdentity known{"\"v1\"", "Sat", 100};
  const char* good = "Content-Range: bytes 10-19/100";
  const Case cases[] = {
      {"first", {"HTTP/1.1 206 x", good}, true, take, none},
      {"later", {"HTTP/1.1 206 x", good, "ETag: \"v1\""}, false, take, none},
      {"weak twin", {"HTTP/1.1 206 x", good, "ETag: W/\"v1\""}, false, take, none},
      {"no tag now", {"HTTP/1.1 206 x", good}, false, take, none},
      {"total unknown later", {"HTTP/1.1 206 x", "Content-Range: bytes 10-19/*"}, false, take, none},
      {"less than asked", {"HTTP/1.1 206 x", "Content-Range: bytes 10-11/100"}, false, take, none},
      {"total unknown first", {"HTTP/1.1 206 x", "Content-Range: bytes 10-19/*"}, true, refuse, no_ranges},
      {"no range", {"HTTP/1.1 206 x"}, false, refuse, no_ranges},
      {"compressed", {"HTTP/1.1 206 x", good, "Content-Encoding: br"}, false, refuse, no_ranges},
      {"other tag", {"HTTP/1.1 206 x", good, "ETag: \"v2\""}, false, refuse, file_changed},
      {"other date", {"HTTP/1.1 206 x", good, "Last-Modified: Sun"}, false, refuse, file_changed},
      {"other size", {"HTTP/1.1 206 x", "Content-Range: bytes 10-19/101"}, false, refuse, file_changed},
      {"begins elsewhere", {"HTTP/1.1 206 x", "Content-Range: bytes 11-19/100"}, false, refuse, network_error},
      {"more than asked", {"HTTP/1.1 206 x", "Content-Range: bytes 10-20/100"}, false, refuse, network_error},
      {"backwards", {"HTTP/1.1 206 x", "Content-Range: bytes 10-9/100"}, false, refuse, network_error},
      {"whole file first", {"HTTP/1.1 200 x", "Content-Length: 100"}, true, refuse, no_ranges},
      {"web page", {"HTTP/1.1 200 x", "Content-Type: Text/HTML; charset=utf-8"}, true, refuse, bad_magic},
      {"whole file later", {"HTTP/1.1 200 x", "ETag: \"v1\""}, false, refuse, no_ranges},
      {"whole other file", {"HTTP/1.1 200 x", "ETag: \"v2\""}, false, refuse, file_changed},
      {"whole longer file", {"HTTP/1.1 200 x", "Content-Length: 101"}, false, refuse, file_changed},
      {"empty", {"HTTP/1.1 416 x", "Content-Range: bytes */0"}, true, refuse, truncated},
      {"refused", {"HTTP/1.1 416 x"}, true, refuse, no_ranges},
      {"shrunk", {"HTTP/1.1 416 x", "Content-Range: bytes */5"}, false, refuse, file_changed},
      {"busy", {"HTTP/1.1 503 x"}, false, retry, http_status},
      {"too many", {"HTTP/1.1 429 x"}, false, retry, http_status},
      {"missing", {"HTTP/1.1 404 x"}, true, refuse, http_status},
      {"forbidden", {"HTTP/1.1 403 x"}, false, refuse, http_status},
      {"nonsense", {"hello"}, true, refuse, http_status},
  };
  for (const Case& c : cases) {
    const Judged judged = judge(answer_of(c.lines), c.first ? nullptr : &known, 10, 10);
    EXPECT_EQ(judged.verdict, c.verdict) << c.name;
    EXPECT_EQ(judged.error.code, c.code) << c.name;
    EXPECT_EQ(judged.error.sentence[0] == '\0', c.code == none) << c.name;
  }
}

TEST(HttpAnswer, IfRangeTakesNoWeakTags) {
  EXPECT_EQ(if_range_value({"\"v1\"", "Sat", 1}), "\"v1\"");
  EXPECT_EQ(if_range_value({"W/\"v1\"", "Sat", 1}), "Sat");
  EXPECT_EQ(if_range_value({"", "", 1}), "");
}

}  // namespace
}  // namespace qsf
