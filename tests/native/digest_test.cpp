// Models from files and servers: the digest that their bytes must have, and what is said while they are read.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "native/http_server.h"
#include "native/models.h"
#include "qsf/base/checksum.h"

namespace qsf::test {
namespace {

Ran two_tokens(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program("qsf-run"));
  arguments.insert(arguments.end(), {"-p", "Once", "-n", "2", "--temperature", "0"});
  return run(arguments);
}

TEST(Digest, IsCheckedBeforeTheFirstToken) {
  const std::vector<std::byte> bytes = read_bytes(stories("8bit"));
  Sha256 sum;
  sum.update(bytes);
  const std::string right = hex(sum.digest()).data();
  std::string upper = right, wrong = right;
  for (char& c : upper) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  HttpServer server(bytes);
  const std::string plain = two_tokens({stories("8bit")}).out;
  for (const std::string& model : {stories("8bit"), server.url()}) {
    for (const std::string& digest : {right, upper}) {
      const Ran ran = two_tokens({model, "--sha256", digest});
      EXPECT_EQ(ran.code, 0) << ran.err;
      EXPECT_EQ(ran.out, plain);
    }
    const Ran refused = two_tokens({model, "--sha256", wrong});
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err, "qsf-run: bad_checksum: " + model + " has the SHA-256 " + right +
                               ", not that of --sha256: it is another file\n");
  }
  for (const std::string& no : {std::string("x"), right.substr(1), right + "0", std::string(64, 'g'), std::string()}) {
    const Ran ran = two_tokens({stories("8bit"), "--sha256=" + no});
    EXPECT_EQ(ran.code, no.empty() ? ran.code : 2) << ran.err;
    EXPECT_NE(ran.code, 0) << no;
  }
}

TEST(Digest, EachByteCounts) {
  const TempDir dir;
  std::vector<std::byte> bytes = read_bytes(stories("8bit"));
  Sha256 sum;
  sum.update(bytes);
  const std::string right = hex(sum.digest()).data();
  for (const std::size_t at : {std::size_t{0}, std::size_t{(4 << 20) - 1}, std::size_t{4 << 20}, bytes.size() - 1}) {
    ASSERT_LT(at, bytes.size()) << "the model has more than four parts of a MiB";
    bytes[at] ^= std::byte{1};
    write_bytes(dir / "model", bytes);
    bytes[at] ^= std::byte{1};
    const Ran ran = two_tokens({dir / "model", "--sha256", right});
    EXPECT_TRUE(ran.err.starts_with("qsf-run: bad_checksum: ")) << at << ran.err;
  }
}

TEST(HttpMessages, ErrorsHaveTheirAddress) {
  HttpServer server(read_bytes(stories("8bit")));
  for (const Fault fault : {Fault::missing, Fault::no_range_told, Fault::compressed}) {
    server.set_fault([fault](const HttpRequest&) { return fault; });
    const Ran ran = two_tokens({server.url()});
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(has(ran.err, " (" + server.url() + ")\n")) << ran.err;
  }
}

TEST(HttpMessages, ALogHasNoProgress) {
  HttpServer server(read_bytes(stories("8bit")));
  server.set_fault([](const HttpRequest& r) {
    if (r.number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1700));
    return Fault::none;
  });
  const Ran ran = two_tokens({server.url()});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
}

}  // namespace
}  // namespace qsf::test
