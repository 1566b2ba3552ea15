// qsf-run's command line: what it understands, what it says, and how a conversation goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "native/letters.h"
#include "native/models.h"
#include "system/file.h"

namespace qsf::test {
namespace {

Ran run_with(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), program("qsf-run"));
  return run(arguments, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
}

std::string refusal(std::vector<std::string> more) {
  more.insert(more.begin(), {stories("8bit"), "--prompt", "x"});
  const Ran ran = run_with(more);
  EXPECT_EQ(ran.code, 2) << more.back() << ran.err;
  EXPECT_TRUE(ran.err.starts_with("qsf-run: bad_argument: ")) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  return ran.err;
}

/// Lines to --interactive with greedy answers of 8 tokens.
Ran talk(const std::string& input, std::vector<std::string> more = {}) {
  more.insert(more.begin(),
              {stories("8bit"), "--interactive", "--temperature", "0", "--max-tokens", "8", "--ignore-eos"});
  return run_with(more, input);
}

TEST(Cli, NumbersOutOfRangeAreRefused) {
  const std::pair<const char*, const char*> cases[] = {{"--seed", "-2"},        {"--seed", "18446744073709551616"},
                                                       {"--seed", "1.5"},       {"--seed", "+1"},
                                                       {"--top-k", "-1"},       {"--top-k", "4294967296"},
                                                       {"--chunk", "-1"},       {"--ring", "x"},
                                                       {"--max-seq-len", "-1"}, {"--max-tokens", "99999999999999999"}};
  for (const auto& [option, value] : cases) {
    const std::string sentence = refusal({option, value});
    EXPECT_TRUE(has(sentence, option) && has(sentence, value)) << sentence;
  }
  EXPECT_EQ(run_with({stories("8bit"), "--prompt", "x", "--max-tokens", "1", "--seed", "18446744073709551615"}).code,
            0);
}

TEST(Cli, WhatIsNotExpectedIsNamedInItsOrder) {
  EXPECT_TRUE(has(refusal({"one", "two", "three"}), "not expected: one two three"));
  EXPECT_TRUE(has(refusal({"--no-such-option", "--nor-this"}), "not expected: --no-such-option --nor-this"));
  EXPECT_TRUE(has(refusal({"one"}), "this argument was not expected: one"));
}

TEST(Cli, ShortOptions) {
  const TempDir dir;
  const Ran long_names = run_with({stories("8bit"), "--prompt", "Once upon a time", "--max-tokens", "9", "--seed", "4",
                                   "--threads", "2", "--receipt", dir / "r"});
  EXPECT_EQ(long_names.code, 0) << long_names.err;
  EXPECT_EQ(Json::parse(read_text(dir / "r")).at("threads"), 2);
  EXPECT_GT(long_names.out.size(), 5u);
  std::ofstream(dir / "prompt", std::ios::binary) << "Once upon a time\n";
  for (const std::vector<std::string>& prompt : {std::vector<std::string>{"-p", "Once upon a time"},
                                                 {"-f", dir / "prompt"},
                                                 {"--prompt-file", dir / "prompt"}}) {
    std::vector<std::string> arguments{"-m", stories("8bit"), "-n", "9", "-s4", "-t", "2"};
    arguments.insert(arguments.end(), prompt.begin(), prompt.end());
    const Ran ran = run_with(arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, long_names.out);
  }
  refusal({"--prompt-file", dir / "prompt"});
}

/// A receipt without what is another one each time.
Json receipt_with(const std::vector<std::string>& arguments) {
  const TempDir dir;
  std::vector<std::string> more{"--kernel-speeds", "none", "--receipt", dir / "receipt"};
  more.insert(more.end(), arguments.begin(), arguments.end());
  const Ran ran = run_with(more);
  EXPECT_EQ(ran.code, 0) << ran.err;
  Json receipt = Json::parse(read_text(dir / "receipt"), nullptr, false);
  for (const char* field : {"seconds", "peak_resident_bytes"}) receipt.erase(field);
  for (const char* field : {"token_rate", "resident_rate"}) receipt["plan"].erase(field);
  return receipt;
}

TEST(Cli, NamesOfLlamaCppAreTaken) {
  const std::string model = stories("8bit"), text = "Once upon a time";
  const Json ours = receipt_with({model, "--prompt", text, "--max-tokens", "9", "--temperature", "0.5", "--seed", "4",
                                  "--max-seq-len", "64", "--repetition-penalty", "1.2", "--stop", "a", "--stop", "qz",
                                  "--kv", "8bit"});
  EXPECT_EQ(ours.at("plan").at("kv"), "8bit");
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"--n-predict", "--temp", "--ctx-size", "--repeat-penalty", "--reverse-prompt", "-ctk"},
        {"-n", "--temp", "-c", "--repeat-penalty", "-r", "-ctv"}}) {
    EXPECT_EQ(receipt_with({"-m",     model, "-p",     text,  names[0], "9", names[1], "0.5", "-s",     "4",
                            names[2], "64",  names[3], "1.2", names[4], "a", names[4], "qz",  names[5], "q8_0"}),
              ours);
  }
  EXPECT_EQ(receipt_with({model, "-p", "x", "-n", "1", "-ctk", "q4_0", "-ctv", "4bit"}).at("plan").at("kv"), "4bit");
  EXPECT_TRUE(has(refusal({"-ctk", "q8_0", "-ctv", "f16"}), "keys and values have the same type by these options"));
  EXPECT_TRUE(has(refusal({"-ctk", "q8_0", "-ctv", "q4_0"}), "or --kv a pair such as k8v4"));
  EXPECT_TRUE(has(refusal({"-ctk", "q5_1"}), "there is no KV type 'q5_1', only f32, f16, 8bit"));
  EXPECT_TRUE(has(run_with({model, "-p", "x", "-n", "1", "-v"}).err, "a vocabulary of 2048"));
  const std::string chat = run_with({model, "-sys", "You are a king.", "-p", "Who?"}).err;
  EXPECT_TRUE(has(chat, "chat template")) << chat;  // which the model has not
  // Where a value is expected, they are text.
  const Ran word = run_with({model, "--tokenize", "--prompt", "-sys"});
  EXPECT_EQ(word.code, 0) << word.err;
  EXPECT_NE(word.out, "");
  EXPECT_EQ(run_with({model, "--tokenize"}, "-sys").out, word.out);
}

TEST(Cli, SamplingHasTheNamesOfLlamaCpp) {
  const std::string model = stories("8bit");
  const auto sampler = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {model, "-p", "Once upon a time", "-n", "6"});
    return receipt_with(arguments).at("sampler");
  };
  const Json none = sampler({});
  EXPECT_EQ(none.at("repeat_last_n"), -1);
  EXPECT_EQ(none.at("samplers").size(), 9u);
  EXPECT_EQ(none.at("dry_sequence_breakers"), Json::parse(R"(["\n", ":", "\"", "*"])"));
  const Json given = sampler({"--min-p",
                              "0.05",
                              "--typical",
                              "0.9",
                              "--top-nsigma",
                              "2",
                              "--xtc-probability",
                              "0.5",
                              "--xtc-threshold",
                              "0.2",
                              "--presence-penalty",
                              "-0.5",
                              "--frequency-penalty",
                              "0.25",
                              "--repeat-last-n",
                              "64",
                              "--dry-multiplier",
                              "0.8",
                              "--dry-base",
                              "2",
                              "--dry-allowed-length",
                              "3",
                              "--dry-penalty-last-n",
                              "-1",
                              "--dry-sequence-breaker",
                              "x",
                              "--dry-sequence-breaker",
                              "none",
                              "--dry-sequence-breaker",
                              "y",
                              "--dynatemp-range",
                              "0.5",
                              "--dynatemp-exp",
                              "1.5",
                              "--mirostat",
                              "2",
                              "--mirostat-ent",
                              "4",
                              "--mirostat-lr",
                              "0.2",
                              "-l",
                              "5+1.5",
                              "--logit-bias",
                              "7-inf",
                              "--samplers",
                              "dry;top-k;typ_p;nucleus;temp"});
  const Json wanted = Json::parse(R"({
      "temperature": 0.7, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.0, "seed": 0, "min_p": 0.05,
      "typical_p": 0.9, "top_n_sigma": 2.0, "xtc_probability": 0.5, "xtc_threshold": 0.2, "presence_penalty": -0.5,
      "frequency_penalty": 0.25, "repeat_last_n": 64, "dry_multiplier": 0.8, "dry_base": 2.0, "dry_allowed_length": 3,
      "dry_penalty_last_n": -1, "dynatemp_range": 0.5, "dynatemp_exponent": 1.5, "mirostat": 2, "mirostat_tau": 4.0,
      "mirostat_eta": 0.2, "samplers": ["dry", "top_k", "typical_p", "top_p", "temperature"],
      "logit_bias": [{"token": 5, "bias": 1.5}, {"token": 7, "bias": "-inf"}], "dry_sequence_breakers": ["y"]})");
  EXPECT_EQ(given, wanted) << given.dump(1);
  const Json others =
      sampler({"--typical-p", "0.9", "--top-n-sigma", "2", "--dynatemp-exponent", "1.5", "--mirostat-tau", "4",
               "--mirostat-eta", "0.2", "--dry-sequence-breaker", "none", "--samplers", ""});
  for (const char* name : {"typical_p", "top_n_sigma", "dynatemp_exponent", "mirostat_tau", "mirostat_eta"}) {
    EXPECT_EQ(others.at(name), wanted.at(name)) << name;
  }
  EXPECT_TRUE(others.at("samplers").empty() && others.at("dry_sequence_breakers").empty());
}

TEST(Cli, BiasesChooseTokens) {
  const std::string model = stories("8bit");
  const auto tokens = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {model, "-p", "Once upon a time", "-n", "4", "--temp", "0", "--ignore-eos"});
    return receipt_with(arguments).at("generated_tokens");
  };
  const Json plain = tokens({});
  EXPECT_EQ(tokens({"--logit-bias", "300+1e9"}), Json({300, 300, 300, 300}));
  const Json without = tokens({"-l", plain.at(0).dump() + "-inf"});
  EXPECT_EQ(std::count(without.begin(), without.end(), plain.at(0)), 0);
}

TEST(Cli, MinusOneIsAnotherSeedEachTimeAndNoLimit) {
  const std::vector<std::string> arguments{stories("8bit"), "-p", "x", "-n", "1", "--seed", "-1"};
  const Json one = receipt_with(arguments).at("sampler").at("seed"),
             two = receipt_with(arguments).at("sampler").at("seed");
  EXPECT_NE(one, two);
  const Json all = receipt_with({stories("8bit"), "-p", "x", "-n", "-1", "--max-seq-len", "40", "--ignore-eos"});
  EXPECT_EQ(all.at("ended"), "context");
  EXPECT_EQ(all.at("generated_tokens").size() + all.at("prompt_tokens").size(), 40u);
}

TEST(Cli, HelpIsInGroupsWithTypesThatPeopleRead) {
  const std::string help = run_with({"--help"}).out;
  for (const char* words :
       {"\nModel:\n", "\nGeneration:\n", "\nInstead of one prompt:\n", "\nMemory and machine:\n", "\nSampling:\n",
        "\nMeasuring a model:\n", "\nEmbeddings:\n", "\nReports:\n", "  -n,--max-tokens,--n-predict N ",
        "  --temperature,--temp F ", "[0.7]", "  -t,--threads N ", "  --ram-budget SIZE ", "  -h,--help "}) {
    EXPECT_TRUE(has(help, words)) << words << help;
  }
  for (const char* words : {"UINT", "FLOAT", "TEXT TEXT", "\nOptions:", "=0", "=256"})
    EXPECT_FALSE(has(help, words)) << words;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 125u) << line;
}

TEST(Cli, TextToTokensAndBack) {
  const std::string text = "<|endoftext|>Once upon a time";
  for (const Ran& ran : {run_with({stories("8bit"), "--tokenize", "-p", text}),
                         run_with({stories("8bit"), "--tokenize"}, text + "\n")}) {
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "0,1700,328,625,259,531\n");
  }
  const Ran back = run_with({stories("8bit"), "--detokenize", "--tokens", "1700,328,625,259,531"});
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(back.out, "Once upon a time");
  const Ran bad = run_with({stories("8bit"), "--detokenize", "--tokens", "2048"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_TRUE(bad.err.starts_with("qsf-run: bad_token: ")) << bad.err;
  refusal({"--detokenize"});
  refusal({"--tokenize", "--bench"});
}

// As arguments, as names of files and in what is read and written.
TEST(Cli, TextsAndNamesAreUtf8) {
  const TempDir dir;
  const std::string name = "f\u00fcr-\u6a21\u578b-\U0001f98a", text = "a \u00fc \u6a21 \U0001f98a \"q\" \\";
  std::filesystem::copy_file(stories("8bit"), sys::path_of(dir / name));
  std::string ids;
  for (const Ran& ran :
       {run_with({dir / name, "--tokenize", "-p", text}), run_with({dir / name, "--tokenize"}, text + "\n")}) {
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(ids.empty() || ran.out == ids) << ran.out;
    ids = ran.out;
  }
  const Ran back = run_with({dir / name, "--detokenize", "--tokens", ids.substr(0, ids.size() - 1)});
  EXPECT_EQ(back.out, text) << back.err;
  const std::string receipt = dir / (name + ".json");
  EXPECT_EQ(run_with({dir / name, "-p", text, "-n", "1", "--receipt", receipt}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(sys::path_of(receipt)));
  const Ran none = run_with({dir / (name + "-none"), "-p", text});
  EXPECT_TRUE(has(none.err, name + "-none: No such file")) << none.err;
}

TEST(Cli, ColorsWhenAskedFor) {
  for (const char* when : {"auto", "never"}) {
    EXPECT_FALSE(has(run_with({"no/such/file", "--prompt", "x", "--color", when}).err, "\x1b")) << when;
  }
  const Ran colored = run_with({"no/such/file", "--prompt", "x", "--color", "always"});
  EXPECT_TRUE(colored.err.starts_with("\x1b[31mqsf-run: io_error:\x1b[0m ")) << colored.err;
  refusal({"--color", "blue"});
}

#ifndef _WIN32  // which has no shell of these
TEST(Cli, CompletionKnowsEveryOption) {
  const std::string help = run_with({"--help"}).out;
  std::vector<std::string> options;
  for (std::size_t at = help.find("\n  -"); at != std::string::npos; at = help.find("\n  -", at + 1)) {
    std::istringstream names(help.substr(at + 3, help.find_first_of(" \n", at + 3) - at - 3));
    for (std::string name; std::getline(names, name, ',');) {
      if (name.starts_with("--")) options.push_back(name);
    }
  }
  EXPECT_GT(options.size(), 25u) << help;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Ran ran = run_with({"--completion", shell});
    EXPECT_EQ(ran.code, 0) << ran.err;
    for (const std::string& option : options) {
      const std::string name = shell == std::string("fish") ? "-l " + option.substr(2) + " " : option;
      EXPECT_TRUE(has(ran.out, name)) << shell << " " << option;
    }
  }
  refusal({"--completion", "sh"});
  const TempDir dir;
  std::ofstream(dir / "c.bash", std::ios::binary) << run_with({"--completion", "bash"}).out;
  const auto words = [&](const std::string& typed, const std::string& before) {
    const Ran ran = run({"/bin/bash", "-c",
                         "source " + (dir / "c.bash") + " && COMP_WORDS=(qsf-run '" + before + "' '" + typed +
                             "') COMP_CWORD=2 && _qsf_run && echo ${COMPREPLY[@]}"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  EXPECT_EQ(words("--tempe", "m"), "--temperature\n");
  EXPECT_EQ(words("", "--kv"), "f32 f16 8bit 4bit 2bit k8v4 k4v4 k4v3 k4v2 k3v3 k2v2\n");
  EXPECT_EQ(words("p", "--source"), "pread\n");
  EXPECT_EQ(words(dir / "c.b", "-f"), (dir / "c.bash") + "\n");
}
#endif

TEST(Cli, AFullContextIsTold) {
  const TempDir dir;
  const Ran full = run_with(
      {stories("8bit"), "-p", "Once upon a time", "--max-seq-len", "10", "--ignore-eos", "--receipt", dir / "r"});
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_TRUE(has(full.err,
                  "the context of 10 tokens is full: a longer context (max_seq_len) or a shorter text would "
                  "help"))
      << full.err;
  EXPECT_EQ(Json::parse(read_text(dir / "r")).at("ended"), "context");
  const Ran one = run_with({stories("8bit"), "--tokens", "7", "--max-seq-len", "1"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(has(one.err, "the prompt fills the context of 1 tokens: nothing can be generated")) << one.err;
  const Ran enough = run_with({stories("8bit"), "-p", "Once upon a time", "-n", "3"});
  EXPECT_EQ(enough.err, "");
}

// However a model is opened, a budget gives one precision of keys and values, which decides the text, and one that is
// not f16 is reported.
TEST(Cli, ABudgetChangesNoTextWithoutAWord) {
  const TempDir dir;
  const auto receipt = [&](std::vector<std::string> more, bool warns) {
    more.insert(more.begin(), {stories("8bit"), "-p", "Once upon a time", "--max-tokens", "12", "--temperature", "0",
                               "--receipt", dir / "r"});
    const Ran ran = run_with(more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(has(ran.err, "qsf-run: keys and values are kept in "), warns) << ran.err;
    return Json::parse(read_text(dir / "r"));
  };
  std::map<std::string, std::string> hashes;
  for (const char* const kv : {"f16", "8bit", "k4v4"}) {
    hashes[kv] = receipt({"--kv", kv, "--ram-budget", "64"}, false).at("logits_hash");
  }
  std::set<std::string> seen;
  const auto check = [&](const std::string& mib, const std::string& context, const std::string& kv) {
    const std::vector<std::vector<std::string>> ways{{},
                                                     {"--chunk", "4"},
                                                     {"--ring", "2"},
                                                     {"--stream-all"},
#ifndef _WIN32
                                                     {"--source", "mmap"},
#endif
                                                     {"--source", "pread", "--threads", "3"}};
    for (std::vector<std::string> way : ways) {
      const std::string name = ::testing::PrintToString(way);
      way.insert(way.end(), {"--ram-budget", mib, "--max-seq-len", context});
      const Json made = receipt(way, kv != "f16");
      EXPECT_EQ(made.at("plan").at("kv"), kv) << mib << " MiB " << name;
      EXPECT_EQ(made.at("logits_hash"), hashes[kv]) << mib << " MiB " << name;
      EXPECT_EQ(made.at("plan").at("warning") == "", kv == "f16");
    }
    seen.insert(kv);
  };
  for (const char* const mib : {"64", "6", "4", "3", "2.5"}) check(mib, "0", "f16");
  check("64", "300", "f16");
  check("2.4", "512", "8bit");
  check("2.1", "512", "k4v4");
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Cli, AContextBeyondTheModelsOwnWarns) {
  const Ran beyond = run_with({stories("8bit"), "-p", "x", "-n", "1", "--max-seq-len", "513"});
  EXPECT_EQ(beyond.code, 0) << beyond.err;
  EXPECT_TRUE(has(beyond.err, "the model was made for 512 tokens")) << beyond.err;
  EXPECT_EQ(run_with({stories("8bit"), "-p", "x", "-n", "1", "--max-seq-len", "512"}).err, "");
}

TEST(Cli, VerboseCallsTheVocabularyByItsName) {
  const Ran ran = run_with({stories("8bit"), "-p", "x", "-n", "1", "--verbose"});
  EXPECT_TRUE(has(ran.err, "a vocabulary of 2048")) << ran.err;
  EXPECT_FALSE(has(ran.err, "2048 tokens")) << ran.err;
}

TEST(Cli, ABadLineEndsNoConversation) {
  const std::string alone = talk("Once upon a time\n and then\n").out;
  const std::string long_line(30'000, 'x'), longer(3'000'000, 'y');
  const Ran ran = talk("Once upon a time\n\xff\xfe\n" + long_line + "\n" + longer + "\n and then\n");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, alone) << "the sequence is as it was";
  EXPECT_TRUE(has(ran.err, "qsf-run: bad_text: ")) << ran.err;
  EXPECT_TRUE(has(ran.err, "qsf-run: context_full: ")) << ran.err;
  EXPECT_FALSE(has(ran.err, "begins anew")) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 3) << ran.err;
}

TEST(Cli, OnlyALineThatFitsBeginsAnew) {
  const std::string line = "Once upon a time there was a king";
  const Ran ran = talk(line + "\n" + line + "\n" + line + "\n" + line + "\n", {"--max-seq-len", "40"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "the context is full; the text begins anew")) << ran.err;
  std::string many;
  for (int i = 0; i < 10; ++i) many += line;
  const Ran none = talk(line + "\n" + many + "\n" + line + "\n", {"--max-seq-len", "40"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(has(none.err, "the line is left out")) << none.err;
  EXPECT_EQ(none.out, talk(line + "\n" + line + "\n", {"--max-seq-len", "40"}).out);
}

/// Of four steps that expand a letter and one that erases it nothing ever comes out.
TEST(Cli, ATokenizerThatMakesEndlessWorkIsRefused) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.tokens = {{"<unk>", 0, TokenType::unknown}, {"a"}, {"b"}};
  while (source.tokens.size() < 40) source.tokens.push_back({"", 0, TokenType::unused});
  for (int i = 0; i < 4; ++i) source.normalizer.push_back({NormalizerOp::replace, "a", std::string(0xffff, 'a')});
  source.normalizer.push_back({NormalizerOp::replace, "a", ""});
  SmallOptions options;
  options.tokenizer = *build_tokenizer(source);
  const TempDir dir;
  write_bytes(dir / "model.qsf", small_file(options).bytes);
  std::ofstream(dir / "text") << "a text of several words";
  const std::string why = "unsupported: this tokenizer takes more than ";
  const std::vector<std::vector<std::string>> ways{{"--prompt", "a"},
                                                   {"--prompt", "a", "--tokenize"},
                                                   {"--prompt", "a", "--embed"},
                                                   {"--prompt-file", dir / "text"},
                                                   {"--perplexity", dir / "text", "--window", "4"}};
  for (std::vector<std::string> way : ways) {
    way.insert(way.begin(), dir / "model.qsf");
    const Ran ran = run_with(way);
    EXPECT_EQ(ran.code, 1) << way[1];
    EXPECT_TRUE(ran.err.starts_with("qsf-run: " + why)) << ran.err;
  }
  const Ran lines = run_with({dir / "model.qsf", "--interactive", "--max-tokens", "2"}, "a\nbb\n");
  EXPECT_EQ(lines.code, 0) << lines.err;
  EXPECT_TRUE(has(lines.err, why)) << lines.err;
  EXPECT_TRUE(has(lines.err, "the line is left out")) << lines.err;
}

}  // namespace
}  // namespace qsf::test
