// qsf-run --rerank and qsf_rerank(): documents in the order of transformers' scores, and calls that cannot be answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "native/models.h"
#include "qsf.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

/// A GGUF of f32 weights, which are not rounded.
std::string model() { return source_dir() + "/tests/data/gguf/modernbert-reranker.gguf"; }
Json scores() { return Json::parse(read_text(source_dir() + "/tests/data/modernbert-reranker/scores.json")); }

struct Line {
  float score;
  std::size_t number;
  std::string text;
};

Ran rerank(std::vector<std::string> arguments, const std::string& input = {}) {
  std::vector<std::string> command{program("qsf-run"), model(), "--rerank"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
}

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    lines.push_back({std::stof(line), std::stoul(line.substr(first + 1)), line.substr(second + 1)});
  }
  return lines;
}

TEST(Rerank, TheBestDocumentIsFirst) {
  const Json expected = scores();
  const std::string query = expected["query"];
  std::string documents;
  for (const Json& document : expected["documents"]) documents += document.get<std::string>() + "\n\n";
  const TempDir dir;
  std::ofstream(dir / "documents", std::ios::binary) << documents;
  const Ran ran = rerank({query, dir / "documents"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::vector<Line> lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), expected["documents"].size());
  EXPECT_TRUE(std::ranges::is_sorted(lines, std::ranges::greater(), &Line::score));
  for (const Line& line : lines) {
    const std::size_t i = (line.number - 1) / 2;  // empty lines are between
    EXPECT_EQ(line.text, expected["documents"][i].get<std::string>());
    EXPECT_NEAR(line.score, expected["scores"][i].get<float>(), 1e-4);
  }
  EXPECT_EQ(rerank({query}, documents).out, ran.out);
}

TEST(Rerank, ALineThatCannotBeScoredEndsNoBatch) {
  const Ran ran = rerank({"a query"}, "a plan\n\xff\n" + std::string(200'000, 'x') + "\nanother plan\n");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(lines_of(ran.out).size(), 2u);
  EXPECT_NE(ran.err.find("bad_text: line 2 is left out: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("context_full: line 3 is left out: "), std::string::npos) << ran.err;
}

/// Documents have no room in the budget: they are read again, and their number is bounded before anything is scored.
TEST(Rerank, BoundsTheDocumentsThatItKeeps) {
  std::string lines;
  for (int i = 0; i < 65'537; ++i) lines += "a plan\n";
  const TempDir dir;
  std::ofstream(dir / "documents", std::ios::binary) << lines;
  const std::string too_many = "context_full: there are more than 65536 documents: score parts of them";
  for (const Ran& ran : {rerank({"a query", dir / "documents"}), rerank({"a query"}, lines)}) {
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find(too_many), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  const std::string few =
      "\xef\xbb\xbf"
      "a plan\r\n\r\n" +
      std::string(2u << 20, 'x') + "\nanother plan";
  std::ofstream(dir / "documents", std::ios::binary) << few;
  const Ran redirected = rerank({"a query"}, few), read = rerank({"a query", dir / "documents"});
  EXPECT_EQ(lines_of(redirected.out).size(), 2u) << redirected.err;
  EXPECT_NE(redirected.out.find("\ta plan\n"), std::string::npos) << redirected.out;
  EXPECT_NE(redirected.err.find("line 3 is left out: it is longer than the context"), std::string::npos)
      << redirected.err;
  EXPECT_EQ(read.out, redirected.out);
  EXPECT_EQ(read.err, redirected.err);
}

/// A text of an encoder is one pass: the refusal of a longer one names a chunk that would do.
TEST(Rerank, AChunkThatIsTooShortIsAnsweredWithOneThatDoes) {
  const Ran scored = rerank({"a query"}, "a plan of several words\n");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const auto advice = [](const Ran& ran) {
    const std::string words = "a chunk of ";
    const std::size_t at = ran.err.find(words);
    EXPECT_NE(at, std::string::npos) << ran.err;
    return at == std::string::npos ? "0" : std::to_string(std::stoul(ran.err.substr(at + words.size())));
  };
  for (const char* chunk : {"2", "8"}) {  // shorter than the query, and than the pair
    const Ran refused = rerank({"a query", "--chunk", chunk}, "a plan of several words\n");
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(rerank({"a query", "--chunk", advice(refused)}, "a plan of several words\n").out, scored.out);
  }
  const Ran longer = rerank({"a query", "--chunk", "16"}, std::string(1u << 20, 'x') + "\n");
  EXPECT_NE(advice(longer), "0");
}

TEST(Rerank, RefusesWhatDoesNotFit) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* sentence;
  };
  for (const Case& c :
       {Case{{"a query", "--chat"}, 2, "--rerank makes no text"},
        Case{{"a query", "--prompt", "b"}, 2, "--rerank makes no text"},
        Case{{""}, 2, "--rerank is given an empty QUERY"}, Case{{"a query", ""}, 2, "FILE is given an empty FILE"},
        Case{{"a query", "--seed", "1"}, 2, "--rerank makes no text"},
        Case{{"a query", "--samplers", "top_k"}, 2, "--rerank makes no text"},
        Case{{"a query", "-n", "0"}, 2, "--rerank makes no text"},
        Case{{"a query", "--speculate", "ngram"}, 2, "--rerank makes no text"},
        Case{{"a query", "d", "--prompt-file", "e"}, 2, "--rerank takes documents in one way only"},
        Case{{"a query", "-t", "1", "/no/such/file"}, 1, "cannot read /no/such/file"},
#ifdef _WIN32
        Case{{"a query", "/tmp"}, 1, "io_error: cannot read /tmp: Permission denied"},
#else  // arguments on Windows are UTF-16, which becomes valid UTF-8
        Case{{"a query", "/tmp"}, 1, "io_error: cannot read /tmp: Is a directory"},
        Case{{"a \xff"}, 1, "bad_text: the query: "},
#endif
        Case{{std::string(100'000, 'x')}, 1, "context_full: the query: "}}) {
    const Ran ran = rerank(c.arguments, "a plan\n");
    EXPECT_EQ(ran.code, c.code) << c.sentence;
    EXPECT_NE(ran.err.find(c.sentence), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  const std::string bert = source_dir() + "/tests/data/bert";
  const Ran other = run({program("qsf-run"), bert, "--rerank", "a query"},
                        {.input = "a plan\n", .environment = {}, .meanwhile = nullptr, .out = {}});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("this model is no reranker"), std::string::npos) << other.err;
  const Ran text = run({program("qsf-run"), model(), "--prompt", "x"});
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.err.find("this model is a reranker"), std::string::npos) << text.err;
}

TEST(Rerank, TheCApiGivesScoresInTheOrderOfDocuments) {
  const Json expected = scores();
  const std::string query = expected["query"];
  const auto texts = expected["documents"].get<std::vector<std::string>>();
  std::vector<const char*> documents;
  for (const std::string& text : texts) documents.push_back(text.c_str());
  QSFEngine* const engine = qsf_load(model().c_str(), nullptr);
  ASSERT_NE(engine, nullptr) << qsf_last_error();
  float* const given = qsf_rerank(engine, query.c_str(), documents.data(), static_cast<int>(documents.size()));
  ASSERT_NE(given, nullptr) << qsf_last_error();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    EXPECT_NEAR(given[i], expected["scores"][i].get<float>(), 1e-4);
  }
  qsf_release(given);
  documents[1] = nullptr;
  EXPECT_EQ(qsf_rerank(engine, query.c_str(), documents.data(), 2), nullptr);
  EXPECT_EQ(qsf_rerank(engine, nullptr, documents.data(), 1), nullptr);
  EXPECT_EQ(qsf_rerank(engine, query.c_str(), documents.data(), 0), nullptr);
  EXPECT_EQ(qsf_rerank(nullptr, query.c_str(), documents.data(), 1), nullptr);
  EXPECT_STRNE(qsf_last_error(), "");
  qsf_free(engine);
}

}  // namespace
}  // namespace qsf::test
