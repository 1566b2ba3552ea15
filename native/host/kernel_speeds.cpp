#include "native/host/kernel_speeds.h"

#include <algorithm>

#include "native/sources/clock.h"
#include "qsf/base/try.h"
#include "qsf/engine.h"
#include "system/caches.h"

namespace qsf {
namespace {

constexpr std::size_t kCandidates = 3;  // the last instruction sets; others are for processors without these
constexpr int kRounds = 4, kMostRounds = 12;
constexpr double kEnough = 0.3;   // seconds
constexpr double kAgree = 0.95;   // ratio of rates that count as the same
constexpr double kFaster = 1.05;  // ratio to the rate of the last instruction set, which otherwise stays

std::vector<std::string_view> candidates() {
  const std::vector<std::string_view> all = instruction_sets();
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(all.size(), kCandidates)), all.end()};
}

}  // namespace

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> all;
  for (std::size_t i = 0; !instruction_set(i).empty(); ++i) all.push_back(instruction_set(i));
  return all;
}

Result<double> product_rate(std::span<std::byte> weights, FormatId format, Batch batch, std::string_view isa,
                            ThreadPool& pool) {
  if (batch == Batch::one) drop_cached(weights);
  const Clock::time_point begin = Clock::now();
  QSF_LET(bytes, try_product(weights, format, batch, isa, pool.workers()));
  return static_cast<double>(bytes) / std::max(seconds_since(begin), 1e-9);
}

void KernelSpeed::saw(double seen) {
  settled = seen > rate ? rate >= kAgree * seen : settled || seen >= kAgree * rate;
  rate = std::max(rate, seen);
}

KernelSpeed& KernelSpeeds::of(FormatId format, Batch batch, std::uint32_t threads, std::string_view isa) {
  for (KernelSpeed& speed : all_) {
    if (speed.format == format && speed.batch == batch && speed.threads == threads && speed.isa == isa) return speed;
  }
  return all_.emplace_back(KernelSpeed{format, batch, threads, isa});
}

Result<bool> KernelSpeeds::measure(FormatId format, Batch batch, std::span<std::byte> memory, ThreadPool& pool) {
  if (memory.size() < kWeights || best(format, batch, pool.count()) != nullptr) return false;
  const std::span<std::byte> weights =
      memory.first(batch == Batch::one ? kWeights : std::min(kWeights, pool.count() * kPromptWeights));
  std::ranges::fill(weights, std::byte{0});
  const Clock::time_point begin = Clock::now();
  bool settled = false;
  for (int round = 0; round < kMostRounds && (!settled || round < kRounds) && seconds_since(begin) < kEnough; ++round) {
    settled = true;
    for (const std::string_view isa : candidates()) {
      QSF_LET(rate, product_rate(weights, format, batch, isa, pool));
      KernelSpeed& speed = of(format, batch, pool.count(), isa);
      speed.saw(rate);
      settled = settled && speed.settled;
    }
  }
  return true;
}

const KernelSpeed* KernelSpeeds::best(FormatId format, Batch batch, std::uint32_t threads) const {
  const std::string_view last_isa = candidates().back();
  const KernelSpeed *last = nullptr, *fastest = nullptr;
  for (const KernelSpeed& speed : all_) {
    if (speed.format != format || speed.batch != batch || speed.threads != threads) continue;
    if (!speed.settled) return nullptr;
    if (speed.isa == last_isa) last = &speed;
    if (fastest == nullptr || speed.rate > fastest->rate) fastest = &speed;
  }
  return last == nullptr || fastest->rate > kFaster * last->rate ? fastest : last;
}

}  // namespace qsf
