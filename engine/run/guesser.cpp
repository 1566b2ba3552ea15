#include "run/guesser.h"

#include <algorithm>

namespace qsf {
namespace {

/// Tokens after which a longer occurrence is no better.
constexpr std::size_t kLongest = 32;
/// The part of their weight that earlier guesses keep when a pass is judged.
constexpr float kMemory = 0.875f;

}  // namespace

void Guesser::begin(std::uint32_t most, GuessSource source, float cost) {
  most_ = limit_ = most;
  least_ = kLeast;
  source_ = source;
  n_given_ = 0;
  given_after_ = 0;
  cost_ = cost;
  rest_ = 0;
  rests_until_ = 0;
  trust();
}

/// Begins to count as if one guess had been right.
void Guesser::trust() {
  right_ = judged_ = 1;
  n_passes_ = 0;
}

std::uint32_t Guesser::guess(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const {
  using Guess = std::uint32_t (Guesser::*)(std::span<const std::uint32_t>, std::span<std::uint32_t>) const;
  static constexpr Guess kSources[] = {&Guesser::repeat, &Guesser::given, &Guesser::given,
                                       &Guesser::given};  // in the order of GuessSource
  const std::size_t n = rests(tokens.size()) ? 0 : std::min<std::size_t>(out.size(), limit_);
  return n == 0 ? 0 : (this->*kSources[static_cast<std::size_t>(source_)])(tokens, out.first(n));
}

/// Writes the tokens that followed the longest earlier occurrence of the last tokens. Returns 0 if no earlier
/// occurrence is long enough. O(tokens).
std::uint32_t Guesser::repeat(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const {
  const std::size_t n = tokens.size(), n_out = out.size();
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

/// Leaves guesses that were given after the text, unless they follow another text.
std::uint32_t Guesser::given(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const {
  return std::min(n_given(tokens.size()), static_cast<std::uint32_t>(out.size()));
}

void Guesser::judge(std::size_t n_tokens, std::uint32_t right, bool all) {
  if (cost_ > 0) {
    weigh(n_tokens, right, all);
  } else if (all) {
    limit_ = std::min(most_, limit_ * 2);
    least_ = std::max(kLeast, least_ - 1);
  } else {
    limit_ = std::clamp<std::uint32_t>(right + 1, 1, most_);
    if (right == 0) least_ = std::min(kMostLeast, least_ + 1);
  }
}

/// Chooses the number of guesses with which a token takes the least work, if a guess counts only after right ones
/// (Leviathan et al. 2023, section 3.4), and rests if that is none.
void Guesser::weigh(std::size_t n_tokens, std::uint32_t right, bool all) {
  const auto n_right = static_cast<float>(right);
  right_ = right_ * kMemory + n_right;
  judged_ = judged_ * kMemory + n_right + (all ? 0.0f : 1.0f);
  ++n_passes_;
  const float share = right_ / judged_;
  float tokens = 1, work = 1, chance = share;
  std::uint32_t n = 0;
  while (n < most_ && chance * work > tokens * cost_) {
    ++n;
    tokens += chance;
    work += cost_;
    chance *= share;
  }
  if (n != 0) {
    limit_ = n;
    return;
  }
  const bool is_again = rest_ != 0 && n_passes_ < kShortestRest;
  rest_ = is_again ? std::min(rest_ * 2, kLongestRest) : kShortestRest;
  rests_until_ = n_tokens + rest_;
  limit_ = 1;
  trust();
}

}  // namespace qsf
