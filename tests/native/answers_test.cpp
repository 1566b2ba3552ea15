// Several texts of one prompt (--answers): each is the text of a run of its own with its seed, to the bit.
#include <gtest/gtest.h>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

constexpr const char* kPrompt =
    "Once upon a time there was a king who had three daughters, and the youngest of them was more beautiful than ";

class Answers : public ::testing::Test {
 protected:
  RunResult take(const std::string& model, std::vector<std::string> more) const {
    more.insert(more.begin(), {program("qsf-run"), model, "--receipt", dir_ / "receipt"});
    RunResult out;
    out.ran = run(more);
    EXPECT_EQ(out.ran.code, 0) << out.ran.err;
    if (out.ran.code == 0) out.receipt = Json::parse(read_text(dir_ / "receipt"), nullptr, false);
    return out;
  }
  /// Compares three answers with runs of their seeds, and returns the receipt of the three.
  Json check(const std::string& model, const std::vector<std::string>& options) const {
    std::vector<std::string> all = options;
    all.insert(all.end(), {"--answers", "3", "--seed", "18446744073709551614"});
    const RunResult together = take(model, all);
    std::string shown;
    EXPECT_EQ(together.receipt.at("answers").size(), 3u);
    const char* const seeds[] = {"18446744073709551614", "18446744073709551615", "0"};
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<std::string> one = options;
      one.insert(one.end(), {"--seed", seeds[i]});
      const RunResult alone = take(model, one);
      const Json& answer = together.receipt.at("answers").at(i);
      EXPECT_EQ(std::to_string(answer.at("seed").get<std::uint64_t>()), seeds[i]);
      for (const char* field : {"generated_tokens", "text", "ended", "logits_hash"}) {
        EXPECT_EQ(answer.at(field), alone.receipt.at(field)) << field << i << joined(options);
      }
      EXPECT_EQ(answer.value("logprobs", Json()), alone.receipt.value("logprobs", Json())) << i;
      EXPECT_EQ(together.receipt.at("prompt_tokens"), alone.receipt.at("prompt_tokens"));
      shown += "--- answer " + std::to_string(i + 1) + " of 3, seed " + seeds[i] + " ---\n" + alone.ran.out + "\n";
    }
    EXPECT_EQ(together.ran.out, shown);
    return together.receipt;
  }
  static std::string joined(const std::vector<std::string>& options) {
    std::string out;
    for (const std::string& option : options) out += " " + option;
    return out;
  }
  std::vector<std::string> prompt(std::vector<std::string> more) const {
    more.insert(more.begin(), {"-p", kPrompt, "-n", "24", "--temperature", "1"});
    return more;
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }

  TempDir dir_;
};

TEST_F(Answers, AreRunsOfTheirSeeds) {
  const std::string model = stories("8bit");
  const Json plain = check(model, prompt({"--logprobs", "2"}));
  const Json& answers = plain.at("answers");
  EXPECT_NE(answers.at(0).at("text"), answers.at(1).at("text"));
  // The prompt is computed once: the others compute its last token only.
  EXPECT_EQ(answers.at(0).at("reused_tokens"), 0);
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_EQ(answers.at(i).at("reused_tokens"), plain.at("prompt_tokens").size() - 1);
  }
  check(model, prompt({"--stop", "e", "--ignore-eos"}));
  check(model, prompt({"--stream-all", "--speculate", "ngram", "--chunk", "5"}));
  check(model, prompt({"--kv-policy", "h2o:16", "--ignore-eos"}));
  check(model, prompt({"--mirostat", "2", "--kv", "k8v4"}));
}

TEST_F(Answers, FollowTheirGrammarEach) {
  const std::string model = stories("8bit");
  check(model, prompt({"--regex", "[a-z]{2,5}( [a-z]{2,5}){1,4}\\."}));
  const std::string schema =
      file("schema", R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age":
                        {"type": "integer", "maximum": 120}}, "required": ["name", "age"], "additionalProperties": false})");
  const Json made = check(model, {"-p", kPrompt, "-n", "200", "--temperature", "1", "--json-schema", schema});
  for (const Json& answer : made.at("answers")) {
    const Json read = Json::parse(answer.at("text").get<std::string>(), nullptr, false);
    EXPECT_TRUE(read.is_object() && read.size() == 2 && read["age"] <= 120) << answer;
  }
}

TEST_F(Answers, OfAMessageAreRunsOfTheirSeeds) {
  const std::string model = chat_model(dir_, kChatMl), thinking = file("template", R"({% for m in messages %}{{
      '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}<|im_start|>assistant
<think>
)");
  const auto texts = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--message", "Tell me of a king.", "-n", "24", "--temperature", "1"});
    const auto outs = [&](std::vector<std::string> last) {
      std::vector<std::string> all = more;
      all.insert(all.end(), last.begin(), last.end());
      return take(model, all);
    };
    const RunResult together = outs({"--answers", "3", "--seed", "7"});
    std::string shown;
    for (std::size_t i = 0; i < 3; ++i) {
      const RunResult alone = outs({"--seed", std::to_string(7 + i)});
      const Json& answer = together.receipt.at("answers").at(i);
      for (const char* field : {"generated_tokens", "text", "ended", "logits_hash"}) {
        EXPECT_EQ(answer.at(field), alone.receipt.at(field)) << field << i;
      }
      shown += "--- answer " + std::to_string(i + 1) + " of 3, seed " + std::to_string(7 + i) + " ---\n" +
               alone.ran.out + "\n";
    }
    EXPECT_EQ(together.ran.out, shown);
  };
  texts({});
  texts({"--system-prompt", "You tell tales.", "--regex", "(yes|no), [a-z ]{3,12}"});
  texts({"--chat-template", thinking, "--reasoning-budget", "6", "--regex", "[a-z ]{3,12}"});
}

TEST_F(Answers, WhatTheyDoNotGoWithIsRefused) {
  const auto refused = [](std::vector<std::string> more, const char* sentence) {
    more.insert(more.begin(), {program("qsf-run"), "no/such/model", "--answers", "2"});
    const Ran ran = run(more);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_TRUE(has(ran.err, sentence)) << ran.err;
  };
  for (const char* mode : {"--chat", "--interactive", "--bench", "--detokenize", "--perplexity=x", "--render=x"}) {
    refused({mode}, "--answers is for one prompt or --message");
  }
  for (const char* mode : {"--embed", "--tokenize"}) refused({mode, "-p", "x"}, "--answers is for one prompt");
  refused({"-p", "x", "--session", "s"}, "--answers makes several texts of one prompt, and --session");
  EXPECT_TRUE(has(run({program("qsf-run"), "x", "-p", "x", "--answers", "65"}).err, "not in range 1 to 64"));
}

TEST_F(Answers, OfOneReceiptAreNotCompared) {
  (void)take(stories("8bit"), prompt({"--answers", "2"}));
  const Ran ran = run({program("qsf-parity"), dir_ / "receipt", dir_ / "receipt"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(has(ran.err, "has several answers: receipts of one are compared")) << ran.err;
}

}  // namespace
}  // namespace qsf::test
