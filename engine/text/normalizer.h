// What is done to a text before it is cut: steps of the TOKN section, each taking characters from the one before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/text/tokenizer.h"
#include "text/normal_forms.h"

namespace qsf {

/// Every step whole and known, at most kMaxSteps.
Status check_normalizer(std::span<const std::byte> steps);

class Normalizer {
 public:
  static constexpr std::size_t kMaxSteps = 8;
  static constexpr std::size_t kMaxText = 16;  // characters of a text that is replaced
  static constexpr std::size_t kMaxMarks = 64;
  static constexpr std::size_t kMaxKey = 64;  // characters of a character map's key

  /// `steps` have passed check_normalizer; `text` is UTF-8.
  Normalizer(std::span<const std::byte> steps, std::string_view text);

  /// The next character; false at the end.
  bool next(char32_t& out) { return pull(n_steps_, out); }
  /// A character has so many marks that their order is not kept in mind: what comes is not the normal form.
  bool failed() const { return failed_; }

 private:
  struct Step {
    NormalizerOp op{};
    std::string_view from, to;
    std::string_view text;  // that `held` counts in
    std::array<char32_t, kMaxMarks + unicode::kMaxDecomposition> queue{};
    std::size_t at = 0, n = 0;  // of the queue
    char32_t held = 0;
    bool holds = false, begun = false;
  };

  bool pull(std::size_t n_steps, char32_t& out);
  bool replace(std::size_t i, char32_t& out);
  bool map(std::size_t i, char32_t& out);
  bool ahead(std::size_t i, std::size_t n);
  static bool take_held(Step& step, char32_t& out);
  bool refill(std::size_t i);
  void order(Step& step, bool composes) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::array<Step, kMaxSteps> steps_{};
  std::size_t n_steps_ = 0;
  bool failed_ = false;
};

}  // namespace qsf
