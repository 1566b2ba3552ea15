// Importance matrices as llama-imatrix writes them.
#include "converter/imatrix.h"

#include <limits>
#include <span>

#include "converter/gguf_writer.h"
#include "converter/inputs.h"
#include "converter/support.h"

namespace qsf::test {
namespace {

Bytes floats(const std::vector<float>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

class ImatrixTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<convert::ModelSource> opened = convert::open_model(kSource + "/models/stories");
    ASSERT_TRUE(opened) << opened.error().sentence;
    model_ = std::move(*opened);
  }

  static GgufWriter writer(const std::string& tensor, const std::vector<float>& sums) {
    GgufWriter out;
    out.text("general.type", "imatrix");
    out.tensor(tensor + ".in_sum2", GgmlType::f32, {sums.size(), 1}, floats(sums));
    out.tensor(tensor + ".counts", GgmlType::f32, {1, 1}, floats({64}));
    return out;
  }
  Result<convert::Calibration> read(const GgufWriter& writer) {
    bytes_ = writer.file();
    return convert::read_imatrix(convert::input_of("im.gguf", bytes_), model_);
  }

  convert::ModelSource model_;
  Bytes bytes_;
};

TEST_F(ImatrixTest, ColumnsAreTheFilesBySectionAndRole) {
  std::vector<float> sums(256);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = 0.5f * static_cast<float>(i);
  const Result<convert::Calibration> read_back = read(writer("blk.2.attn_q.weight", sums));
  ASSERT_TRUE(read_back) << read_back.error().sentence;
  ASSERT_EQ(read_back->size(), 1u);
  const convert::Moments& moments = read_back->at({3, Role::attn_q});
  EXPECT_EQ(moments.cols, 256u);
  EXPECT_EQ(moments.n, 64);
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(moments.of(i, i), double{sums[i]});
  EXPECT_EQ(moments.of(4, 3), 0);
}

TEST_F(ImatrixTest, RefusesWhatIsNoSumOfSquares) {
  for (const float bad : {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> sums(256, 1.0f);
    sums[7] = bad;
    const Result<convert::Calibration> refused = read(writer("blk.0.ffn_up.weight", sums));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
  }
}

TEST_F(ImatrixTest, RefusesAnotherModels) {
  const Result<convert::Calibration> refused = read(writer("somewhere.else", std::vector<float>(256, 1.0f)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace qsf::test
