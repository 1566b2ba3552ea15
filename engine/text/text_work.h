// The bound on the work for one text. Every loop over a text counts its steps here.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "qsf/base/result.h"

namespace qsf {

/// A count of steps of constant time: a character that a step of the normalizer outputs or that a key of a character
/// map includes, a character that a pre-tokenizer examines, a byte in a search of a table, a byte of a run that is
/// merged once. A text of n bytes takes at most kBase + kPerByte * n steps, whatever the file's tables are. Without the
/// bound, a chain of the normalizer's steps, the longest tokens or runs that cannot be cut could take any number. The
/// tokenizers of today's models take up to 30 for a byte.
class TextWork {
 public:
  static constexpr std::uint64_t kBase = 1u << 20;
  static constexpr std::uint64_t kPerByte = 256;

  static constexpr std::uint64_t bound(std::size_t bytes) { return kBase + kPerByte * bytes; }

  /// Bounds the work for a text of `bytes`. `cancel` may be null. It is read every kBetweenLooks steps, so that a short
  /// text is always completed; any thread may set it.
  explicit TextWork(std::size_t bytes, const std::atomic<bool>* cancel = nullptr)
      : bytes_(bytes), most_(bound(bytes)), cancel_(cancel) {}

  /// Counts steps. Returns false if they are too many or the caller cancels, from then on.
  bool spend(std::uint64_t n = 1) {
    done_ += n;
    return done_ < look_at_ || look();
  }
  std::uint64_t done() const { return done_; }
  bool spent() const { return spent_; }

  /// Returns cancelled, or unsupported for too many steps.
  Error error() const {
    if (done_ <= most_) return make_error(ErrorCode::cancelled, "stopped by the caller");
    return make_error(ErrorCode::unsupported,
                      "this tokenizer takes more than {} steps to read a text of {} bytes: its tables make more work "
                      "than any text should",
                      most_, bytes_);
  }

 private:
  static constexpr std::uint64_t kBetweenLooks = 1u << 16;

  bool look() {
    spent_ = spent_ || done_ > most_ || (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed));
    look_at_ = spent_ ? 0 : std::min(done_ + kBetweenLooks, most_ + 1);
    return !spent_;
  }

  std::uint64_t bytes_, most_, done_ = 0;
  std::uint64_t look_at_ = kBetweenLooks;
  const std::atomic<bool>* cancel_;
  bool spent_ = false;
};

}  // namespace qsf
