#include "native/kernel_speeds.h"

#include <algorithm>

#include "native/clock.h"
#include "qsf/base/try.h"
#include "qsf/engine.h"

namespace qsf {
namespace {

constexpr std::size_t kCandidates = 3;  // the last of the instruction sets; others serve processors without these
constexpr int kRounds = 4;              // of which the fastest counts
constexpr double kFaster = 1.05;        // than the last instruction set, or it stays

std::vector<std::string_view> candidates() {
  std::vector<std::string_view> all;
  for (std::size_t i = 0; !instruction_set(i).empty(); ++i) all.push_back(instruction_set(i));
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(all.size(), kCandidates)), all.end()};
}

}  // namespace

Status KernelSpeeds::measure(FormatId format, std::span<std::byte> memory, ThreadPool& pool) {
  if (memory.size() < kWeights || best(format, pool.count()) != nullptr) return {};
  const std::span<std::byte> weights = memory.first(kWeights);
  std::ranges::fill(weights, std::byte{0});
  std::vector<KernelSpeed> found;
  for (const std::string_view isa : candidates()) found.push_back({format, pool.count(), isa, 0});
  for (int round = 0; round < kRounds; ++round) {
    for (KernelSpeed& speed : found) {
      const Clock::time_point begin = Clock::now();
      QSF_LET(bytes, try_product(weights, format, speed.isa, pool.workers()));
      speed.rate = std::max(speed.rate, static_cast<double>(bytes) / std::max(seconds_since(begin), 1e-9));
    }
  }
  all_.insert(all_.end(), found.begin(), found.end());
  return {};
}

const KernelSpeed* KernelSpeeds::best(FormatId format, std::uint32_t threads) const {
  const std::string_view last_isa = candidates().back();
  const KernelSpeed *last = nullptr, *fastest = nullptr;
  for (const KernelSpeed& speed : all_) {
    if (speed.format != format || speed.threads != threads) continue;
    if (speed.isa == last_isa) last = &speed;
    if (fastest == nullptr || speed.rate > fastest->rate) fastest = &speed;
  }
  return last == nullptr || fastest->rate > kFaster * last->rate ? fastest : last;
}

}  // namespace qsf
