#include "native/run/measure.h"

#include <algorithm>

#include "qsf/base/try.h"

namespace qsf::run {

double Round::prompt_rate() const {
  return static_cast<double>(made.prompt_ids.size()) / std::max(made.prompt_seconds, 1e-9);
}

double Round::generation_rate() const {
  if (made.generated_ids.size() < 2) return 0;
  return static_cast<double>(made.generated_ids.size() - 1) / std::max(made.generation_seconds, 1e-9);
}

Status warm_up(Host& host) {
  QSF_TRY(host.session().preload());
  const Result<Step> step = host.next();
  return step ? Status() : step.error();
}

Result<Round> measure(Host& host, const Prompt& prompt) {
  Session& session = host.session();
  QSF_TRY(session.rewind(0));
  const Stats before = session.stats();
  Result<Generation> made = generate(host, prompt, {});
  if (!made) return made.error();
  if (made->ended == End::cancelled) return make_error(ErrorCode::cancelled, "stopped by the caller");
  const Stats after = session.stats();
  return Round{std::move(*made), after.bytes_read - before.bytes_read, after.experts_chosen - before.experts_chosen,
               after.experts_found - before.experts_found, after.expert_bytes - before.expert_bytes};
}

std::vector<std::uint32_t> filler_tokens(std::uint32_t n, std::uint32_t vocab_size) {
  std::vector<std::uint32_t> ids(n);
  for (std::uint32_t i = 0; i < n; ++i) ids[i] = i * 7 % vocab_size;
  return ids;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace qsf::run
