#include "native/run_complete.h"

namespace qsf::run {
namespace {

struct Row {
  std::vector<std::string> names;  // with their dashes
  std::string short_name, long_name, meaning, type;
  bool value = false, file = false;
  std::vector<std::string> choices;
};

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(between)) + word;
  return out;
}

/// The text with a backslash before each of these characters.
std::string escaped(std::string_view text, std::string_view which) {
  std::string out;
  for (const char c : text) {
    if (which.find(c) != which.npos) out += '\\';
    out += c;
  }
  return out;
}

/// In single quotes for a POSIX shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::vector<Row> rows_of(const CLI::App& app, const Choices& choices) {
  std::vector<Row> rows;
  for (const CLI::Option* option : app.get_options()) {
    Row row;
    for (const std::string& name : option->get_snames()) row.names.push_back("-" + (row.short_name = name));
    for (const std::string& name : option->get_lnames()) row.names.push_back("--" + (row.long_name = name));
    if (row.names.empty()) continue;
    row.meaning = option->get_description();
    row.type = option->get_type_name();
    row.value = option->get_expected_max() > 0;
    row.file = row.value && (row.type == "FILE" || option->get_positional());
    if (const auto at = choices.find(option); at != choices.end()) row.choices = at->second;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string bash(const std::vector<Row>& rows) {
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
  return "# bash completion for qsf-run\n"
         "_qsf_run() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  case $prev in\n" +
         cases + "    " + files +
         ") compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n    " + values +
         ") return ;;\n"
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
         "complete -F _qsf_run qsf-run\n";
}

std::string zsh(const std::vector<Row>& rows) {
  std::string out = "#compdef qsf-run\n_arguments -s \\\n";
  for (const Row& row : rows) {
    std::string end = "[" + escaped(row.meaning, "[]:\\") + "]";
    if (row.value) {
      end += ":" + row.type + ":";
      end += row.file ? "_files" : row.choices.empty() ? " " : "(" + joined(row.choices, " ") + ")";
    }
    if (row.names.size() == 1) {
      out += "  " + in_quotes(row.names[0] + end) + " \\\n";
    } else {
      out += "  " + in_quotes("(" + joined(row.names, " ") + ")") + "{" + joined(row.names, ",") + "}" +
             in_quotes(end) + " \\\n";
    }
  }
  return out + "  '1:MODEL:_files'\n";
}

std::string fish(const std::vector<Row>& rows) {
  std::string out = "# fish completion for qsf-run\n";
  for (const Row& row : rows) {
    out += "complete -c qsf-run";
    if (!row.short_name.empty()) out += " -s " + row.short_name;
    if (!row.long_name.empty()) out += " -l " + row.long_name;
    if (row.value) out += row.file ? " -r -F" : " -x";
    if (!row.choices.empty()) out += " -a '" + joined(row.choices, " ") + "'";
    out += " -d '" + escaped(row.meaning, "'\\") + "'\n";
  }
  return out;
}

}  // namespace

std::string completion(const CLI::App& app, const Choices& choices, std::string_view shell) {
  const std::vector<Row> rows = rows_of(app, choices);
  return shell == "bash" ? bash(rows) : shell == "zsh" ? zsh(rows) : fish(rows);
}

}  // namespace qsf::run
