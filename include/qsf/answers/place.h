// The place that an answer has come to while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/answers/marks.h"

namespace qsf::answers {

enum class PlaceKind : std::uint8_t {
  text,
  thought,
  call,     // in the body of a call
  between,  // after a call, before its closing mark or the next call
  header,
};

/// Views are valid until the next byte of the answer.
struct Place {
  PlaceKind kind = PlaceKind::text;
  std::size_t row = kMarks;        // of kSyntaxes, of the thought or the call; kMarks: a call without marks
  std::string_view body = {};      // the bytes of the call or the header, with marks as in engine/answers/source.h
  std::string_view name = {};      // of the tool, from a header
  std::string_view pending = {};   // bytes that may begin a mark
  std::uint32_t bodies = 0;        // calls that have begun, with those that turned out to be text
  bool thought_has_begun = false;  // here or in the prompt
};

}  // namespace qsf::answers
