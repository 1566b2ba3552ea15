// How fast this machine reads a model's file and computes with its weights, measured before anything is planned.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "native/source.h"
#include "qsf/base/result.h"
#include "qsf/formats/format.h"
#include "threads/thread_pool.h"

namespace qsf {

/// Of reading: bytes a second with many reads under way, and seconds that one alone takes.
struct ReadSpeed {
  double rate = 0, latency = 0;
  std::uint64_t piece = 0;  // bytes of a read

  /// Slots of a ring that keep reading going while one is computed with: what is under way is rate times latency
  /// (Little's law). At most `most`.
  std::uint32_t slots(std::uint32_t most) const;
};
/// Reads some MiB of the file as a session would. `memory` is overwritten; no session may use the source. Takes a
/// quarter of a second at most, but for the last reads. All zero where there is too little memory or file.
Result<ReadSpeed> measure_reading(Source& source, std::span<std::byte> memory, ThreadPool& pool);

/// A format of the file's matrices, and its share of their bytes.
struct FormatShare {
  FormatId format;
  double share;
};
/// The formats with a tenth of the bytes or more, the largest first; none where there is too little memory. `memory`
/// and `source` as above.
Result<std::vector<FormatShare>> formats_of(Source& source, std::span<std::byte> memory, ThreadPool& pool);

/// Bytes of weights a second in products of one column, each format by its instruction set. `memory` as above; takes
/// about a tenth of a second for each. 0 where there is too little memory or no format.
Result<double> measure_computing(std::span<const FormatShare> formats, std::span<std::byte> memory,
                                 const std::function<std::string_view(FormatId)>& isa_of, ThreadPool& pool);

}  // namespace qsf
