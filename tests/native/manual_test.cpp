// Manual pages and completion files, which each program makes from its own options.
#include <gtest/gtest.h>

#include <sstream>

#include "native/models.h"

namespace qsf::test {
namespace {

const std::vector<std::string> kPrograms{"qsf-run", "qsf-convert", "qsf-parity"};

std::string said(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{program(name)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Ran ran = run(command);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

/// The long options of a program, as its help names them.
std::vector<std::string> options_of(const std::string& name) {
  const std::string help = said(name, {"--help"});
  std::vector<std::string> options;
  for (std::size_t at = help.find("\n  -"); at != std::string::npos; at = help.find("\n  -", at + 1)) {
    std::istringstream names(help.substr(at + 3, help.find_first_of(" \n", at + 3) - at - 3));
    for (std::string each; std::getline(names, each, ',');) {
      if (each.starts_with("--")) options.push_back(each);
    }
  }
  return options;
}

TEST(Manual, HasEveryOptionOfEveryProgram) {
  for (const std::string& name : kPrograms) {
    const std::vector<std::string> options = options_of(name);
    EXPECT_GT(options.size(), 5u) << name;
    const std::string page = said(name, {"--man"});
    for (const char* part : {".SH NAME\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n", ".SH EXIT STATUS\n", ".SH SEE ALSO\n"}) {
      EXPECT_TRUE(has(page, part)) << name << part;
    }
    for (const std::string& option : options) {
      std::string escaped;
      for (const char c : option) escaped += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_TRUE(has(page, "\\fB" + escaped + "\\fR")) << name << option;
    }
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.starts_with('\'')) << line;  // a command of man(7)
      if (line.starts_with('.')) {
        EXPECT_TRUE(has(".TH .SH .SS .TP .PP .nf .fi", line.substr(0, 3))) << line;
      }
    }
  }
}

TEST(Manual, CompletionsHaveEveryOptionOfEveryProgram) {
  for (const std::string& name : kPrograms) {
    for (const char* shell : {"bash", "zsh", "fish"}) {
      const std::string file = said(name, {"--completion", shell});
      EXPECT_TRUE(has(file, name)) << shell;
      for (const std::string& option : options_of(name)) {
        const std::string word = shell == std::string("fish") ? "-l " + option.substr(2) + " " : option;
        EXPECT_TRUE(has(file, word)) << name << shell << option;
      }
      for (const std::string& other : kPrograms) EXPECT_EQ(has(file, other), other == name) << name << shell;
    }
    const Ran wrong = run({program(name), "--completion", "sh"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_TRUE(has(wrong.err, "--completion is one of bash, zsh, fish, not 'sh'")) << wrong.err;
  }
  EXPECT_TRUE(has(said("qsf-convert", {"--completion", "bash"}), " q4_k ")) << "the types are words to choose from";
}

TEST(Manual, HelpIsInGroups) {
  for (const char* group : {"What to convert:", "Types and compression:", "Rounding by a text:", "Program:"}) {
    EXPECT_TRUE(has(said("qsf-convert", {"--help"}), group)) << group;
  }
}

}  // namespace
}  // namespace qsf::test
