// Any bytes as two receipts, with a form feed between them: nothing may crash, and a receipt equals itself.
#pragma once

#include <cstdlib>
#include <string_view>

#include "native/parity/receipts.h"

namespace qsf::test {

/// Returns whether both are taken and compared.
inline bool fuzz_receipts(std::string_view text) {
  const std::size_t cut = text.find('\f');
  const Result<run::Receipt> a = run::read_receipt(text.substr(0, cut), "a");
  const Result<run::Receipt> b = run::read_receipt(cut == text.npos ? "" : text.substr(cut + 1), "b");
  if (!a && a.error().sentence[0] == 0) std::abort();
  if (!a || !b) return false;
  const Result<run::Json> own = run::compare_receipts(*a, *a);
  if (own && !own->at("equal").get<bool>()) std::abort();
  const Result<run::Json> both = run::compare_receipts(*a, *b);
  return both && !both->dump(1, ' ', false, run::Json::error_handler_t::replace).empty();
}

}  // namespace qsf::test
