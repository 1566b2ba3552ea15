// One generation, from start() to its end, and what it did.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "native/host.h"

namespace qsf::run {

struct Generation {
  std::vector<std::uint32_t> prompt_ids, generated_ids;
  std::string text;
  std::string ended;        // a name of End
  std::string logits_hash;  // empty unless asked for
  double prompt_seconds = 0;
  double generation_seconds = 0;
  Profile prompt_profile, generation_profile;  // when the host profiles
};

struct Sinks {
  std::function<Status(std::string_view)> text;              // pieces as they come
  std::function<Status(std::span<const float>)> all_logits;  // rows of the prompt's positions, in order
};

/// Starts a generation and runs it to its end. A cancelled one is stopped and not an error; what a sink fails with ends
/// it.
Result<Generation> generate(Host& host, const Prompt& prompt, const Sinks& sinks);

/// Whether a conversation can go on after this error of one of its lines.
bool is_of_a_line(ErrorCode code);

}  // namespace qsf::run
