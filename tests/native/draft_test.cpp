// qsf-run with a second model that guesses: the text is the same, and both models are inside one budget.
#include <gtest/gtest.h>

#include "file/small_file.h"
#include "native/models.h"
#include "qsf.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string data(const std::string& name) { return source_dir() + "/tests/data/" + name; }

/// Runs qsf-run on a prompt, greedy.
RunResult made(const std::string& model, std::vector<std::string> more, bool measure = false) {
  more.insert(more.begin(), {"--prompt", "Once upon a time", "--max-tokens", "60", "--ignore-eos"});
  return generate(model, more, measure);
}

/// The same, sampled.
Json drawn_by(const std::string& model, const std::vector<std::string>& more) {
  const TempDir dir;
  std::vector<std::string> command{program("qsf-run"),
                                   model,
                                   "--prompt",
                                   "Once upon a time",
                                   "--max-tokens",
                                   "60",
                                   "--ignore-eos",
                                   "--temperature",
                                   "0.9",
                                   "--seed",
                                   "5",
                                   "--receipt",
                                   dir / "receipt"};
  command.insert(command.end(), more.begin(), more.end());
  const Ran ran = run(command);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? Json::parse(read_text(dir / "receipt"), nullptr, false) : Json::object();
}

TEST(Draft, ChangesNoBit) {
  const TempDir dir;
  const std::string model = stories("8bit"), small = stories("q2_k"), gguf = dir / "draft.gguf";
  ASSERT_EQ(run({program("qsf-convert"), source_dir() + "/models/stories", gguf, "--quant-type", "q4_0"}).code, 0);
  const Json greedy = made(model, {}).receipt, drawn = drawn_by(model, {});
  EXPECT_FALSE(greedy.contains("guesses"));
  struct Case {
    std::string draft;
    bool draws;
    std::vector<std::string> more;
  };
  const Case cases[] = {
      {small, false, {}},
      {small, false, {"--stream-all"}},
      {small, false, {"--ram-budget", "5.5", "--guesses", "15"}},
      {small, true, {}},
      {small, true, {"--stream-all", "--threads", "2"}},
      {small, true, {"--kv-policy", "window:300", "--chunk", "3"}},
      {gguf, true, {"--cache", "none"}},
      {source_dir() + "/models/stories", false, {"--cache", "none", "--stream-all"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments{"--speculate", c.draft};
    arguments.insert(arguments.end(), c.more.begin(), c.more.end());
    const Json receipt = c.draws ? drawn_by(model, arguments) : made(model, arguments).receipt,
               &expected = c.draws ? drawn : greedy;
    for (const char* field : {"generated_tokens", "text", "logits_hash"}) {
      EXPECT_EQ(receipt.at(field), expected.at(field)) << c.draft << " " << Json(c.more).dump();
    }
    const Json& guesses = receipt.at("guesses");
    EXPECT_GT(guesses.at("right"), 0) << guesses.dump();
    EXPECT_LE(guesses.at("right"), guesses.at("guessed"));
    EXPECT_EQ(guesses.at("draft").at("file"), c.draft);
    EXPECT_GT(guesses.at("draft").at("bytes_read"), 0);
  }
}

// A pass over streamed weights is saved for each right guess, and the weights of the draft are read once.
TEST(Draft, SavesReading) {
  const std::string model = stories("8bit");
  const RunResult plain = made(model, {"--stream-all"});
  const RunResult r = made(model, {"--stream-all", "--speculate", source_dir() + "/models/stories", "--verbose"});
  const Json &receipt = r.receipt, &guesses = receipt.at("guesses"), &draft = guesses.at("draft");
  const auto right = guesses.at("right").get<std::uint64_t>();
  EXPECT_EQ(guesses.at("guessed"), right) << "the same model guesses what it will choose";
  EXPECT_GT(right, 45u);
  const auto read = [](const Json& j) { return j.at("bytes_read").get<std::uint64_t>(); };
  // What is read ahead when a program ends depends on the time.
  const auto pass = receipt.at("plan").at("token_bytes").get<double>();
  EXPECT_NEAR(static_cast<double>(read(plain.receipt) - read(receipt)) / pass, static_cast<double>(right), 0.9);
  EXPECT_GE(draft.at("pinned_bytes"), draft.at("weight_bytes"));
  EXPECT_LT(draft.at("bytes_read"), draft.at("weight_bytes").get<std::uint64_t>() * 3 / 2);
  EXPECT_NE(r.ran.err.find("the draft model is not smaller than the model: "), std::string::npos) << r.ran.err;
  EXPECT_NE(r.ran.err.find("MiB of weights in memory, 512 tokens of context"), std::string::npos) << r.ran.err;
  EXPECT_NE(r.ran.err.find(std::to_string(right) + " of them right"), std::string::npos) << r.ran.err;
}

TEST(Draft, StaysInsideTheBudget) {
  for (const double mib : {10.0, 40.0}) {
    const RunResult r =
        made(stories("f32"), {"--speculate", stories("q2_k"), "--ram-budget", std::to_string(mib)}, true);
    const Json &plan = r.receipt.at("plan"), &draft = r.receipt.at("guesses").at("draft");
    const auto budget = static_cast<std::uint64_t>(mib * kMiB);
    EXPECT_EQ(plan.at("budget"), budget);
    std::uint64_t mapped = 0;
    for (const Json& region : plan.at("memory_map")) mapped += region.get<std::uint64_t>();
    EXPECT_LE(mapped, budget);
    EXPECT_EQ(plan.at("memory_map").at("draft model"), draft.at("budget"));
    EXPECT_GE(plan.at("memory_map").at("host reserve"), kMiB);
    EXPECT_LE(draft.at("budget"), budget / 2);
    EXPECT_GE(draft.at("pinned_bytes"), draft.at("weight_bytes"));
    EXPECT_EQ(plan.at("ring_slots") == 0, mib == 40);
#if !defined(QSF_SANITIZED) && !defined(_WIN32)  // memory of a sanitizer and of wine counts
    EXPECT_LE(r.ran.peak_resident_bytes, budget + 12'000'000);
#endif
    std::printf("budget %6.1f MiB, draft %.2f: peak %+.2f MB\n", mib, draft.at("budget").get<double>() / kMiB,
                (static_cast<double>(r.ran.peak_resident_bytes) - static_cast<double>(budget)) / 1e6);
  }
}

// A draft with fewer positions than usual contexts has opens with those.
TEST(Draft, HasTheContextThatItsModelHas) {
  const std::vector<std::string> of_gpt2{"--cache", "none", "--tokens", "1,2,3"};
  std::vector<std::string> more = of_gpt2;
  more.insert(more.end(), {"--speculate", data("gpt2")});
  const auto tokens = [&](std::vector<std::string> arguments) {
    const TempDir dir;
    std::vector<std::string> command{program("qsf-run"), data("gpt2"),   "--max-tokens", "20",
                                     "--receipt",        dir / "receipt"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.code == 0 ? Json::parse(read_text(dir / "receipt"), nullptr, false) : Json::object();
  };
  const Json with = tokens(more);
  EXPECT_EQ(with.at("generated_tokens"), tokens(of_gpt2).at("generated_tokens"));
  EXPECT_EQ(with.at("guesses").at("draft").at("max_seq_len"), with.at("plan").at("max_seq_len"));
}

TEST(Draft, IsRefusedWithASentence) {
  struct Case {
    std::string model, draft;
    std::vector<std::string> more;
    const char* sentence;
  };
  const Case cases[] = {
      {stories("8bit"), data("llama"), {}, "the draft model has another vocabulary: its token "},
      {stories("8bit"),
       stories("q2_k"),
       {"--kv-policy", "h2o:32"},
       "a draft model is of no use: this model, with these options, cannot go back"},
      {stories("8bit"), "ngrams", {}, "the draft model: "},
      {stories("8bit"),
       stories("8bit"),
       {"--ram-budget", "2.5"},
       "the draft model: in half of the budget: the budget of "},
      {stories("8bit"), stories("q2_k"), {"--chunk", "1"}, "a draft model is of no use: passes have one column"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> command{program("qsf-run"), c.model, "--prompt", "x",
                                     "--speculate",      c.draft, "--cache",  "none"};
    command.insert(command.end(), c.more.begin(), c.more.end());
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 1) << c.draft;
    EXPECT_NE(ran.err.find(c.sentence), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(run({program("qsf-run"), stories("8bit"), "--prompt", "x", "--speculate", ""}).code, 2);
}

// The model itself guesses, by its first layers or in fewer bits.
TEST(OwnGuesses, ChangeNoBit) {
  const TempDir dir;
  const std::string own = stories("8bit"), gguf = dir / "stories.gguf";
  ASSERT_EQ(run({program("qsf-convert"), source_dir() + "/models/stories", gguf, "--quant-type", "q8_0"}).code, 0);
  struct Case {
    std::string model;
    const char* kind;
    bool draws;
    std::vector<std::string> more;
    std::uint32_t least_right;
  };
  const Case cases[] = {
      {own, "layers", false, {}, 0},
      {own, "layers:4", true, {"--stream-all"}, 1},
      {own, "layers:4", false, {"--ram-budget", "5.5", "--guesses", "15"}, 1},
      {gguf, "lowbit:q2_k", true, {}, 1},
      {gguf, "lowbit", false, {"--stream-all", "--threads", "2"}, 30},
      {own, "lowbit:q2_k", true, {}, 1},
  };
  for (const Case& c : cases) {
    const auto written = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), {"--cache", "none"});
      return c.draws ? drawn_by(c.model, arguments) : made(c.model, arguments).receipt;
    };
    std::vector<std::string> arguments{"--speculate", c.kind};
    arguments.insert(arguments.end(), c.more.begin(), c.more.end());
    const Json receipt = written(arguments), expected = written({});
    for (const char* field : {"generated_tokens", "text", "logits_hash"}) {
      EXPECT_EQ(receipt.at(field), expected.at(field)) << c.kind << " " << Json(c.more).dump();
    }
    EXPECT_GE(receipt.at("guesses").at("right"), c.least_right) << c.kind;
    EXPECT_EQ(receipt.at("guesses").contains("draft"), std::string_view(c.kind).starts_with("lowbit")) << c.kind;
  }
}

// Models with recurrent states: one token at a time, and with guesses of each source.
TEST(OwnGuesses, OfModelsWithStates) {
  const TempDir dir;
  for (const char* const name : {"mamba2", "lfm2", "qwen3.5"}) {
    const std::string model = data(name);
    const auto receipt = [&](const std::vector<std::string>& more) {
      std::vector<std::string> command{program("qsf-run"), model,     "--tokens", "5,6,7,8,5,6,7", "--max-tokens", "40",
                                       "--ignore-eos",     "--cache", "none",     "--receipt",     dir / "receipt"};
      command.insert(command.end(), more.begin(), more.end());
      const Ran ran = run(command);
      EXPECT_EQ(ran.code, 0) << ran.err;
      return ran.code == 0 ? Json::parse(read_text(dir / "receipt"), nullptr, false) : Json::object();
    };
    const Json expected = receipt({});
    for (const std::string& source : {std::string("layers"), std::string("lowbit:q8_0"), model}) {
      const Json made = receipt({"--speculate", source});
      for (const char* field : {"generated_tokens", "logits_hash"}) EXPECT_EQ(made.at(field), expected.at(field));
      EXPECT_GT(made.at("guesses").at("guessed"), 0) << name << " " << source;
    }
  }
}

TEST(OwnGuesses, ByTheHead) {
  const TempDir dir;
  SmallOptions shape;
  shape.n_layers = 4;
  shape.max_seq_len = 128;
  shape.model.guess_layer = 1;
  write_bytes(dir / "model.qsf", small_file(shape).bytes);
  const auto receipt = [&](std::vector<std::string> more) {
    std::vector<std::string> command{program("qsf-run"), dir / "model.qsf", "--tokens",
                                     "5,6,7,8,9",        "--max-tokens",    "60",
                                     "--ignore-eos",     "--receipt",       dir / "receipt"};
    command.insert(command.end(), more.begin(), more.end());
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.code == 0 ? Json::parse(read_text(dir / "receipt"), nullptr, false) : Json::object();
  };
  const Json expected = receipt({});
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--stream-all", "--guesses", "3"}}) {
    std::vector<std::string> command{"--speculate", "head"};
    command.insert(command.end(), more.begin(), more.end());
    const Json made = receipt(command);
    EXPECT_EQ(made.at("logits_hash"), expected.at("logits_hash"));
    EXPECT_GT(made.at("guesses").at("guessed"), 5);
  }
}

TEST(OwnGuesses, AreRefusedWithASentence) {
  struct Case {
    std::string model;
    const char* kind;
    int code;
    const char* sentence;
  };
  const Case cases[] = {
      {stories("8bit"), "layers:0", 2, "layers:0 names no number of layers"},
      {stories("8bit"), "layers:", 2, "layers: names no number of layers"},
      {stories("8bit"), "layers:3x", 2, "layers:3x names no number of layers"},
      {stories("8bit"), "lowbit:", 2, "lowbit: names no type"},
      {stories("8bit"), "layers:99", 1, "99 layers are to guess (guess_layers), and the model has "},
      {source_dir() + "/models/stories", "lowbit:q9", 1, "the draft model: there is no type 'q9'"},
      {stories("8bit"), "head", 1, "the model has no layer for further tokens"},
      {stories("8bit"), "head:1", 2, "head takes no argument: head:1"},
      {stories("8bit"), "none:1", 2, "none takes no argument: none:1"},
      {stories("8bit"), "lowbit:q9", 1, "the draft model: there is no type 'q9'"},
  };
  for (const Case& c : cases) {
    const Ran ran = run({program("qsf-run"), c.model, "--prompt", "x", "--speculate", c.kind, "--cache", "none"});
    EXPECT_EQ(ran.code, c.code) << c.kind;
    EXPECT_NE(ran.err.find(c.sentence), std::string::npos) << ran.err;
  }
}

TEST(Draft, GuessesForTheCApi) {
  const auto text = [](const char* what) {
    QSFConfig* const config = qsf_config_default();
    qsf_config_set_ram_budget(config, 32);
    qsf_config_set_speculate(config, what);
    QSFEngine* const engine = qsf_load(stories("8bit").c_str(), config);
    qsf_config_free(config);
    if (engine == nullptr) return std::string(qsf_last_error());
    std::string out;
    const auto add = [](int, const char* piece, void* to) { *static_cast<std::string*>(to) += piece; };
    qsf_generate(engine, "Once upon a time", 40, 0.0f, 1.0f, add, &out);
    EXPECT_EQ(qsf_last_error_code(), 0) << qsf_last_error();
    qsf_free(engine);
    return out;
  };
  const std::string plain = text(nullptr);
  EXPECT_GT(plain.size(), 40u);
  EXPECT_EQ(text(stories("q2_k").c_str()), plain);
  EXPECT_EQ(text("ngram"), plain);
  EXPECT_EQ(text("layers:3"), plain);
  EXPECT_EQ(text("layers:x"), "layers:x names no number of layers");
  EXPECT_EQ(text(data("llama").c_str()).rfind("the draft model has another vocabulary: ", 0), 0u);
}

}  // namespace
}  // namespace qsf::test
