// What can be known before a model is run or a weight is read is refused before. The model here has a weight that is no
// number, so that any work ends with another error.
#include <filesystem>

#include "converter/support.h"
#include "native/process.h"

namespace qsf::test {
namespace {

class FirstChecks : public testing::Test {
 protected:
  void SetUp() override {
    model_ = folder_.path("model");
    copy_folder(kLlama, model_);
    Bytes weights = read_bytes(model_ + "/model.safetensors");
    weights[weights.size() - 2] = std::byte{0xc0};  // a quiet NaN of bf16 or f32
    weights[weights.size() - 1] = std::byte{0x7f};
    write_bytes(model_ + "/model.safetensors", weights);
    write_text(path("text.txt"), "Once upon a time there was a fox.");
  }
  std::string path(const std::string& name) const { return folder_.path(name); }

  /// What qsf-convert says; it must fail.
  std::string refusal(const std::vector<std::string>& options, const std::string& out = "out.qsf") {
    std::vector<std::string> arguments{program("qsf-convert"), model_, path(out), "--calibration", path("text.txt")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(path("out.qsf")));
    return ran.err;
  }
  void expect(const std::string& words, const std::vector<std::string>& options, const std::string& out = "out.qsf") {
    const std::string said = refusal(options, out);
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }

  Folder folder_;
  std::string model_;
};

TEST_F(FirstChecks, ComeBeforeAWeightIsRead) {
  const std::vector<std::string> size{"--target-bpw", "4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), size.begin(), size.end());
    return more;
  };
  expect("holds nan in row", size);  // the work
  expect("cannot write", with({"--losses", path("nowhere/losses.json")}));
  write_text(path("text.json"), "Once upon a time");
  expect("not valid JSON: see line 1, column 1", with({"--losses", path("text.json")}));
  write_text(path("other.json"), "{\"measured_on\": 1}");
  expect("other.json", with({"--losses", path("other.json")}));
  expect("the matrices need at least", {"--target-size", "0.01"});
  expect("the matrices need at least", {"--target-bpw", "1"});
  expect("the tensors with a type of their own take", {"--target-bpw", "2", "--tensor-type", "token_embd=f32"});
  expect("cannot write", size, "nowhere/out.qsf");
  expect("it cannot be the output", size, "model/model.safetensors");
  expect("without a tokenizer", with({"--tokenizer", "none"}));
  for (const char* name : {"out.qsf.calibration", "out.qsf.calibration.logits"}) {
    write_text(path(name), "of a run that was killed");
    expect("it may be deleted", size);
    EXPECT_EQ(read_bytes(path(name)).size(), 24u);
    std::filesystem::remove(path(name));
  }
  write_text(path("text.txt"), "");
  expect("has no text to calibrate with", size);
}

TEST_F(FirstChecks, OfAGgufFileComeBeforeAWeightIsReadToo) {
  const std::vector<std::string> type{"--quant-type", "q4_0"};
  expect("holds nan in row", type, "out.gguf");
  expect("GGUF has no type 4bit", {"--quant-type", "4bit"}, "out.gguf");
  nlohmann::json config = read_config(model_);
  config["model_type"] = "mistral";
  config["sliding_window"] = 16;
  write_text(model_ + "/config.json", config.dump());
  expect("GGUF cannot describe this model", type, "out.gguf");
}

}  // namespace
}  // namespace qsf::test
