#include "templates/work.h"

#include <limits>

namespace qsf::templates {

Value Work::fail_with(ErrorCode code, const char* format, const FormatValue* values, FormatKinds kinds) {
  if (!failed()) error = Error(code, format, values, kinds);
  return {};
}

bool Work::too_many_steps() {
  steps_left_ = 0;
  fail("it takes more than {} steps", limits.steps);
  return false;
}

void Work::out_of_memory() {
  fail_with(ErrorCode::out_of_memory, "it needs more memory than it is given", nullptr, format_kinds<>());
}

const Text* Work::text(std::string_view bytes, Origin origin, const Origin* origins) {
  static constexpr Text kEmpty{};
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) out_of_memory();
  Text* const made = make<Text>();
  if (made == nullptr) return &kEmpty;
  *made = {.bytes = bytes.data(),
           .origins = origins,
           .size = static_cast<std::uint32_t>(bytes.size()),
           .points = 0,
           .origin = origin,
           .safe = false};
  return made;
}

}  // namespace qsf::templates
