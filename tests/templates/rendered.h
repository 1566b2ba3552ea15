// A template's outcome as a test compares it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "qsf/templates/template.h"

namespace qsf::templates::test {

struct Rendered {
  ErrorCode code = ErrorCode::none;
  std::string text, own, sentence, refusal;  // own: the text with a `.` for each byte that is not own
  std::size_t used_bytes = 0;
};

struct Given {
  std::string_view values = "{}", special = "";
  Time now = {.year = 2026, .month = 11, .day = 26, .hour = 12};
  Limits limits = {};
  std::size_t memory = kUsualMemory;
  std::string_view more = "";
};

inline Rendered render(std::string_view text, const Given& given = {}) {
  static std::vector<std::byte> memory(kUsualMemory);
  Rendered out;
  const auto fail = [&](const Error& error) {
    out.code = error.code;
    out.sentence = error.sentence;
  };
  Result<Template> parsed = Template::parse(text, std::span(memory).first(given.memory), given.limits);
  if (!parsed) {
    fail(parsed.error());
    return out;
  }
  const Sink sink{&out, [](void* to, std::string_view piece, bool own) {
                    auto& rendered = *static_cast<Rendered*>(to);
                    rendered.text += piece;
                    own ? rendered.own.append(piece) : rendered.own.append(piece.size(), '.');
                  }};
  if (const Status done = parsed->render({given.values, given.special, given.now, given.more}, sink); !done)
    fail(done.error());
  out.refusal = parsed->refusal();
  out.used_bytes = parsed->used_bytes();
  return out;
}

}  // namespace qsf::templates::test
