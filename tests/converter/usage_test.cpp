// What users of qsf-convert meet who do not know it yet: names as others write them, and sentences that say what to do.
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "converter/files/output_file.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/support.h"
#include "native/process.h"
#include "qsf/base/bytes.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

class Usage : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  Ran convert(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program("qsf-convert"));
    return run(arguments);
  }
  /// What is said on standard error; the run must end with the code.
  std::string said(const std::vector<std::string>& arguments, int code = 0) {
    const Ran ran = convert(arguments);
    EXPECT_EQ(ran.code, code) << ran.err;
    return ran.err;
  }

  Folder folder_;
};

TEST_F(Usage, ErrorsOfTheCommandLineHaveACodeInOneLine) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {kLlama},
                                             {kLlama, path("x.qsf"), "--quant-type", "5bit"},
                                             {kLlama, path("x.qsf"), "--frobnicate"},
                                             {kLlama, path("x.qsf"), "--threads", "-1"},
                                             {kLlama, path("x.qsf"), "--losses", "x.json"}}) {
    const std::string error = said(wrong, 2);
    EXPECT_TRUE(error.starts_with("qsf-convert: bad_argument: ")) << error;
    EXPECT_TRUE(error.ends_with(" (see --help)\n")) << error;
    EXPECT_EQ(error.find('\n'), error.size() - 1) << error;
  }
}

TEST_F(Usage, TypesHaveTheirNamesInAnyCase) {
  EXPECT_EQ(said({kLlama, path("x.qsf"), "--quant-type", "Q8_0", "--tensor-type", "ffn_up=Q4_0"}), "");
  const Written written = read_written(path("x.qsf"));
  for (const TensorEntry& tensor : written.tables.tensors) {
    const std::string_view name = find_format(tensor.format)->name;
    if (tensor.role == Role::ffn_up) {
      EXPECT_EQ(name, "q4_0");
    }
    if (tensor.role == Role::ffn_down) {
      EXPECT_EQ(name, "q8_0");
    }
  }
  EXPECT_EQ(convert({kLlama, path("x.gguf"), "--quant-type", "IQ4_NL"}).code, 0);
}

TEST_F(Usage, MixturesOfLlamaCppHaveTheirNamesInAnyCase) {
  ASSERT_EQ(convert({kLlama, path("x.qsf"), "--quant-type", "Q4_K_M", "--tensor-type", "ffn_up=Q4_0"}).code, 0);
  std::map<Role, std::set<std::string_view>> types;
  for (const TensorEntry& tensor : read_written(path("x.qsf")).tables.tensors) {
    types[tensor.role].insert(find_format(tensor.format)->name);
  }
  EXPECT_EQ(types[Role::attn_q], std::set<std::string_view>{"q4_k"});
  EXPECT_EQ(types[Role::ffn_up], std::set<std::string_view>{"q4_0"});
  EXPECT_TRUE(types[Role::ffn_down].contains("q6_k"));
  // The file says which mixture it is: llama.cpp's LLAMA_FTYPE_MOSTLY_Q4_K_M is 15.
  EXPECT_EQ(convert({kLlama, path("x.gguf"), "--quant-type", "q4_k_m"}).code, 0);
  const std::vector<std::byte> bytes = read_bytes(path("x.gguf"));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t key = text.find("general.file_type");
  ASSERT_NE(key, text.npos);
  EXPECT_EQ(static_cast<unsigned char>(text[key + std::strlen("general.file_type") + 4]), 15);
}

TEST_F(Usage, MixturesThatAreNotMadeAreAnsweredWithWhatWouldDo) {
  for (const std::string name : {"Q4_K_XL", "q3_k_xl", "IQ4_NL_M"}) {
    const std::string error = said({kLlama, path("x.gguf"), "--quant-type", name}, 2);
    EXPECT_TRUE(has(error, name + " is one of llama.cpp's mixtures of types: ")) << error;
    EXPECT_TRUE(has(error, " is a type for all matrices")) << error;
  }
  EXPECT_TRUE(has(said({kLlama, path("x.gguf"), "--tensor-type", "ffn_up=Q5_K_M"}, 1), "q5_k is a type for all"));
  EXPECT_TRUE(has(said({kLlama, path("x.gguf"), "--quant-type", "q4_0_m_x"}, 2), "not in {"));
}

TEST_F(Usage, AFileOfAFolderNamesTheFolder) {
  const std::string error = said({kLlama + "/model.safetensors", path("x.qsf")}, 1);
  EXPECT_TRUE(has(error, "unsupported: model.safetensors is a part of a model: name the folder that it is in, "))
      << error;
  EXPECT_TRUE(has(error, kLlama)) << error;
}

TEST_F(Usage, AGgufFilesEndingHasAnyCase) {
  EXPECT_EQ(said({kLlama, path("OUT.GGUF"), "--quant-type", "q8_0"}), "");
  EXPECT_TRUE(convert::is_gguf(read_bytes(path("OUT.GGUF"))));
}

TEST_F(Usage, RoundingTwiceIsTold) {
  ASSERT_EQ(said({kLlama, path("a.gguf"), "--quant-type", "q8_0"}), "");
  EXPECT_TRUE(has(said({path("a.gguf"), path("b.gguf"), "--quant-type", "q4_0"}),
                  "23 matrices rounded a second time, such as from q8_0 to q4_0"));
  EXPECT_FALSE(has(said({path("a.gguf"), path("b.gguf"), "--quant-type", "f16"}), "second time"));
  EXPECT_FALSE(has(said({path("a.gguf"), path("b.gguf")}), "second time"));
}

TEST_F(Usage, RowsThatAreNoWholeBlocksAreTold) {
  const std::string padded = said({kLlama, path("a.qsf"), "--quant-type", "q4_k"});  // rows of 128, of ffn_down 256
  EXPECT_TRUE(has(padded,
                  "20 matrices with rows that are no whole blocks, such as of q4_k (256 weights) with 128: the "
                  "last block is filled up, which takes 2.00 times the bytes"))
      << padded;
  const std::string narrowed = said({kLlama, path("a.gguf"), "--quant-type", "q4_k"});
  EXPECT_TRUE(has(narrowed,
                  "20 matrices with rows that are no whole blocks, such as q5_0 instead of q4_k with rows of "
                  "128 weights"))
      << narrowed;
  EXPECT_EQ(said({kLlama, path("a.qsf"), "--quant-type", "q4_0"}), "");
}

/// A number of a GGUF file under a key.
std::optional<std::uint32_t> number(const std::string& path, const char* key) {
  const Bytes file = read_bytes(path);
  const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", file));
  return gguf ? gguf->u32(key) : std::nullopt;
}

TEST_F(Usage, GgufFilesSayTheirType) {
  for (const auto& [type, file_type] : {std::pair{"f32", 0u}, {"f16", 1u}, {"q4_0", 2u}, {"q8_0", 7u}, {"bf16", 32u}}) {
    ASSERT_EQ(said({kLlama, path("x.gguf"), "--quant-type", type, "--tensor-type", "token_embd=f32"}), "");
    EXPECT_EQ(number(path("x.gguf"), "general.file_type"), file_type) << type;
  }
  // As llama.cpp's converter says it of the same model.
  for (const char* model : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const std::string gguf = kSource + "/tests/data/gguf/" + model + ".gguf";
    ASSERT_EQ(convert({gguf, path("x.gguf")}).code, 0) << model;
    EXPECT_EQ(number(path("x.gguf"), "general.file_type"), number(gguf, "general.file_type")) << model;
  }
}

TEST_F(Usage, AnOutputKeepsThePermissionsOfWhatItReplaces) {
  for (const fs::perms mode : {fs::perms(0600), fs::perms(0640)}) {
    write_text(path("x.qsf"), "earlier");
    fs::permissions(path("x.qsf"), mode);
    ASSERT_EQ(said({kLlama, path("x.qsf")}), "");
    EXPECT_GT(fs::file_size(path("x.qsf")), 7u);
    EXPECT_EQ(fs::status(path("x.qsf")).permissions(), mode);
  }
}

TEST_F(Usage, AnOutputThatIsALinkIsWhatItLeadsTo) {
  fs::create_directory(path("elsewhere"));
  write_text(path("elsewhere/real.qsf"), "earlier");
  fs::create_symlink("elsewhere/real.qsf", path("link.qsf"));
  ASSERT_EQ(said({kLlama, path("link.qsf")}), "");
  EXPECT_TRUE(fs::is_symlink(path("link.qsf")));
  EXPECT_GT(fs::file_size(path("elsewhere/real.qsf")), 7u);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("elsewhere")), fs::directory_iterator()), 1);
  fs::create_symlink("nowhere", path("loose.qsf"));
  EXPECT_TRUE(has(said({kLlama, path("loose.qsf")}, 1), "it is a link to nothing"));
  EXPECT_TRUE(fs::is_symlink(path("loose.qsf")));
}

}  // namespace
}  // namespace qsf::test
