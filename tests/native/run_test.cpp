// qsf-run on the built-in model: its tokens against Hugging Face's, its memory against the budget.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "native/http_server.h"
#include "native/models.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

[[maybe_unused]] constexpr std::uint64_t kAboveBudget =
    12'000'000;  // what the process may have resident beyond its budget

using Ids = std::vector<std::uint32_t>;

Json prompts() { return golden().at("prompts"); }

TEST(Run, GreedyTokensAreTransformers) {
  ASSERT_EQ(prompts().size(), 3u);
  for (const char* type : {"f32", "f16"}) {
    for (const Json& prompt : prompts()) {
      const RunResult r = generate(
          stories(type), {"--tokens", joined(prompt.at("fed_ids").get<Ids>()), "--max-tokens", "32", "--ignore-eos"});
      EXPECT_EQ(r.receipt.at("prompt_tokens"), prompt.at("fed_ids"));
      EXPECT_EQ(r.receipt.at("generated_tokens"), prompt.at("greedy_ids")) << type << ": " << prompt.at("prompt");
      EXPECT_EQ(r.ran.out, prompt.at("greedy_text").get<std::string>()) << type;
      EXPECT_EQ(r.receipt.at("ended"), "length");
    }
  }
}

TEST(Run, TextBecomesTheSameTokens) {
  for (const Json& prompt : prompts()) {
    const std::string text = "<|endoftext|>" + prompt.at("prompt").get<std::string>();
    const RunResult r = generate(stories("f32"), {"--prompt", text, "--max-tokens", "0"});
    EXPECT_EQ(r.receipt.at("prompt_tokens"), prompt.at("fed_ids"));
    EXPECT_EQ(r.receipt.at("generated_tokens"), Json::array());
    EXPECT_EQ(r.ran.out, "");
  }
}

TEST(Run, WritesTheLogitsOfEveryPromptPosition) {
  const TempDir dir;
  const Json prompt = prompts().at(1);
  const Ids fed = prompt.at("fed_ids").get<Ids>();
  for (const char* chunk : {"0", "1", "7"}) {
    generate(stories("f32"), {"--tokens", joined(fed), "--max-tokens", "3", "--kv", "f32", "--chunk", chunk, "--logits",
                              dir / "logits"});
    const std::vector<std::byte> bytes = read_bytes(dir / "logits");
    ASSERT_EQ(bytes.size(), fed.size() * 2048 * sizeof(float));
    std::vector<float> logits(bytes.size() / sizeof(float));
    std::memcpy(logits.data(), bytes.data(), bytes.size());
    for (const Json& top : prompt.at("top10")) {
      const auto position = top.at("position").get<std::size_t>();
      const auto ids = top.at("ids").get<Ids>();
      const auto values = top.at("logits").get<std::vector<double>>();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_NEAR(logits[position * 2048 + ids[i]], values[i], 1e-4 * std::abs(values[0])) << "position " << position;
      }
    }
  }
}

// Transformers' largest logits differ as the log-probabilities of these tokens do.
TEST(Run, LogprobsAreThoseOfTransformers) {
  for (const Json& prompt : prompts()) {
    const RunResult r = generate(stories("f32"), {"--tokens", joined(prompt.at("fed_ids").get<Ids>()), "--max-tokens",
                                                  "4", "--ignore-eos", "--logprobs", "5"});
    const Json& tokens = r.receipt.at("logprobs");
    ASSERT_EQ(tokens.size(), 4u);
    const Json& first = tokens.at(0);
    EXPECT_EQ(first.at("token"), prompt.at("greedy_ids").at(0));
    EXPECT_EQ(first.at("logprob"), first.at("top").at(0).at("logprob"));
    const Json& wanted = prompt.at("top10").back();
    ASSERT_EQ(first.at("top").size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(first.at("top").at(i).at("token"), wanted.at("ids").at(i));
      const auto below = [i](const Json& values) { return values.at(0).get<double>() - values.at(i).get<double>(); };
      Json logprobs = Json::array();
      for (const Json& one : first.at("top")) logprobs.push_back(one.at("logprob"));
      EXPECT_NEAR(below(logprobs), below(wanted.at("logits")), 1e-3);
    }
  }
}

struct Way {
  const char* name;
  std::vector<std::string> arguments;
};

// However the bytes come and wherever they stay, the logits are the same bits.
TEST(Run, EveryWayGivesTheSameBits) {
  const std::string model = stories("8bit"), packed = stories("8bit", "lz4");
  HttpServer server(read_bytes(packed));
  const std::string ids = joined(prompts().at(1).at("fed_ids").get<Ids>());
  const std::vector<std::string> common{"--tokens", ids, "--max-tokens", "24", "--ignore-eos"};
  const auto run_with = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return generate(file, arguments).receipt;
  };
  const Json base = run_with(model, {"--threads", "1"});
  EXPECT_EQ(base.at("logits_hash").get<std::string>().size(), 64u);
  EXPECT_EQ(base.at("plan").at("ring_slots"), 0);
  EXPECT_EQ(base.at("source"), "pread");
  const Way ways[] = {
      {"mmap", {"--source", "mmap"}},
      {"scalar", {"--isa", "scalar"}},
      {"two threads", {"--threads", "2"}},
      {"eight threads", {"--threads", "8", "--pin"}},
      {"chunks of one", {"--chunk", "1"}},
      {"chunks of seven", {"--chunk", "7"}},
      {"streamed", {"--stream-all"}},
      {"streamed through one slot", {"--stream-all", "--ring", "1"}},
      {"streamed by mmap", {"--stream-all", "--source", "mmap", "--threads", "3"}},
      {"streamed past the page cache", {"--stream-all", "--source", "direct"}},
      {"streamed by a ring of the system", {"--stream-all", "--source", "uring", "--ring", "1", "--threads", "3"}},
      {"streamed by it through many slots", {"--ram-budget", "6", "--source", "uring", "--ring", "9"}},
      {"a small budget", {"--ram-budget", "4"}},
      {"a short context", {"--max-seq-len", "64"}},
      {"guesses", {"--speculate", "ngram"}},
      {"guesses for streamed weights", {"--speculate", "ngram", "--guesses", "15", "--stream-all"}},
  };
  for (const Way& way : ways) {
    for (const std::string& file : {model, packed}) {
      const Json receipt = run_with(file, way.arguments);
      EXPECT_EQ(receipt.at("logits_hash"), base.at("logits_hash")) << way.name << " " << file;
      EXPECT_EQ(receipt.at("generated_tokens"), base.at("generated_tokens")) << way.name;
    }
  }
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--stream-all"}}) {
    const Json receipt = run_with(server.url(), more);
    EXPECT_EQ(receipt.at("logits_hash"), base.at("logits_hash"));
    EXPECT_EQ(receipt.at("source"), "http");
  }
  EXPECT_NE(run_with(model, {"--kv", "8bit"}).at("logits_hash"), base.at("logits_hash"))
      << "the hash sees a difference";
}

// What to expect is measured, so here only that it is told, and that more memory is expected to be faster.
TEST(Run, TellsWhatToExpect) {
  const auto map = [](const char* budget) {
    const Ran ran = run({program("qsf-run"), stories("8bit"), "--memory-map", "--ram-budget", budget});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  const std::string streamed = map("4"), resident = map("32");
  double rate = 0, reads = 0, budget = 0, with = 0, alone = 0;
  const std::size_t at = streamed.find("expected ");
  ASSERT_NE(at, std::string::npos) << streamed;
  ASSERT_EQ(std::sscanf(streamed.c_str() + at,
                        "expected about %lf tokens/s, reading %lf MiB for each; with %lf MiB everything stays: about "
                        "%lf tokens/s",
                        &rate, &reads, &budget, &with),
            4)
      << streamed;
  EXPECT_GT(rate, 0);
  EXPECT_GE(with, rate);
  EXPECT_GT(reads, 0);
  EXPECT_GT(budget, 4);
  ASSERT_NE(resident.find("expected "), std::string::npos) << resident;
  EXPECT_EQ(std::sscanf(resident.c_str() + resident.find("expected "), "expected about %lf tokens/s", &alone), 1);
  EXPECT_NE(map(std::to_string(static_cast<int>(budget)).c_str()).find("everything stays in memory"),
            std::string::npos);
  const Ran refused = run({program("qsf-run"), stories("8bit"), "--prompt", "x", "--ram-budget", "1.4"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find(" MiB everything stays: about "), std::string::npos) << refused.err;
}

TEST(Run, TellsWhereWeightsAre) {
  const auto map = [](std::vector<std::string> more) {
    more.insert(more.begin(), {program("qsf-run"), stories("8bit"), "--memory-map"});
    const Ran ran = run(more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out.substr(std::min(ran.out.find("streaming "), ran.out.size()));
  };
  EXPECT_EQ(map({"--ram-budget", "32"}).rfind("streaming  none: everything stays in memory\n", 0), 0U);
  const std::string mapped = map({"--ram-budget", "4", "--source", "mmap"});
  double used = 0;
  ASSERT_EQ(std::sscanf(mapped.c_str(), "streaming  none: %lf MiB are used in the mapped file", &used), 1) << mapped;
  EXPECT_GT(used, 4);
}

/// models/stories as a GGUF of this type.
std::string stories_gguf(const TempDir& dir, const std::string& type) {
  const std::string path = dir / (type + ".gguf");
  const Ran ran = run({program("qsf-convert"), source_dir() + "/models/stories", path, "--quant-type", type});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return path;
}

TEST(Run, StaysInsideItsBudget) {
  HttpServer server(read_bytes(stories("8bit")));
  const TempDir dir;
  const std::string gguf = stories_gguf(dir, "q8_0"), cache = dir / "fronts";
  const std::string ids = joined(prompts().at(0).at("fed_ids").get<Ids>());
  struct Case {
    std::string model;
    double mib;
    std::vector<std::string> more;
  };
  const Case cases[] = {
      {stories("8bit"), 4, {}},
      {stories("8bit"), 4, {"--source", "mmap", "--stream-all"}},
      {stories("8bit"), 4, {"--source", "direct"}},
      {stories("8bit"), 4, {"--source", "uring"}},
      {server.url(), 4, {}},
      {stories("8bit"), 200, {}},
      {stories("f32"), 12, {"--threads", "8"}},
      {stories("f32"), 24, {"--source", "mmap"}},
      {gguf, 4.5, {"--cache", "none"}},
      {gguf, 4.5, {"--cache", cache}},
      {gguf, 4.4, {"--cache", cache, "--source", "uring"}},
      {source_dir() + "/models/stories", 4.25, {"--cache", "none"}},
      {source_dir() + "/models/stories", 12, {"--cache", cache, "--quant-type", "f32", "--threads", "8"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments{"--tokens",           ids, "--max-tokens", "100", "--ignore-eos", "--ram-budget",
                                       std::to_string(c.mib)};
    arguments.insert(arguments.end(), c.more.begin(), c.more.end());
    const RunResult r = generate(c.model, arguments, true);
    const auto budget = static_cast<std::uint64_t>(c.mib * (1 << 20));
    const Json& plan = r.receipt.at("plan");
    EXPECT_EQ(plan.at("budget"), budget);
    std::uint64_t mapped = 0;
    for (const Json& region : plan.at("memory_map")) mapped += region.get<std::uint64_t>();
    EXPECT_LE(mapped, budget);
    EXPECT_GT(mapped, budget - 64 * 1024);
    const bool streamed = plan.at("weight_bytes").get<std::uint64_t>() > budget;
    EXPECT_EQ(streamed, plan.at("ring_slots") != 0) << c.mib;
    if (streamed) {
      EXPECT_GT(r.receipt.at("bytes_read"), 20 * plan.at("weight_bytes").get<std::uint64_t>());
    }
    EXPECT_GT(r.ran.peak_resident_bytes, 1'000'000u);
#ifndef QSF_SANITIZED  // a sanitizer keeps its own memory beside
    EXPECT_LE(r.ran.peak_resident_bytes, budget + kAboveBudget) << c.model << " in " << c.mib << " MiB";
    EXPECT_NEAR(r.receipt.at("peak_resident_bytes").get<double>(), static_cast<double>(r.ran.peak_resident_bytes), 1e6);
#endif
    std::printf("budget %6.1f MiB, %s: peak %+.2f MB\n", c.mib, r.receipt.at("source").get<std::string>().c_str(),
                (static_cast<double>(r.ran.peak_resident_bytes) - static_cast<double>(budget)) / 1e6);
  }
}

// With a ring that holds two of its widest segments, a pass reads what streams once, except a look-up's segments.
TEST(Run, TightRingsReadEachSegmentOnceInAPass) {
  const TempDir dir;
  const Ran made =
      run({program("qsf-convert"), source_dir() + "/models/stories", dir / "m.qsf", "--quant-type", "q4_0"});
  ASSERT_EQ(made.code, 0) << made.err;
  for (const char* source : {"pread", "direct"}) {
    const RunResult r = generate(dir / "m.qsf", {"--prompt", "Once upon a time", "--max-tokens", "40", "--ignore-eos",
                                                 "--ram-budget", "2", "--ring", "2", "--source", source});
    const Json& plan = r.receipt.at("plan");
    const auto pass = plan.at("token_bytes").get<std::uint64_t>();
    EXPECT_EQ(plan.at("chunk"), 8);
    EXPECT_GT(r.receipt.at("bytes_read"), 40 * pass);  // the prompt, and 39 tokens
    EXPECT_LT(r.receipt.at("bytes_read"), 44 * pass) << source;
  }
}

/// What a mixture took of its experts; a model without any tells nothing of them.
TEST(Run, TellsWhatWasFoundOfExperts) {
  const TempDir dir;
  const std::string model = dir / "mixture.qsf";
  const Ran ran = run({program("qsf-convert"), source_dir() + "/tests/data/qwen3-moe", model});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const RunResult r =
      generate(model, {"--tokens", "1", "--max-tokens", "20", "--ignore-eos", "--stream-all", "--verbose"});
  const Json& experts = r.receipt.at("experts");
  // Four layers take three experts for each token that is fed; nothing is kept of them.
  EXPECT_EQ(experts.at("chosen"), 4 * 3 * 20);
  EXPECT_EQ(experts.at("found"), 0);
  const std::uint64_t weights = 3 * 64 * 128 * (2 + 64) / 64;  // of an expert; a matrix has a header in the first one's
  EXPECT_GE(experts.at("bytes_read"), 240 * weights);
  EXPECT_LE(experts.at("bytes_read"), 240 * (weights + 3 * 16));
  EXPECT_NE(r.ran.err.find("experts    240 chosen, 0.0 % found in memory"), std::string::npos) << r.ran.err;
  EXPECT_FALSE(generate(stories("8bit"), {"--prompt", "x", "--max-tokens", "1"}).receipt.contains("experts"));
}

TEST(Run, TheReceiptTellsWhatRan) {
  const RunResult r = generate(stories("8bit"), {"--prompt", "Once upon", "--max-tokens", "5", "--isa", "scalar",
                                                 "--threads", "2", "--seed", "9", "--ignore-eos"});
  const Json& j = r.receipt;
  EXPECT_EQ(j.at("isa"), "scalar");
  EXPECT_EQ(j.at("threads"), 2);
  EXPECT_EQ(j.at("model").at("hash").get<std::string>().size(), 64u);
  EXPECT_EQ(j.at("model").at("bytes"), read_bytes(stories("8bit")).size());
  EXPECT_EQ(j.at("sampler").at("seed"), 9);
  EXPECT_EQ(j.at("generated_tokens").size(), 5u);
  EXPECT_EQ(j.at("text"), r.ran.out);
  std::uint64_t products = 0;
  for (const Json& kernel : j.at("kernels")) {
    if (kernel.at("op") == "matmul" && kernel.at("type") == "8bit") products = kernel.at("calls");
  }
  // Seven products in each of five layers and one for the output, at least once for every token fed.
  EXPECT_GE(products, 5u * (5 * 7 + 1));
  EXPECT_GT(j.at("bytes_read"), 4'000'000);
  EXPECT_GT(j.at("seconds").at("open"), 0.0);
  EXPECT_GT(j.at("seconds").at("generation"), 0.0);
}

TEST(Run, SamplingFollowsTheSeed) {
  const auto text = [&](const char* seed) {
    return run({program("qsf-run"), stories("8bit"), "--prompt", "Once upon a time", "--max-tokens", "40",
                "--temperature", "1", "--seed", seed})
        .out;
  };
  const std::string first = text("1");
  EXPECT_GT(first.size(), 40u);
  EXPECT_EQ(text("1"), first);
  EXPECT_NE(text("2"), first);
}

TEST(Run, ReadsThePromptFromStandardInput) {
  const std::vector<std::string> command{
      program("qsf-run"), stories("8bit"), "--temperature", "0", "--max-tokens", "20"};
  const Ran piped = run(command, {.input = "Once upon a time\n", .environment = {}, .meanwhile = nullptr});
  std::vector<std::string> given = command;
  given.insert(given.end(), {"--prompt", "Once upon a time"});
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(piped.out, run(given).out);
  EXPECT_GT(piped.out.size(), 20u);
}

TEST(Run, StopsAtAStopString) {
  const RunResult whole = generate(stories("f32"), {"--prompt", "<|endoftext|>Once upon a time", "--max-tokens", "32"});
  ASSERT_NE(whole.ran.out.find("son, and"), std::string::npos) << whole.ran.out;
  const RunResult cut = generate(stories("f32"), {"--prompt", "<|endoftext|>Once upon a time", "--max-tokens", "32",
                                                  "--stop", "no such text", "--stop", "son, and"});
  EXPECT_EQ(cut.ran.out, whole.ran.out.substr(0, whole.ran.out.find("son, and")));
  EXPECT_EQ(cut.receipt.at("ended"), "stop");
}

TEST(Run, InteractiveContinuesTheSequence) {
  const std::vector<std::string> command{
      program("qsf-run"), stories("8bit"), "--interactive", "--temperature", "0", "--max-tokens", "12", "--ignore-eos"};
  const auto lines = [&](const std::string& input) {
    const Ran ran = run(command, {.input = input, .environment = {}, .meanwhile = nullptr});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  const std::string one = lines("Once upon a time\n");
  const std::string two = lines("Once upon a time\n\n and the king said\n");
  EXPECT_EQ(two.substr(0, one.size()), one);
  EXPECT_GT(two.size(), one.size() + 10);
  EXPECT_NE(two.substr(one.size()), lines(" and the king said\n")) << "the second line must see the first";
}

TEST(Run, InteractiveBeginsAnewWhenTheContextIsFull) {
  std::string input;
  for (int i = 0; i < 6; ++i) input += "Once upon a time there was a king\n";
  const Ran ran = run({program("qsf-run"), stories("8bit"), "--interactive", "--max-seq-len", "40", "--max-tokens",
                       "12", "--ignore-eos"},
                      {.input = input, .environment = {}, .meanwhile = nullptr});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("the context is full"), std::string::npos);
}

TEST(Run, ShowsThePlanAndMeasures) {
  const Ran map = run({program("qsf-run"), stories("8bit"), "--memory-map", "--ram-budget", "4"});
  EXPECT_EQ(map.code, 0) << map.err;
  for (const char* word : {"kv cache", "pinned weights", "tokenizer", "budget", "4194304", "slots"}) {
    EXPECT_NE(map.out.find(word), std::string::npos) << word << "\n" << map.out;
  }
  const Ran bench = run({program("qsf-run"), stories("8bit"), "--bench", "--max-tokens", "8"});
  EXPECT_EQ(bench.code, 0) << bench.err;
  double prompt = 0, generation = 0;
  EXPECT_EQ(std::sscanf(bench.out.c_str(), "prompt %lf tokens/s (%*d tokens) generation %lf", &prompt, &generation), 2)
      << bench.out;
  EXPECT_GT(prompt, 1);
  EXPECT_GT(generation, 1);
}

TEST(Run, ControlCEndsItCleanly) {
  HttpServer server(read_bytes(stories("8bit")));
  // The tables and the tokenizer come; the weights, behind them, never do.
  server.set_fault([](const HttpRequest& r) { return r.first > 46'000 ? Fault::stall : Fault::none; });
  const TempDir dir;
  const Ran ran = run({program("qsf-run"), server.url(), "--prompt", "Once upon a time", "--receipt", dir / "receipt"},
                      {.input = "", .environment = {}, .meanwhile = [&](pid_t child) {
                         const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                         const auto stalled = [&] {
                           for (const HttpRequest& r : server.requests()) {
                             if (r.first > 46'000) return true;
                           }
                           return false;
                         };
                         while (!stalled() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
                         std::this_thread::sleep_for(std::chrono::milliseconds(50));
                         ::kill(child, SIGINT);
                       }});
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(Json::parse(read_text(dir / "receipt"), nullptr, false).value("ended", ""), "cancelled");
}

}  // namespace
}  // namespace qsf::test
