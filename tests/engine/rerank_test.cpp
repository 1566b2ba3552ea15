// Rerankers: scores and token ids equal those of transformers, and no bit depends on how scores are computed.
#include "qsf/chat/rerank.h"

#include <thread>

#include "engine/golden.h"
#include "engine/variants.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

/// Directories of tests/data with scores.json, and GGUF files of tests/data/gguf with the scores of the directory of
/// their name.
class Reranker : public ::testing::TestWithParam<std::string> {
 protected:
  bool is_gguf() const { return GetParam().ends_with(".gguf"); }
  std::string folder() const {
    const std::string name = GetParam();
    return kSource + "/tests/data/" + name.substr(0, is_gguf() ? name.size() - 5 : name.size());
  }
  std::vector<std::byte> file(FormatId format = FormatId::f32) const {
    return converted(is_gguf() ? kSource + "/tests/data/gguf/" + GetParam() : folder(), format);
  }
  nlohmann::json golden() const { return read_json(folder() + "/scores.json"); }
  /// Returns the scores of the documents, each from a sequence that has the golden token ids.
  static std::vector<float> scores(Host& host, const nlohmann::json& golden) {
    std::vector<float> out;
    const std::string query = golden["query"];
    for (std::size_t i = 0; i < golden["documents"].size(); ++i) {
      const std::string document = golden["documents"][i];
      const Status begun = chat::rerank(*host.session, query, document, host.session->text_memory());
      EXPECT_TRUE(begun) << begun.error().sentence;
      if (!begun) return out;
      const std::span<const std::uint32_t> tokens = host.session->tokens();
      EXPECT_EQ(Ids(tokens.begin(), tokens.end()), golden["ids"][i].get<Ids>());
      const Generation run = host.pump();
      EXPECT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
      EXPECT_EQ(run.embedding.size(), 1u);
      out.insert(out.end(), run.embedding.begin(), run.embedding.end());
    }
    return out;
  }
};

TEST_P(Reranker, ScoresEqualTransformers) {
  const std::vector<std::byte> file = this->file();
  const nlohmann::json golden = this->golden();
  Host host(file, 32 * kMiB, {});
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  EXPECT_TRUE(host.session->scores());
  const std::vector<float> scores = this->scores(host, golden), expected = golden["scores"];
  ASSERT_EQ(scores.size(), 4u);
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-4) << i;
}

void run_on_threads(void*, void (*task)(void*, std::uint32_t), void* context, std::uint32_t n) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < n; ++i) threads.emplace_back(task, context, i);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Reranker, BitsDoNotDependOnThreadsMemoryOrInstructions) {
  const std::vector<std::byte> file = this->file(FormatId::q8);
  const nlohmann::json golden = this->golden();
  Host plain(file, 32 * kMiB, {});
  const std::vector<float> expected = scores(plain, golden);
  OpenOptions threaded;
  threaded.workers = {run_on_threads, nullptr, 3};
  Host helped(file, 32 * kMiB, threaded);
  EXPECT_EQ(scores(helped, golden), expected);
  OpenOptions streamed;
  streamed.stream_all = true;
  Host small(file, 32 * kMiB, streamed);
  EXPECT_EQ(scores(small, golden), expected);
  for (std::size_t i = 0; !instruction_set(i).empty(); ++i) {
    OpenOptions options;
    options.isa = instruction_set(i);
    Host host(file, 32 * kMiB, options);
    EXPECT_EQ(scores(host, golden), expected) << options.isa;
  }
}

/// Pairs of several sequences, of which some share a pass.
TEST_P(Reranker, BitsDoNotDependOnCompany) {
  const std::vector<std::byte> file = this->file();
  const nlohmann::json golden = this->golden();
  OpenOptions options;
  Host alone(file, 32 * kMiB, options);
  const std::vector<float> expected = scores(alone, golden);
  options.sequences = 4;
  Host host(file, 32 * kMiB, options);
  const std::string query = golden["query"];
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::string document = golden["documents"][i];
    ASSERT_TRUE(chat::rerank(*host.session, query, document, host.session->text_memory(), i));
  }
  for (int left = 4; left > 0; --left) {
    const std::vector<float> score = host.pump().embedding;
    ASSERT_EQ(score.size(), 1u);
    EXPECT_EQ(score[0], expected[host.session->sequence()]);
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, Reranker,
                         ::testing::Values("bert-reranker", "xlm-roberta-reranker", "modernbert-reranker",
                                           "qwen3-reranker", "modernbert-reranker.gguf", "qwen3-reranker.gguf"),
                         test_name);

ErrorCode code_of(const Status& status) { return status ? ErrorCode::none : status.error().code; }

TEST(Rerank, RefusesWhatItCannotScore) {
  const std::vector<std::byte> file = converted(kSource + "/tests/data/bert-reranker", FormatId::f32);
  OpenOptions options;
  options.max_seq_len = 64;
  Host host(file, 32 * kMiB, options);
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  Session& session = *host.session;
  const std::span<std::byte> memory = session.text_memory();
  const auto begun = [&](std::string_view query, std::string_view document) {
    return code_of(chat::rerank(session, query, document, memory));
  };
  EXPECT_EQ(begun("", "a document"), ErrorCode::bad_argument);
  EXPECT_EQ(begun("a query", ""), ErrorCode::bad_argument);
  std::string longer;
  for (int i = 0; i < 64; ++i) longer += "a plan ";
  EXPECT_EQ(begun("a query", longer), ErrorCode::context_full);
  EXPECT_EQ(begun("a query", std::string(memory.size() + 1, 'a')), ErrorCode::context_full);
  EXPECT_EQ(code_of(chat::rerank(session, "a query", "a document", memory.first(16))), ErrorCode::context_full);
  EmbedPrompt text;
  text.text = "no pair";
  EXPECT_EQ(code_of(session.embed(text)), ErrorCode::unsupported);
  text.second_from = 1;
  text.pooling = Pooling::mean;
  EXPECT_EQ(code_of(session.embed(text)), ErrorCode::bad_argument);
  Prompt prompt;
  prompt.text = "a text";
  EXPECT_EQ(code_of(session.start(prompt)), ErrorCode::unsupported);
  ASSERT_EQ(begun("a query", "a document"), ErrorCode::none);
  EXPECT_EQ(host.pump().embedding.size(), 1u);
}

/// The texts of a pair are no template: marks in them are words.
TEST(Rerank, MarksInTheTextsAreWords) {
  const std::vector<std::byte> file = converted(kSource + "/tests/data/bert-reranker", FormatId::f32);
  Host host(file, 32 * kMiB, {});
  ASSERT_TRUE(chat::rerank(*host.session, "{document}", "[SEP] [CLS]", host.session->text_memory()));
  const std::span<const std::uint32_t> tokens = host.session->tokens();
  EXPECT_EQ(std::ranges::count(tokens, 3u), 2);  // [SEP]
  EXPECT_EQ(std::ranges::count(tokens, 2u), 1);  // [CLS]
}

TEST(Rerank, AnotherModelIsNoReranker) {
  const std::vector<std::byte> file = converted(kSource + "/tests/data/bert", FormatId::f32);
  Host host(file, 32 * kMiB, {});
  EXPECT_FALSE(host.session->scores());
  std::vector<std::byte> memory(4096);
  EXPECT_EQ(code_of(chat::rerank(*host.session, "a query", "a document", memory)), ErrorCode::unsupported);
  EmbedPrompt pair;
  pair.text = "a text";
  pair.second_from = 1;
  EXPECT_EQ(code_of(host.session->embed(pair)), ErrorCode::unsupported);
}

}  // namespace
}  // namespace qsf::test
