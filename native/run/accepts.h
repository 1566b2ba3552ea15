// Grammars of the command line, and --accepts: whether a grammar allows a text.
#pragma once

#include <string>

#include "native/run/options.h"
#include "qsf/chat/guide.h"

namespace qsf::run {

struct GrammarFile {
  GrammarKind kind = GrammarKind::gbnf;
  std::string text;

  chat::GrammarText view() const { return {kind, text}; }
};

/// Reads the grammar of --grammar, --json-schema or --regex, one of which must be given.
Result<GrammarFile> read_grammar(const Options& options);

/// Checks the text. Returns an exit code: 0 if it may be written, 1 if not, 2 if the grammar is refused or a file
/// cannot be read, with a sentence on stderr.
int run_accepts(const Options& options);

}  // namespace qsf::run
