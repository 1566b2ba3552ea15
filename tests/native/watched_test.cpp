// What a server's log tells of the texts that a model is given which it serves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "file/open_file.h"
#include "native/host/host.h"
#include "native/http_server.h"
#include "native/letters.h"

namespace qsf::test {
namespace {

// Of one length, in letters, each of which is a token.
constexpr std::string_view kPassword = "my password is fox", kOther = "we live by the sea";
static_assert(kPassword.size() == kOther.size());

SmallOptions options_of(bool tied) {
  SmallOptions o;
  o.format = FormatId::q8;
  o.tied = tied;
  o.segment_bytes = 1;  // a strip of 16 rows: the finest that a file can be cut
  o.vocab_size = 40;
  o.tokenizer = letters(false);
  return o;
}

/// A model whose layers have inputs of their own, of each token.
SmallOptions with_layer_inputs() {
  SmallOptions o = options_of(true);
  o.shape = [](std::uint32_t, LayerKind& k) { k.layer_input = 32; };
  return o;
}

SmallOptions mixture() {
  SmallOptions o = options_of(true);
  o.shape = [](std::uint32_t, LayerKind& k) {
    k.ffn = Ffn::mixture;
    k.n_experts = 16;
    k.experts_used = 2;
    k.expert_dim = 48;
    k.router_norm = 1;
  };
  return o;
}

/// How often each segment was asked for since request number `from`: neighbours that are asked for together are one
/// range, and which of them are depends on what waits at the moment.
std::vector<int> times_read(const HttpServer& server, const OpenFile& file, std::size_t from) {
  std::vector<int> times(file.segments.size());
  const std::vector<HttpRequest> requests = server.requests();
  for (std::size_t n = from; n < requests.size(); ++n) {
    for (std::size_t i = 0; i < file.segments.size(); ++i) {
      const SegmentEntry& s = file.segments[i];
      times[i] += requests[n].first <= s.offset && s.offset + s.stored_size - 1 <= requests[n].last ? 1 : 0;
    }
  }
  return times;
}

/// Waits for what is read ahead.
void settle(Host& host) {
  while (host.source().under_way() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Answers a text by some tokens, the first one's and then more of a conversation.
void answer(Host& host, std::string_view text) {
  Prompt prompt;
  prompt.text = text;
  prompt.max_tokens = 6;
  prompt.ignore_eos = true;
  prompt.sampler.temperature = 0;
  Session& session = host.session();
  const Status started = session.start(prompt);
  ASSERT_TRUE(started) << started.error().sentence;
  for (Step step = Step::working; step != Step::done;) {
    const Result<Step> next = host.next();
    ASSERT_TRUE(next) << next.error().sentence;
    step = *next;
  }
  settle(host);
}

struct Told {
  std::vector<int> opening, first, second;
  bool operator==(const Told&) const = default;
};

/// What the server's log tells of two texts, the second of which goes on behind the first.
Told tell_of(const std::vector<std::byte>& bytes, bool stream_all, std::string_view first, std::string_view second) {
  const auto file = open_file(bytes);
  EXPECT_TRUE(file);
  HttpServer server(bytes);
  const std::atomic<bool> cancel{false};
  HostOptions options;
  options.budget = 8u << 20;
  options.threads = 1;
  options.open.stream_all = stream_all;
  const Result<std::unique_ptr<Host>> host = Host::open(server.url(), options, cancel);
  EXPECT_TRUE(host) << host.error().sentence;
  Told told;
  if (!host) return told;
  settle(**host);
  std::size_t before = server.requests().size();
  told.opening = times_read(server, *file, 0);
  answer(**host, first);
  told.first = times_read(server, *file, before);
  before = server.requests().size();
  answer(**host, second);
  told.second = times_read(server, *file, before);
  return told;
}

class Watched : public ::testing::TestWithParam<bool> {};  // whether as much as can be is streamed

TEST_P(Watched, ALogTellsNothingButTheNumberOfTokens) {
  for (const SmallOptions& options : {options_of(true), options_of(false), with_layer_inputs()}) {
    const SmallFile file = small_file(options);
    const Told password = tell_of(file.bytes, GetParam(), kPassword, kOther);
    EXPECT_EQ(password, tell_of(file.bytes, GetParam(), kOther, kPassword));
    EXPECT_EQ(password, tell_of(file.bytes, GetParam(), kOther, kOther));
    // What is streamed is read for each token, what stays, once.
    EXPECT_EQ(*std::ranges::max_element(password.second) > 1, GetParam());
    EXPECT_EQ(std::ranges::count(password.first, 0), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Watched, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "streamed" : "resident"; });

TEST(WatchedExperts, ThatStayAreReadBeforeTheText) {
  const SmallFile file = small_file(mixture());
  EXPECT_EQ(tell_of(file.bytes, false, kPassword, kOther), tell_of(file.bytes, false, kOther, kPassword));
  EXPECT_NE(tell_of(file.bytes, true, kPassword, kOther), tell_of(file.bytes, true, kOther, kPassword));
}

TEST(WatchedExperts, AreWarnedOf) {
  const SmallFile file = small_file(mixture()), dense = small_file(options_of(false));
  HttpServer server(file.bytes), of_dense(dense.bytes);
  const TempDir dir;
  write_bytes(dir / "m.qsf", file.bytes);
  const auto err = [](const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> arguments{"--prompt", std::string(kPassword), "--max-tokens", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return generate(model, arguments).ran.err;
  };
  const std::string warning = "which experts are read depends on the text";
  EXPECT_NE(err(server.url(), {"--stream-all"}).find(warning), std::string::npos);
  EXPECT_EQ(err(server.url(), {}).find(warning), std::string::npos);
  EXPECT_EQ(err(of_dense.url(), {"--stream-all"}).find(warning), std::string::npos);
  EXPECT_EQ(err(dir / "m.qsf", {"--stream-all"}).find(warning), std::string::npos);
}

}  // namespace
}  // namespace qsf::test
