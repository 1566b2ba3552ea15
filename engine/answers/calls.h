// The calls in a body, which body_scan.h has found whole, and their arguments as JSON.
#pragma once

#include <string_view>

#include "answers/out.h"
#include "answers/source.h"
#include "answers/tools.h"
#include "qsf/answers/part.h"

namespace qsf::answers {

struct BodyOf {
  bool bare = false;           // without an opening mark, so that each name must be that of a tool
  bool closed = false;         // a closing mark follows, so that a name alone is a call too
  std::string_view name = {};  // of the tool if the body has only its arguments
};

/// Reads all calls of a body, and gives them to the sink if every one of them is right. `out` is used during the call.
/// Returns false without giving any if the body has other things, or if `out` is too small for a call.
bool read_calls(std::string_view body, const BodyOf& of, const Tools& tools, Out& out, const PartSink& sink);

}  // namespace qsf::answers
