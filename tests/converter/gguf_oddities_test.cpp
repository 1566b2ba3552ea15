// GGUF files as some programs write them: without what others say, with what others leave out.
#include <algorithm>
#include <cstring>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "qsf/base/utf8.h"

namespace qsf::test {
namespace {

const std::string kGguf = kSource + "/tests/data/gguf/llama.gguf";

/// Whether some warning has these words.
bool warned(const convert::LoadedModel& model, const std::string& words) {
  return std::ranges::any_of(model.warnings,
                             [&](const std::string& warning) { return warning.find(words) != std::string::npos; });
}

class Oddities : public testing::Test {
 protected:
  convert::LoadedModel open(const std::string& path, bool with_tokenizer = true) {
    Result<convert::LoadedModel> model = convert::open_model(path, with_tokenizer);
    EXPECT_TRUE(model) << model.error().sentence;
    return model ? std::move(*model) : convert::LoadedModel{};
  }
  std::string write(const Bytes& file) {
    write_bytes(folder_.path("model.gguf"), file);
    return folder_.path("model.gguf");
  }

  Folder folder_;
};

TEST_F(Oddities, APretokenizerThatIsNotNamedIsToldOf) {
  EXPECT_FALSE(warned(open(kGguf), "pre-tokenizer"));
  Bytes file = read_bytes(kGguf);
  const std::string_view key = "tokenizer.ggml.pre";
  const auto at =
      std::search(file.begin(), file.end(), std::as_bytes(std::span(key)).begin(), std::as_bytes(std::span(key)).end());
  ASSERT_NE(at, file.end());
  at[static_cast<std::ptrdiff_t>(key.size()) - 1] = std::byte{'x'};  // another key
  const std::string path = write(file);
  EXPECT_TRUE(warned(open(path), "does not name its pre-tokenizer"));
  convert::LoadedModel other = open(kGguf, false);
  ASSERT_TRUE(convert::read_tokenizer_file(path, other));
  EXPECT_TRUE(warned(other, "does not name its pre-tokenizer"));
}

TEST_F(Oddities, ANameThatIsNoUtf8IsMadeOne) {
  std::map<std::string, Weights> weights;
  GgufWriter writer = gguf_of(kLlama, GgmlType::f16, weights);
  writer.text("general.name", "Mod\xe8le d'\xe9t\xe9 \xc3\xa9");
  const std::string path = write(writer.file());
  const convert::LoadedModel model = open(path);
  EXPECT_EQ(model.config.name, "Mod\xef\xbf\xbdle d'\xef\xbf\xbdt\xef\xbf\xbd \xc3\xa9");
  EXPECT_TRUE(warned(model, "not UTF-8"));
  for (const char* out : {"out.qsf", "out.gguf"}) {
    convert::Options options;
    options.gguf = std::string_view(out) == "out.gguf";
    const Result<convert::Summary> summary = convert_file(model, options, folder_.path(out));
    EXPECT_TRUE(summary) << summary.error().sentence;
  }
}

TEST_F(Oddities, DimensionsOfOneBehindTheOthersSayNothing) {
  std::map<std::string, Weights> weights;
  GgufWriter writer = gguf_of(kLlama, GgmlType::q8_0, weights);
  const Bytes plain = convert(write(writer.file()), {}).file;
  writer.pad_shapes();
  EXPECT_EQ(convert(write(writer.file()), {}).file, plain);
}

TEST_F(Oddities, AModelsChatTemplateStaysWithAnotherTokenizer) {
  const std::string hf = folder_.path("model");
  copy_folder(kLlama, hf);
  write_text(hf + "/chat_template.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}");
  convert::Options options;
  options.gguf = true;
  ASSERT_TRUE(convert_file(open(hf), options, folder_.path("model.gguf")));
  for (const std::string& path : {hf, folder_.path("model.gguf")}) {
    const convert::LoadedModel own = open(path);
    EXPECT_EQ(own.chat.size(), 2u) << path;  // the template and its token
    convert::LoadedModel given = open(path, false);
    ASSERT_TRUE(convert::read_tokenizer_file(hf + "/tokenizer.json", given));
    EXPECT_EQ(given.chat, own.chat) << path;
    const Result<FileSpec> file = convert::plan_file(given, {});
    ASSERT_TRUE(file);
    const auto is_template = [](const MetaEntry& entry) { return entry.key == kMetaChatTemplate; };
    EXPECT_TRUE(std::ranges::any_of(file->meta, is_template)) << path;
    const Result<FileSpec> without = convert::plan_file(open(path, false), {});
    ASSERT_TRUE(without);
    EXPECT_TRUE(std::ranges::none_of(without->meta, is_template)) << path << ": no tokenizer, no template";
  }
}

}  // namespace
}  // namespace qsf::test
