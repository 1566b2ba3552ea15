// Every fixture in every format: what the file holds against what the source holds.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "converter/support.h"
#include "qsf/base/half.h"
#include "qsf/file/reader.h"
#include "qsf/formats/format.h"

namespace qsf::test {
namespace {

/// The largest distance that rounding to `format` may bring to a weight of this block.
float bound(FormatId format, std::span<const float> block) {
  const auto [low, high] = std::minmax_element(block.begin(), block.end());
  const float largest = std::max(std::fabs(*low), std::fabs(*high));
  const float fp16 = largest * 0x1p-10f;  // scale and minimum are rounded to fp16
  if (format == FormatId::q8) return largest / 127 / 2 + fp16;
  if (format == FormatId::q4) return (std::max(*high, 0.0f) - std::min(*low, 0.0f)) / 15 / 2 + 4 * fp16;
  return 0;
}

bool is_matrix(Role role) { return role <= Role::ffn_down || role == Role::token_embd || role == Role::head; }

void expect_near_source(const Weights& got, const Weights& source, FormatId format, const std::string& name) {
  ASSERT_EQ(got.rows, source.rows) << name;
  ASSERT_EQ(got.cols, source.cols) << name;
  if (format == FormatId::f32) {
    EXPECT_EQ(got.values, source.values) << name;
  } else if (format == FormatId::f16) {
    for (std::size_t i = 0; i < source.values.size(); ++i) {
      ASSERT_EQ(got.values[i], f16_to_f32(f32_to_f16(source.values[i]))) << name << " at " << i;
    }
  } else {
    for (std::uint32_t r = 0; r < source.rows; ++r) {
      const std::size_t row = std::size_t{r} * source.cols;
      for (std::uint32_t c = 0; c < source.cols; c += 64) {
        const std::size_t n = std::min(64u, source.cols - c);
        const std::span<const float> block = std::span(source.values).subspan(row + c, n);
        const float most = bound(format, block);
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_LE(std::fabs(got.values[row + c + i] - block[i]), most) << name << " row " << r << " col " << c + i;
        }
      }
    }
  }
}

struct Case {
  std::string fixture;
  FormatId format;
  Compression compression;
};

class Fixtures : public testing::TestWithParam<Case> {};

TEST_P(Fixtures, HoldTheSourcesWeightsInTheirRoles) {
  const auto& [fixture, format, compression] = GetParam();
  const std::string directory = kSource + "/" + fixture;
  const Written file = convert(directory, {format, compression, 0});
  const std::map<std::string, Weights> source = hugging_face_weights(directory);
  const nlohmann::json config = read_config(directory);
  const Header& h = file.tables.header;

  std::size_t n_used = 0;
  for (const auto& [key, weights] : file.weights) {
    const auto& [section, role] = key;
    const std::string name = hugging_face_name(role, section - 1);
    ASSERT_TRUE(source.contains(name)) << name;
    expect_near_source(weights, source.at(name), is_matrix(role) ? format : FormatId::f32, name);
    ++n_used;
  }
  EXPECT_EQ(n_used, source.size());

  EXPECT_EQ(h.dim, config["hidden_size"].get<std::uint32_t>());
  EXPECT_EQ(h.n_layers, config["num_hidden_layers"].get<std::uint32_t>());
  EXPECT_EQ(h.n_heads, config["num_attention_heads"].get<std::uint32_t>());
  EXPECT_EQ(h.n_kv_heads, config["num_key_value_heads"].get<std::uint32_t>());
  EXPECT_EQ(h.ffn_dim, config["intermediate_size"].get<std::uint32_t>());
  EXPECT_EQ(h.vocab_size, config["vocab_size"].get<std::uint32_t>());
  EXPECT_EQ(h.max_seq_len, config["max_position_embeddings"].get<std::uint32_t>());
  EXPECT_EQ(h.eos, config["eos_token_id"].get<std::uint32_t>());
  EXPECT_EQ((h.flags & kFlagTied) != 0, config["tie_word_embeddings"].get<bool>());
  EXPECT_EQ(static_cast<FormatId>(h.quant), format);
  EXPECT_NE(find_section(file.tables.sections, kTagTokenizer), nullptr);
  const bool shrunk = std::any_of(file.tables.segments.begin(), file.tables.segments.end(),
                                  [](const SegmentEntry& s) { return s.stored_size < s.raw_size; });
  EXPECT_FALSE(shrunk && compression == Compression::none);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& fixture : kFixtures) {
    for (const FormatId format : {FormatId::f32, FormatId::f16, FormatId::q8, FormatId::q4}) {
      for (const Compression compression : {Compression::none, Compression::lz4}) {
        cases.push_back({fixture, format, compression});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Fixtures, testing::ValuesIn(all_cases()), [](const auto& info) {
  std::string name = info.param.fixture.substr(info.param.fixture.rfind('/') + 1) + "_" +
                     std::string(find_format(info.param.format)->name) +
                     (info.param.compression == Compression::none ? "" : "_lz4");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

std::map<std::string, MetaValue> meta_of(const Written& file) {
  std::map<std::string, MetaValue> out;
  const SectionEntry* section = find_section(file.tables.sections, kTagMeta);
  if (!section) return out;
  Result<MetaReader> reader = MetaReader::open(std::span(file.file).subspan(section->offset, section->size));
  EXPECT_TRUE(reader);
  for (MetaValue value; reader;) {
    const Result<bool> more = reader->next(value);
    if (!more || !*more) break;
    out[std::string(value.key)] = value;
  }
  return out;
}

TEST(Metadata, HoldsEpsilonWindowAndNames) {
  const Written mistral = convert(kSource + "/tests/data/mistral", {FormatId::f32, Compression::none, 0});
  const auto meta = meta_of(mistral);
  EXPECT_EQ(meta.at("attention.window").u32, 16u);
  EXPECT_EQ(meta.at("norm.epsilon").f32, 1e-6f);
  EXPECT_EQ(meta.at("general.architecture").text, "mistral");
  EXPECT_EQ(meta.at("general.name").text, "mistral");
  const Written qwen = convert(kSource + "/tests/data/qwen3", {FormatId::f32, Compression::none, 0});
  EXPECT_FALSE(meta_of(qwen).contains("attention.window"));
  const Written stories = convert(kSource + "/models/stories", {FormatId::f32, Compression::none, 0});
  EXPECT_EQ(meta_of(stories).at("norm.epsilon").f32, 1e-5f);
  EXPECT_EQ(stories.tables.header.rope_theta, 10000.0f);
}

// transformers' _compute_llama3_parameters, in double, as inverse frequencies rather than divisors.
TEST(Rope, Llama3DivisorsGiveTransformersFrequencies) {
  const Written file = convert(kSource + "/tests/data/llama3-rope", {FormatId::f32, Compression::none, 0});
  const std::vector<float> divisors = file.section_floats(kTagRope);
  const nlohmann::json rope = read_config(kSource + "/tests/data/llama3-rope")["rope_parameters"];
  const double theta = rope["rope_theta"], factor = rope["factor"], low = rope["low_freq_factor"],
               high = rope["high_freq_factor"], old_length = rope["original_max_position_embeddings"];
  ASSERT_EQ(divisors.size(), 16u);
  int n_kept = 0, n_blended = 0, n_scaled = 0;
  for (int i = 0; i < 16; ++i) {
    const double frequency = 1 / std::pow(theta, 2.0 * i / 32);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double expected = wavelength > old_length / low ? frequency / factor : frequency;
    n_scaled += wavelength > old_length / low;
    n_kept += wavelength < old_length / high;
    if (!(wavelength < old_length / high) && !(wavelength > old_length / low)) {
      const double smooth = (old_length / wavelength - low) / (high - low);
      expected = (1 - smooth) * frequency / factor + smooth * frequency;
      ++n_blended;
    }
    EXPECT_NEAR(frequency / static_cast<double>(divisors[static_cast<std::size_t>(i)]), expected, expected * 1e-7) << i;
  }
  EXPECT_GT(n_kept, 0);
  EXPECT_GT(n_blended, 0);
  EXPECT_GT(n_scaled, 0);
}

TEST(Rope, PlainModelsHaveNoDivisors) {
  const Written file = convert(kSource + "/tests/data/llama", {FormatId::f32, Compression::none, 0});
  EXPECT_EQ(find_section(file.tables.sections, kTagRope), nullptr);
  EXPECT_EQ(file.tables.header.rope_theta, 10000.0f);
}

TEST(Conversion, OfTheSameInputGivesTheSameBytes) {
  const convert::Options options{FormatId::q4, Compression::lz4, 0};
  EXPECT_EQ(convert(kSource + "/tests/data/qwen2", options).file, convert(kSource + "/tests/data/qwen2", options).file);
}

TEST(Conversion, DefaultsTo8BitForFloatWeights) {
  const Written file = convert(kSource + "/tests/data/llama", {});
  EXPECT_EQ(static_cast<FormatId>(file.tables.header.quant), FormatId::q8);
}

}  // namespace
}  // namespace qsf::test
