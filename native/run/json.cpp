#include "native/run/json.h"

#include "native/cli/input.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr int kDeepest = 200;  // lists and objects in each other

}  // namespace

Result<Json> read_json(const std::string& path, std::size_t limit, std::string_view option, std::string_view instead) {
  QSF_LET(text, read_text(path, limit, option));
  bool deep = false;
  const Json::parser_callback_t check = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  Json read = Json::parse(text, check, false);
  if (deep) return make_error(ErrorCode::bad_input, "{} has lists in each other, more than {} deep", path, kDeepest);
  if (read.is_discarded()) return make_error(ErrorCode::bad_input, "{} is not {}", path, instead);
  return read;
}

Json plan_of(const Session& session) {
  const Stats s = session.stats();
  Json map = Json::object();
  for (const MemoryRegion& region : session.memory_map()) map[std::string(region_name(region.region))] = region.bytes;
  return {{"budget", s.budget},
          {"max_seq_len", s.max_seq_len},
          {"context_reason", s.context_reason},
          {"chunk", s.chunk},
          {"kv", kv_name(s.kv)},
          {"kv_reason", s.kv_reason},
          {"warning", s.warning},
          {"segments", s.n_segments},
          {"pinned_segments", s.n_pinned},
          {"weight_bytes", s.weight_bytes},
          {"pinned_bytes", s.pinned_bytes},
          {"ring_slots", s.ring_slots},
          {"ring_bytes", s.ring_bytes},
          {"token_bytes", s.token_bytes},
          {"token_rate", s.token_rate},
          {"resident_budget", s.resident_budget},
          {"resident_rate", s.resident_rate},
          {"memory_map", std::move(map)}};
}

}  // namespace qsf::run
