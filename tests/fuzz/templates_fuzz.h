// Any bytes as a chat template with variables: what it writes is bounded, and nothing may crash.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/templates/template.h"

namespace qsf::test {

/// The template, and after a zero byte its variables in JSON. Gives whether it renders.
inline bool fuzz_template(std::string_view data) {
  constexpr std::string_view kMessages =
      R"({"messages": [{"role": "user", "content": "é <|x|> 1"}, {"role": "assistant", "content": null}], "n": 2})";
  const std::size_t end = data.find('\0');
  const std::string_view values = end == data.npos ? kMessages : data.substr(end + 1);
  std::vector<std::byte> memory(1 << 20);
  const templates::Limits limits{.steps = 100'000, .output_bytes = 1 << 20};
  const auto sentence = [](const Error& error) {
    if (error.sentence[0] == 0 && error.code != ErrorCode::template_refusal) std::abort();
    return false;
  };
  Result<templates::Template> parsed = templates::Template::parse(data.substr(0, end), memory, limits);
  if (!parsed) return sentence(parsed.error());
  std::size_t size = 0;
  const templates::Sink sink{&size, [](void* to, std::string_view text, bool) {
                               if (text.empty()) std::abort();
                               *static_cast<std::size_t*>(to) += text.size();
                             }};
  const Status status = parsed->render({.values = values, .special = R"({"bos_token": "<s>"})", .now = {}}, sink);
  if (size > limits.output_bytes) std::abort();
  return status ? true : sentence(status.error());
}

}  // namespace qsf::test
