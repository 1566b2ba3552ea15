// The speed at which this machine reads a model's file and computes with its weights, measured before the plan is made.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "native/sources/source.h"
#include "qsf/base/result.h"
#include "qsf/formats/format.h"
#include "threads/thread_pool.h"

namespace qsf {

/// The speed of reading: bytes per second with many reads under way, and seconds of a read alone.
struct ReadSpeed {
  double rate = 0, latency = 0;
  std::uint64_t piece = 0;  // bytes of a read

  /// Returns the slots of a ring that keep reading going while one slot is computed with, at most `most`. The bytes
  /// under way are rate times latency (Little's law).
  std::uint32_t slots(std::uint32_t most) const;
};
/// Reads some MiB of the file as a session would. Overwrites `memory`. No session may use the source. Takes a quarter
/// of a second at most, except for the last reads. Returns zeros if memory or file is too small.
Result<ReadSpeed> measure_reading(Source& source, std::span<std::byte> memory, ThreadPool& pool);

/// A format of the file's matrices with its share of their bytes.
struct FormatShare {
  FormatId format;
  double share;
};
/// Returns the formats with a tenth of the bytes or more, largest first; none if there is too little memory. Uses
/// `memory` and `source` as above.
Result<std::vector<FormatShare>> formats_of(Source& source, std::span<std::byte> memory, ThreadPool& pool);

/// Returns the bytes of weights per second in products of one column, each format by its instruction set; 0 if there is
/// too little memory or no format. Overwrites `memory`. Takes about a tenth of a second for each format.
Result<double> measure_computing(std::span<const FormatShare> formats, std::span<std::byte> memory,
                                 const std::function<std::string_view(FormatId)>& isa_of, ThreadPool& pool);

}  // namespace qsf
