// Models whose numbers are not finite, as a user meets them: an error that names the position, and nothing written.
#include <gtest/gtest.h>

#include <filesystem>

#include "native/letters.h"

namespace qsf::test {
namespace {

/// What the final norm multiplies by is so large that logits are: infinite, or finite and beyond all sense.
SmallFile scaled(float factor) {
  SmallOptions o;
  o.tokenizer = letters(true);
  return small_file(o, [&](SmallFile& file) {
    for (auto& [of, weights] : file.weights) {
      for (float& weight : weights) weight *= of.second == Role::final_norm ? factor : 1;
    }
  });
}

Ran run_on(const std::string& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {program("qsf-run"), model});
  return run(arguments);
}

void expect_refused(const Ran& ran, const std::string& sentence) {
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(ran.err.starts_with("qsf-run: not_finite: " + sentence)) << ran.err;
}

TEST(NotFinite, NothingIsMadeOfIt) {
  Measurable files;
  files.write(scaled(3e38f), some_text(60));
  const std::string logits = "the logits of position ", states = "the hidden states of position ";
  expect_refused(run_on(files.model, {"--prompt", "once", "--max-tokens", "4"}), logits + "4 are not finite numbers");
  expect_refused(run_on(files.model, {"--prompt", "once", "--temperature", "0"}), logits + "4 ");
  expect_refused(run_on(files.model, {"--embed", "--prompt", "once"}), states + "0 are not finite numbers");
  expect_refused(run_on(files.model, {"--perplexity", files.text, "--window", "20"}), logits + "10 ");
  const std::string out = files.dir / "out", receipt = files.dir / "receipt";
  expect_refused(run_on(files.model, {"--perplexity", files.text, "--window", "20", "--save-logits", out}), logits);
  expect_refused(run_on(files.model, {"--prompt", "once", "--logits", out, "--receipt", receipt}), logits + "0 ");
  expect_refused(run_on(files.model, {"--embed", "--prompt", "once", "--logits", out}), states);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(receipt));
}

TEST(NotFinite, APerplexityBeyondNumbersIsNone) {
  Measurable files;
  files.write(scaled(1e30f), some_text(60));
  const std::vector<std::string> measuring{"--perplexity", files.text, "--window", "20"};
  expect_refused(run_on(files.model, measuring), "a mean loss of ");
  // Logits of its like are written and read, but nothing can be said by them.
  const std::string saved = files.dir / "saved";
  Measurable sound;
  sound.write(scaled(1), some_text(60));
  ASSERT_EQ(run_on(sound.model, {"--perplexity", files.text, "--window", "20", "--save-logits", saved}).code, 0);
  const Ran compared = run_on(files.model, {"--perplexity", files.text, "--window", "20", "--kl", saved});
  expect_refused(compared, "a mean loss of ");
}

TEST(NotFinite, OneCountedTokenHasNoError) {
  Measurable files;
  files.write(scaled(1), some_text(60));
  const Ran ran = run_on(files.model, {"--perplexity", files.text, "--window", "3", "--windows", "1"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("nan"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("  (1 windows of 3 tokens, 1 counted)"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace qsf::test
