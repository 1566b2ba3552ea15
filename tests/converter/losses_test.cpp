// Losses that are kept between conversions.
#include "converter/quantize/losses.h"

#include "converter/support.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using convert::Losses;

constexpr const char* kModel = "0123";
const std::pair kGate{3u, Role::ffn_gate};

FormatId type(std::string_view name) { return find_format(name)->id; }

Result<Losses> read(const std::string& text) {
  return Losses::read(convert::input_of("losses.json", std::as_bytes(std::span(text))));
}

TEST(Losses, ComeBackToTheBit) {
  const Folder folder;
  const std::string path = folder.path("losses.json");
  const double third = 1.0 / 3, tiny = 1e-9 / 7;
  Losses losses(kModel);
  EXPECT_TRUE(losses.write(path));
  EXPECT_FALSE(std::filesystem::exists(path));  // there were none
  losses.add(kGate, type("q2_k"), third);
  losses.add({0, Role::token_embd}, type("q4_k"), tiny);
  ASSERT_TRUE(losses.write(path));
  const Bytes bytes = read_bytes(path);
  const Result<Losses> back = Losses::read(convert::input_of("losses.json", bytes));
  ASSERT_TRUE(back) << back.error().sentence;
  EXPECT_EQ(back->find(kGate, type("q2_k")), third);
  EXPECT_EQ(back->find({0, Role::token_embd}, type("q4_k")), tiny);
  EXPECT_EQ(back->find(kGate, type("q3_k")), std::nullopt);
  EXPECT_EQ(back->find({2, Role::ffn_gate}, type("q2_k")), std::nullopt);
  EXPECT_EQ(back->find({3, Role::ffn_up}, type("q2_k")), std::nullopt);
}

TEST(Losses, OfAnotherModelAreRefused) {
  const Result<Losses> read_back = read(R"({"measured_on": "0124", "losses": []})");
  ASSERT_TRUE(read_back);
  EXPECT_TRUE(read_back->check("0124", "losses.json"));
  const Status refused = read_back->check(kModel, "losses.json");
  ASSERT_FALSE(refused);
  EXPECT_EQ(error_of(refused).code, ErrorCode::bad_argument);
}

TEST(Losses, RefusesWhatIsNoFileOfLosses) {
  const std::string begin = R"({"measured_on": "0123", "losses": [)";
  const std::string good = R"({"section": 3, "tensor": "ffn_gate", "type": "q2_k", "loss": 0.5})";
  ASSERT_TRUE(read(begin + good + "]}"));
  for (const std::string& bad :
       {std::string(), std::string("GGUF"), std::string("[]"), std::string("{}"), std::string("null"),
        std::string(R"({"measured_on": "0123"})"), std::string(R"({"losses": []})"),
        std::string(R"({"measured_on": 123, "losses": []})"), std::string(R"({"measured_on": "0123", "losses": {}})"),
        begin + good + "]", begin + "3]}", begin + "{}]}",
        begin + R"({"section": -1, "tensor": "ffn_gate", "type": "q2_k", "loss": 0.5}]})",
        begin + R"({"section": 3, "tensor": "gate", "type": "q2_k", "loss": 0.5}]})",
        begin + R"({"section": 3, "tensor": "ffn_gate", "type": "q2", "loss": 0.5}]})",
        begin + R"({"section": 3, "tensor": "ffn_gate", "type": "q2_k", "loss": "0.5"}]})",
        begin + R"({"section": 3, "tensor": "ffn_gate", "type": "q2_k", "loss": 1e999}]})",
        begin + R"({"section": 3, "tensor": "ffn_gate", "type": "q2_k"}]})"}) {
    const Result<Losses> refused = read(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(error_of(refused).code, ErrorCode::bad_input) << bad;
  }
}

}  // namespace
}  // namespace qsf::test
