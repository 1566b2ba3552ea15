// Importance matrices as llama-imatrix writes them.
#include "converter/quantize/imatrix.h"

#include <limits>
#include <span>

#include "converter/gguf_writer.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

Bytes floats(const std::vector<float>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// One matrix of the file: of each expert's columns a sum, and how many positions it saw.
struct Entry {
  std::string name;
  std::uint64_t cols = 0;
  std::vector<float> counts{64.0f};
  float sum = 1;
};

class ImatrixTest : public testing::Test {
 protected:
  void SetUp() override { open("models/stories"); }
  void open(const std::string& model) {
    Result<convert::LoadedModel> opened = convert::open_model(kSource + "/" + model);
    ASSERT_TRUE(opened) << opened.error().sentence;
    model_ = std::move(*opened);
  }

  /// What llama-imatrix writes of a model of gated layers: all that a layer multiplies, and nothing outside.
  std::vector<Entry> whole() const {
    const convert::ModelConfig& c = model_.config;
    std::vector<Entry> out;
    for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
      const std::string front = "blk." + std::to_string(layer) + ".";
      for (const char* name : {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"}) {
        out.push_back({front + name + ".weight", c.dim});
      }
      out.push_back({front + "attn_output.weight", std::uint64_t{c.n_heads} * c.head_dim});
      out.push_back({front + "ffn_down.weight", c.ffn_dim});
    }
    return out;
  }
  /// The same of a GGUF file of the tests: matrices of heads and experts with a row for each.
  static std::vector<Entry> all_of_gguf(const std::string& name) {
    const Bytes bytes = read_bytes(kData + "gguf/" + name + ".gguf");
    const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("model.gguf", bytes));
    EXPECT_TRUE(gguf) << gguf.error().sentence;
    std::vector<Entry> out;
    for (const convert::LoadedTensor& tensor : gguf->tensors) {
      if (!tensor.name.starts_with("blk.") || tensor.shape.size() < 2) continue;
      out.push_back({tensor.name, tensor.shape.back(), {}});
      out.back().counts.assign(tensor.shape.size() == 3 ? tensor.shape.front() : 1, 64.0f);
    }
    return out;
  }
  Result<convert::Calibration> read(const std::vector<Entry>& entries) {
    GgufWriter writer;
    writer.text("general.type", "imatrix");
    for (const Entry& entry : entries) {
      const std::size_t n = entry.counts.size();
      std::vector<float> sums(entry.cols * n, entry.sum);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] *= static_cast<float>(i % entry.cols);
      writer.tensor(entry.name + ".in_sum2", GgmlType::f32, {entry.cols, n}, floats(sums));
      writer.tensor(entry.name + ".counts", GgmlType::f32, {1, n}, floats(entry.counts));
    }
    bytes_ = writer.file();
    warnings_.clear();
    return convert::read_imatrix(convert::input_of("im.gguf", bytes_), model_, warnings_);
  }
  std::string refusal(const std::vector<Entry>& entries) {
    const Result<convert::Calibration> refused = read(entries);
    if (refused) return "taken";
    EXPECT_EQ(error_of(refused).code, ErrorCode::bad_input);
    return refused.error().sentence;
  }

  convert::LoadedModel model_;
  Bytes bytes_;
  std::vector<std::string> warnings_;
};

TEST_F(ImatrixTest, ColumnsAreTheFilesBySectionAndRole) {
  std::vector<Entry> entries = whole();
  for (Entry& entry : entries) {
    if (entry.name == "blk.2.attn_q.weight") entry.sum = 0.5f;
  }
  const Result<convert::Calibration> read_back = read(entries);
  ASSERT_TRUE(read_back) << read_back.error().sentence;
  EXPECT_EQ(read_back->size(), entries.size());
  const convert::Moments& moments = read_back->at({3, Role::attn_q});
  EXPECT_EQ(moments.cols, 256u);
  EXPECT_EQ(moments.n, 64);
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(moments.of(i, i), 0.5 * i);
  EXPECT_EQ(moments.of(4, 3), 0);
  EXPECT_EQ(read_back->at({3, Role::attn_k}).of(7, 7), 7);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ImatrixTest, RefusesWhatIsNoSumOfSquares) {
  for (const float bad : {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<Entry> entries = whole();
    entries[5].sum = bad;
    EXPECT_NE(refusal(entries).find("which is no sum of squares"), std::string::npos);
  }
}

TEST_F(ImatrixTest, RefusesAnotherModels) {
  EXPECT_NE(refusal({{"somewhere.else", 256}}).find("matrices, such as blk.0."), std::string::npos);
  std::vector<Entry> narrow = whole();
  for (Entry& entry : narrow) entry.cols /= 4;
  EXPECT_NE(refusal(narrow).find("has 1 times 64 columns of blk.0."), std::string::npos) << refusal(narrow);
  std::vector<Entry> of_experts = whole();
  of_experts[3].counts = {64, 64};
  EXPECT_NE(refusal(of_experts).find("has 2 times 256 columns of blk.0."), std::string::npos);
}

TEST_F(ImatrixTest, RefusesAPartOfTheLayersMatrices) {
  const std::vector<Entry> entries = whole();
  const std::string n = std::to_string(entries.size());
  EXPECT_NE(refusal({entries.front()}).find("of " + std::to_string(entries.size() - 1) + " of the model's " + n),
            std::string::npos);
  for (std::size_t i = 0; i < entries.size(); i += 5) {
    std::vector<Entry> most = entries;
    most.erase(most.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(refusal(most).find("1 of the model's " + n + " matrices, such as " + entries[i].name), std::string::npos)
        << refusal(most);
    most = entries;
    most[i].counts = {0};
    EXPECT_NE(refusal(most).find("such as " + entries[i].name), std::string::npos) << "no position was seen";
  }
}

TEST_F(ImatrixTest, RefusesAnotherFileByItsName) {
  EXPECT_NE(refusal({}).find("im.gguf is no importance matrix of llama-imatrix"), std::string::npos) << refusal({});
  ASSERT_TRUE(read(whole()));
  bytes_.resize(bytes_.size() - 1000);
  const Error cut = error_of(convert::read_imatrix(convert::input_of("im.gguf", bytes_), model_, warnings_));
  EXPECT_EQ(cut.code, ErrorCode::truncated);
  EXPECT_TRUE(std::string(cut.sentence).starts_with("im.gguf: GGUF: tensor blk.")) << cut.sentence;
}

// llama-imatrix sums up each head's columns of these matrices. Older versions write a row and a count for each head,
// others one row of all.
TEST_F(ImatrixTest, MatricesOfHeadsHaveTheSumsOfAllHeads) {
  open("tests/data/deepseek-v2");
  const std::vector<Entry> by_head = all_of_gguf("deepseek-v2");
  std::vector<Entry> in_one_row = by_head;
  for (Entry& entry : in_one_row) {
    if (entry.name.find("attn_k_b") == std::string::npos && entry.name.find("attn_v_b") == std::string::npos) continue;
    ASSERT_EQ(entry.counts.size(), 4u);
    entry.cols *= 4;
    entry.counts = {64};
  }
  for (const bool rows : {true, false}) {
    const std::vector<Entry>& entries = rows ? by_head : in_one_row;
    const Result<convert::Calibration> found = read(entries);
    ASSERT_TRUE(found) << found.error().sentence;
    for (const auto& [role, cols] : {std::pair(Role::latent_k_up, 16u), std::pair(Role::latent_v_up, 32u)}) {
      const convert::Moments& moments = found->at({2, role});
      ASSERT_EQ(moments.cols, cols);
      for (std::uint32_t i = 0; i < cols; ++i) EXPECT_EQ(moments.of(i, i), 4 * i + (rows ? 0 : 6 * cols));
    }
    std::vector<Entry> other = entries;
    for (Entry& entry : other) {
      if (entry.name == "blk.1.attn_k_b.weight") entry.cols *= 2;
    }
    EXPECT_NE(refusal(other).find("columns of blk.1.attn_k_b.weight"), std::string::npos) << refusal(other);
  }
}

// MiniCPM 3 has keys and values of all heads in one matrix. The columns of the keys are its rows.
TEST_F(ImatrixTest, ColumnsThatAreRowsInGgufAreLeftOut) {
  open("tests/data/minicpm3");
  const Result<convert::Calibration> found = read(all_of_gguf("minicpm3"));
  ASSERT_TRUE(found) << found.error().sentence;
  EXPECT_FALSE(found->contains({1, Role::latent_k_up}));
  EXPECT_EQ(found->at({1, Role::latent_v_up}).cols, 32u);
}

TEST_F(ImatrixTest, TellsOfExpertsThatNoTokenReached) {
  open("tests/data/qwen3-moe");
  std::vector<Entry> entries = whole();
  std::erase_if(entries, [](const Entry& entry) { return entry.name.find(".ffn_") != std::string::npos; });
  const nlohmann::json config = read_config(kSource + "/tests/data/qwen3-moe");
  const auto number = [&](const char* key) { return config[key].get<std::uint32_t>(); };
  for (std::uint32_t layer = 0; layer < number("num_hidden_layers"); ++layer) {
    const std::string front = "blk." + std::to_string(layer) + ".ffn_";
    const std::vector<float> counts(number("num_local_experts"), 8.0f);
    entries.push_back({front + "gate_exps.weight", number("hidden_size"), counts});
    entries.push_back({front + "up_exps.weight", number("hidden_size"), counts});
    entries.push_back({front + "down_exps.weight", number("moe_intermediate_size"), counts});
  }
  ASSERT_TRUE(read(entries)) << refusal(entries);
  EXPECT_TRUE(warnings_.empty());
  entries.back().counts[1] = entries.back().counts[2] = 0;
  ASSERT_TRUE(read(entries));
  ASSERT_EQ(warnings_.size(), 1u);
  const std::size_t all = std::size_t{number("num_hidden_layers")} * 3 * number("num_local_experts");
  EXPECT_TRUE(warnings_[0].starts_with("2 of " + std::to_string(all) + " matrices of experts")) << warnings_[0];
}

}  // namespace
}  // namespace qsf::test
