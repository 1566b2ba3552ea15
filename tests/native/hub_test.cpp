// Models that are no .qsf files on servers: addresses, folders, and repositories of a server that speaks the Hub's
// protocol.
#include "native/made/hub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "native/host/host.h"
#include "native/http_server.h"
#include "native/made/made_source.h"
#include "native/source_reads.h"
#include "native/temp.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Files = std::map<std::string, std::vector<std::byte>>;

const std::string kGguf = source_dir() + "/tests/data/gguf/llama.gguf", kFolder = source_dir() + "/tests/data/llama";

/// The files of a folder by their paths on a server.
Files files_of(const std::string& folder, const std::string& prefix) {
  Files out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    out[prefix + entry.path().filename().string()] = read_bytes(entry.path().string());
  }
  return out;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string answer(int status, const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 " + std::to_string(status) + " Status\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

HostOptions host_options() {
  HostOptions options;
  options.budget = 32u << 20;
  options.threads = 1;
  options.source = quick();
  options.open.kv = KvType::f16;
  return options;
}

struct HostRun {
  ErrorCode code = ErrorCode::none;
  std::string sentence, hash;
  std::vector<std::string> notes;
};

/// Opens a model and generates some tokens.
HostRun run_host(const std::string& where, const HostOptions& options) {
  const std::atomic<bool> cancel{false};
  const Result<std::unique_ptr<Host>> opened = Host::open(where, options, cancel);
  if (!opened) return {opened.error().code, opened.error().sentence, "", {}};
  Host& host = **opened;
  const std::uint32_t ids[] = {3, 17, 5};
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 4;
  prompt.ignore_eos = prompt.hash_logits = true;
  prompt.sampler.temperature = 0;
  if (const Status started = host.session().start(prompt); !started) return {started.error().code, "", "", {}};
  while (true) {
    const Result<Step> step = host.next();
    if (!step) return {step.error().code, step.error().sentence, "", {}};
    if (*step == Step::done) return {ErrorCode::none, "", std::string(host.session().logits_hash()), host.notes()};
  }
}

std::string expected(const std::string& path) {
  const HostRun ran = run_host(path, host_options());
  EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  return ran.hash;
}

TEST(Remote, AGgufRunsFromItsAddress) {
  HttpServer server(read_bytes(kGguf));
  const std::string url = server.origin() + "/models/llama.gguf?download=true";
  const std::string hash = expected(kGguf);
  for (const bool streams : {false, true}) {
    HostOptions options = host_options();
    options.open.stream_all = streams;
    const HostRun ran = run_host(url, options);
    EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
    EXPECT_EQ(ran.hash, hash);
  }
  EXPECT_EQ(run_host(server.origin() + "/llama.bin", host_options()).hash, hash) << "the name says nothing";
}

TEST(Remote, AGgufIsFoundUnderAnyName) {
  HttpServer server(read_bytes(kGguf));
  const HostRun ran = run_host(server.origin() + "/llama.qsf", host_options());
  EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  EXPECT_EQ(ran.hash, expected(kGguf));
}

TEST(Remote, AFolderOfDividedWeightsRuns) {
  const std::string sharded = source_dir() + "/../shared/data/derived/stories260K-hf-bf16-sharded";
  if (!fs::exists(sharded)) return;
  HttpServer server({});
  server.set_files(files_of(sharded, "/m/"));
  EXPECT_EQ(run_host(server.origin() + "/m/", host_options()).hash, expected(sharded));
}

TEST(Remote, AFolderRunsFromItsAddress) {
  HttpServer server({});
  server.set_files(files_of(kFolder, "/a/llama/"));
  EXPECT_EQ(run_host(server.origin() + "/a/llama/", host_options()).hash, expected(kFolder));
  HostOptions options = host_options();
  options.source.quant_type = "q4_0";
  const HostRun local = run_host(kFolder, options), remote = run_host(server.origin() + "/a/llama/", options);
  EXPECT_EQ(remote.hash, local.hash);
  EXPECT_NE(remote.hash, expected(kFolder));
  EXPECT_EQ(run_host(server.origin() + "/a/other/", host_options()).code, ErrorCode::bad_input);
}

TEST(Remote, AWebPageIsNoFileOfAFolder) {
  HttpServer server({});
  const Files files = files_of(kFolder, "/llama/");
  server.set_files(files);
  // Such servers have a page for every address that they do not know.
  server.set_reply([&files](const HttpRequest& request) -> std::optional<std::string> {
    if (files.contains(request.path)) return {};
    return answer(200, "<!doctype html>", "Content-Type: text/html\r\n");
  });
  const HostRun ran = run_host(server.origin() + "/llama/", host_options());
  EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  EXPECT_EQ(ran.hash, expected(kFolder));
}

TEST(Remote, TheSecondStartReadsNoTokenizer) {
  HttpServer server({});
  Files files = files_of(kFolder, "/llama/");
  server.set_files(files);
  const TempDir dir;
  const std::string cache = dir / "fronts", hash = expected(kFolder);
  HostOptions options = host_options();
  options.source.cache = cache;
  EXPECT_EQ(run_host(server.origin() + "/llama/", options).hash, hash);
  const auto asked_of = [&](std::size_t from, std::string_view name) {
    std::uint64_t sum = 0;
    const std::vector<HttpRequest> requests = server.requests();
    for (std::size_t i = from; i < requests.size(); ++i) {
      if (requests[i].path.ends_with(name)) sum += requests[i].last - requests[i].first + 1;
    }
    return sum;
  };
  EXPECT_GT(asked_of(0, "/tokenizer.json"), 1000u);
  std::size_t before = server.requests().size();
  EXPECT_EQ(run_host(server.origin() + "/llama/", options).hash, hash);
  EXPECT_LE(asked_of(before, "/tokenizer.json"), 2u) << "only its identity";
  server.set_etag("\"v2\"");
  before = server.requests().size();
  EXPECT_EQ(run_host(server.origin() + "/llama/", options).hash, hash);
  EXPECT_GT(asked_of(before, "/tokenizer.json"), 1000u) << "another content";
}

TEST(Remote, AFileThatChangesEndsTheGeneration) {
  HttpServer server(read_bytes(kGguf));
  const std::atomic<bool> cancel{false};
  HostOptions options = host_options();
  options.open.stream_all = true;
  const Result<std::unique_ptr<Host>> host = Host::open(server.origin() + "/m.gguf", options, cancel);
  ASSERT_TRUE(host) << host.error().sentence;
  server.set_etag("\"v2\"");
  const std::uint32_t ids[] = {3, 17, 5};
  Prompt prompt;
  prompt.tokens = ids;
  prompt.max_tokens = 4;
  ASSERT_TRUE((*host)->session().start(prompt));
  Result<Step> step = Step::working;
  while (step && *step != Step::done) step = (*host)->next();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, ErrorCode::file_changed) << step.error().sentence;
}

TEST(Remote, ARedirectionIsFollowedOnce) {
  HttpServer store(read_bytes(kGguf)), server({});
  std::atomic<int> asked{0};
  server.set_reply([&](const HttpRequest&) -> std::optional<std::string> {
    ++asked;
    return answer(302, "", "Location: " + store.origin() + "/signed.gguf?key=1\r\n");
  });
  EXPECT_EQ(run_host(server.origin() + "/m.gguf", host_options()).hash, expected(kGguf));
  EXPECT_LE(asked, 4) << "once or twice for each connection";
  EXPECT_GT(store.requests().size(), static_cast<std::size_t>(asked));
  // Each signature is good for four requests, and then asked for again.
  server.set_reply([&](const HttpRequest&) -> std::optional<std::string> {
    return answer(302, "", "Location: " + store.origin() + "/signed.gguf?key=" + std::to_string(++asked) + "\r\n");
  });
  std::mutex mutex;
  std::map<std::string, int> uses;
  store.set_reply([&](const HttpRequest& request) -> std::optional<std::string> {
    const std::lock_guard lock(mutex);
    return ++uses[request.path] > 4 ? std::optional(answer(403, "expired")) : std::nullopt;
  });
  asked = 0;
  EXPECT_EQ(run_host(server.origin() + "/m.gguf", host_options()).hash, expected(kGguf));
  EXPECT_GT(asked, 2);
}

/// A server that speaks the Hub's protocol: files are on another origin.
class Hub : public ::testing::Test {
 protected:
  Hub() {
    set("HF_ENDPOINT", server_.origin());
    set("HF_HOME", dir_ / "home");
    set("HF_TOKEN", "");
    set("HF_TOKEN_PATH", "");
    set("HF_HUB_CACHE", "");
    server_.set_reply([this](const HttpRequest& request) { return reply(request); });
  }
  ~Hub() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }

  void set(const std::string& name, const std::string& value) {
    const char* const now = std::getenv(name.c_str());
    before_.try_emplace(name, now == nullptr ? std::nullopt : std::optional<std::string>(now));
    ::setenv(name.c_str(), value.c_str(), 1);
  }

  /// Adds a file to the repository a/b.
  void add(const std::string& name, std::vector<std::byte> content) {
    files_[name] = std::move(content);
    Files stored;
    for (const auto& [each, bytes] : files_) stored["/store/" + each] = bytes;
    store_.set_files(stored);
  }

  std::optional<std::string> reply(const HttpRequest& request) {
    if (refusal_ != 0) return answer(refusal_, "{}", refusal_ == 429 ? "Retry-After: 0\r\n" : "");
    if (!token_.empty() && request.authorization != "Bearer " + token_) return answer(401, "{}");
    const std::string path = request.path.substr(0, request.path.find('?'));
    for (const std::string& revision : {std::string("main"), std::string("v1"), std::string("refs%2Fa%20b"), kCommit}) {
      if (path == "/api/models/a/b/revision/" + revision) {
        Json siblings = Json::array();
        for (const auto& [name, bytes] : files_) siblings.push_back({{"rfilename", name}, {"size", bytes.size()}});
        return answer(200, Json{{"sha", kCommit}, {"siblings", siblings}}.dump());
      }
      const std::string prefix = "/a/b/resolve/" + revision + "/";
      if (!path.starts_with(prefix)) continue;
      const std::string name = path.substr(prefix.size());
      if (!files_.contains(name)) break;
      return answer(302, "",
                    "Location: " + store_.origin() + "/store/" + name + "?Signature=secret\r\nX-Linked-Size: " +
                        std::to_string(files_[name].size()) + "\r\nETag: \"linked\"\r\n");
    }
    return answer(404, "{}");
  }

  static inline const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";
  const TempDir dir_;
  HttpServer store_{{}}, server_{{}};
  Files files_;
  std::string token_;
  int refusal_ = 0;
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(Hub, AFileOfARepositoryRuns) {
  add("sub/llama Q8.gguf", read_bytes(kGguf));
  add("sub/llama%20Q8.gguf", read_bytes(kGguf));  // as the address has it
  const std::string hash = expected(kGguf);
  for (const char* where : {"hf:a/b/sub/llama Q8.gguf", "hf:a/b/sub/llama Q8.gguf@v1", "hf:a/b@refs/a b",
                            "HF://a/b/sub/llama Q8.gguf@refs/a b"}) {
    const HostRun ran = run_host(where, host_options());
    EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
    EXPECT_EQ(ran.hash, hash);
  }
  EXPECT_EQ(run_host("hf:a/b/sub/other.gguf", host_options()).code, ErrorCode::http_status);
  EXPECT_EQ(run_host("hf:a/b/sub/llama Q8.gguf@v2", host_options()).code, ErrorCode::http_status);
}

TEST_F(Hub, TheTokenGoesToTheHubOnly) {
  add("m.gguf", read_bytes(kGguf));
  token_ = "hf_secret";
  HostRun ran = run_host("hf:a/b/m.gguf", host_options());
  EXPECT_EQ(ran.code, ErrorCode::http_status);
  EXPECT_NE(ran.sentence.find("HF_TOKEN"), std::string::npos) << ran.sentence;
  set("HF_TOKEN", "hf_secret");
  ran = run_host("hf:a/b/m.gguf", host_options());
  EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  EXPECT_EQ(run_host("hf:a/b", host_options()).code, ErrorCode::none);
  set("HF_TOKEN", "");
  fs::create_directories(dir_ / "home");
  write_bytes(dir_ / "home/token", bytes_of("hf_secret\n"));
  EXPECT_EQ(run_host("hf:a/b/m.gguf", host_options()).code, ErrorCode::none);
  EXPECT_GT(store_.requests().size(), 3u);
  for (const HttpRequest& request : store_.requests()) EXPECT_EQ(request.authorization, "");
}

TEST_F(Hub, WithoutAFileTheBestThatFitsIsChosen) {
  const std::vector<std::byte> gguf = read_bytes(kGguf);
  std::vector<std::byte> larger = gguf, smaller = gguf;
  larger.resize(gguf.size() + (16u << 20));
  add("b-Q8_0.gguf", larger);
  add("b-Q4_0.gguf", gguf);
  add("b-mmproj-f16.gguf", std::vector<std::byte>(100));
  add("README.md", bytes_of("x"));
  HostOptions options = host_options();
  HostRun ran = run_host("hf:a/b", options);
  ASSERT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  ASSERT_FALSE(ran.notes.empty());
  EXPECT_NE(ran.notes[0].find("b-Q8_0.gguf"), std::string::npos) << ran.notes[0];
  options.budget = larger.size();
  ran = run_host("hf:a/b@v1", options);
  ASSERT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  EXPECT_NE(ran.notes[0].find("b-Q4_0.gguf"), std::string::npos) << ran.notes[0];
  EXPECT_EQ(ran.hash, expected(kGguf));
  options.budget = 1u << 20;
  ran = run_host("hf:a/b", options);
  EXPECT_EQ(ran.code, ErrorCode::budget_too_small);
  EXPECT_NE(ran.sentence.find("b-Q4_0.gguf"), std::string::npos) << ran.sentence;
}

TEST_F(Hub, TheChoiceIsThatOfPages) {
  const std::vector<std::byte> bytes = read_bytes(source_dir() + "/tests/data/hub/choices.json");
  const Json cases = Json::parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())).at("cases");
  ASSERT_GE(cases.size(), 8u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    Json siblings = Json::array();
    for (const auto& [name, size] : one.at("files").items()) siblings.push_back({{"rfilename", name}, {"size", size}});
    server_.set_reply(
        [&](const HttpRequest&) { return answer(200, Json{{"sha", kCommit}, {"siblings", siblings}}.dump()); });
    SourceOptions options = quick();
    options.budget = one.at("budget").get<std::uint64_t>();
    const Result<HubModel> found = find_in_hub("hf:a/b", options);
    ASSERT_TRUE(found) << found.error().sentence;
    const std::string chosen = one.value("chosen", "");
    EXPECT_TRUE(found->url.ends_with("/" + chosen)) << found->url;
    EXPECT_EQ(found->note.empty(), chosen.empty()) << found->note;
    if (chosen.empty()) continue;
    const std::string of = "of " + std::to_string(one.at("of").get<int>()) + " that ";
    EXPECT_NE(found->note.find(one.at("fits").get<bool>() ? "largest" : "smallest"), std::string::npos) << found->note;
    EXPECT_NE(found->note.find(of), std::string::npos) << found->note;
  }
}

TEST_F(Hub, ARepositoryOfSafetensorsRuns) {
  for (const auto& [name, bytes] : files_of(kFolder, "")) add(name, bytes);
  const HostRun ran = run_host("hf:a/b", host_options());
  EXPECT_EQ(ran.code, ErrorCode::none) << ran.sentence;
  EXPECT_EQ(ran.hash, expected(kFolder));
}

TEST_F(Hub, RefusalsAreExplained) {
  add("m.gguf", read_bytes(kGguf));
  for (const auto& [status, words] : std::initializer_list<std::pair<int, const char*>>{
           {401, "HF_TOKEN"}, {403, "gated"}, {404, "not there"}, {429, "no more requests"}}) {
    refusal_ = status;
    for (const char* where : {"hf:a/b", "hf:a/b/m.gguf"}) {
      const HostRun ran = run_host(where, host_options());
      EXPECT_EQ(ran.code, ErrorCode::http_status) << where;
      EXPECT_NE(ran.sentence.find(words), std::string::npos) << ran.sentence;
      EXPECT_NE(ran.sentence.find("a/b"), std::string::npos) << ran.sentence;
    }
  }
  refusal_ = 0;
  add("pointer.gguf", bytes_of("version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') +
                               "\nsize 123456\n" + std::string(100, '\n')));
  const HostRun ran = run_host("hf:a/b/pointer.gguf", host_options());
  EXPECT_EQ(ran.code, ErrorCode::bad_magic);
  EXPECT_NE(ran.sentence.find("Git LFS"), std::string::npos) << ran.sentence;
  EXPECT_NE(ran.sentence.find("/a/b/resolve/main/pointer.gguf"), std::string::npos) << ran.sentence;
  add("empty/README.md", bytes_of("x"));
  files_.erase("m.gguf");
  files_.erase("pointer.gguf");
  EXPECT_EQ(run_host("hf:a/b", host_options()).code, ErrorCode::unsupported);
}

TEST_F(Hub, AddressesOfAnotherFormAreRefused) {
  for (const char* where : {"hf:", "hf:a", "hf:a/", "hf:/b", "hf:a/b/../c", "hf:a/b@", "hf:a/b@../x", "hf:a b/c",
                            "hf:../b/c", "hf:a/b//c"}) {
    EXPECT_EQ(run_host(where, host_options()).code, ErrorCode::bad_argument) << where;
  }
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Hub, ListsThatMakeNoSenseAreRefused) {
  std::string body;
  server_.set_reply([&](const HttpRequest&) { return std::optional(answer(200, body)); });
  for (const char* text :
       {"", "[]", "{}", "{\"sha\": 1, \"siblings\": []}", "{\"sha\": \"../x\", \"siblings\": []}",
        "{\"sha\": \"abc\", \"siblings\": {}}", "{\"sha\": \"abc\", \"siblings\": [{\"rfilename\": \"../x.gguf\"}]}",
        "{\"sha\": \"abc\", \"siblings\": [{\"rfilename\": 7}]}", "{\"sha\": \"abc\", \"siblings\": [7]}"}) {
    body = text;
    EXPECT_EQ(run_host("hf:a/b", host_options()).code, ErrorCode::bad_input) << text;
  }
}

TEST_F(Hub, TheUsersCacheIsReadFirst) {
  const std::string folder = dir_ / "home/hub/models--a--b";
  fs::create_directories(folder + "/refs");
  fs::create_directories(folder + "/snapshots/" + kCommit);
  write_bytes(folder + "/refs/main", bytes_of(kCommit));
  fs::copy_file(kGguf, folder + "/snapshots/" + kCommit + "/m.gguf");
  const std::string hash = expected(kGguf);
  EXPECT_EQ(run_host("hf:a/b/m.gguf", host_options()).hash, hash);
  EXPECT_EQ(run_host("hf:a/b/m.gguf@" + kCommit, host_options()).hash, hash);
  EXPECT_TRUE(server_.requests().empty());
  add("m.gguf", read_bytes(kGguf));
  EXPECT_EQ(run_host("hf:a/b", host_options()).hash, hash);
  EXPECT_TRUE(store_.requests().empty());
  // Without a network the cache suffices.
  set("HF_ENDPOINT", "http://127.0.0.1:1");
  const HostRun ran = run_host("hf:a/b", host_options());
  EXPECT_EQ(ran.hash, hash) << ran.sentence;
  EXPECT_EQ(run_host("hf:a/c", host_options()).code, ErrorCode::network_error);
}

}  // namespace
}  // namespace qsf::test
