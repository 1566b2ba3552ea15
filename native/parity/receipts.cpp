#include "native/parity/receipts.h"

#include <algorithm>
#include <utility>

#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr int kDeepest = 32;  // lists and objects in each other; comparing and copying go as deep

/// Returns the ids in a receipt's field, none if it has no such field; bad_input if they are not ids.
Result<std::vector<std::uint64_t>> ids_of(const Receipt& receipt, const char* field) {
  std::vector<std::uint64_t> ids;
  const auto at = receipt.fields.find(field);
  if (at == receipt.fields.end()) return ids;
  const bool whole = at->is_array() && std::ranges::all_of(*at, [](const Json& id) { return id.is_number_unsigned(); });
  if (!whole) {
    return make_error(ErrorCode::bad_input, "{} has a field {} that is no list of token ids", receipt.name, field);
  }
  for (const Json& id : *at) ids.push_back(id.get<std::uint64_t>());
  return ids;
}

/// Returns a field of a receipt, null if there is none.
Json field(const Json& receipt, const char* name) {
  const auto at = receipt.find(name);
  return at == receipt.end() ? Json() : *at;
}

}  // namespace

Result<Receipt> read_receipt(std::string_view text, std::string name) {
  bool deep = false;
  const Json::parser_callback_t check = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  Json receipt = Json::parse(text, check, false);
  if (!deep && receipt.is_object() && receipt.contains("program") && receipt.contains("answers")) {
    return make_error(ErrorCode::bad_input, "{} has several answers: receipts of one are compared", name);
  }
  // A receipt is of one generation or of a measured text.
  const char* ids = receipt.is_object() && receipt.contains("ids_crc") ? "ids_crc" : "generated_tokens";
  if (deep || !receipt.is_object() || !receipt.contains("program") || !receipt.contains("logits_hash") ||
      !receipt.contains(ids)) {
    return make_error(ErrorCode::bad_input, "{} is no receipt of qsf-run", name);
  }
  return Receipt{std::move(receipt), std::move(name)};
}

Result<Json> compare_receipts(const Receipt& a, const Receipt& b) {
  QSF_LET(ids_a, ids_of(a, "generated_tokens"));
  QSF_LET(ids_b, ids_of(b, "generated_tokens"));
  QSF_TRY(ids_of(a, "prompt_tokens"));
  QSF_TRY(ids_of(b, "prompt_tokens"));
  Steps steps;
  for (std::size_t i = 0; i < std::max(ids_a.size(), ids_b.size()); ++i) {
    steps.add(i < ids_a.size() && i < ids_b.size() && ids_a[i] == ids_b[i]);
  }
  const auto same = [&](const char* name) { return field(a.fields, name) == field(b.fields, name); };
  const bool same_prompt = same("prompt_tokens") && same("ids_crc") && same("window") && same("windows");
  const bool same_logits = same("logits_hash");
  Json out{{"compared", "receipts"}, {"equal", same_prompt && same_logits && !steps.first_divergence}};
  out["same_model"] = field(field(a.fields, "model"), "hash") == field(field(b.fields, "model"), "hash");
  out["same_prompt"] = same_prompt;
  out["same_logits"] = same_logits;
  steps.tell(out);
  const Json of_a = field(a.fields, "perplexity"), of_b = field(b.fields, "perplexity");
  if (of_a.is_number() && of_b.is_number()) {
    out["perplexity_difference"] = of_b.get<double>() - of_a.get<double>();
  }
  return out;
}

}  // namespace qsf::run
