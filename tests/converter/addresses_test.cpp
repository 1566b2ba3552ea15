// qsf-convert reads models from servers: addresses of files and folders, repositories, and parts of a divided GGUF.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/gguf_writer.h"
#include "converter/support.h"
#include "native/http_server.h"
#include "native/process.h"
#include "native/temp.h"

namespace qsf::test {
namespace {

class Addresses : public ::testing::Test {
 protected:
  Addresses() {
    server_.set_reply([this](const HttpRequest& request) { return listing(request); });
  }

  /// Adds a file, under the path of a folder and that of the repository a/llama.
  void add(const std::string& name, std::vector<std::byte> content) {
    files_["/llama/" + name] = content;
    files_["/a/llama/resolve/main/" + name] = content;
    files_["/a/llama/resolve/0123abcd/" + name] = content;
    siblings_.push_back({{"rfilename", name}, {"size", content.size()}});
    server_.set_files(files_);
  }
  void add_folder(const std::string& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      add(entry.path().filename().string(), read_bytes(entry.path().string()));
    }
  }

  std::optional<std::string> listing(const HttpRequest& request) const {
    if (!request.path.starts_with("/api/models/a/llama/revision/main")) return {};
    const std::string body = nlohmann::json{{"sha", "0123abcd"}, {"siblings", siblings_}}.dump();
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  Ran convert_from(const std::string& where, const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> command{program("qsf-convert"), where, out};
    command.insert(command.end(), more.begin(), more.end());
    Around around;
    around.environment = {"HF_ENDPOINT=" + server_.origin(), "HF_HOME=" + (dir_ / "home"),
                          "HF_HUB_CACHE=", "HF_TOKEN=", "HF_TOKEN_PATH="};
    return test::run(command, around);
  }

  /// Checks that a model on the server gives the bytes of the same model in a file.
  void expect_same(const std::string& where, const std::string& path, const std::vector<std::string>& more = {},
                   const std::string& ending = ".qsf") {
    const std::string remote = dir_ / ("remote" + ending), local = dir_ / ("local" + ending);
    const Ran ran = convert_from(where, remote, more);
    ASSERT_EQ(ran.code, 0) << where << ": " << ran.err;
    ASSERT_EQ(convert_from(path, local, more).code, 0);
    EXPECT_TRUE(read_bytes(remote) == read_bytes(local)) << where;
  }

  const TempDir dir_;
  std::map<std::string, std::vector<std::byte>> files_;
  nlohmann::json siblings_ = nlohmann::json::array();
  HttpServer server_{{}};
};

const std::string kGgufFile = kData + "gguf/llama.gguf";

TEST_F(Addresses, OfFilesAndFoldersGiveTheBytesOfFiles) {
  add("llama.gguf", read_bytes(kGgufFile));
  const std::string url = server_.origin() + "/llama/llama.gguf";
  expect_same(url, kGgufFile);
  expect_same(url + "?download=true", kGgufFile, {"--quant-type", "q4_k"});
  expect_same(url, kGgufFile, {}, ".gguf");
  add_folder(kLlama);
  expect_same(server_.origin() + "/llama/", kLlama, {"--quant-type", "4bit", "--tokenizer", "none"});
}

TEST_F(Addresses, OfAPartMeanTheDividedModel) {
  std::map<std::string, Weights> weights;
  std::vector<GgufWriter> parts = gguf_of(kLlama, GgmlType::f16, weights).parts(3);
  for (int i = 1; i <= 3; ++i) {
    const std::string name = "m-0000" + std::to_string(i) + "-of-00003.gguf";
    const auto file = parts[static_cast<std::size_t>(i - 1)].file();
    write_bytes(dir_ / name, file.data(), file.size());
    add(name, read_bytes(dir_ / name));
  }
  const std::string first = "m-00001-of-00003.gguf", second = "m-00002-of-00003.gguf";
  expect_same(server_.origin() + "/llama/" + first, dir_ / first);
  expect_same(server_.origin() + "/llama/" + second, dir_ / second);
  expect_same("hf:a/llama/" + first, dir_ / first);
  expect_same("hf:a/llama", dir_ / first);
}

TEST_F(Addresses, OfRepositoriesNeedNoFile) {
  add("small.gguf", std::vector<std::byte>(100));
  add("llama.gguf", read_bytes(kGgufFile));
  std::vector<std::byte> larger(2 * read_bytes(kGgufFile).size());
  add("made.qsf", larger);
  expect_same("hf:a/llama/llama.gguf@main", kGgufFile);
  const Ran ran = convert_from("hf:a/llama", dir_ / "out.qsf");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(has(ran.err, "llama.gguf of ") && has(ran.err, "the largest of 2")) << ran.err;
  EXPECT_EQ(convert_from("hf:a/llama", dir_ / "out.qsf", {"--quiet"}).err, "");
}

TEST_F(Addresses, OfSafetensorsAreConverted) {
  add_folder(kLlama);
  expect_same("hf:a/llama", kLlama);
}

TEST_F(Addresses, ThatFailLeaveNothing) {
  add("llama.gguf", read_bytes(kGgufFile));
  const std::string out = dir_ / "out.qsf";
  const auto expect_error = [&](const std::string& where, const char* code, const char* words) {
    const Ran ran = convert_from(where, out);
    EXPECT_EQ(ran.code, 1) << where;
    EXPECT_TRUE(has(ran.err, code) && has(ran.err, words)) << ran.err;
    EXPECT_FALSE(has(ran.err, "secret")) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << where;
  };
  expect_error(server_.origin() + "/llama/other.gguf?key=secret", "http_status", "404");
  expect_error("hf:a/llama/other.gguf", "http_status", "no such repository, revision or file");
  expect_error("hf:a/c", "http_status", "no such repository, revision or file");
  expect_error("hf:a", "bad_argument", "hf:");
  add("made.qsf", std::vector<std::byte>(1000));
  expect_error(server_.origin() + "/llama/made.qsf", "unsupported", "of no kind that can be read");
  // A file that becomes another one while it is read.
  std::atomic<int> asked{0};
  server_.set_fault([&](const HttpRequest& request) {
    if (request.path.ends_with(".gguf") && ++asked == 3) server_.set_etag("\"v2\"");
    return Fault::none;
  });
  expect_error(server_.origin() + "/llama/llama.gguf", "file_changed", "changed");
}

}  // namespace
}  // namespace qsf::test
