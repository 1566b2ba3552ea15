// Every mistake on the command line and every broken file or server: an exit code, a code's name, a sentence.
#include <gtest/gtest.h>

#include <cstdlib>

#include "native/http_server.h"
#include "native/models.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

struct Case {
  std::vector<std::string> arguments;
  int exit_code;
  std::string code;    // its name in errors.def
  std::string naming;  // what the sentence must name
};

/// What follows `words` in `text`, as long as it is made of `of`; empty when the words are not there.
std::string after(const std::string& text, const std::string& words, const std::string& of) {
  const std::size_t at = text.find(words);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + words.size();
  return text.substr(begin, text.find_first_not_of(of, begin) - begin);
}

void expect_error(const Case& c, const Around& around = {}) {
  std::vector<std::string> command{program("qsf-run")};
  std::string shown;
  for (const std::string& argument : c.arguments) {
    command.push_back(argument);
    shown += argument + " ";
  }
  const Ran ran = run(command, around);
  EXPECT_EQ(ran.code, c.exit_code) << shown << ran.err;
  EXPECT_EQ(ran.out, "") << shown;
  const std::string begin = "qsf-run: " + c.code + ": ";
  EXPECT_EQ(ran.err.substr(0, begin.size()), begin) << shown << ran.err;
  EXPECT_NE(ran.err.find(c.naming), std::string::npos) << shown << ran.err;
  EXPECT_GT(ran.err.size(), begin.size() + 15) << shown;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << shown << ran.err;
}

TEST(Errors, OfUsage) {
  const std::string m = stories("8bit");
  const Case cases[] = {
      {{}, 2, "bad_argument", "MODEL"},
      {{m, "--no-such-option"}, 2, "bad_argument", "--no-such-option"},
      {{m, m, "--prompt", "x"}, 2, "bad_argument", "argument"},
      {{m, "--prompt"}, 2, "bad_argument", "--prompt"},
      {{m, "--prompt", "x", "--max-tokens", "many"}, 2, "bad_argument", "--max-tokens"},
      {{m, "--prompt", "x", "--max-tokens", "-2"}, 2, "bad_argument", "--max-tokens"},
      {{m, "--prompt", "x", "--max-tokens", "99999999999"}, 2, "bad_argument", "--max-tokens"},
      {{m, "--prompt", "x", "--temperature", "-1"}, 2, "bad_argument", "temperature"},
      {{m, "--prompt", "x", "--temperature", "nan"}, 2, "bad_argument", "temperature"},
      {{m, "--prompt", "x", "--top-p", "2"}, 2, "bad_argument", "top"},
      {{m, "--prompt", "x", "--repetition-penalty", "0"}, 2, "bad_argument", "penalty"},
      {{m, "--prompt", "x", "--min-p", "1.5"}, 2, "bad_argument", "min_p is 1.5; it must be 0 to 1"},
      {{m, "--prompt", "x", "--typical", "0"}, 2, "bad_argument", "typical_p is 0; it must be above 0"},
      {{m, "--prompt", "x", "--xtc-probability", "nan"}, 2, "bad_argument", "xtc_probability is nan"},
      {{m, "--prompt", "x", "--repeat-last-n", "-2"}, 2, "bad_argument", "repeat_last_n is -2"},
      {{m, "--prompt", "x", "--repeat-last-n", "1.5"}, 2, "bad_argument", "'1.5' is not a whole number"},
      {{m, "--prompt", "x", "--dry-base", "0"}, 2, "bad_argument", "dry_base is 0; it must be 1 to"},
      {{m, "--prompt", "x", "--dry-allowed-length", "0"}, 2, "bad_argument", "dry_allowed_length is 0"},
      {{m, "--prompt", "x", "--dry-sequence-breaker", ""}, 2, "bad_argument", "a text that ends repetitions is empty"},
      {{m, "--prompt", "x", "--mirostat", "3"},
       2,
       "bad_argument",
       "mirostat is 3; it must be a whole number from 0 to 2"},
      {{m, "--prompt", "x", "--samplers", "top_k;tpo_p"}, 2, "bad_argument", "there is no sampler 'tpo_p', only penal"},
      {{m, "--prompt", "x", "--samplers", "temp;temperature"}, 2, "bad_argument", "temperature is named twice"},
      {{m, "--prompt", "x", "--logit-bias", "15"}, 2, "bad_argument", "such as 15043+1 or 15043-inf, not '15'"},
      {{m, "--prompt", "x", "--logit-bias", "x+1"}, 2, "bad_argument", "not 'x+1'"},
      {{m, "--prompt", "x", "--logit-bias", "15+1x"}, 2, "bad_argument", "not '15+1x'"},
      {{m, "--prompt", "x", "--logit-bias", "15--1"}, 2, "bad_argument", "not '15--1'"},
      {{m, "--prompt", "x", "--logit-bias", "15+inf"}, 2, "bad_argument", "the bias of token 15 is inf"},
      {{m, "--prompt", "x", "--logit-bias", "9999+1"}, 1, "bad_token", "token 9999 is not in the vocabulary of 2048"},
      {{m, "--prompt", "x", "--ram-budget", "0"}, 2, "bad_argument", "--ram-budget"},
      {{m, "--prompt", "x", "--ram-budget", "-4"}, 2, "bad_argument", "--ram-budget"},
      {{m, "--prompt", "x", "--ram-budget", "nan"}, 2, "bad_argument", "--ram-budget"},
      {{m, "--prompt", "x", "--ram-budget", "8MB"}, 2, "bad_argument", "--ram-budget"},
      {{m, "--prompt", "x", "--threads", "2000"}, 2, "bad_argument", "--threads"},
      {{m, "--prompt", "x", "--kv", "3bit"}, 2, "bad_argument", "only f32, f16, 8bit, 4bit, 2bit"},
      {{m, "--prompt", "x", "--kv-policy", "lru:9"}, 2, "bad_argument", "h2o:N or snapkv:N with numbers of positions"},
      {{m, "--prompt", "x", "--kv-policy", "sinks:4"}, 2, "bad_argument", "not 'sinks:4'"},
      {{m, "--prompt", "x", "--memory-monitor", "256"}, 2, "bad_argument", "--kv-policy is needed"},
      {{m, "--prompt", "x", "--kv-policy", "h2o:9"},
       1,
       "bad_argument",
       "attention chooses among at least 16 positions"},
      {{m, "--prompt", "x", "--kv-policy", "h2o:32", "--session", "s"}, 2, "bad_argument", "not chosen ones"},
      {{m, "--prompt", "x", "--source", "http"}, 2, "bad_argument", "only pread, mmap"},
      {{"http://127.0.0.1:1/m", "--prompt", "x", "--source", "mmap"}, 2, "bad_argument", "on a server"},
      {{m, "--prompt", "x", "--isa", "mmx"}, 2, "bad_argument", "only scalar"},
      {{m, "--tokens", "1,,2"}, 2, "bad_argument", "1,,2"},
      {{m, "--tokens", "1,2,"}, 2, "bad_argument", "1,2,"},
      {{m, "--tokens", "one"}, 2, "bad_argument", "one"},
      {{m, "--tokens", "1", "--prompt", "x"}, 2, "bad_argument", "--tokens"},
      {{m, "--interactive", "--prompt", "x"}, 2, "bad_argument", "--interactive"},
      {{m, "--interactive", "--bench"}, 2, "bad_argument", "--bench"},
      {{m, "--interactive", "--receipt", "r"}, 2, "bad_argument", "--receipt"},
      {{m, "--bench", "--logits", "l"}, 2, "bad_argument", "--bench shows speeds only"},
      {{m, "--bench", "--receipt", "r"}, 2, "bad_argument", "--bench shows speeds only"},
      {{m, "--tokenize", "--receipt", "r"}, 2, "bad_argument", "--logits and --receipt need something to compute"},
      {{m, "--chat", "--perplexity", "t"}, 2, "bad_argument", "--tokenize, --detokenize, --count, --chat, --interac"},
      {{m, "--render", "t", "--bench"}, 2, "bad_argument", "--render shows the text of its messages only"},
      {{m, "--accepts", "t", "--regex", "a", "--chat"}, 2, "bad_argument", "--accepts only checks a text"},
      {{m, "--accepts", "t", "--regex", "a", "--receipt", "r"}, 2, "bad_argument", "--accepts only checks a text"},
      {{m, "--memory-map", "--receipt", "r"}, 2, "bad_argument", "--logits and --receipt need something to compute"},
      {{m, "--memory-map", "--session", "s"}, 2, "bad_argument", "--session is for texts and conversations"},
      {{m, "--detokenize", "--message", "x"}, 2, "bad_argument", "--message asks for an answer"},
      {{m, "--detokenize"}, 2, "bad_argument", "--detokenize takes --tokens"},
      {{m, "-p", "x", "--pooling", "mean"}, 2, "bad_argument", "--pooling and --normalize are for --embed"},
  };
  for (const Case& c : cases) expect_error(c);
  expect_error({{m, "--prompt", "x"}, 2, "bad_argument", "neon9"},
               {.input = "", .environment = {"QSF_ISA=neon9"}, .meanwhile = nullptr});
}

TEST(Errors, OfRunning) {
  const std::string m = stories("8bit");
  const TempDir dir;
  const Case cases[] = {
      {{dir / "absent.qsf", "--prompt", "x"}, 1, "io_error", "absent.qsf"},
      {{dir / "", "--prompt", "x"}, 1, "bad_input", "no config.json"},
      {{source_dir() + "/models/stories/tokenizer.json", "--prompt", "x"}, 1, "bad_magic", "magic"},
      {{m, "--prompt", "x", "--ram-budget", "0.5"}, 1, "budget_too_small", "budget"},
      {{m, "--prompt", "x", "--ram-budget", "1.1"}, 1, "budget_too_small", "budget"},
      {{m, "--prompt", "x", "--ram-budget", "1.4"}, 1, "budget_too_small", "at least"},
      {{m, "--tokens", "2048"}, 1, "bad_token", "2048"},
      {{m, "--prompt", "\xff\xfe"}, 1, "bad_text", "UTF-8"},
      {{m, "--prompt", ""}, 1, "bad_argument", "empty"},
      {{m, "--prompt", std::string(4000, 'x')}, 1, "context_full", "room for 512 in a context of 512: a shorter text"},
      {{m, "--prompt", "one two three four five six", "--max-seq-len", "4"}, 1, "context_full", "4"},
      {{m, "--prompt", "x", "--stop", ""}, 1, "bad_argument", "stop"},
      {{m, "--prompt", "x", "--stop", std::string(65, 'x')}, 1, "bad_argument", "stop"},
      {{m, "--prompt", "x", "--logits", dir / "no/folder"}, 1, "io_error", "no/folder"},
  };
  for (const Case& c : cases) expect_error(c);
  const Ran late = run({program("qsf-run"), m, "--prompt", "x", "--max-tokens", "1", "--receipt", dir / "no/folder"});
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("qsf-run: io_error: "), std::string::npos) << late.err;
}

TEST(Errors, ARefusalNamesABudgetThatDoes) {
  const auto with = [](const std::string& mib) {
    return run({program("qsf-run"), stories("8bit"), "--prompt", "x", "--max-tokens", "2", "--ram-budget", mib});
  };
  const std::string refusal = with("1.4").err;
  const std::string least = after(refusal, "at least ", "0123456789.");
  ASSERT_NE(least, "") << refusal;
  EXPECT_EQ(with(least).code, 0) << refusal;
  EXPECT_EQ(with(std::to_string(std::strtod(least.c_str(), nullptr) - 0.02)).code, 1) << refusal;
}

TEST(Errors, QsfIsaChoosesAndTheOptionWins) {
  const auto isa = [](const std::vector<std::string>& more) {
    const TempDir dir;
    std::vector<std::string> command{program("qsf-run"), stories("8bit"), "--prompt", "x", "--max-tokens", "1",
                                     "--receipt",        dir / "r"};
    command.insert(command.end(), more.begin(), more.end());
    const Ran ran = run(command, {.input = "", .environment = {"QSF_ISA=scalar"}, .meanwhile = nullptr});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(read_text(dir / "r"), nullptr, false).value("isa", "");
  };
  EXPECT_EQ(isa({}), "scalar");
  const std::string help = run({program("qsf-run"), "--help"}).out;
  const std::string letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  EXPECT_EQ(after(help, "Instruction set: ", letters), "scalar");
  const std::string second = after(help, "Instruction set: scalar, ", letters);
  const std::string best = second.empty() ? "scalar" : second;
  EXPECT_EQ(isa({"--isa", best}), best);
}

TEST(Errors, OfCutAndDamagedFiles) {
  const std::vector<std::byte> good = read_bytes(stories("8bit", "lz4"));
  const TempDir dir;
  for (const std::size_t length : {1ul, 127ul, 128ul, 300ul, 5000ul, good.size() / 2, good.size() - 1}) {
    write_bytes(dir / "cut", {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)});
    const Ran ran = run({program("qsf-run"), dir / "cut", "--prompt", "x", "--max-tokens", "2"});
    EXPECT_EQ(ran.code, 1) << length;
    const std::string code = after(ran.err, "qsf-run: ", "abcdefghijklmnopqrstuvwxyz_");
    EXPECT_TRUE(ran.err.starts_with("qsf-run: " + code + ": ") && code != "") << ran.err;
    EXPECT_GT(ran.err.size(), 15 + std::string("qsf-run: ").size() + code.size()) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  // One bit in the header, the tables, the tokenizer and the weights, for every way to read.
  for (const std::size_t at : {20ul, 140ul, 400ul, 6000ul, good.size() / 2, good.size() - 1000}) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{4};
    write_bytes(dir / "bad", bad);
    HttpServer server(bad);
    for (const std::vector<std::string>& way :
         {std::vector<std::string>{dir / "bad"}, {dir / "bad", "--source", "mmap", "--stream-all"}, {server.url()}}) {
      std::vector<std::string> arguments = way;
      arguments.insert(arguments.end(), {"--prompt", "x", "--max-tokens", "2"});
      expect_error({arguments, 1, "bad_checksum", "the file states"});
    }
  }
}

TEST(Errors, OfServers) {
  HttpServer server(read_bytes(stories("8bit")));
  const auto with = [&](const std::string& code, const std::string& naming) {
    expect_error({{server.url(), "--prompt", "x", "--max-tokens", "2"}, 1, code, naming});
  };
  server.set_ranges(false);
  with("no_ranges", "whole file");
  server.set_ranges(true);
  server.set_fault([](const HttpRequest&) { return Fault::missing; });
  with("http_status", "404");
  server.set_fault([&](const HttpRequest& r) {
    if (r.first > 46'000) server.set_etag("\"v2\"");
    return Fault::none;
  });
  with("file_changed", "ETag");
  server.set_content({}, "\"v1\"");
  with("truncated", "empty");
  expect_error({{"http://[nonsense", "--prompt", "x"}, 1, "network_error", "URL"});
}

// Faults that pass: the text is the same as without them.
TEST(Errors, ThatPassAreOvercome) {
  const std::string model = stories("8bit");
  HttpServer server(read_bytes(model));
  const std::vector<std::string> more{"--prompt", "Once upon a time", "--max-tokens", "3", "--stream-all"};
  const Json good = generate(model, more).receipt;
  const Fault faults[] = {Fault::unavailable, Fault::hang_up, Fault::cut_body, Fault::short_range};
  server.set_fault([&](const HttpRequest& r) { return r.number % 25 == 7 ? faults[r.number / 25 % 4] : Fault::none; });
  const Json receipt = generate(server.url(), more).receipt;
  EXPECT_EQ(receipt.at("logits_hash"), good.at("logits_hash"));
  EXPECT_GT(server.requests().size(), 90u) << "each fault came at least once";
}

}  // namespace
}  // namespace qsf::test
