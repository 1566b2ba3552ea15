#include "run/guesser.h"

#include <algorithm>

namespace qsf {
namespace {

/// Tokens after which a longer occurrence is no better.
constexpr std::size_t kLongest = 32;

}  // namespace

std::uint32_t Guesser::guess(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const {
  const std::size_t n = tokens.size();
  const std::size_t n_out = std::min<std::size_t>(out.size(), limit_);
  if (n_out == 0) return 0;
  std::size_t longest = least_ - 1, found = 0;  // the occurrence ends before `found`
  for (std::size_t end = n - 1; end > longest && longest < kLongest; --end) {
    // Of occurrences of one length, the last counts.
    const std::size_t most = std::min(end, kLongest);
    std::size_t length = 0;
    while (length < most && tokens[end - 1 - length] == tokens[n - 1 - length]) ++length;
    if (length <= longest) continue;
    longest = length;
    found = end;
  }
  if (found == 0) return 0;
  // An occurrence near the end is followed by fewer tokens than asked for; then the text is taken as periodic.
  for (std::size_t i = 0; i < n_out; ++i) out[i] = found + i < n ? tokens[found + i] : out[found + i - n];
  return static_cast<std::uint32_t>(n_out);
}

void Guesser::judge(std::uint32_t right, bool all) {
  if (all) {
    limit_ = std::min(most_, limit_ * 2);
    least_ = std::max(kLeast, least_ - 1);
  } else {
    limit_ = std::clamp<std::uint32_t>(right + 1, 1, most_);
    if (right == 0) least_ = std::min(kMostLeast, least_ + 1);
  }
}

}  // namespace qsf
