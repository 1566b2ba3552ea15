// A model's own chat template: Jinja as jinja2 and transformers run it, in memory of the caller and within limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::templates {

/// The bounds of one rendering. Templates that models carry need less than a hundredth of each.
struct Limits {
  std::uint64_t steps = 10'000'000;  // nodes that are evaluated, and 32 bytes of a text or 8 values of a list each
  std::uint64_t output_bytes = 16u << 20;  // of UTF-8
  std::uint32_t depth = 250;               // nested blocks, expressions and calls; each takes up to 500 bytes of stack
};

/// The memory that is enough for any template of a model with a conversation of 100 KB.
inline constexpr std::size_t kUsualMemory = 32u << 20;

/// A local time, for strftime_now().
struct Time {
  std::int32_t year = 1970;
  std::uint32_t month = 1, day = 1;  // from 1
  std::uint32_t hour = 0, minute = 0, second = 0;
};

/// The variables of a rendering.
struct Variables {
  std::string_view values;   // a JSON object: `messages`, `tools`, `add_generation_prompt` and further keywords
  std::string_view special;  // a JSON object of special tokens, such as `bos_token`; may be empty
  Time now;
  std::string_view more = {};  // a JSON object of further variables, which replace those of `values`; may be empty
};

/// Receives the output in parts. `own` marks text of the template and special tokens. A part that is not own comes from
/// the variables' values, so special tokens must not be recognized in it.
struct Sink {
  void* context = nullptr;
  void (*put)(void* context, std::string_view text, bool own) = nullptr;
};

class Template {
 public:
  /// Reads a template. `memory` and `text` must outlive this object. Fails with bad_template if the text is not a
  /// template or uses a part of Jinja that does not exist here, with bad_text if it is not UTF-8, and with
  /// out_of_memory.
  static Result<Template> parse(std::string_view text, std::span<std::byte> memory, const Limits& limits = {});

  /// Writes the output to the sink; after a failure, the output is not usable. Fails with template_refusal if the
  /// template calls raise_exception(), whose message is the sentence; with bad_template if it does what jinja2 forbids
  /// or exceeds a limit; with out_of_memory; and with bad_input if the variables are not JSON objects.
  Status render(const Variables& variables, const Sink& sink);

  /// Returns the whole message of the last template_refusal, which the error's sentence may shorten. Valid until the
  /// next rendering.
  std::string_view refusal() const;

  /// Returns the bytes of memory that the template and its last rendering took.
  std::size_t used_bytes() const;

 private:
  struct Parsed;  // in the caller's memory
  explicit Template(Parsed* parsed) : parsed_(parsed) {}

  Parsed* parsed_;
};

}  // namespace qsf::templates
