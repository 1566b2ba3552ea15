#include "run/likeliest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace qsf {
namespace {

constexpr int kBucketBits = 11;  // sign, exponent and two bits of the mantissa
constexpr std::uint32_t kBuckets = 1u << kBucketBits;

/// Returns a number that rises with the logit. +0 and -0 are equal.
std::uint32_t bucket(float logit) {
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return ordered >> (32 - kBucketBits);
}

}  // namespace

void sort_by_likelihood(std::span<Candidate> candidates) { std::sort(candidates.begin(), candidates.end(), likelier); }

std::span<Candidate> likeliest(std::span<const float> logits, std::size_t m, std::span<Candidate> scratch) {
  std::array<std::uint32_t, kBuckets> counts{};
  for (const float logit : logits) ++counts[bucket(logit)];
  // Searches for the highest buckets that have m logits together. The lowest bucket is that of -infinity.
  std::uint32_t from = kBuckets;
  for (std::size_t held = 0; held < m && from > bucket(std::numeric_limits<float>::lowest());) held += counts[--from];

  std::size_t n = 0;
  for (std::uint32_t id = 0; id < logits.size(); ++id) {
    if (bucket(logits[id]) >= from) scratch[n++] = {logits[id], id};
  }
  const std::span<Candidate> held = scratch.first(n), wanted = held.first(std::min(m, n));
  std::nth_element(held.begin(), wanted.end(), held.end(), likelier);
  sort_by_likelihood(wanted);
  return wanted;
}

}  // namespace qsf
