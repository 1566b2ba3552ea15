// A request for bytes of a made file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/made/made_file.h"
#include "native/made/staged.h"
#include "qsf/base/result.h"
#include "qsf/stream/read_request.h"

namespace qsf {

/// Its slot belongs to the thread that finishes it, from the arrival of the last run until then.
struct MadeJob {
  static constexpr std::uint32_t kNone = ~0u;

  ReadRequest request;
  std::uint32_t segment = kNone;  // kNone: bytes that are not a whole segment
  convert::MadeFile::Step step;
  bool planned = false;            // the step is the one to do
  std::vector<std::byte*> into;    // of each run of the step
  std::vector<StagedRun> staged;   // of the step
  std::uint32_t stage = kNone;     // index of the memory that it stages in
  std::size_t sent = 0, left = 0;  // runs that the inner source has got; runs that have not arrived
  convert::MadeFile::Slice slice;  // of a near job: the last one that a thread has taken
  std::uint32_t making = 0;        // its slices that threads are making
  Status status;

  std::span<std::byte> raw() const { return {request.into, request.size}; }
  /// Takes memory for steps as long as this one.
  void reserve(const convert::MadeFile::Step& longest) {
    slice.runs.reserve(longest.runs.capacity());
    step.parts.reserve(longest.parts.capacity());
    step.runs.reserve(longest.runs.capacity());
    into.reserve(longest.runs.capacity());
    staged.reserve(longest.runs.capacity());
  }
  /// Returns the bytes of its lists.
  std::size_t bytes() const {
    return step.parts.capacity() * sizeof(convert::MadeFile::Part) +
           step.runs.capacity() * (2 * sizeof(InputRun) + sizeof(std::byte*) + sizeof(StagedRun));
  }
};

}  // namespace qsf
