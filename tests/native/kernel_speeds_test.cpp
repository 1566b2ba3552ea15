// Which instruction set's kernels make a token, and which read a prompt: what is measured, kept in a file, and chosen
// by it.
#include "native/host/kernel_speeds.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "file/small_file.h"
#include "native/models.h"
#include "qsf/engine.h"

namespace qsf::test {
namespace {

constexpr FormatId kF16 = FormatId::f16;
constexpr std::array kBoth{Batch::one, Batch::many};

/// Instruction sets that are measured for a format and batch.
std::size_t candidates() { return std::min<std::size_t>(instruction_sets().size(), 3); }

void write_text(const std::string& path, std::string_view text) {
  const std::span bytes = std::as_bytes(std::span(text));
  write_bytes(path, {bytes.begin(), bytes.end()});
}

TEST(KernelSpeeds, TheLastStaysUnlessAnotherIsFasterByMoreThanNoise) {
  const std::vector<std::string_view> all = instruction_sets();
  ASSERT_GE(all.size(), 2u);
  for (const Batch batch : kBoth) {
    for (const double times : {0.5, 1.0, 1.04}) {
      KernelSpeeds speeds;
      speeds.add({kF16, batch, 2, all.front(), times * 1e9, true});
      speeds.add({kF16, batch, 2, all.back(), 1e9, true});
      EXPECT_EQ(speeds.best(kF16, batch, 2)->isa, all.back()) << times;
    }
    KernelSpeeds speeds;
    EXPECT_EQ(speeds.best(kF16, batch, 2), nullptr);
    speeds.add({kF16, batch, 2, all.back(), 1e9, true});
    speeds.add({kF16, batch, 2, all.front(), 1.1e9, true});
    EXPECT_EQ(speeds.best(kF16, batch, 2)->isa, all.front());
    EXPECT_EQ(speeds.best(kF16, batch, 1), nullptr);
    EXPECT_EQ(speeds.best(FormatId::f32, batch, 2), nullptr);
    speeds.add({kF16, batch, 2, all[all.size() / 2], 1.1e9, false});
    EXPECT_EQ(speeds.best(kF16, batch, 2), nullptr);
  }
}

TEST(KernelSpeeds, ABatchSaysNothingOfTheOther) {
  const std::vector<std::string_view> all = instruction_sets();
  KernelSpeeds speeds;
  speeds.add({kF16, Batch::one, 2, all.front(), 2e9, true});
  EXPECT_EQ(speeds.best(kF16, Batch::many, 2), nullptr);
  speeds.add({kF16, Batch::many, 2, all.back(), 1e9, false});
  EXPECT_EQ(speeds.best(kF16, Batch::one, 2)->isa, all.front());
  EXPECT_EQ(speeds.best(kF16, Batch::many, 2), nullptr);
}

// While something else runs a rate is too low, never too high.
TEST(KernelSpeeds, ARateSettlesOnceItIsSeenTwice) {
  KernelSpeed speed{kF16, Batch::one, 1, "scalar"};
  const std::pair<double, bool> seen[] = {{5, false}, {4, false},   {10, false}, {6, false},  {9.8, true},
                                          {3, true},  {10.2, true}, {12, false}, {11.9, true}};
  for (const auto& [rate, settled] : seen) {
    speed.saw(rate);
    EXPECT_EQ(speed.settled, settled) << rate;
  }
  EXPECT_EQ(speed.rate, 12);
}

TEST(KernelSpeeds, MeasuresUntilAllAreSettled) {
  ThreadPool pool(2);
  std::vector<std::byte> memory(KernelSpeeds::kWeights);
  KernelSpeeds speeds;
  for (const Batch batch : kBoth) {
    const std::size_t before = speeds.all().size();
    EXPECT_FALSE(*speeds.measure(kF16, batch, std::span(memory).first(memory.size() - 1), pool));
    EXPECT_EQ(speeds.all().size(), before);
    EXPECT_TRUE(*speeds.measure(kF16, batch, memory, pool));
    EXPECT_EQ(speeds.all().size(), before + candidates());
    for (const KernelSpeed& speed : speeds.all().subspan(before)) EXPECT_EQ(speed.batch, batch);
  }
  for (const KernelSpeed& speed : speeds.all()) {
    EXPECT_GT(speed.rate, 0) << speed.isa;
    EXPECT_EQ(speed.threads, 2u);
  }
  KernelSpeeds settled;
  for (KernelSpeed speed : speeds.all()) {
    speed.settled = true;
    settled.add(speed);
  }
  for (const Batch batch : kBoth) EXPECT_FALSE(*settled.measure(kF16, batch, memory, pool));
  pool.end();
}

/// A model that is larger than caches, in f16.
const std::string& large() {
  static const TempDir dir;
  static const std::string path = [] {
    SmallOptions small;
    small.dim = 1024;
    small.ffn_dim = 4096;
    small.n_layers = 3;
    small.head_dim = 64;
    small.n_heads = 16;
    small.vocab_size = 64;
    small.format = kF16;
    small.segment_bytes = 1 << 20;
    write_bytes(dir / "m.qsf", small_file(small).bytes);
    return dir / "m.qsf";
  }();
  return path;
}

RunResult run_large(const std::string& kernel_file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--tokens", "3,5,9", "--max-tokens", "4", "--ignore-eos", "--threads", "2",
                             "--kernel-speeds", kernel_file, "--verbose"});
  return generate(large(), more);
}

TEST(KernelSpeeds, AreKeptAndSaid) {
  const TempDir dir;
  const std::string file = dir / "a/b/kernels.json";
  (void)run_large(file);
  Json kept = Json::parse(read_text(file));
  EXPECT_EQ(kept.at("version"), 2);
  EXPECT_EQ(kept.at("speeds").size(), kBoth.size() * candidates());
  for (Json& row : kept.at("speeds")) row["settled"] = true;
  write_text(file, kept.dump());
  const RunResult run = run_large(file);
  for (const std::string of : {"token", "prompt"}) {
    const std::string chosen = run.receipt.at(of + "_kernels").at("f16");
    const std::string said = std::string("f16 for a ").append(of).append(" by ").append(chosen);
    EXPECT_NE(run.ran.err.find(said), std::string::npos) << run.ran.err;
  }
  EXPECT_EQ(read_text(file), kept.dump()) << "measured again";

  // What a file says is done, whatever would be faster; with the same bits as all by the best.
  const RunResult best = run_large("none");
  EXPECT_TRUE(best.receipt.at("token_kernels").empty());
  EXPECT_TRUE(best.receipt.at("prompt_kernels").empty());
  const auto row = [](std::string_view batch, std::string_view isa) {
    return Json{{"format", "f16"}, {"batch", batch}, {"threads", 2}, {"isa", isa}, {"rate", 1e9}, {"settled", true}};
  };
  const std::string_view last = instruction_sets().back();
  for (const std::string_view isa : instruction_sets()) {
    for (const auto& [token, prompt] : {std::pair(isa, last), std::pair(last, isa)}) {
      Json said = kept;
      said["speeds"] = Json::array({row("one", token), row("many", prompt)});
      write_text(file, said.dump());
      const RunResult run = run_large(file);
      EXPECT_EQ(run.receipt.at("token_kernels").at("f16"), token);
      EXPECT_EQ(run.receipt.at("prompt_kernels").at("f16"), prompt);
      EXPECT_EQ(run.receipt.at("logits_hash"), best.receipt.at("logits_hash")) << token << " " << prompt;
      EXPECT_EQ(read_text(file), said.dump()) << "measured again";
    }
  }
  const RunResult asked = run_large(file, {"--isa", "scalar"});
  EXPECT_TRUE(asked.receipt.at("token_kernels").empty());
  EXPECT_TRUE(asked.receipt.at("prompt_kernels").empty());
}

TEST(KernelSpeeds, WhatIsMissingOfAFileIsMeasured) {
  const TempDir dir;
  const std::string file = dir / "kernels.json";
  (void)run_large(file);
  Json kept = Json::parse(read_text(file)), half = kept;
  half["speeds"] = Json::array();
  for (Json row : kept.at("speeds")) {
    row["settled"] = true;
    if (row.at("batch") == "one") half["speeds"].push_back(std::move(row));
  }
  ASSERT_EQ(half.at("speeds").size(), candidates());
  write_text(file, half.dump());
  (void)run_large(file);
  const Json made = Json::parse(read_text(file));
  EXPECT_EQ(made.at("speeds").size(), kept.at("speeds").size());
  const Json& speeds = made.at("speeds");
  for (const Json& row : half.at("speeds")) EXPECT_NE(std::find(speeds.begin(), speeds.end(), row), speeds.end());
}

TEST(KernelSpeeds, AFileThatSaysNothingOfThisMachineIsMadeAnew) {
  const TempDir dir;
  const std::string file = dir / "kernels.json";
  (void)run_large(file);
  const std::string good = read_text(file);
  Json other = Json::parse(good), version = other, odd = other;
  other["processor"] = "another";
  version["version"] = 1;
  odd["speeds"] = Json::array(
      {1,
       Json::object(),
       {{"format", 1}, {"batch", 1}, {"threads", -1}, {"isa", {}}, {"rate", "x"}, {"settled", 1}},
       {{"format", "f16"}, {"batch", "few"}, {"threads", 2}, {"isa", "scalar"}, {"rate", 1}, {"settled", true}}});
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"), std::string("null"),
                                  std::string(100'000, '['), other.dump(), version.dump(), odd.dump()}) {
    write_text(file, text);
    (void)run_large(file);
    const Json made = Json::parse(read_text(file), nullptr, false);
    ASSERT_TRUE(made.is_object()) << text.substr(0, 80);
    EXPECT_EQ(made.at("version"), 2) << text.substr(0, 80);
    EXPECT_EQ(made.at("processor"), Json::parse(good).at("processor"));
    EXPECT_EQ(made.at("speeds").size(), Json::parse(good).at("speeds").size()) << text.substr(0, 80);
  }
}

TEST(KernelSpeeds, AFolderThatCannotBeWrittenToIsNoFailure) {
  const RunResult run = run_large("/proc/no/kernels.json");
  EXPECT_EQ(run.ran.code, 0);
  EXPECT_NE(run.ran.err.find("cannot write /proc/no/kernels.json"), std::string::npos) << run.ran.err;
}

}  // namespace
}  // namespace qsf::test
