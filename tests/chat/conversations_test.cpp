// Whole conversations against transformers' apply_chat_template, by tokenizers and templates in the forms of published
// models. Each is read from the files that a model's directory has. Two differences are on purpose, so that no
// conversation here has them and conversation_test.cpp tests them: control tokens in a message are text, and a model
// that expects its begin token gets it even if the template does not write it.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/plan/plan.h"
#include "converter/readers/inputs.h"
#include "engine/host.h"
#include "file/small_file.h"
#include "qsf/chat/conversation.h"
#include "tests/support/paths.h"
#include "text/vocabularies.h"

namespace qsf::chat::test {
namespace {

using nlohmann::json;
using qsf::test::kMiB;
using qsf::test::read_file;

const std::string kTests = source_dir() + "/tests/";

/// Returns a .qsf file of the directory with these files.
std::vector<std::byte> converted(const std::map<std::string, std::string>& files) {
  std::vector<std::byte> bytes;
  convert::ModelLocation place;
  place.name = place.folder.name = "model";
  place.folder.find = [&files](const std::string& name) -> Result<std::optional<convert::Input>> {
    const auto found = files.find(name);
    if (found == files.end()) return std::optional<convert::Input>();
    return std::optional(convert::input_of(name, std::as_bytes(std::span(found->second))));
  };
  const Result<convert::LoadedModel> model = convert::open_place(place, true);
  EXPECT_TRUE(model) << model.error().sentence;
  if (!model) return bytes;
  EXPECT_EQ(model->warnings, std::vector<std::string>());
  const Result<FileSpec> plan = convert::plan_file(*model, {});
  EXPECT_TRUE(plan) << plan.error().sentence;
  if (!plan) return bytes;
  EXPECT_TRUE(write_file(*plan, qsf::test::memory_sink(bytes), {}));
  return bytes;
}

/// Returns a .qsf file with the weights of tests/data/llama and the tokenizer and template of a form.
std::vector<std::byte> model_of(const json& form) {
  json config = json::parse(read_file(kTests + "data/llama/config.json"));
  for (const char* id : {"bos_token_id", "eos_token_id", "pad_token_id"}) config.erase(id);
  config.update(form.at("model"));
  config["max_position_embeddings"] = 512;
  return converted({{"config.json", config.dump()},
                    {"model.safetensors", read_file(kTests + "data/llama/model.safetensors")},
                    {"tokenizer.json", form.at("tokenizer").dump()},
                    {"tokenizer_config.json", form.at("config").dump()}});
}

TEST(Conversations, HaveTheTextAndIdsOfTransformers) {
  const json data = json::parse(read_file(kTests + "chat/data/conversations.json"));
  ASSERT_GE(data.at("forms").size(), 10u);
  OpenOptions options;
  options.text_bytes = 1 << 20;
  for (const json& form : data.at("forms")) {
    const std::vector<std::byte> file = model_of(form);
    qsf::test::Host host(file, 16 * kMiB, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    std::size_t i = 0;
    for (const json& conversation : data.at("conversations")) {
      const json& wanted = form.at("made").at(i++);
      const std::string values = conversation.dump();
      const auto made = tokenize(*host.session, {.values = values}, host.session->text_memory());
      ASSERT_TRUE(made) << form.at("name") << ": " << made.error().sentence;
      EXPECT_EQ(json(made->rendered.text), wanted.at("text")) << form.at("name");
      EXPECT_EQ(json(made->ids), wanted.at("ids")) << form.at("name") << " " << json(made->rendered.text);
    }
    EXPECT_EQ(i, form.at("made").size());
  }
}

}  // namespace
}  // namespace qsf::chat::test
