#include "native/run/render.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include "native/cli/input.h"
#include "native/host/chat_template.h"
#include "native/run/chat.h"
#include "native/run/json.h"
#include "native/run/output.h"
#include "qsf/base/try.h"
#include "qsf/chat/conversation.h"

namespace qsf::run {
namespace {

constexpr std::size_t kLongestVariables = 64 << 20;  // bytes
/// Keys of the file that are no variables: special tokens, and the time that templates see.
constexpr const char *kSpecial = "special", *kNow = "now";

Result<Json> read_variables(const std::string& path) {
  constexpr std::string_view kObject = "a JSON object, such as {\"messages\": [...]}";
  QSF_LET(read, read_json(path, kLongestVariables, "--render", kObject));
  if (!read.is_object()) return make_error(ErrorCode::bad_input, "{} is not {}", path, kObject);
  return read;
}

Result<templates::Time> time_of(const Json& variables, const std::string& path) {
  if (!variables.contains(kNow)) return local_now();
  templates::Time time;
  const std::string text = variables[kNow].is_string() ? variables[kNow].get<std::string>() : "";
  int date = 0, minutes = 0, seconds = 0;  // characters that are read up to there
  (void)std::sscanf(text.c_str(), "%4d-%2u-%2u%nT%2u:%2u%n:%2u%n", &time.year, &time.month, &time.day, &date,
                    &time.hour, &time.minute, &minutes, &time.second, &seconds);
  const auto size = static_cast<int>(text.size());
  const bool read = size > 0 && (size == date || size == minutes || size == seconds);
  const std::chrono::year_month_day day{std::chrono::year(time.year), std::chrono::month(time.month),
                                        std::chrono::day(time.day)};
  if (!read || time.year < 1 || !day.ok() || time.hour > 23 || time.minute > 59 || time.second > 59) {
    return make_error(ErrorCode::bad_input, "'now' of {} is '{:.40}', not a time such as 2026-11-26T12:00", path, text);
  }
  return time;
}

/// Takes the special tokens out of the variables, or the model's if the variables have none.
Result<std::string> take_special(Json& variables, const Session* session) {
  std::string special;
  if (variables.contains(kSpecial)) {
    special = variables[kSpecial].dump();
  } else if (session != nullptr) {
    std::array<std::byte, 16384> memory;
    QSF_LET(written, chat::special_tokens(*session, memory));
    special = written;
  }
  variables.erase(kSpecial);
  variables.erase(kNow);
  return special;
}

/// Returns the rendered text, or with --count the line that states its number of tokens.
Result<std::string> rendered(const Options& o, Session* session) {
  QSF_LET(text, read_template(o));
  if (text.empty()) {
    text = session->metadata(kMetaChatTemplate);
    if (text.empty()) {
      return make_error(ErrorCode::unsupported, "the file has no chat template: --chat-template takes one from a file");
    }
  }
  QSF_LET(variables, read_variables(o.mode_value));
  QSF_LET(now, time_of(variables, o.mode_value));
  QSF_LET(special, take_special(variables, session));
  if (!variables.contains("add_generation_prompt")) variables["add_generation_prompt"] = true;
  variables.update(arguments_of(o));
  const std::string values = variables.dump();
  const templates::Variables all{values, special, now, {}};
  if (!o.counts) return render_template(text, all);
  QSF_LET(n, count_tokens(*session, text, all));
  return std::to_string(n) + "\n";
}

}  // namespace

int render(const Options& options, Session* session) {
  const Result<std::string> text = rendered(options, session);
  if (!text) return fail(text.error());
  const Status shown = show(*text);
  return shown ? 0 : fail(shown.error());
}

}  // namespace qsf::run
