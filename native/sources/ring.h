// A first-in, first-out queue with a fixed capacity.
#pragma once

#include <array>
#include <cstddef>

namespace qsf {

template <class T, std::size_t N>
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  /// There must be room: size() < N.
  void push(const T& value) { values_[(first_ + count_++) % N] = value; }
  const T& front() const { return values_[first_]; }
  /// Returns the i-th value after the front.
  const T& operator[](std::size_t i) const { return values_[(first_ + i) % N]; }
  void pop() {
    first_ = (first_ + 1) % N;
    --count_;
  }

 private:
  std::array<T, N> values_{};
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace qsf
