// xoshiro256++ 1.0 (Blackman and Vigna, 2019), with a state that SplitMix64 computes from a seed.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace qsf {

class Random {
 public:
  using State = std::array<std::uint64_t, 4>;

  constexpr Random() = default;
  constexpr explicit Random(const State& state) : state_(state) {}
  constexpr explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = split_mix(seed);
  }

  /// SplitMix64: advances `state` and returns its next number.
  static constexpr std::uint64_t split_mix(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Returns a uniform number in [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  State state_{};
};

}  // namespace qsf
