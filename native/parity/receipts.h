// Receipts of qsf-run, compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qsf/base/result.h"

namespace qsf::run {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxReceiptBytes = 64u << 20;

/// The comparison of two lists, step by step.
struct Steps {
  std::uint64_t n = 0, same = 0;
  std::optional<std::uint64_t> first_divergence;

  void add(bool equal) {
    if (equal) ++same;
    if (!equal && !first_divergence) first_divergence = n;
    ++n;
  }
  void tell(Json& to) const {
    to["steps"] = n;
    to["exact_match_rate"] = n == 0 ? 1.0 : static_cast<double>(same) / static_cast<double>(n);
    to["first_divergence_step"] = first_divergence ? Json(*first_divergence) : Json();
  }
};

/// A receipt's text as an object with the fields that a comparison needs. `name` is for error sentences.
struct Receipt {
  Json fields;
  std::string name;
};

/// Returns bad_input if the text is no receipt.
Result<Receipt> read_receipt(std::string_view text, std::string name);

/// Returns the comparison of the ids, the model, the prompt, the logits and the perplexity. Returns bad_input if a list
/// of token ids has anything else.
Result<Json> compare_receipts(const Receipt& a, const Receipt& b);

}  // namespace qsf::run
