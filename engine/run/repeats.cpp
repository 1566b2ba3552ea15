#include "run/repeats.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace qsf {
namespace {

/// Tokens after which a longer occurrence is no better.
constexpr std::uint32_t kLongest = 32;
/// The shares of right guesses by kind that a text begins with, about those of short stories and of edited code.
constexpr std::array kUsual = {0.15f, 0.3f, 0.7f, 0.9f, 0.9f, 0.9f};
/// The part of a kind's share that its last guess makes up.
constexpr float kLast = 0.08f;

struct Next {
  std::uint32_t token = 0;
  std::uint32_t length = 0;  // tokens of the longest occurrence; 0: there is none
};

/// Returns the token that followed most of the earlier occurrences of the last tokens of `text`. An occurrence that is
/// longer by one token counts for eight; of equal tokens the later one is taken.
Next next_token(std::span<const std::uint32_t> text) {
  struct Votes {
    std::uint32_t token;
    float n;
  };
  std::array<Votes, 256> slots{};
  Votes best{};
  std::uint32_t longest = 0;
  const std::size_t last = text.size() - 1;
  for (std::size_t end = last; end > 0 && longest < kLongest; --end) {
    std::uint32_t length = 0;
    while (length < std::min<std::size_t>(end, kLongest) && text[end - 1 - length] == text[last - length]) ++length;
    if (length == 0) continue;
    longest = std::max(longest, length);
    const auto votes = std::bit_cast<float>((127 + 3 * length) << 23);  // 8 to the length
    Votes& slot = slots[(text[end] * 0x9E3779B1u) >> 24];
    // Tokens of one slot vote against each other.
    slot.n += slot.token == text[end] ? votes : -votes;
    if (slot.n < 0) slot = {text[end], -slot.n};
    if (slot.n > best.n) best = slot;
  }
  return {best.token, longest};
}

}  // namespace

bool GuessGain::add(float share, GuessCost cost) {
  const float next = chance * share;
  const float more = cost.each + next * cost.right;
  if (next * work <= tokens * more) return false;
  tokens += next;
  work += more;
  chance = next;
  return true;
}

void Repeats::begin() {
  untried_at_ = 0;
  shares_ = kUsual;
}

std::uint32_t Repeats::guess(std::span<std::uint32_t> room, std::size_t n_tokens, GuessCost cost) {
  if (untried_at_ != 0 && untried_at_ < n_tokens) count(kinds_[0], room[untried_at_] == untried_);
  untried_at_ = 0;
  const std::size_t most = std::min<std::size_t>(room.size() - n_tokens, kMostGuesses);
  GuessGain gain;
  std::uint32_t n = 0;
  for (; n < most; ++n) {
    const Next next = next_token(room.first(n_tokens + n));
    if (next.length == 0) break;
    const auto kind = static_cast<std::uint8_t>(std::bit_width(next.length) - 1);
    kinds_[n] = kind;
    if (!gain.add(shares_[kind], cost)) {
      untried_ = next.token;
      untried_at_ = n == 0 ? static_cast<std::uint32_t>(n_tokens) : 0;
      break;
    }
    room[n_tokens + n] = next.token;
  }
  return n;
}

void Repeats::judge(std::uint32_t right, bool all) {
  const std::uint32_t n = right + (all ? 0 : 1);
  for (std::uint32_t i = 0; i < n; ++i) count(kinds_[i], i < right);
}

void Repeats::count(std::size_t kind, bool right) { shares_[kind] += ((right ? 1.0f : 0.0f) - shares_[kind]) * kLast; }

}  // namespace qsf
