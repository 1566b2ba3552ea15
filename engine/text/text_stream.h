// A stream from tokens' bytes to text that can be shown. It holds back incomplete UTF-8, and text that may begin a stop
// string.
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

  /// Starts a new text and copies the stop strings. Fails with bad_argument if there are too many or one is empty or
  /// too long, and with bad_text if one is not UTF-8, because the text would be cut inside a character.
  Status begin(std::span<const std::string_view> stops);

  /// Adds a token's bytes, at most kMaxTokenBytes, and returns the text that can be shown now, valid until the next
  /// call. Bytes that cannot become valid UTF-8 become U+FFFD, one for each maximal subpart. At the first end of a stop
  /// string, the text before it (of several, the longest) is the last: stopped() becomes true and nothing follows. The
  /// division of bytes into pushes does not change the text. Each byte takes a comparison with at most kMaxStops
  /// strings of kMaxStopBytes, and each push as many as there are bytes held back.
  std::string_view push(std::string_view bytes);
  /// Returns the text held back, with an incomplete character as U+FFFD.
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
  std::array<char, 4> tail_{};  // the beginning of an incomplete character
  std::size_t n_tail_ = 0;
  // The text that the last call showed, then the text held back. A byte of input becomes at most three.
  std::array<char, kMaxStopBytes + 3 * (kMaxTokenBytes + 4)> text_{};
  std::size_t shown_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  // no stop string ends in text_[0, searched_)
  bool stopped_ = false;
};

}  // namespace qsf
