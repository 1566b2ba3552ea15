#include "native/cli/command_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "native/cli/names.h"
#include "native/sources/address.h"
#include "native/sources/ascii.h"

namespace qsf {
namespace {

/// The types of values that may be empty: any text, and a list of names.
constexpr std::array<std::string_view, 2> kMayBeEmpty{"TEXT", "NAMES"};
constexpr std::array<std::string_view, 2> kPaths{"FILE", "DIR"};
constexpr std::string_view kSizes = "a number above 0, or a size such as 64M, 64MiB or 1.5G";

bool read_real(std::string_view text, double& out, std::string_view& rest) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

/// Returns the number of letters to change, insert, remove or swap with a neighbour to make one text of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      const bool turned = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (turned) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

/// Returns the text in lines of a width that is easy to read.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 84;
  std::string out;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (line != 0 && line + 1 + end - at > kWidth) {
      out += '\n';
      line = 0;
    } else if (line != 0) {
      out += ' ';
      ++line;
    }
    out.append(text, at, end - at);
    line += end - at;
    at = end + 1;
  }
  return out;
}

/// "  -n,--max-tokens N    What it does [256]"
class Help : public CLI::Formatter {
 public:
  Help() { column_width(36); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = type_of(*option);
    return type.empty() ? "" : " " + type;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string usual = option->get_default_str();
    const bool told = !usual.empty() && option->get_items_expected_max() > 0;
    return wrapped(option->get_description() + (told ? " [" + usual + "]" : ""));
  }
};

/// Returns the option that was probably meant; empty for none.
std::string meant(const CLI::App& app, std::string_view argument) {
  std::string best;
  const std::string_view word = argument.substr(0, argument.find('='));
  std::size_t least = 1 + std::min<std::size_t>(word.size() / 4, 3);  // one wrong letter in four, at most three
  if (!word.starts_with("--")) return best;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::size_t far = distance(word, "--" + name);
      if (far < least) {
        least = far;
        best = "--" + name;
      }
    }
  }
  return best;
}

/// Returns the arguments with an option's own name for each of the words.
std::vector<const char*> with_names(const CLI::App& app, std::span<char* const> given, std::span<const Word> words) {
  std::vector<const char*> out(given.begin(), given.end());
  for (std::size_t i = 1; i < out.size() && out[i] != std::string_view("--"); ++i) {
    const auto word = std::ranges::find(words, std::string_view(out[i]), &Word::word);
    if (word != words.end()) out[i] = word->option.data();
    const CLI::Option* const option = app.get_option_no_throw(out[i]);
    if (option != nullptr && out[i][0] == '-' && option->get_items_expected_max() > 0)
      ++i;  // its value, whatever it is
  }
  return out;
}

/// Returns a sentence about the arguments that no option takes, in their order.
std::string unexpected(const CLI::App& app, std::span<const char* const> arguments) {
  std::vector<std::string> left = app.remaining(), in_order;
  for (const char* argument : arguments.subspan(1)) {
    const auto at = std::find(left.begin(), left.end(), argument);
    if (at == left.end()) continue;
    in_order.push_back(*at);
    left.erase(at);
  }
  in_order.insert(in_order.end(), left.begin(), left.end());
  std::string words, instead;
  for (const std::string& argument : in_order) {
    words += " " + argument;
    const std::string name = meant(app, argument);
    if (!name.empty()) instead += (instead.empty() ? "; did you mean " : " and ") + name;
  }
  if (!instead.empty()) instead += "?";
  return (in_order.size() == 1 ? "this argument was not expected:" : "these arguments were not expected:") + words +
         instead;
}

/// Returns a sentence about an option that takes one value and has several; empty for none.
std::string repeated(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::size_t n = option->count();
    const bool once = option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
    if (!once || option->get_items_expected_max() != 1 || n < 2) continue;
    return option->get_name() + " is given " + (n == 2 ? "twice" : std::to_string(n) + " times");
  }
  return {};
}

/// Returns a sentence about an option whose value is empty, which would be taken for its default, or an address in
/// place of a path, which would become a folder of that name; empty for none.
std::string wrong_value(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = type_of(*option);
    const auto& values = option->results();
    if (!type.empty() && !contains(kMayBeEmpty, type) && contains(values, std::string())) {
      return option->get_name() + " is given an empty " + type;
    }
    if (!takes_path(*option) || option->get_positional()) continue;
    const auto address = std::ranges::find_if(values, is_address);
    if (address != values.end()) return option->get_name() + " takes a path, and " + *address + " is an address";
  }
  return {};
}

}  // namespace

CLI::Validator real() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        std::string_view rest;
        return read_real(text, value, rest) && rest.empty() ? std::string() : "'" + text + "' is not a number";
      },
      "");
}

std::optional<std::uint64_t> read_size(std::string_view text, double unit) {
  constexpr double kMost = 1e18;
  double value = 0;
  std::string_view rest;
  if (!read_real(text, value, rest)) return std::nullopt;
  if (!rest.empty()) {
    const std::size_t power = std::string_view("kmg").find(lower(rest[0]));
    rest.remove_prefix(1);
    const bool whole = rest.empty() || (rest.size() == 2 && lower(rest[0]) == 'i' && lower(rest[1]) == 'b');
    if (power == std::string_view::npos || !whole) return std::nullopt;
    unit = std::ldexp(1.0, 10 * (static_cast<int>(power) + 1));
  }
  const double bytes = value * unit;
  if (!(bytes >= 0.5) || bytes > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(bytes));
}

CLI::Validator size() {
  return CLI::Validator(
      [](std::string& text) {
        return read_size(text, 1 << 20) ? std::string() : "'" + text + "' is not " + std::string(kSizes);
      },
      "");
}

std::string type_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const std::string name = option.get_type_name();
  const std::string type = name.substr(0, name.find(':'));
  return type == "UINT" || type == "INT" ? "N" : type == "FLOAT" ? "F" : type;
}

bool takes_path(const CLI::Option& option) { return contains(kPaths, type_of(option)); }

Parsed parse(CLI::App& app, int argc, char** argv, Program program) {
  app.formatter(std::make_shared<Help>());
  std::string shell;
  const std::string shells = joined(kShells);
  const CLI::Option* const completes =
      app.add_option("--completion", shell, "Print a completion file for a shell: " + shells)->type_name("SHELL");
  program.choices[completes].assign(kShells.begin(), kShells.end());
  bool manual = false;
  app.add_flag("--man", manual, "Print the manual page, for man -l, and exit");
  app.set_version_flag("--version", app.get_name() + " " + QSF_VERSION, "Print the version, and exit");
  app.set_help_flag("-h,--help", "Print this, and exit");
  const std::vector<const char*> arguments =
      with_names(app, std::span(argv, static_cast<std::size_t>(argc)), program.words);
  try {
    app.parse(argc, arguments.data());
    if (const std::string wrong = wrong_value(app); !wrong.empty()) return {Parsed::What::mistake, wrong};
    if (completes->count() != 0) {
      if (!contains(kShells, shell)) {
        return {Parsed::What::mistake, "--completion is one of " + shells + ", not '" + shell + "'"};
      }
      std::fputs(completion(app, program.choices, shell).c_str(), stdout);
      return {Parsed::What::told};
    }
    if (!manual) return {};
    std::fputs(manual_page(app, program.manual).c_str(), stdout);
    return {Parsed::What::told};
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return {Parsed::What::told};
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return {Parsed::What::told};
  } catch (const CLI::ExtrasError&) {
    return {Parsed::What::mistake, unexpected(app, arguments)};
  } catch (const CLI::ParseError& error) {
    const std::string twice = repeated(app);
    return {Parsed::What::mistake, twice.empty() ? error.what() : twice};
  }
}

}  // namespace qsf
