// What users give programs and how it is taken: numbers, sizes, names that were meant, files of other systems and
// editors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "native/models.h"

namespace qsf::test {
namespace {

Ran run_with(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), program("qsf-run"));
  return run(arguments, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
}

/// What qsf-run says of a mistake among these arguments.
std::string refusal(std::vector<std::string> more) {
  more.insert(more.begin(), {stories("8bit"), "--prompt", "x"});
  const Ran ran = run_with(more);
  EXPECT_EQ(ran.code, 2) << more.back() << ran.err;
  EXPECT_TRUE(ran.err.starts_with("qsf-run: bad_argument: ")) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  return ran.err;
}

/// What qsf-convert says of one.
std::string convert_refusal(std::vector<std::string> more) {
  more.insert(more.begin(), {program("qsf-convert"), "no/such/model", "no/such/output.qsf"});
  const Ran ran = run(more);
  EXPECT_EQ(ran.code, 2) << more.back() << ran.err;
  return ran.err;
}

std::string after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  return at == std::string::npos ? "" : text.substr(at + words.size());
}

TEST(Mistakes, TypesHaveNamesInAnyCase) {
  EXPECT_TRUE(has(refusal({"--quant-type", "Q9_K"}), "there is no type 'Q9_K'"));
  const std::string model = source_dir() + "/tests/data/llama";
  const Ran ran = run_with({model, "--tokens", "1", "-n", "0", "--quant-type", "Q4_0", "--cache", "none"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(Mistakes, SizesTakeSuffixes) {
  const auto budget = [](const std::string& size) {
    const TempDir dir;
    const Ran ran =
        run_with({stories("8bit"), "--prompt", "x", "-n", "1", "--ram-budget", size, "--receipt", dir / "receipt"});
    EXPECT_EQ(ran.code, 0) << size << ran.err;
    return Json::parse(read_text(dir / "receipt"), nullptr, false).at("plan").at("budget").get<std::uint64_t>();
  };
  for (const char* size :
       {"8", "8.0", "8M", "8MiB", "8m", "8192K", "8192KiB", "8192kib", "0.0078125G", "0.0078125GiB"}) {
    EXPECT_EQ(budget(size), 8u << 20) << size;
  }
  EXPECT_EQ(budget("2.5"), 5u << 19);
  for (const char* size :
       {"8MB", "8B", "8X", "M", "", " 8", "8 M", "8Mi", "8iB", "-8M", "0", "0M", "nan", "inf", "1e99G"}) {
    const std::string told = refusal({"--ram-budget", size});
    EXPECT_TRUE(has(told, "--ram-budget: '" + std::string(size) + "' is not a number above 0, or a size such as 64M"))
        << told;
    EXPECT_TRUE(has(convert_refusal({"--target-size", size, "--calibration", "x"}), "--target-size: '")) << size;
  }
}

TEST(Mistakes, WhatWouldHaveNoEffectIsRefused) {
  EXPECT_TRUE(has(refusal({"--guesses", "3"}), "--guesses needs --speculate"));
  EXPECT_TRUE(has(refusal({"--guesses", "3", "--speculate", "none"}), "--guesses needs --speculate"));
  EXPECT_TRUE(has(refusal({"--prompt-cache-limit", "1G"}), "--prompt-cache-limit requires --prompt-cache\n"));
  EXPECT_TRUE(has(refusal({"--leave-https"}), "--leave-https is for models on servers"));
  const Ran no_model = run_with({"--render", "x", "--chat-template", "y", "--sha256", std::string(64, '0')});
  EXPECT_EQ(no_model.code, 2);
  EXPECT_TRUE(has(no_model.err, "--sha256 needs MODEL")) << no_model.err;
  for (const char* option :
       {"--ram-budget=3", "--isa=scalar", "--quant-type=q4_0", "--kv=f16", "--threads=3", "--memory-map"}) {
    const Ran render = run_with({"--render", "x", "--chat-template", "y", option});
    EXPECT_EQ(render.code, 2) << option;
    EXPECT_TRUE(has(render.err, " needs MODEL\n")) << render.err;
  }
  for (const char* option :
       {"--sha256=00", "--ram-budget=3", "--isa=none", "--threads=3", "--memory-map", "model.qsf", "--stream-all"}) {
    const Ran accepts = run_with({"--accepts", "x", "--regex", "y", option});
    EXPECT_EQ(accepts.code, 2) << option;
    EXPECT_TRUE(has(accepts.err, "--accepts only checks a text: it goes with")) << accepts.err;
  }
  for (const char* option : {"--tools=x", "--file=x", "--template-arg=a=b", "--chat-template=x"}) {
    EXPECT_TRUE(has(run_with({"--accepts", "x", "--regex", "y", option}).err, "bad_argument: --")) << option;
  }
  EXPECT_TRUE(has(run_with({"m", "--bench", "--seed", "3"}).err, "--bench always takes the likeliest token"));
  const Ran twice = run_with({stories("8bit"), "--message", "x", "--template-arg", "n=1", "--template-arg", "n=2"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_TRUE(has(twice.err, "bad_argument: --template-arg n is given twice")) << twice.err;
}

TEST(Mistakes, WhatModesHaveNoUseForIsRefused) {
  struct Case {
    std::vector<std::string> option;
    const char* sentence;
    std::vector<const char*> modes;  // that have a use for it
  };
  const Case cases[] = {
      {{"--max-tokens", "256"}, "--max-tokens is for texts that are generated", {"--interactive", "--bench"}},
      {{"--stop", "x"}, "--stop and --ignore-eos are for texts", {"--interactive"}},
      {{"--ignore-eos"}, "--stop and --ignore-eos are for texts", {"--interactive"}},
      {{"--speculate", "ngram"}, "--speculate is for texts", {"--interactive", "--bench"}},
  };
  const std::vector<std::string> modes[] = {
      {"--interactive"},      {"--bench"},      {"--tokenize", "-p", "x"}, {"--detokenize", "--tokens", "1"},
      {"--count", "-p", "x"}, {"--embed", "x"}, {"--perplexity", "x"}};
  for (const Case& c : cases) {
    for (const std::vector<std::string>& mode : modes) {
      std::vector<std::string> command{"no/such/model"};
      command.insert(command.end(), mode.begin(), mode.end());
      command.insert(command.end(), c.option.begin(), c.option.end());
      const Ran ran = run_with(command);
      const bool used = std::ranges::find(c.modes, mode.front()) != c.modes.end();
      EXPECT_EQ(ran.code, used ? 1 : 2) << mode.front() << ran.err;
      EXPECT_TRUE(has(ran.err, used ? "no/such/model" : c.sentence)) << mode.front() << ran.err;
    }
  }
  const std::vector<std::string> of_answers[] = {
      {"--reasoning", "hide"}, {"--reasoning-budget", "3"}, {"--tool-choice", "auto", "--tools", "x"}};
  for (const std::vector<std::string>& option : of_answers) {
    for (const char* mode : {"--count", "--tokenize"}) {
      std::vector<std::string> command{"no/such/model", "--message", "x", mode};
      command.insert(command.end(), option.begin(), option.end());
      const Ran ran = run_with(command);
      EXPECT_EQ(ran.code, 2) << mode << ran.err;
      EXPECT_TRUE(has(ran.err, option.front())) << ran.err;
    }
  }
}

TEST(Mistakes, NothingIsNoNumber) {
  for (const char* option : {"--temperature", "--top-p", "--repetition-penalty", "--seed", "--top-k", "--threads",
                             "--max-seq-len", "--max-tokens"}) {
    for (const char* value : {"", " ", "x", "1x"}) {
      const std::string told = refusal({option, value});
      EXPECT_TRUE(has(told, option) && has(told, "'" + std::string(value) + "' is not a ")) << told;
    }
  }
  for (const char* option : {"--threads", "--own-tokens", "--target-bpw"}) {
    EXPECT_TRUE(has(convert_refusal({option, "", "--calibration", "x"}), option)) << option;
  }
  const Ran parity = run({program("qsf-parity"), "a", "b", "--tolerance", ""});
  EXPECT_EQ(parity.code, 2);
  EXPECT_TRUE(has(parity.err, "--tolerance: '' is not a number")) << parity.err;
}

// Texts and lists of names may be empty. An empty value of any other option is refused: it would be taken for the
// default. The options are those that --help lists.
TEST(Mistakes, NothingIsNoValue) {
  const std::pair<const char*, std::vector<std::string>> programs[] = {
      {"qsf-run", {"no/such/model", "-p", "x"}},
      {"qsf-convert", {source_dir() + "/models/stories", "no/such/folder/out.qsf"}}};
  for (const auto& [name, arguments] : programs) {
    std::istringstream help(run({program(name), "--help"}).out);
    std::size_t n = 0, n_paths = 0;
    for (std::string line; std::getline(help, line);) {
      std::istringstream words(line);
      std::string names, type;
      words >> names >> type;
      const std::size_t at = names.find("--");
      const bool takes_value = !type.empty() && type.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ=+") == type.npos;
      if (at == names.npos || !takes_value || type == "TEXT" || type == "NAMES") continue;
      const std::string option = names.substr(at, names.find(',', at) - at);
      std::vector<std::string> command{program(name)};
      command.insert(command.end(), arguments.begin(), arguments.end());
      command.insert(command.end(), {option, ""});
      const Ran ran = run(command);
      EXPECT_EQ(ran.code, 2) << option << ran.err;
      EXPECT_TRUE(has(ran.err, option)) << ran.err;
      // An address would become a folder of that name.
      if ((type == "FILE" || type == "DIR") && option != "--model") {
        command.back() = "hf:owner/name";
        const Ran other = run(command);
        EXPECT_EQ(other.code, 2) << option << other.err;
        EXPECT_TRUE(has(other.err, option + " takes a path, and hf:owner/name is an address")) << other.err;
        ++n_paths;
      }
      ++n;
    }
    EXPECT_GT(n, 10u) << name;
    EXPECT_GE(n_paths, 5u) << name;
  }
  EXPECT_TRUE(has(refusal({"--kv", ""}), "bad_argument: --kv is given an empty TYPE\n"));
  EXPECT_TRUE(has(refusal({"-ctk", ""}), "--cache-type-k is given an empty TYPE\n"));
  EXPECT_TRUE(has(refusal({"--source="}), "--source"));
  EXPECT_TRUE(has(convert_refusal({"--calibration", ""}), "--calibration is given an empty FILE"));
}

TEST(Mistakes, AnOptionThatWasMeantIsNamed) {
  const std::pair<const char*, const char*> cases[] = {{"--sed", "--seed"},
                                                       {"--max-token", "--max-tokens"},
                                                       {"--max-tokens-", "--max-tokens"},
                                                       {"--tempreature=1", "--temperature"},
                                                       {"--promtp-file", "--prompt-file"},
                                                       {"--ram-buget", "--ram-budget"}};
  for (const auto& [given, meant] : cases) {
    const std::string told = refusal({given});
    EXPECT_TRUE(has(told, "not expected: " + std::string(given) + "; did you mean " + meant + "?\n")) << told;
  }
  for (const char* given : {"--no-such-option", "--x", "--zebra"}) {
    EXPECT_FALSE(has(refusal({given}), "did you mean")) << given;
  }
  EXPECT_TRUE(has(refusal({"--sed", "--thread"}), "did you mean --seed and --threads?"));
  EXPECT_TRUE(has(convert_refusal({"--qant-type", "8bit"}), "did you mean --quant-type?"));
  EXPECT_TRUE(has(run({program("qsf-parity"), "a", "b", "--tolerence", "1"}).err, "did you mean --tolerance?"));
}

TEST(Mistakes, WhatIsGivenTwiceIsSaidToBe) {
  EXPECT_TRUE(has(refusal({"--seed", "1", "--seed", "2"}), "bad_argument: --seed is given twice\n"));
  EXPECT_TRUE(has(refusal({"-s", "1", "--seed", "2", "-s3"}), "--seed is given 3 times\n"));
  EXPECT_TRUE(has(refusal({"--prompt", "y"}), "--prompt is given twice\n"));
  EXPECT_TRUE(has(refusal({"-m", "y"}), "--model is given twice\n"));
  EXPECT_TRUE(has(refusal({"--stop", "a", "--stop", "b", "--kv", "f16", "--kv", "f32"}), "--kv is given twice\n"));
  EXPECT_TRUE(has(convert_refusal({"--threads", "1", "--threads", "1"}), "--threads is given twice (see --help)\n"));
  EXPECT_EQ(run_with({stories("8bit"), "-p", "x", "-n", "1", "--stop", "a", "--stop", "b"}).code, 0);
}

TEST(Mistakes, ABudgetWithoutRoomForTheTablesIsAnsweredWithOneThatDoes) {
  const auto with = [](const std::string& mib) {
    return run_with({stories("8bit"), "--prompt", "x", "--max-tokens", "2", "--ram-budget", mib});
  };
  for (const char* given : {"0.5", "1", "1.05", "1.2"}) {
    const Ran refused = with(given);
    EXPECT_EQ(refused.code, 1);
    EXPECT_TRUE(refused.err.starts_with("qsf-run: budget_too_small: ")) << refused.err;
    const std::string enough = after(refused.err, "too small for this model: ");
    ASSERT_TRUE(has(enough, " MiB would do\n")) << refused.err;
    const double mib = std::strtod(enough.c_str(), nullptr);
    EXPECT_EQ(with(std::to_string(mib)).code, 0) << refused.err;
    EXPECT_EQ(with(std::to_string(mib * 0.97)).code, 1) << refused.err;
  }
  const Ran none = run_with({"no/such/file", "--prompt", "x", "--ram-budget", "1"});
  EXPECT_TRUE(has(none.err, "io_error")) << none.err;
}

// A byte order mark in front, a carriage return before the last line feed: not of the prompt.
TEST(Mistakes, PromptsOfOtherSystemsAndEditorsAreTheSame) {
  const TempDir dir;
  const auto ids = [&](const std::string& text, bool by_file) {
    std::ofstream(dir / "prompt", std::ios::binary) << text;
    std::vector<std::string> arguments{stories("8bit"), "--tokenize"};
    if (by_file) arguments.insert(arguments.end(), {"-f", dir / "prompt"});
    const Ran ran = run_with(arguments, by_file ? "" : text);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  for (const bool by_file : {false, true}) {
    const std::string plain = ids("Once upon\na time", by_file);
    for (const char* text : {"Once upon\na time\n", "Once upon\na time\r\n", "\xef\xbb\xbfOnce upon\na time",
                             "\xef\xbb\xbfOnce upon\na time\r\n"}) {
      EXPECT_EQ(ids(text, by_file), plain) << text;
    }
    for (const char* text :
         {"Once upon\r\na time", "Once upon\na time\r", "Once upon\na time\r\n\n", "Once\xef\xbb\xbf"}) {
      EXPECT_NE(ids(text, by_file), plain) << text;
    }
  }
  const auto talk = [](const std::string& input) {
    return run_with({stories("8bit"), "--interactive", "--temperature", "0", "-n", "4"}, input).out;
  };
  EXPECT_EQ(talk("\xef\xbb\xbfOnce upon a time\r\n and then\r\n"), talk("Once upon a time\n and then\n"));
}

// The same of files that are no prompts: texts to check, grammars, templates, JSON, texts to measure with.
TEST(Mistakes, FilesOfOtherSystemsAndEditorsAreTheSame) {
  constexpr const char* kMark = "\xef\xbb\xbf";
  const TempDir dir;
  const auto put = [&](const char* name, const std::string& text) {
    std::ofstream(dir / name, std::ios::binary) << text;
    return dir / name;
  };
  for (const std::string& mark : {std::string(), std::string(kMark)}) {
    const auto accepts = [&](const std::string& text) {
      return run_with({"--regex", "ab(\n|\r\n\n)?", "--accepts", put("text", mark + text)}).code;
    };
    for (const char* text : {"ab", "ab\n", "ab\r\n", "ab\n\n", "ab\r\n\n"}) EXPECT_EQ(accepts(text), 0) << text;
    for (const char* text : {"", "\n", "a", "a\r\n", "abc", "abc\r\n", "ab\n\r\nx"})
      EXPECT_EQ(accepts(text), 1) << text;
    const std::string schema = put("schema", mark + "{\"type\": \"object\"}\r\n");
    EXPECT_EQ(run_with({"--json-schema", schema, "--accepts", put("text", mark + "{}\r\n")}).code, 0);
    const Ran rendered = run_with({"--render", put("messages", mark + "{\"messages\": [{\"content\": \"hi\"}]}\r\n"),
                                   "--chat-template", put("template", mark + "{{ messages[0].content }}!\r\n")});
    EXPECT_EQ(rendered.out, "hi!") << rendered.err;
  }
  const auto measured = [&](const std::string& mark) {
    std::string text = mark;
    for (int i = 0; i < 20; ++i) text += "Once upon a time there was a king. ";
    return run_with({stories("8bit"), "--perplexity", put("text", text), "--window", "32", "--windows", "2"}).out;
  };
  EXPECT_EQ(measured(kMark), measured(""));
}

#ifndef _WIN32  // arguments there are UTF-16, which becomes valid UTF-8
TEST(Mistakes, AStopTextIsUtf8) {
  for (const char* stop : {"\xff", "a\xc3", "\xa9"}) {
    const Ran ran = run_with({stories("8bit"), "-p", "x", "-n", "1", "--stop", stop});
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(has(ran.err, "bad_text: stops: stop string 0 is not valid UTF-8")) << ran.err;
  }
}
#endif

}  // namespace
}  // namespace qsf::test
