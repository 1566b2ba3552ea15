// Text that is written into a block of memory. A block that is full refuses quietly; callers check full() at the end.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "qsf/base/json.h"

namespace qsf::answers {

class Out {
 public:
  Out() = default;
  explicit Out(std::span<char> room) : room_(room) {}

  void put(char c) {
    if (size_ < room_.size()) room_[size_] = c;
    ++size_;
  }
  void put(std::string_view text) {
    for (const char c : text) put(c);
  }
  /// Adds a byte of a string in JSON.
  void put_escaped(char c) {
    const auto add = [this](char byte) { put(byte); };
    json::write_byte(c, add);
  }
  std::size_t size() const { return size_; }
  bool full() const { return size_ > room_.size(); }
  /// Returns the text from `begin` on; empty if the block is full.
  std::string_view from(std::size_t begin) const {
    return full() ? std::string_view() : std::string_view(room_.data() + begin, size_ - begin);
  }
  /// Forgets the text from `size` on.
  void shrink(std::size_t size) { size_ = size; }

 private:
  std::span<char> room_;
  std::size_t size_ = 0;
};

}  // namespace qsf::answers
