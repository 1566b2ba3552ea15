// The tables by which a program's layers know positions: RoPE's frequencies, ALiBi's slopes and buckets of distances.
#include <algorithm>
#include <bit>

#include "model/program.h"
#include "qsf/base/exact.h"
#include "qsf/base/try.h"

namespace qsf {

Status Program::init_ropes(Arena& arena) {
  const auto table_of = [&](const StageProgram& p) {
    const LayerKind& k = *p.kind;
    return RopeTable{
        k.rope_theta, k.rope_dims, k.rope_scaled != 0 && !config_->rope_divisors.empty(), k.rope_scale, {}};
  };
  QSF_TRY(arena.take(ropes_, programs_.size(), Region::tables));
  std::size_t n = 0;
  for (StageProgram& p : programs_) {
    const RopeTable wanted = table_of(p);
    const auto found = std::find(ropes_.begin(), ropes_.begin() + static_cast<std::ptrdiff_t>(n), wanted);
    p.rope = static_cast<std::uint32_t>(found - ropes_.begin());
    if (p.rope < n) continue;
    ropes_[n] = wanted;
    QSF_TRY(arena.take(ropes_[n].frequency, wanted.dims / 2, Region::tables));
    ++n;
  }
  ropes_ = ropes_.first(n);
  set_context(config_->max_seq_len);
  return {};
}

/// Computes the slopes of Press et al., 2021: powers of 2^(-8 / n) if the number n of heads is a power of two. If not,
/// the slopes of the next lower power of two, then every second slope of the next higher one.
Status Program::init_slopes(Arena& arena) {
  for (StageProgram& p : programs_) {
    const LayerKind& kind = *p.kind;
    if (!kind.attends() || kind.alibi == 0) continue;
    std::span<float> slopes;
    QSF_TRY(arena.take(slopes, kind.n_heads, Region::tables));
    const std::uint32_t below = std::bit_floor(kind.n_heads);
    for (std::uint32_t head = 0; head < kind.n_heads; ++head) {
      const double exponent = head < below ? 8.0 * (head + 1) / below : 4.0 * (2 * (head - below) + 1) / below;
      const auto slope = static_cast<float>(exact::pow(2, -exponent));
      slopes[head] = slope * (kind.alibi_scale != 0 ? kind.alibi_scale : scale_of_scores(kind));
    }
    p.slopes = slopes;
  }
  return {};
}

/// Computes the bucket of each distance by Raffel et al., 2020: distances below a quarter of the buckets have one each,
/// and the others share the rest of their half by logarithms. Later positions have the second half.
Status Program::init_buckets(Arena& arena) {
  for (StageProgram& p : programs_) {
    const LayerKind& kind = *p.kind;
    if (!kind.attends() || kind.distance_buckets == 0) continue;
    const std::uint32_t half = kind.distance_buckets / 2, alone = half / 2, reach = kind.bucket_reach;
    std::span<std::uint8_t> buckets;
    QSF_TRY(arena.take(buckets, 2 * std::size_t{reach} + 1, Region::tables));
    // As in Hugging Face's code, logarithms are floats.
    const auto log_of = [&](std::uint32_t far) {
      return static_cast<float>(exact::log(static_cast<double>(far) / alone));
    };
    for (std::uint32_t far = 0; far <= reach; ++far) {
      std::uint32_t bucket = far;
      if (far >= alone) {
        const float share = log_of(far) / log_of(reach) * static_cast<float>(half - alone);
        bucket = std::min(alone + static_cast<std::uint32_t>(share), half - 1);
      }
      buckets[reach - far] = static_cast<std::uint8_t>(bucket);
      if (far != 0) buckets[reach + far] = static_cast<std::uint8_t>(half + bucket);
    }
    p.buckets = buckets;
  }
  return {};
}

void Program::set_context(std::uint32_t max_seq_len) {
  const std::uint32_t from = config_->table.model.long_rope_from;
  for (const RopeTable& rope : ropes_) {
    const std::size_t first = from != 0 && max_seq_len > from ? rope.dims / 2 : 0;
    // As in Hugging Face's code, frequencies and angles are floats. The power itself is exact to double.
    for (std::uint32_t i = 0; i < rope.dims / 2; ++i) {
      const auto frequency = static_cast<float>(exact::pow(rope.theta, -2.0 * i / rope.dims));
      const float divisor = rope.scaled ? config_->rope_divisors[first + i] : 1;
      rope.frequency[i] = divisor < kNotTurned ? frequency / divisor : 0;
    }
  }
}

}  // namespace qsf
