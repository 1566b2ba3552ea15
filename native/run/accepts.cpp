#include "native/run/accepts.h"

#include <vector>

#include "native/cli/input.h"
#include "native/cli/terminal.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

using grammar::Grammar;

constexpr std::size_t kMaxText = 64u << 20;

Result<bool> accepts(const Options& o) {
  std::vector<std::byte> memory(Grammar::kMemory);
  QSF_LET(source, read_grammar(o));
  QSF_LET(made, chat::make_grammar(source.view(), memory));
  QSF_LET(text, read_text(o.mode_value, kMaxText, "the check"));
  // The last line end may be a part of the text, or not. read_text() has taken its line feed.
  std::string_view end = text.ends_with('\r') ? "\r\n" : "\n";
  QSF_LET(whole, made.accept(std::string_view(text).substr(0, text.size() + 1 - end.size())));
  if (!whole) return false;
  for (; !made.can_end(); end.remove_prefix(1)) {
    if (end.empty()) return false;
    QSF_LET(next, made.accept(end.substr(0, 1)));
    if (!next) return false;
  }
  return true;
}

}  // namespace

Result<GrammarFile> read_grammar(const Options& o) {
  if (!o.regex.empty()) return GrammarFile{GrammarKind::regex, o.regex};
  const bool gbnf = !o.grammar_file.empty();
  QSF_LET(text, read_text(gbnf ? o.grammar_file : o.schema_file, Grammar::kMaxText, "a grammar"));
  return GrammarFile{gbnf ? GrammarKind::gbnf : GrammarKind::json_schema, std::move(text)};
}

int run_accepts(const Options& o) {
  const Result<bool> yes = accepts(o);
  if (yes) return *yes ? 0 : 1;
  tell(yes.error());
  return 2;
}

}  // namespace qsf::run
