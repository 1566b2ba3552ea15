#include "native/cli/manual.h"

#include <vector>

#include "native/cli/command_line.h"

namespace qsf {
namespace {

/// Returns text that the language takes for itself nowhere.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";  // a minus, which readers can copy
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

/// Returns lines of plain text; those that begin with a space keep their form.
std::string lines_of(std::string_view text) {
  std::string out;
  bool kept = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(' ') != kept) out += kept ? ".fi\n" : ".nf\n";
    kept = line.starts_with(' ');
    out += (line.empty() ? ".PP" : escaped(line)) + "\n";
  }
  return kept ? out + ".fi\n" : out;
}

std::string option_of(const CLI::Option& option) {
  std::string names;
  const auto add = [&](const std::string& name) {
    names += (names.empty() ? "\\fB" : ", \\fB") + escaped(name) + "\\fR";
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  const std::string type = type_of(option), usual = option.get_default_str();
  if (names.empty()) {
    names = "\\fI" + escaped(option.get_name()) + "\\fR";
  } else if (!type.empty()) {
    names += " \\fI" + escaped(type) + "\\fR";
  }
  const bool shown = !usual.empty() && option.get_items_expected_max() > 0;
  return ".TP\n" + names + "\n" + escaped(option.get_description() + (shown ? " [" + usual + "]" : "")) + "\n";
}

}  // namespace

std::string manual_page(const CLI::App& app, std::span<const ManualSection> sections) {
  const std::string& name = app.get_name();
  std::string synopsis, groups;
  for (const std::string& group : app.get_groups()) {
    std::string options;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) options += option_of(*option);
    }
    if (!options.empty()) groups += ".SS " + escaped(group) + "\n" + options;
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) synopsis += " \\fI" + escaped(option->get_name(true)) + "\\fR";
  }
  std::string out = ".TH " + upper(name) + " 1 \"\" \"" + escaped(app.version()) + "\"\n.SH NAME\n" + escaped(name) +
                    " \\- " + escaped(app.get_description()) + "\n.SH SYNOPSIS\n\\fB" + escaped(name) +
                    "\\fR [\\fIOPTIONS\\fR]" + synopsis + "\n.SH OPTIONS\n" + groups;
  for (const ManualSection& section : sections) {
    out += ".SH " + upper(section.title) + "\n" + lines_of(section.text);
  }
  return out;
}

}  // namespace qsf
