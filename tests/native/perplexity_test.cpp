// qsf-run --perplexity against perplexities worked out here in doubles: from a model written from the papers' formulas,
// and from logits that were computed one token at a time.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <sstream>

#include "engine/reference.h"
#include "native/letters.h"

namespace qsf::test {
namespace {

struct Expected {
  double perplexity = 0, standard_error = 0;
  std::uint32_t windows = 0, counted = 0;
};

/// What logits_of(window's ids) make of the ids: windows one behind the other, second halves without their first token.
template <class LogitsOf>
Expected expected(Ids ids, std::uint32_t window, std::optional<std::uint32_t> begin, LogitsOf logits_of) {
  if (begin) ids.insert(ids.begin(), *begin);
  std::vector<double> losses;
  Expected out;
  for (std::size_t at = 0; at + window <= ids.size(); at += window) {
    Ids fed(ids.begin() + static_cast<std::ptrdiff_t>(at), ids.begin() + static_cast<std::ptrdiff_t>(at + window));
    if (begin) fed[0] = *begin;
    const std::vector<Vec> logits = logits_of(fed);
    for (std::uint32_t i = window / 2; i + 1 < window; ++i) {
      long double sum = 0;
      for (const double x : logits[i]) sum += std::exp(static_cast<long double>(x - logits[i][fed[i + 1]]));
      losses.push_back(static_cast<double>(std::log(sum)));
    }
    ++out.windows;
  }
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(losses.size());
  for (const double loss : losses) mean += loss / n;
  for (const double loss : losses) variance += (loss - mean) * (loss - mean) / n;
  out.perplexity = std::exp(mean);
  out.standard_error = out.perplexity * std::sqrt(variance / (n - 1));
  out.counted = static_cast<std::uint32_t>(losses.size());
  return out;
}

void expect_near(const Json& receipt, const Expected& e, const std::string& what) {
  // Logits are within 1e-6 of the largest, which is about 1.
  EXPECT_NEAR(receipt.at("perplexity").get<double>(), e.perplexity, 1e-5 * e.perplexity) << what;
  EXPECT_NEAR(receipt.at("standard_error").get<double>(), e.standard_error, 1e-5 * e.perplexity) << what;
  EXPECT_EQ(receipt.at("windows"), e.windows) << what;
  EXPECT_EQ(receipt.at("counted_tokens"), e.counted) << what;
}

TEST(Perplexity, IsThatOfAModelInDoubles) {
  for (const bool begins : {false, true}) {
    SmallOptions o;
    o.tokenizer = letters(begins);
    const SmallFile file = small_file(o);
    const std::string words = some_text(150);
    Measurable files;
    files.write(file, words + "\n");
    for (const std::uint32_t window : {3u, 16u, 31u, 64u}) {
      const Expected e = expected(ids_of(words), window, begins ? std::optional(kBegin) : std::nullopt,
                                  [&](const Ids& ids) { return reference_logits(o, file, ids, KvType::f32); });
      EXPECT_EQ(e.windows, (150 + begins) / window);
      const RunResult r = files.measure({"--window", std::to_string(window)});
      expect_near(r.receipt, e, "window " + std::to_string(window));
      char line[32];
      std::snprintf(line, sizeof line, "perplexity  %.4f ", r.receipt.at("perplexity").get<double>());
      EXPECT_TRUE(r.ran.out.starts_with(line)) << r.ran.out;
    }
  }
}

// However windows share passes and wherever weights stay, it is the same number to the last bit.
TEST(Perplexity, DoesNotDependOnTheWay) {
  SmallOptions o;
  o.tokenizer = letters(true);
  o.format = FormatId::q8;
  Measurable files;
  files.write(small_file(o), some_text(200));
  const Json base = files.measure({"--window", "20", "--kv", "f16"}).receipt;
  EXPECT_EQ(base.at("windows"), 10);
  EXPECT_EQ(base.at("logits_hash").get<std::string>().size(), 64u);
  const std::vector<std::vector<std::string>> ways{
      {"--chunk", "1"},
      {"--chunk", "7", "--threads", "3"},
      {"--sequences", "3"},
      {"--sequences", "4", "--chunk", "80"},
      {"--sequences", "64", "--chunk", "11"},
      {"--sequences", "3", "--chunk", "45", "--stream-all", "--ring", "1"},
      {"--sequences", "2", "--isa", "scalar", "--threads", "2"},
      {"--max-seq-len", "33", "--sequences", "7"},
      {"--ram-budget", "1.5"},
  };
  for (std::vector<std::string> way : ways) {
    const std::string name = ::testing::PrintToString(way);
    way.insert(way.end(), {"--window", "20", "--kv", "f16"});
    const Json receipt = files.measure(way).receipt;
    for (const char* field : {"perplexity", "standard_error", "windows", "ids_crc", "logits_hash"}) {
      EXPECT_EQ(receipt.at(field), base.at(field)) << field << " " << name;
    }
  }
  // Several windows do share a pass: a chunk is as wide as all of them.
  EXPECT_EQ(files.measure({"--window", "20", "--sequences", "4", "--chunk", "80"}).receipt.at("plan").at("chunk"), 80);
  // Of fewer windows it is another number.
  const RunResult told = files.measure({"--window", "20", "--kv", "f16", "--windows", "2", "--verbose"});
  EXPECT_NE(told.ran.err.find("window     2 of 2; perplexity so far "), std::string::npos) << told.ran.err;
  const Json& two = told.receipt;
  EXPECT_EQ(two.at("windows"), 2);
  EXPECT_NE(two.at("perplexity"), base.at("perplexity"));
}

// The built-in model, from logits of passes of one token.
TEST(Perplexity, IsThatOfItsLogits) {
  constexpr std::uint32_t kWindow = 32, kVocabulary = 2048;
  const std::string model = stories("f32");
  std::string words;
  const Json golden_values = golden();
  for (const Json& prompt : golden_values.at("prompts")) words += prompt.at("greedy_text").get<std::string>();
  const TempDir dir;
  std::ofstream(dir / "text", std::ios::binary) << words;
  Ids ids;
  const Ran ran = run({program("qsf-run"), model, "--tokenize", "--prompt", words});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream tokenized(ran.out);
  for (std::string id; std::getline(tokenized, id, ',');) ids.push_back(static_cast<std::uint32_t>(std::stoul(id)));
  ASSERT_GT(ids.size(), 2 * kWindow);
  const auto logits_of = [&](const Ids& window) {
    generate(model, {"--tokens", joined(window), "--max-tokens", "0", "--chunk", "1", "--logits", dir / "logits"});
    const std::vector<std::byte> bytes = read_bytes(dir / "logits");
    std::vector<float> row(kVocabulary);
    std::vector<Vec> logits;
    for (std::size_t at = 0; at < bytes.size(); at += kVocabulary * sizeof(float)) {
      std::memcpy(row.data(), &bytes[at], kVocabulary * sizeof(float));
      logits.emplace_back(row.begin(), row.end());
    }
    return logits;
  };
  const Expected e = expected(ids, kWindow, std::nullopt, logits_of);
  const Json receipt = generate(model, {"--perplexity", dir / "text", "--window", std::to_string(kWindow)}).receipt;
  // The same logits: what is left are the roundings of two ways to add doubles.
  EXPECT_NEAR(receipt.at("perplexity").get<double>(), e.perplexity, 1e-10 * e.perplexity);
  EXPECT_NEAR(receipt.at("standard_error").get<double>(), e.standard_error, 1e-10 * e.perplexity);
  EXPECT_EQ(receipt.at("windows"), e.windows);
}

// Text, ids and saved logits are beside the arena: the process stays where it is without them.
TEST(Perplexity, StaysInsideItsBudget) {
  constexpr std::uint64_t kBudget = 3u << 20;
  const TempDir dir;
  const Json golden_values = golden();
  std::string words;
  while (words.size() < 100'000) words += golden_values.at("prompts").at(1).at("greedy_text").get<std::string>();
  std::ofstream(dir / "text", std::ios::binary) << words;
  const std::vector<std::string> arguments{"--perplexity", dir / "text", "--windows", "4", "--ram-budget", "3"};
  for (const char* option : {"--save-logits", "--kl"}) {
    std::vector<std::string> more = arguments;
    more.insert(more.end(), {option, dir / "logits"});
    const RunResult r = generate(stories("8bit"), more, true);
    const Json& plan = r.receipt.at("plan");
    EXPECT_GT(plan.at("ring_slots"), 0);
    EXPECT_EQ(plan.at("budget"), kBudget - words.size() * 7);
#if !defined(QSF_SANITIZED) && !defined(_WIN32)  // wine's own memory counts, or some of it
    EXPECT_LE(r.ran.peak_resident_bytes, kBudget + 12'000'000);
#endif
    std::printf("%s: peak %+.2f MB\n", option,
                (static_cast<double>(r.ran.peak_resident_bytes) - static_cast<double>(kBudget)) / 1e6);
  }
}

std::string refusal(std::vector<std::string> arguments, int code) {
  arguments.insert(arguments.begin(), program("qsf-run"));
  const Ran ran = run(arguments);
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_EQ(ran.out, "");
  return ran.err;
}

TEST(Perplexity, WhatDoesNotFitIsRefusedInASentence) {
  SmallOptions o;
  o.tokenizer = letters(true);
  Measurable files;
  files.write(small_file(o), some_text(99));
  const auto told = [&](const std::string& text, std::vector<std::string> more, int code = 1) {
    std::ofstream(files.dir / "words", std::ios::binary) << text;
    more.insert(more.begin(), {files.model, "--perplexity", files.dir / "words"});
    return refusal(more, code);
  };
  const std::string name = files.dir / "words";
  EXPECT_EQ(told("", {}), "qsf-run: bad_argument: " + name + " has no text to measure with\n");
  EXPECT_EQ(told("\n", {}), "qsf-run: bad_argument: " + name + " has no text to measure with\n");
  EXPECT_EQ(told(some_text(40), {"--window", "42"}),
            "qsf-run: bad_argument: the text has 41 tokens, less than a window of 42\n");
  EXPECT_EQ(told(some_text(99), {"--window", "65"}),
            "qsf-run: bad_argument: a window of 65 tokens is longer than the context of 64 that the model was made for "
            "(see --max-seq-len)\n");
  EXPECT_EQ(told("\xff\xfe and more", {"--window", "4"}).substr(0, 18), "qsf-run: bad_text:");
  EXPECT_EQ(told(some_text(400'000), {"--ram-budget", "2"}),
            "qsf-run: context_full: " + name + " has more than 299593 bytes, more than the budget can hold\n");
  for (const char* window : {"0", "1", "2"}) {
    EXPECT_EQ(told("x", {"--window", window}, 2),
              "qsf-run: bad_argument: --window takes at least 3 tokens, of which one is counted\n");
  }
  EXPECT_EQ(told("x", {"--window", "40", "--max-seq-len", "39"}, 2),
            "qsf-run: bad_argument: --window is longer than --max-seq-len\n");
  EXPECT_EQ(told("x", {"--prompt", "y"}, 2), "qsf-run: bad_argument: --perplexity takes its text from a file\n");
  told("x", {"--bench"}, 2);
  told("x", {"--logits", files.dir / "out"}, 2);
  EXPECT_EQ(refusal({files.model, "--prompt", "x", "--windows", "3"}, 2),
            "qsf-run: bad_argument: --window, --windows and --sequences are for --perplexity\n");
  refusal({files.model, "--perplexity", files.dir / "none"}, 1);
  EXPECT_EQ(refusal({files.model, "--perplexity", files.text, "--receipt", files.text}, 1).substr(0, 21),
            "qsf-run: bad_argument");
  write_bytes(files.dir / "bare.qsf", small_file().bytes);
  EXPECT_EQ(refusal({files.dir / "bare.qsf", "--perplexity", files.text, "--window", "20"}, 1),
            "qsf-run: bad_text: the file has no tokenizer\n");
}

}  // namespace
}  // namespace qsf::test
