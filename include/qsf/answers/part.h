// Parts of an answer, as they stream.
#pragma once

#include <string_view>

#include "qsf/base/enumerations.h"

namespace qsf::answers {

/// A piece of text or of a thought, or half of a call: its name, which its arguments follow at once.
struct Part {
  AnswerPart kind = AnswerPart::text;
  std::string_view text = {};  // not empty; valid until the sink returns
};

struct PartSink {
  void* context = nullptr;
  void (*put)(void* context, const Part& part) = nullptr;
};

}  // namespace qsf::answers
