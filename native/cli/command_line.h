// The common parts of the programs' command lines: numbers and sizes that are refused rather than guessed, suggestions
// for mistyped options, and readable help.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "native/cli/complete.h"
#include "native/cli/manual.h"

namespace qsf {

/// Refuses texts that are not a whole number of this type; conversion alone would take -1 and 2^64 for the largest.
template <class T>
CLI::Validator natural() {
  return CLI::Validator(
      [](std::string& text) {
        T value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size()) return std::string();
        return "'" + text + "' is not a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max());
      },
      "");
}

/// As natural(), except that -1 stands for the result of instead().
template <class T>
CLI::Validator natural_or(T (*instead)()) {
  return CLI::Validator(
      [instead](std::string& text) {
        if (text == "-1") text = std::to_string(instead());
        std::string wrong = natural<T>()(text);
        return wrong.empty() ? wrong : wrong + ", or -1";
      },
      "");
}

/// Refuses texts that are not a number; conversion alone would take an empty text for 0.
CLI::Validator real();

/// Returns the bytes of "64", which counts `unit` bytes each, or of "64M", "64MiB", "1.5G", "65536K". Returns nothing
/// for other texts, for less than half a byte and for more than 10^18 bytes.
std::optional<std::uint64_t> read_size(std::string_view text, double unit);
/// Refuses texts that read_size() does.
CLI::Validator size();

/// Returns a word for the value of an option: N for whole numbers, F for other numbers, else its type; empty for flags.
std::string type_of(const CLI::Option& option);
/// Whether the option's value is the path of a file or folder.
bool takes_path(const CLI::Option& option);

/// A word with one dash that stands for an option. All other options with one dash have one letter.
struct Word {
  std::string_view word, option;
};

/// The outcome of reading the arguments.
struct Parsed {
  enum class What { good, told, mistake } what = What::good;
  std::string sentence = {};  // of a mistake
};
/// The words, and what completion files and the manual page have in addition to the options.
struct Program {
  std::span<const Word> words = {};
  Choices choices = {};
  std::span<const ManualSection> manual = {};
};
/// Adds --completion, --man, --version and --help to the app and reads the arguments into its options. Prints what
/// these four ask for on standard output. An empty value is a mistake, except of the types TEXT and NAMES and of
/// options without a type.
Parsed parse(CLI::App& app, int argc, char** argv, Program program = {});

}  // namespace qsf
