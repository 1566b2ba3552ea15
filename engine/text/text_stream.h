// Token bytes in, printable text out: incomplete UTF-8 is held back, and so is what may begin a stop string.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

class TextStream {
 public:
  static constexpr std::size_t kMaxStops = 8;
  static constexpr std::size_t kMaxStopBytes = 64;
  static constexpr std::size_t kMaxTokenBytes = 1024;  // no tokenizer has a longer token

  /// Forgets what came before and copies the stop strings. bad_argument when there are too many, or one is empty or too
  /// long.
  Status begin(std::span<const std::string_view> stops);

  /// Adds a token's bytes, at most kMaxTokenBytes. The view is what may be shown now; it is valid until the next call.
  /// Bytes that can never become valid UTF-8 come out as U+FFFD, one for each maximal subpart. At the first place where
  /// a stop string ends, the text before that stop string (the longest, if several end there) is the last that comes:
  /// stopped() is true and nothing follows. How bytes are cut into pushes makes no difference to the text.
  std::string_view push(std::string_view bytes);
  /// The end: what was held back, an incomplete character as U+FFFD.
  std::string_view finish();
  bool stopped() const { return stopped_; }

 private:
  struct Stop {
    std::array<char, kMaxStopBytes> bytes;
    std::size_t size;
    std::string_view view() const { return {bytes.data(), size}; }
  };

  void add(std::string_view bytes);
  void forget_shown();
  std::string_view show(bool all);

  std::array<Stop, kMaxStops> stops_{};
  std::size_t n_stops_ = 0;
  std::array<char, 4> tail_{};  // the beginning of a character
  std::size_t n_tail_ = 0;
  // Text that the last call showed, then text that is held back. A byte of input gives at most three.
  std::array<char, kMaxStopBytes + 3 * (kMaxTokenBytes + 4)> text_{};
  std::size_t shown_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  // no stop string ends in text_[0, searched_)
  bool stopped_ = false;
};

}  // namespace qsf
