#include "run/guesser.h"

#include <algorithm>

namespace qsf {
namespace {

/// The part of their weight that earlier guesses keep when a pass is judged.
constexpr float kMemory = 0.875f;

}  // namespace

void Guesser::begin(std::uint32_t most, GuessSource source, GuessCost cost) {
  most_ = limit_ = most;
  source_ = source;
  n_given_ = 0;
  given_after_ = 0;
  cost_ = cost;
  rest_ = 0;
  rests_until_ = 0;
  trust();
  repeats_.begin();
}

/// Begins to count as if one guess had been right.
void Guesser::trust() {
  right_ = judged_ = 1;
  n_passes_ = 0;
}

std::uint32_t Guesser::guess(std::span<std::uint32_t> room, std::size_t n_tokens) {
  if (rests(n_tokens)) return 0;
  const std::size_t most = std::min<std::size_t>(room.size() - n_tokens, limit_);
  if (source_ == GuessSource::text) return repeats_.guess(room.first(n_tokens + most), n_tokens, cost_);
  return std::min(n_given(n_tokens), static_cast<std::uint32_t>(most));
}

void Guesser::judge(std::size_t n_tokens, std::uint32_t right, bool all) {
  if (source_ == GuessSource::text) {
    repeats_.judge(right, all);
  } else if (cost_.each > 0) {
    weigh(n_tokens, right, all);
  } else {
    limit_ = all ? std::min(most_, limit_ * 2) : std::clamp<std::uint32_t>(right + 1, 1, most_);
  }
}

/// Chooses the number of guesses with which a token takes the least work, and rests if that is none.
void Guesser::weigh(std::size_t n_tokens, std::uint32_t right, bool all) {
  const auto n_right = static_cast<float>(right);
  right_ = right_ * kMemory + n_right;
  judged_ = judged_ * kMemory + n_right + (all ? 0.0f : 1.0f);
  ++n_passes_;
  const float share = right_ / judged_;
  GuessGain gain;
  std::uint32_t n = 0;
  while (n < most_ && gain.add(share, cost_)) ++n;
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
