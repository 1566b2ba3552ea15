// Chat templates on their way into a file: where they come from, and what is not kept.
#include <filesystem>
#include <fstream>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "qsf/file/reader.h"

namespace qsf::test {
namespace {

using nlohmann::json;
using Texts = std::map<std::string, std::string>;

constexpr const char* kTemplate = "{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}";

class ChatTemplate : public ::testing::Test {
 protected:
  void SetUp() override { copy_folder(kSource + "/tests/data/llama", folder_.path()); }

  void configure(const json& chat_template, const json& more = {}) {
    json config = json::parse(std::string(reinterpret_cast<const char*>(original_.data()), original_.size()));
    if (!chat_template.is_null()) config["chat_template"] = chat_template;
    config.update(more.is_null() ? json::object() : more);
    write_text(folder_.path("tokenizer_config.json"), config.dump());
  }

  /// The texts of the metadata that have to do with conversations; `warned` gets what was told.
  Texts kept(const std::string& from) {
    Result<convert::LoadedModel> model = convert::open_model(from);
    EXPECT_TRUE(model) << (model ? "" : model.error().sentence);
    warned_.clear();
    for (const std::string& warning : model->warnings) warned_ += warning + "\n";
    const std::string path = folder_.path("out.qsf");
    const auto written = convert_file(*model, {}, path);
    EXPECT_TRUE(written) << (written ? "" : written.error().sentence);
    const Written file = read_written(path);
    const SectionEntry* section = find_section(file.tables.sections, kTagMeta);
    Texts texts;
    Result<MetaReader> reader = MetaReader::open(std::span(file.file).subspan(section->offset, section->size));
    for (MetaValue value; *reader->next(value);) {
      if (value.key.starts_with("chat.")) texts[std::string(value.key)] = value.text;
    }
    return texts;
  }
  Texts kept() { return kept(folder_.path()); }

  Folder folder_;
  Bytes original_ = read_bytes(kSource + "/tests/data/llama/tokenizer_config.json");
  std::string warned_;
};

TEST_F(ChatTemplate, ComesFromTokenizerConfig) {
  EXPECT_EQ(kept(), Texts());
  configure(kTemplate);
  EXPECT_EQ(kept(), (Texts{{"chat.template", kTemplate}, {"chat.bos_token", "<|endoftext|>"}}));
  configure("{{ eos_token + unk_token }}", {{"eos_token", {{"content", "<e>"}}}, {"unk_token", nullptr}});
  EXPECT_EQ(kept(), (Texts{{"chat.template", "{{ eos_token + unk_token }}"}, {"chat.eos_token", "<e>"}}));
  configure("{{ eos_token }}", {{"eos_token", nullptr}});
  EXPECT_EQ(kept().at("chat.eos_token"), "<|endoftext|>") << "the tokenizer's own, by its id";
}

TEST_F(ChatTemplate, MayBeSeveral) {
  configure(json::array({{{"name", "tool_use"}, {"template", "tools"}},
                         {{"name", "default"}, {"template", "usual"}},
                         {{"name", "no word"}, {"template", "lost"}},
                         {{"name", 7}, {"template", "odd"}}}));
  EXPECT_EQ(kept(), (Texts{{"chat.template", "usual"}, {"chat.template.tool_use", "tools"}}));
  EXPECT_NE(warned_.find("has a name that is no word"), std::string::npos) << warned_;
}

TEST_F(ChatTemplate, AFileOfItsOwnGoesFirst) {
  configure("old");
  write_text(folder_.path("chat_template.jinja"), kTemplate);
  EXPECT_EQ(kept().at("chat.template"), kTemplate);
}

TEST_F(ChatTemplate, IsBounded) {
  for (const std::size_t size : {std::size_t{0xffff}, std::size_t{0x10000}, std::size_t{1} << 20}) {
    configure(std::string(size, 'x'));
    EXPECT_EQ(kept().at("chat.template").size(), size);
    EXPECT_EQ(warned_, "");
  }
  const std::string longer((1u << 20) + 1, 'x');
  const std::string bad[] = {longer, std::string("a\0b", 3), "a\x1b[2J", "a\x7f"};
  for (const std::string& text : bad) {
    configure(text);
    EXPECT_EQ(kept(), Texts());
    EXPECT_NE(warned_.find("the file is without it"), std::string::npos) << warned_;
  }
  configure(nullptr);
  for (const std::string& text : {longer, std::string("a\0b", 3), std::string("\xff")}) {
    write_text(folder_.path("chat_template.jinja"), text);
    EXPECT_EQ(kept(), Texts());
    EXPECT_NE(warned_.find("the file is without it"), std::string::npos) << warned_;
  }
}

TEST_F(ChatTemplate, ComesFromGguf) {
  const auto gguf = [&](const std::string& text) {
    std::map<std::string, Weights> ignored;
    GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, ignored);
    const json tokenizer = json::parse(std::ifstream(kSource + "/tests/data/llama/tokenizer.json"));
    std::vector<std::string> tokens(512), merges;
    for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) tokens[id.get<std::size_t>()] = token;
    for (const json& merge : tokenizer["model"]["merges"]) {
      merges.push_back(merge.is_string() ? merge.get<std::string>()
                                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    std::vector<std::int32_t> types(512, 1);
    types[0] = 3;
    writer.text("tokenizer.ggml.model", "gpt2");
    writer.text("tokenizer.ggml.pre", "gpt-2");
    writer.texts("tokenizer.ggml.tokens", tokens);
    writer.i32s("tokenizer.ggml.token_type", types);
    writer.texts("tokenizer.ggml.merges", merges);
    writer.u32("tokenizer.ggml.bos_token_id", 0);
    writer.text("tokenizer.chat_template", text);
    writer.text("tokenizer.chat_template.rag", "named");
    write_bytes(folder_.path("model.gguf"), writer.file());
    return kept(folder_.path("model.gguf"));
  };
  EXPECT_EQ(gguf(kTemplate),
            (Texts{{"chat.template", kTemplate}, {"chat.template.rag", "named"}, {"chat.bos_token", "<|endoftext|>"}}));
  EXPECT_EQ(gguf("\xff\xfe"), (Texts{{"chat.template.rag", "named"}}));
  EXPECT_NE(warned_.find("is not UTF-8"), std::string::npos) << warned_;
}

TEST_F(ChatTemplate, IsInspectedInShort) {
  configure("{% for message in messages %}" + std::string(1'970, 'x') + "{% endfor %}");
  kept();
  std::FILE* out = std::tmpfile();
  const Bytes file = read_bytes(folder_.path("out.qsf"));
  EXPECT_TRUE(convert::inspect(convert::input_of("out.qsf", file), out));
  std::rewind(out);
  std::string text(100'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_NE(text.find("2 011 bytes"), std::string::npos) << text;
  EXPECT_EQ(text.find("{% for"), std::string::npos) << text;
}

}  // namespace
}  // namespace qsf::test
