// Embeddings: last hidden states equal Hugging Face's, pooling equals a double-precision reference, and no bit depends
// on how they were computed.
#include <cmath>
#include <thread>

#include "engine/golden.h"
#include "engine/variants.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

/// `ids` must outlive what is given.
EmbedPrompt embed_of(const Ids& ids, std::optional<Pooling> pooling, std::optional<bool> normalize = {}) {
  EmbedPrompt prompt;
  prompt.tokens = ids;
  prompt.pooling = pooling;
  prompt.normalize = normalize;
  return prompt;
}

/// Directories of tests/data whose golden values are last hidden states [tokens][dim], and GGUF files of
/// tests/data/gguf with those of the directory of their name.
class Embedder : public ::testing::TestWithParam<std::string> {
 protected:
  bool is_gguf() const { return GetParam().ends_with(".gguf"); }
  std::string folder() const {
    const std::string name = GetParam();
    return kSource + "/tests/data/" + name.substr(0, is_gguf() ? name.size() - 5 : name.size());
  }
  nlohmann::json golden() const { return read_json(folder() + "/golden.json"); }
  std::vector<std::byte> file(FormatId format = FormatId::f32) const {
    return converted(is_gguf() ? kSource + "/tests/data/gguf/" + GetParam() : folder(), format);
  }
  Ids ids(std::size_t prompt = 0) const { return golden()["prompts"][prompt]["ids"]; }
};
/// Of these, encoders of which nothing says how they are pooled.
class Encoder : public Embedder {};
/// Those that hold embeddings too: what the model's own modules make of a text.
class Sentences : public Embedder {};

TEST_P(Embedder, HiddenStatesEqualHuggingFaces) {
  const nlohmann::json golden = this->golden();
  ASSERT_EQ(golden["prompts"].size(), 3u);
  const std::vector<float> states = read_floats(folder() + "/golden.f32");
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  for (const auto& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"];
    const Generation run = host.embed(embed_of(ids, Pooling::none));
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    const std::size_t n = ids.size() * prompt["logits_shape"][1].get<std::size_t>();
    EXPECT_LT(relative_difference(run.embedding, std::span(states).subspan(prompt["logits_offset"], n)), 1e-4);
  }
}

/// With the special tokens that the tokenizer's template puts around them.
TEST_P(Embedder, TokenIdsEqualHuggingFaces) {
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  const nlohmann::json golden = this->golden();
  for (const auto& prompt : golden["prompts"]) {
    const std::string text = prompt["text"];
    EmbedPrompt given;
    given.text = text;
    ASSERT_EQ(host.embed(given).error.code, ErrorCode::none);
    const std::span<const std::uint32_t> tokens = host.session->tokens();
    EXPECT_EQ(Ids(tokens.begin(), tokens.end()), prompt["ids"].get<Ids>());
  }
}

/// Pooled, through the Dense modules and normalized: double precision made them of transformers' hidden states.
TEST_P(Sentences, EmbeddingsAreWhatTheModelsModulesMake) {
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  const nlohmann::json golden = this->golden();
  for (const auto& prompt : golden["prompts"]) {
    const std::string text = prompt["text"];
    const std::vector<float> expected = prompt["embedding"];
    EmbedPrompt given;
    given.text = text;
    const Generation run = host.embed(given);
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    EXPECT_LT(relative_difference(run.embedding, expected), 1e-4);
  }
}

TEST_P(Embedder, BitsDoNotDependOnThreadsMemoryOrInstructions) {
  for (const FormatId format : {FormatId::f32, FormatId::q8}) {
    const std::vector<std::byte> file = this->file(format);
    const Ids ids = this->ids();
    const EmbedPrompt prompt = embed_of(ids, Pooling::none);
    Host plain(file, 32 * kMiB, {});
    const std::vector<float> expected = plain.embed(prompt).embedding;
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(plain.session->stats().ring_slots, 0u);
    for (const std::uint32_t threads : {2u, 3u, 8u}) {
      OpenOptions options;
      options.workers = {run_on_threads, nullptr, threads};
      EXPECT_EQ(Host(file, 32 * kMiB, options).embed(prompt).embedding, expected) << threads;
    }
    OpenOptions streamed;
    streamed.stream_all = true;
    streamed.max_seq_len = 128;
    Host small(file, 32 * kMiB, streamed);
    EXPECT_GT(small.session->stats().ring_slots, 0u);
    EXPECT_EQ(small.embed(prompt).embedding, expected);
    for (std::size_t i = 0; !instruction_set(i).empty(); ++i) {
      OpenOptions options;
      options.isa = instruction_set(i);
      EXPECT_EQ(Host(file, 32 * kMiB, options).embed(prompt).embedding, expected) << options.isa;
    }
  }
}

/// Texts of several sequences, some of which share a pass.
TEST_P(Encoder, BitsDoNotDependOnCompany) {
  const std::vector<std::byte> file = this->file();
  OpenOptions options;
  options.max_seq_len = 96;
  std::vector<std::vector<float>> alone;
  for (std::size_t i = 0; i < 3; ++i) {
    alone.push_back(Host(file, 32 * kMiB, options).embed(embed_of(ids(i), Pooling::mean)).embedding);
  }
  options.sequences = 3;
  Host host(file, 32 * kMiB, options);
  ASSERT_EQ(host.session->stats().chunk, 96u);  // the second and third text fit into one pass
  std::vector<Ids> texts;
  for (std::uint32_t i = 0; i < 3; ++i) texts.push_back(ids(i));
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(host.session->embed(embed_of(texts[i], Pooling::mean), i));
  for (std::uint32_t left = 3; left > 0; --left) {
    const std::vector<float> embedding = host.pump().embedding;
    EXPECT_EQ(embedding, alone[host.session->sequence()]);
  }
}

TEST_P(Encoder, PoolingEqualsAReferenceInDoubles) {
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  const Ids ids = this->ids();
  const std::size_t dim = host.session->stats().dim;
  const std::vector<float> rows = host.embed(embed_of(ids, Pooling::none)).embedding;
  ASSERT_EQ(rows.size(), ids.size() * dim);
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    std::vector<double> expected(dim);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const bool taken = pooling == Pooling::mean || t == (pooling == Pooling::first ? 0 : ids.size() - 1);
      const double share = pooling == Pooling::mean ? 1.0 / static_cast<double>(ids.size()) : 1;
      for (std::size_t i = 0; taken && i < dim; ++i) expected[i] += share * double{rows[t * dim + i]};
    }
    double squares = 0;
    for (const double x : expected) squares += x * x;
    for (const bool normalize : {false, true}) {
      const Generation run = host.embed(embed_of(ids, pooling, normalize));
      ASSERT_EQ(run.embedding.size(), dim);
      for (std::size_t i = 0; i < dim; ++i) {
        const double x = expected[i] / (normalize ? std::sqrt(squares) : 1);
        EXPECT_NEAR(run.embedding[i], x, 1e-6 * std::abs(x) + 1e-12);
      }
    }
  }
  // What nothing is said of is the mean, as it is: no file of these says otherwise.
  EXPECT_EQ(host.embed(embed_of(ids, {})).embedding, host.embed(embed_of(ids, Pooling::mean, false)).embedding);
  const std::vector<float> unit = host.embed(embed_of(ids, Pooling::none, true)).embedding;
  double squares = 0;
  for (std::size_t i = 0; i < dim; ++i) squares += double{unit[dim + i]} * double{unit[dim + i]};
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST_P(Encoder, WhatItCannotDoIsTold) {
  const std::vector<std::byte> file = this->file();
  OpenOptions options;
  options.max_seq_len = 32;
  Host host(file, 32 * kMiB, options);
  const Ids ids = this->ids(1);
  const std::vector<float> expected = host.embed(embed_of(ids, {})).embedding;
  const Generation text = host.generate(greedy(ids, 4));
  EXPECT_EQ(text.error.code, ErrorCode::unsupported);
  EXPECT_NE(std::string(text.error.sentence).find("embeddings, not text"), std::string::npos);
  EXPECT_EQ(host.embed(embed_of(Ids(33, 1), {})).error.code, ErrorCode::context_full);
  EXPECT_EQ(host.embed(embed_of({5, 512}, {})).error.code, ErrorCode::bad_token);
  EXPECT_EQ(host.embed({}).error.code, ErrorCode::bad_argument);
  EXPECT_EQ(host.embed(embed_of(ids, {})).embedding, expected);
  options.chunk = 16;
  EXPECT_EQ(Host(file, 32 * kMiB, options).error.code, ErrorCode::bad_argument);
  options.max_seq_len = 0;
  EXPECT_EQ(Host(file, 32 * kMiB, options).session->stats().max_seq_len, 16u);
}

TEST_P(Embedder, StoppingAnywhereLeavesACleanInstance) {
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  const Ids ids = this->ids(1);
  const EmbedPrompt prompt = embed_of(ids, {});
  const std::vector<float> expected = host.embed(prompt).embedding;
  ASSERT_FALSE(expected.empty());
  for (int stop_after = 1; stop_after < 300; stop_after += 17) {
    int steps = 0;
    host.stop_when = [&] { return ++steps == stop_after; };
    (void)host.embed(prompt);
    host.session->stop();
    host.stop_when = nullptr;
    EXPECT_EQ(host.embed(prompt).embedding, expected) << stop_after;
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, Embedder,
                         ::testing::Values("bert", "distilbert", "jina-v3", "modernbert", "mpnet", "nomic-bert",
                                           "roberta", "xlm-roberta", "gemma-embedding", "qwen3-embedding", "bert.gguf",
                                           "distilbert.gguf", "nomic-bert.gguf", "roberta.gguf", "modernbert.gguf",
                                           "gemma-embedding.gguf", "qwen3-embedding.gguf"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Directories, Encoder, ::testing::Values("bert", "modernbert", "mpnet"), test_name);
INSTANTIATE_TEST_SUITE_P(Models, Sentences,
                         ::testing::Values("gemma-embedding", "qwen3-embedding", "gemma-embedding.gguf",
                                           "qwen3-embedding.gguf"),
                         test_name);

/// What pooling takes goes through the matrix; last hidden states, asked for by themselves, do not.
TEST(Embedding, ADenseMatrixIsBehindThePooling) {
  SmallOptions o;
  o.model.headless = 1;
  o.tied = false;
  o.optional = {Role::final_norm, Role::dense};
  const SmallFile file = small_file(o);
  const std::vector<float>& dense = file.weights.at({o.n_layers + 1, Role::dense});
  const Ids ids = some_tokens(21, o.vocab_size);
  Host host(file.bytes, 8 * kMiB, {});
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  const std::vector<float> rows = host.embed(embed_of(ids, Pooling::none)).embedding;
  ASSERT_EQ(rows.size(), ids.size() * o.dim);
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    std::vector<double> pooled(o.dim);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const bool taken = pooling == Pooling::mean || t == (pooling == Pooling::first ? 0 : ids.size() - 1);
      const double share = pooling == Pooling::mean ? 1.0 / static_cast<double>(ids.size()) : 1;
      for (std::size_t i = 0; taken && i < o.dim; ++i) pooled[i] += share * double{rows[t * o.dim + i]};
    }
    const std::vector<float> embedding = host.embed(embed_of(ids, pooling)).embedding;
    ASSERT_EQ(embedding.size(), o.dim);
    for (std::size_t r = 0; r < o.dim; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < o.dim; ++c) sum += double{dense[r * o.dim + c]} * pooled[c];
      EXPECT_NEAR(embedding[r], sum, 1e-5);
    }
    for (const std::uint32_t chunk : {1u, 4u}) {
      OpenOptions options;
      options.chunk = chunk;
      options.stream_all = true;
      EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).embed(embed_of(ids, pooling)).embedding, embedding) << chunk;
    }
  }
}

/// A model that makes text: hidden states in any chunking, and beside a generation that they leave alone.
TEST(Embedding, OfACausalModelDoesNotDependOnChunksOrCompany) {
  SmallOptions o;
  const SmallFile file = small_file(o);
  const Ids ids = some_tokens(19, o.vocab_size), others = some_tokens(7, o.vocab_size);
  const std::string hash = Host(file.bytes, 8 * kMiB, {}).generate(greedy(others, 12)).hash;
  for (const Pooling pooling : {Pooling::none, Pooling::mean, Pooling::first, Pooling::last}) {
    const std::vector<float> expected = Host(file.bytes, 8 * kMiB, {}).embed(embed_of(ids, pooling)).embedding;
    ASSERT_EQ(expected.size(), pooling == Pooling::none ? ids.size() * o.dim : o.dim);
    for (const std::uint32_t chunk : {1u, 3u, 7u}) {
      OpenOptions options;
      options.chunk = chunk;
      options.sequences = 2;
      options.stream_all = chunk == 3;
      Host host(file.bytes, 8 * kMiB, options);
      EXPECT_EQ(host.embed(embed_of(ids, pooling)).embedding, expected) << chunk;
      ASSERT_TRUE(host.session->rewind(0));  // what was embedded is the sequence's text
      ASSERT_TRUE(host.session->start(greedy(others, 12), 0));
      ASSERT_TRUE(host.session->embed(embed_of(ids, pooling), 1));
      std::vector<float> embedding;
      for (int ended = 0; ended < 2; ++ended) {
        const Generation run = host.pump();
        embedding.insert(embedding.end(), run.embedding.begin(), run.embedding.end());
      }
      EXPECT_EQ(embedding, expected) << chunk;
      EXPECT_EQ(host.session->logits_hash(0), hash) << chunk;
    }
  }
}

/// The last hidden state is what the head sees: its product with the head are the logits.
TEST(Embedding, OfTheLastPositionMakesTheLogits) {
  SmallOptions o;
  o.tied = false;
  const SmallFile file = small_file(o);
  const Ids ids = some_tokens(9, o.vocab_size);
  Host host(file.bytes, 8 * kMiB, with_logits());
  const std::vector<float> state = host.embed(embed_of(ids, Pooling::last)).embedding;
  ASSERT_TRUE(host.session->rewind(0));
  const std::vector<float> logits = host.generate(all_logits(ids, 0)).logits;
  const std::vector<float>& head = file.weights.at({o.n_layers + 1, Role::head});
  for (std::size_t r = 0; r < o.vocab_size; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < o.dim; ++c) sum += double{head[r * o.dim + c]} * double{state[c]};
    EXPECT_NEAR(logits[(ids.size() - 1) * o.vocab_size + r], sum, 1e-5 * (1 + std::abs(sum)));
  }
}

}  // namespace
}  // namespace qsf::test
