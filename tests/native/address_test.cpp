#include "native/sources/address.h"

#include <gtest/gtest.h>

namespace qsf {
namespace {

TEST(Address, IsTold) {
  for (const char* url : {"http://a", "https://a/b", "HTTP://a", "hTtPs://a", "http://"})
    EXPECT_TRUE(is_url(url)) << url;
  for (const char* path : {"", "http:/a", "http", "ftp://a", "./http://a", " http://a", "httpx://a", "https:"}) {
    EXPECT_FALSE(is_url(path)) << path;
  }
  EXPECT_TRUE(is_https("HTTPS://a"));
  EXPECT_FALSE(is_https("http://a"));
}

TEST(Address, KeepsItsSecrets) {
  const std::pair<const char*, const char*> cases[] = {
      {"https://host/a/b.qsf", "https://host/a/b.qsf"},
      {"https://host:8080", "https://host:8080"},
      {"HTTPS://user:word@host/a", "HTTPS://***@host/a"},
      {"http://user@host:80/a@b/c", "http://***@host:80/a@b/c"},
      {"http://user:w@rd@host/", "http://***@host/"},
      {"https://host/a?X-Amz-Signature=0a1b&X-Amz-Date=2024;k=v",
       "https://host/a?X-Amz-Signature=***&X-Amz-Date=***;k=***"},
      {"https://host/a?token", "https://host/a?***"},
      {"https://host/a?a=&b", "https://host/a?a=***&***"},
      {"https://host?sig=a/b@c", "https://host?sig=***"},
      {"https://host/a?", "https://host/a?"},
      {"https://host/a#access_token=x", "https://host/a#***"},
      {"https://u@host/a?b=c#d", "https://***@host/a?b=***#***"},
      {"https://host/a?b=c d", "https://host/a?b=***"},
      {"/a/path?b=c@d", "/a/path?b=c@d"},
      {"", ""},
      {"ftp://user:word@host/a?sig=1", "ftp://***@host/a?sig=***"},
      {"cannot open s3+x://key:word@host/a: no such file", "cannot open s3+x://***@host/a: no such file"},
      {"cannot open http://user:wor", "cannot open http://***"},
      {"http://[::1]:80/a", "http://[::1]:80/a"},
      {"a :// b, and ://u:p@h", "a :// b, and ://***@h"},
      {"hf:user:word@host/owner/name", "hf:***@host/owner/name"},
      {"hf://user:word@host/owner/name", "hf://***@host/owner/name"},
      {"HF:word@host", "HF:***@host"},
      {"hf:https://user:word@host/m", "hf:https://***@host/m"},
      {"hf:owner/name/a@b.gguf@main", "hf:owner/name/a@b.gguf@main"},
      {"'hf:user:wo", "'hf:***"},
      {"https:user:word@host/m", "https:***@host/m"},
      {"cannot open http:/user:word@host/m, hf:u@h or https:\\\\user:word@host",
       "cannot open http:/***@host/m, hf:***@h or https:\\\\***@host"},
      {"xhf: 1@2, http: 3@4, hf:u@h", "xhf: 1@2, http: 3@4, hf:***@h"},
      {"reading http://h/m?s=1: 2 bytes", "reading http://h/m?s=***: 2 bytes"},
      {"no answer (http://h/m?s=1)", "no answer (http://h/m?s=***)"},
      {"not expected: https://u:p@h/m?s=1 http://h/n?t=2, and \"http://v@h/o?x=y\" too",
       "not expected: https://***@h/m?s=*** http://h/n?t=***, and \"http://***@h/o?x=***\" too"},
  };
  for (const auto& [address, seen] : cases) EXPECT_EQ(without_secrets(address), seen);
  EXPECT_EQ(sentence_without_secrets("http://u:p@h/m?s=1 is another file"), "http://***@h/m?s=*** is another file");
}

}  // namespace
}  // namespace qsf
