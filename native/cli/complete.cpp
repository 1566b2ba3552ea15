#include "native/cli/complete.h"

#include <algorithm>

#include "native/cli/command_line.h"
#include "native/cli/names.h"

namespace qsf {
namespace {

struct Row {
  std::vector<std::string> names;                    // with their dashes
  std::vector<std::string> short_names, long_names;  // without
  std::string meaning, type;
  bool value = false, file = false;
  std::vector<std::string> choices;
};

/// Returns the text with a backslash before each character of `which`.
std::string escaped(std::string_view text, std::string_view which) {
  std::string out;
  for (const char c : text) {
    if (which.find(c) != which.npos) out += '\\';
    out += c;
  }
  return out;
}

/// Returns the text in single quotes for a POSIX shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// Returns a name for a function of a shell.
std::string identifier(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<Row> rows_of(const CLI::App& app, const Choices& choices) {
  std::vector<Row> rows;
  for (const CLI::Option* option : app.get_options()) {
    Row row;
    row.short_names = option->get_snames();
    row.long_names = option->get_lnames();
    for (const std::string& name : row.short_names) row.names.push_back("-" + name);
    for (const std::string& name : row.long_names) row.names.push_back("--" + name);
    if (row.names.empty()) continue;
    row.meaning = option->get_description();
    row.type = type_of(*option);
    row.value = option->get_expected_max() > 0;
    row.file = row.value && (takes_path(*option) || option->get_positional());
    if (const auto at = choices.find(option); at != choices.end()) row.choices = at->second;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string bash(const std::string& program, const std::vector<Row>& rows) {
  const std::string function = "_" + identifier(program);
  std::string all, cases, files, values;
  for (const Row& row : rows) {
    all += (all.empty() ? "" : " ") + joined(row.names, " ");
    if (!row.value) continue;
    const std::string names = joined(row.names, " | ");
    if (!row.choices.empty()) {
      cases += "    " + names + ") COMPREPLY=($(compgen -W " + in_quotes(joined(row.choices, " ")) +
               " -- \"$cur\")); return ;;\n";
    } else {
      std::string& list = row.file ? files : values;
      list += (list.empty() ? "" : " | ") + names;
    }
  }
  return "# bash completion for " + program + "\n" + function +
         "() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  case $prev in\n" +
         cases +
         (files.empty()
              ? ""
              : "    " + files +
                    ") compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n") +
         (values.empty() ? "" : "    " + values + ") return ;;\n") +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W " +
         in_quotes(all) +
         " -- \"$cur\"))\n"
         "  else\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F " +
         function + " " + program + "\n";
}

std::string zsh(const std::string& program, const std::vector<Row>& rows, const std::vector<std::string>& positional) {
  std::string out = "#compdef " + program + "\n_arguments -s";
  for (const Row& row : rows) {
    std::string end = "[" + escaped(row.meaning, "[]:\\") + "]";
    if (row.value) {
      end += ":" + row.type + ":";
      end += row.file ? "_files" : row.choices.empty() ? " " : "(" + joined(row.choices, " ") + ")";
    }
    out += " \\\n  ";
    if (row.names.size() == 1) {
      out += in_quotes(row.names[0] + end);
    } else {
      out += in_quotes("(" + joined(row.names, " ") + ")") + "{" + joined(row.names, ",") + "}" + in_quotes(end);
    }
  }
  int number = 0;
  for (const std::string& name : positional) out += " \\\n  '" + std::to_string(++number) + ":" + name + ":_files'";
  return out + "\n";
}

std::string fish(const std::string& program, const std::vector<Row>& rows) {
  std::string out = "# fish completion for " + program + "\n";
  for (const Row& row : rows) {
    out += "complete -c " + program;
    for (const std::string& name : row.short_names) out += " -s " + name;
    for (const std::string& name : row.long_names) out += " -l " + name;
    if (row.value) out += row.file ? " -r -F" : " -x";
    if (!row.choices.empty()) out += " -a '" + joined(row.choices, " ") + "'";
    out += " -d '" + escaped(row.meaning, "'\\") + "'\n";
  }
  return out;
}

}  // namespace

std::string completion(const CLI::App& app, const Choices& choices, std::string_view shell) {
  const std::vector<Row> rows = rows_of(app, choices);
  const std::string& program = app.get_name();
  if (shell == "bash") return bash(program, rows);
  if (shell == "fish") return fish(program, rows);
  std::vector<std::string> positional;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) positional.push_back(option->get_name(true));
  }
  return zsh(program, rows, positional);
}

}  // namespace qsf
