// Grammars and held calls in the C API.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "native/capi/qsf_c.h"
#include "qsf/base/try.h"

namespace {

using namespace qsf;
using namespace qsf::c_api;

/// Makes room for grammars, and closes the chat, whose memory becomes another one.
Status open_guide(QSFEngine& engine) {
  if (engine.guide) return {};
  engine.chat.reset();
  QSF_LET(guide, chat::Guide::build(engine.host->session(), engine.host->session().text_memory()));
  engine.guide.emplace(guide);
  return {};
}

/// Gives the room back if nothing is held.
void close_guide(QSFEngine& engine) {
  if (engine.grammar || !engine.tool_choice.empty() || !engine.guide) return;
  engine.chat.reset();
  engine.guide.reset();
}

Status set_grammar(QSFEngine& engine, const char* kind, const char* text) {
  if (kind == nullptr) {
    engine.grammar.reset();
    close_guide(engine);
    return {};
  }
  const auto found = std::ranges::find(kGrammarNames, std::string_view(kind));
  if (text == nullptr) return wrong("the text of a grammar is needed");
  if (found == kGrammarNames.end()) {
    return make_error(ErrorCode::bad_argument, "there are no grammars of the kind {:.60}", kind);
  }
  if (!engine.tool_choice.empty()) {
    return wrong("qsf_chat_tools() holds calls, and a grammar holds texts: they exclude each other");
  }
  const auto as = static_cast<GrammarKind>(found - kGrammarNames.begin());
  const Status opened = open_guide(engine);
  const Status set = opened ? engine.guide->set({as, text}) : opened;
  if (set) {
    engine.grammar.emplace(as, text);
    return {};
  }
  if (engine.grammar) QSF_TRY(engine.guide->set({engine.grammar->first, engine.grammar->second}));
  close_guide(engine);
  return set;
}

Status set_tools(QSFEngine& engine, const char* tools, const char* choice) {
  if (tools == nullptr && choice != nullptr) return wrong("a choice of tools needs tools");
  if (choice != nullptr && *choice == 0) return wrong("the choice of a tool is empty");
  if (choice != nullptr && engine.grammar) {
    return wrong("a grammar holds texts, and a choice of tools holds calls: they exclude each other");
  }
  if (tools != nullptr) QSF_TRY(check_json("the tools", tools, json::Kind::array));
  std::string given = tools == nullptr ? "" : tools, chosen = choice == nullptr ? "" : choice;
  std::swap(engine.chat_settings.tools, given);
  std::swap(engine.tool_choice, chosen);
  engine.chat.reset();
  const auto open = [&]() -> Status {
    if (choice != nullptr) QSF_TRY(open_guide(engine));
    if (tools == nullptr) return {};
    QSF_TRY(open_chat(engine));
    return choice == nullptr ? Status() : hold_calls(engine);
  };
  const Status opened = open();
  if (!opened) {
    engine.chat_settings.tools = std::move(given);
    engine.tool_choice = std::move(chosen);
    engine.chat.reset();
  }
  close_guide(engine);
  return opened;
}

}  // namespace

int qsf_grammar_set(QSFEngine* engine, const char* kind, const char* text) {
  return setting(engine, [&] { return set_grammar(*engine, kind, text); });
}

int qsf_chat_tools(QSFEngine* engine, const char* tools, const char* choice) {
  return setting(engine, [&] { return set_tools(*engine, tools, choice); });
}
