// A host's view of the machine's memory: when it is short, the policy of a session evicts, and the memory goes back.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "qsf/engine.h"

namespace qsf {

struct MonitorOptions {
  std::uint64_t least = 0;  // available bytes below which memory is short; 0: it is not watched
  std::string root;         // the folder in which Linux's /proc and /sys are; empty: the system's own
  void (*tell)(const std::string& sentence) = nullptr;  // receives what happens, on the thread that steps
};

/// Memory is short if fewer bytes than MonitorOptions::least are available to the process (memory_room), or if all
/// tasks wait for memory during a tenth of the time (memory_pressure).
class MemoryMonitor {
 public:
  /// The fewest positions that it leaves a policy, because texts get much worse with fewer.
  static constexpr std::uint32_t kFewest = 128;

  explicit MemoryMonitor(MonitorOptions options) : options_(std::move(options)) {}
  /// Whether the system states either number.
  bool is_possible() const;
  /// Looks at the memory, a few times a second at most, between two steps of a session with a policy. If it is short,
  /// halves the positions that the policy keeps, and gives the memory of the others back. Then waits until the effect
  /// can be seen.
  void look(Session& session);
  /// Returns how often it has made a policy evict.
  std::uint32_t evictions() const { return evictions_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string shortage() const;
  void tell(const std::string& sentence) const;

  MonitorOptions options_;
  Clock::time_point next_{};               // time of the next look
  std::uint32_t target_ = 0;               // positions that it waits for; 0: none
  std::uint64_t released_ = 0, told_ = 0;  // bytes that were given back, and those that were told
  std::uint32_t evictions_ = 0;
  std::string why_;
  bool at_end_ = false;  // the policy has the fewest positions, and that was told
};

}  // namespace qsf
