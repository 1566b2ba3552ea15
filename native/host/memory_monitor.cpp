#include "native/host/memory_monitor.h"

#include <algorithm>
#include <optional>

#include "qsf/base/budget.h"
#include "system/memory.h"

namespace qsf {
namespace {

constexpr std::uint64_t kNotStated = ~std::uint64_t{0};
constexpr std::chrono::milliseconds kInterval{250};  // a look takes about 50 microseconds
constexpr std::chrono::seconds kSettling{10};        // the time that pressure is stated for
constexpr double kMostWaiting = 10;                  // percent; less is usual where files are read faster than cached

}  // namespace

bool MemoryMonitor::is_possible() const {
  return memory_room(options_.root) != kNotStated || memory_pressure(options_.root).has_value();
}

/// Returns the reason why memory is short, as the beginning of a sentence; empty if it is not.
std::string MemoryMonitor::shortage() const {
  const std::uint64_t room = memory_room(options_.root);
  if (room < options_.least) {
    return make_error(ErrorCode::none, "{:.1f} MiB of memory are available, less than {:.1f} MiB", Budget::mib(room),
                      Budget::mib(options_.least))
        .sentence;
  }
  const std::optional<double> waiting = memory_pressure(options_.root);
  if (!waiting || *waiting < kMostWaiting) return {};
  return make_error(ErrorCode::none, "programs wait for memory during {:.0f} % of the time", *waiting).sentence;
}

void MemoryMonitor::tell(const std::string& sentence) const {
  if (options_.tell != nullptr) options_.tell(sentence);
}

void MemoryMonitor::look(Session& session) {
  if (target_ == 0) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + kInterval;
    why_ = shortage();
    if (why_.empty()) return;
    const std::uint32_t kept = session.stats().kv_window;
    target_ = std::max(kept / 2, kFewest);
    if (target_ >= kept) {
      target_ = 0;
      if (!at_end_) {
        tell(why_ +
             make_error(ErrorCode::none, ": the policy keeps {} positions and evicts no more of them", kept).sentence);
      }
      at_end_ = true;
      return;
    }
  }
  const std::uint32_t before = session.stats().kv_window;
  const Result<bool> done = session.shrink(target_);
  if (!done) {
    tell(why_ + ", but " + done.error().sentence);
    target_ = 0;
    next_ = Clock::time_point::max();
    return;
  }
  const std::uint32_t n = session.stats().sequences;
  std::uint64_t unused = 0;
  for (std::uint32_t i = 0; i < n; ++i) unused += session.unused(i).size();
  if (unused != released_) {
    for (std::uint32_t i = 0; i < n; ++i) release_pages(session.unused(i));
    released_ = unused;
  }
  if (!*done) return;
  ++evictions_;
  next_ = Clock::now() + kSettling;
  tell(why_ + make_error(ErrorCode::none,
                         ": the policy keeps {} positions from now on, in place of {}, and {:.1f} MiB are given back",
                         target_, before, Budget::mib(unused - told_))
                  .sentence);
  told_ = unused;
  target_ = 0;
}

}  // namespace qsf
