#include "model/state.h"

namespace qsf {

StateRun run_of_state(const Pass& pass, std::uint32_t first, std::uint32_t most) {
  const std::span<const Column> columns = pass.columns();
  const Column& column = columns[first];
  const auto continues = [&](std::uint32_t t) {
    return columns[t].sequence == column.sequence && columns[t].guess == column.guess;
  };
  const StateMemory memory = pass.memory().state(column.sequence, pass.stage(), column.guess);
  StateRun run{1, memory.before, memory.now};
  while (run.n < most && first + run.n < columns.size() && continues(first + run.n)) ++run.n;
  if (first > 0 && continues(first - 1)) run.before = run.now;
  return run;
}

}  // namespace qsf
