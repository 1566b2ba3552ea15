// The changes to a text before it is cut: the steps of the TOKN section, each of which takes its characters from the
// previous one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/text/tokenizer.h"
#include "text/clusters.h"
#include "text/normal_forms.h"
#include "text/text_work.h"

namespace qsf {

/// Checks that every step is complete and known, and that there are at most kMaxSteps. Fails with bad_tokenizer or
/// unsupported.
Status check_normalizer(std::span<const std::byte> steps);

/// Whether the steps make `form` of the text. False also if the work is spent, or if the text has no normal form.
bool has_form(std::span<const std::byte> steps, std::string_view text, std::string_view form, TextWork& work);

/// Whether the steps do not change the text.
inline bool is_normal(std::span<const std::byte> steps, std::string_view text, TextWork& work) {
  return steps.empty() || has_form(steps, text, text, work);
}

class Normalizer {
 public:
  static constexpr std::size_t kMaxSteps = 8;
  static constexpr std::size_t kMaxText = 16;  // characters of the text that a step replaces
  static constexpr std::size_t kMaxMarks = 64;
  static constexpr std::size_t kMaxKey = 64;       // characters in a key of a character map
  static constexpr std::size_t kShortCluster = 5;  // bytes of a grapheme cluster that cluster_map replaces as a whole

  /// `steps` must have passed check_normalizer; `text` must be UTF-8. All arguments must outlive this object. Counts
  /// steps in `work`, because each step can make any number of characters of one, or drop any number of them.
  Normalizer(std::span<const std::byte> steps, std::string_view text, TextWork& work);

  /// Reads the next character. Returns false at the end, or if the work is spent.
  bool next(char32_t& out) { return pull(n_steps_, out); }
  /// Whether a character has more marks than the queue can sort. The characters are then not the normal form.
  bool failed() const { return failed_; }

 private:
  static constexpr std::size_t kQueue = kMaxMarks + unicode::kMaxDecomposition;

  struct Step {
    NormalizerOp op{};
    std::string_view from, to;
    std::string_view text;  // in which `held` is an offset
    std::array<char32_t, kQueue> queue{};
    std::size_t at = 0, n = 0;  // next and end in the queue
    char32_t held = 0;          // also the last character that join_spaces read
    bool holds = false, begun = false;
    Clusters clusters;  // of the characters that cluster_map has read
  };

  bool pull(std::size_t n_steps, char32_t& out);
  bool prepend(std::size_t i, char32_t& out);
  bool replace(std::size_t i, char32_t& out);
  bool map(std::size_t i, char32_t& out);
  std::size_t matched_key(std::size_t i, std::size_t n);
  std::size_t short_cluster(std::size_t i);
  bool ahead(std::size_t i, std::size_t n);
  static bool hold(Step& step, std::string_view text, char32_t& out);
  static bool take_held(Step& step, char32_t& out);
  bool take_queued(std::size_t i, char32_t& out);
  bool refill(std::size_t i);
  void order(Step& step, bool composes) const;

  std::string_view text_;
  TextWork& work_;
  std::size_t at_ = 0;
  std::array<Step, kMaxSteps> steps_{};
  std::size_t n_steps_ = 0;
  bool failed_ = false;
};

}  // namespace qsf
