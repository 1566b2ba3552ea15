#include "native/run/plan_json.h"

namespace qsf::run {

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
          {"kv_window", s.kv_window},
          {"kv_sinks", s.kv_sinks},
          {"kv_chosen", s.kv_chosen},
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
