// The lists of a generation's sampling as JavaScript stages them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/run/sampling.h"

namespace qsf::wasm {

/// Writes the texts, each with a zero byte at its end, to `out` as far as it has room. Returns their number.
std::size_t split_texts(std::string_view texts, std::span<std::string_view> out);

class SamplerLists {
 public:
  /// Reads `n_biases` biases at the beginning of `staged`, names of samplers after them, and then texts that end
  /// repetitions, of so many bytes; without a size, the list is the default. Biases and texts stay in `staged`, which
  /// must outlive the generation. Fails with bad_argument for an unknown name; check() finds all other mistakes.
  static Result<SamplerLists> read(std::span<const std::byte> staged, std::uint32_t n_biases,
                                   std::optional<std::uint32_t> samplers, std::optional<std::uint32_t> breakers);

  /// Returns options with these lists, valid as long as this object.
  SamplerOptions with(const SamplerOptions& numbers) const;

 private:
  std::span<const TokenBias> biases_;
  // With room for one more than check() allows.
  std::array<SamplerKind, kAllSamplers.size() + 1> samplers_{};
  std::array<std::string_view, kMaxDryBreakers + 1> breakers_{};
  std::optional<std::size_t> n_samplers_, n_breakers_;
};

}  // namespace qsf::wasm
