#include "stream/plan.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/arena.h"

namespace qsf {
namespace {

constexpr std::uint32_t kDefaultContext = 2048;  // where the caller asks for none and the model allows more
constexpr std::uint32_t kContextFloor = 256;     // the context is cut to this before anything else is given up
constexpr std::uint32_t kWidestChunk = 256;      // that a plan chooses by itself, of what it streams
constexpr std::uint32_t kWidestResident = 128;   // and where everything stays
constexpr std::uint32_t kLastContext = 16;       // and to this before the plan is refused

/// The order of giving up. Every stage first tries to shorten the context down to its floor.
struct Stage {
  KvType kv;  // the coarsest allowed
  std::uint32_t embedding_rows;
  std::uint32_t chunk;
  std::uint32_t ring_slots;
  std::uint32_t floor;
};
constexpr std::array kStages{
    Stage{KvType::f32, 64, 32, 3, kContextFloor},  // one slot in use, two being filled
    Stage{KvType::f16, 64, 32, 3, kContextFloor},
    Stage{KvType::q8, 64, 32, 3, kContextFloor},  // coarser keys and values
    Stage{KvType::q4, 64, 32, 3, kContextFloor},
    Stage{KvType::q2, 64, 32, 3, kContextFloor},
    Stage{KvType::q2, 0, 32, 3, kContextFloor},  // no cache of embedding rows
    Stage{KvType::q2, 0, 8, 2, kContextFloor},   // narrower prefill, plain double buffering
    Stage{KvType::q2, 0, 1, 1, kLastContext},    // no prefetch
};

struct Weights {
  std::uint64_t vectors = 0;
  std::uint64_t matrices = 0;  // what pinning everything takes
  std::uint64_t largest = 0;
  std::uint64_t chosen = 0;  // of the matrices
  std::uint64_t largest_chosen = 0;
  std::uint32_t n_chosen = 0;
};

Weights measure(std::span<const SegmentNeed> segments) {
  Weights w;
  for (const SegmentNeed& s : segments) {
    const std::uint64_t bytes = align_up(s.bytes);
    (s.vectors ? w.vectors : w.matrices) += bytes;
    if (!s.vectors) w.largest = std::max(w.largest, bytes);
    if (!s.chosen) continue;
    w.chosen += bytes;
    w.largest_chosen = std::max(w.largest_chosen, bytes);
    ++w.n_chosen;
  }
  return w;
}

/// Of the types from the finest wanted to the coarsest allowed the one that takes least: of heads of a few values that
/// need not be the coarsest.
KvType smallest_kv(const PlanInput& in, Plan p, KvType coarsest) {
  KvType best = in.finest_kv;
  std::uint64_t least = 0;
  for (auto type = static_cast<std::size_t>(in.finest_kv); type <= static_cast<std::size_t>(coarsest); ++type) {
    p.kv = static_cast<KvType>(type);
    const std::uint64_t bytes = in.measure(p);
    if (p.kv != in.finest_kv && bytes >= least) continue;
    least = bytes;
    best = p.kv;
  }
  return best;
}

/// No more columns than all sequences have positions.
std::uint32_t widest(const PlanInput& in, std::uint32_t chunk, std::uint32_t positions) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk, std::uint64_t{in.sequences} * positions));
}

/// The plan for a context of `positions`: all resident where that fits, else streaming where that does.
std::optional<Plan> with_context(const PlanInput& in, Plan p, std::uint32_t positions) {
  p.max_seq_len = positions;
  p.chunk = in.one_pass ? positions : widest(in, p.chunk, positions);
  Plan resident = p;
  resident.ring_slots = 0;
  resident.embedding_rows = 0;
  for (Plan candidate : {resident, p}) {
    if (candidate.ring_slots == 0 && in.stream_all) continue;
    candidate.total = in.measure(candidate);
    if (candidate.total <= in.budget) return candidate;
  }
  return std::nullopt;
}

/// The longest context in [floor, wish] that fits.
std::optional<Plan> longest(const PlanInput& in, const Plan& p, std::uint32_t floor, std::uint32_t wish) {
  if (std::optional<Plan> whole = with_context(in, p, wish)) return whole;
  if (floor >= wish) return std::nullopt;
  std::optional<Plan> best = with_context(in, p, floor);
  if (!best) return std::nullopt;
  std::uint32_t low = floor, high = wish;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (std::optional<Plan> fits = with_context(in, p, middle)) {
      best = fits;
      low = middle;
    } else {
      high = middle;
    }
  }
  return best;
}

/// What a plan may take to share more: a 32nd of what is left over.
std::uint64_t with_a_32nd(const PlanInput& in, const Plan& p) { return p.total + (in.budget - p.total) / 32; }

/// Columns of a pass share what they choose, and a few columns choose nearly all there is: a chunk twice as wide reads
/// half as much for each, from storage or, where everything stays, from memory. Widens while that takes no more than a
/// 32nd of what is left over.
void widen(const PlanInput& in, const Weights& w, Plan& p) {
  const bool resident = p.ring_slots == 0;
  if (in.chunk != 0 || in.one_pass || in.stream_all || !(resident || w.n_chosen != 0)) return;
  const std::uint64_t most = with_a_32nd(in, p);
  for (Plan wide = p; wide.chunk < (resident ? kWidestResident : kWidestChunk); p = wide) {
    wide.chunk = widest(in, 2 * wide.chunk, wide.max_seq_len);
    wide.total = in.measure(wide);
    if (wide.chunk == p.chunk || wide.total > most) return;
  }
}

/// Tokens of a prompt share the reading of keys and values where there is room for the scores of each. Makes room while
/// that takes no more than a 32nd of what is left over.
void score_more(const PlanInput& in, Plan& p) {
  if (p.ring_slots != 0) return;
  const std::uint64_t most = with_a_32nd(in, p);
  for (Plan more = p; more.scored_tokens < std::min(kMostScored, more.chunk); p = more) {
    more.scored_tokens *= 2;
    more.total = in.measure(more);
    if (more.total > most) return;
  }
}

/// As many slots for chosen segments as `left` bytes hold; gives the bytes that they take.
std::uint64_t add_chosen_slots(const PlanInput& in, const Weights& w, std::uint64_t left, Plan& p) {
  const std::uint64_t without = in.measure(p);
  Plan with = p;
  with.chosen_slot_bytes = w.largest_chosen;
  const auto bytes = [&](std::uint32_t slots) {
    with.chosen_slots = slots;
    return in.measure(with) - without;
  };
  std::uint32_t fits = 0, beyond = w.n_chosen + 1;
  while (beyond - fits > 1) {
    const std::uint32_t middle = fits + (beyond - fits) / 2;
    (bytes(middle) <= left ? fits : beyond) = middle;
  }
  if (fits == 0) return 0;
  const std::uint64_t taken = bytes(fits);
  p = with;
  return taken;
}

/// Pins what every pass uses, evenly spread first, then whatever still fits; gives its bytes.
std::uint64_t pin_evenly(const PlanInput& in, const Weights& w, const Plan& p, std::uint64_t left,
                         std::span<bool> pinned) {
  const auto bytes = [&](std::size_t i) { return align_up(in.segments[i].bytes); };
  const auto pins = [&](std::size_t i) { return !pinned[i] && !in.segments[i].lookup && !in.segments[i].chosen; };
  std::uint64_t used = 0, target = 0;
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    pinned[i] = in.segments[i].vectors || p.ring_slots == 0;
    if (!pins(i)) continue;
    target += bytes(i);  // pinned bytes keep below target * left / what could be pinned
    if (static_cast<double>(used + bytes(i)) * static_cast<double>(w.matrices - w.chosen) <=
        static_cast<double>(target) * static_cast<double>(left)) {
      pinned[i] = true;
      used += bytes(i);
    }
  }
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    if (!pins(i) || used + bytes(i) > left) continue;
    pinned[i] = true;
    used += bytes(i);
  }
  return used;
}

/// Spends what is left over: on pinning, on slots for what is chosen, on pinning look-ups.
void pin_rest(const PlanInput& in, const Weights& w, Plan& p, std::span<bool> pinned) {
  const std::uint64_t left = in.stream_all ? 0 : in.budget - p.total;
  std::uint64_t used = pin_evenly(in, w, p, left, pinned);
  std::uint64_t slots = 0;
  if (p.ring_slots != 0 && w.n_chosen != 0) {
    slots = add_chosen_slots(in, w, left - used, p);
    used = pin_evenly(in, w, p, left, pinned);  // measuring may use `pinned`
  }
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    const std::uint64_t bytes = align_up(in.segments[i].bytes);
    if (pinned[i] || !in.segments[i].lookup || used + slots + bytes > left) continue;
    pinned[i] = true;
    used += bytes;
  }
  p.total += used + slots;
  p.pinned_bytes = w.vectors + (p.ring_slots == 0 ? w.matrices : used);
}

std::uint64_t resident_budget(const PlanInput& in, Plan p) {
  p.ring_slots = p.chosen_slots = p.embedding_rows = 0;
  return in.measure(p);
}

/// What a plan promises: of those that are pinned nothing is read, of slots for chosen segments as much as they hold.
void expect(const PlanInput& in, const Weights& w, std::span<const bool> pinned, Plan& p) {
  const double kept = w.n_chosen == 0 ? 0 : std::min(1.0, static_cast<double>(p.chosen_slots) / w.n_chosen);
  p.bytes_read = p.bytes_computed = 0;
  double streamed = 0, n_streamed = 0;  // segments, in bytes of the ring
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    const SegmentNeed& s = in.segments[i];
    p.bytes_computed += static_cast<double>(s.computed);
    if (pinned[i]) continue;
    p.bytes_read += static_cast<double>(s.read) * (s.chosen ? 1 - kept : 1);
    if (s.lookup) continue;
    streamed += static_cast<double>(align_up(s.bytes));
    ++n_streamed;
  }
  const double slots = p.ring_slots, ring = slots * static_cast<double>(p.slot_bytes);
  const double held = streamed > 0 ? std::min(ring * n_streamed / streamed, slots * kPlacesOfSlot) : slots;
  p.rate = expected_rate(in.speed, p.bytes_read, p.bytes_computed, held);
  p.resident_rate = expected_rate(in.speed, 0, p.bytes_computed, 0);
}

}  // namespace

double expected_rate(const Speed& speed, double bytes_read, double bytes_computed, double segments_in_ring) {
  if (speed.compute <= 0 || (speed.read <= 0 && bytes_read > 0)) return 0;
  const double computing = bytes_computed / speed.compute;
  const double reading = bytes_read > 0 ? bytes_read / speed.read : 0;
  const double together = segments_in_ring <= 0 ? 0 : std::min(computing, reading) / segments_in_ring;
  const double seconds = std::max(computing, reading) + together;
  return seconds > 0 ? 1 / seconds : 0;
}

Result<Plan> make_plan(const PlanInput& in, std::span<bool> pinned) {
  const Weights w = measure(in.segments);
  std::uint32_t wish = in.max_seq_len != 0 ? in.max_seq_len : std::min(in.model_seq_len, kDefaultContext);
  if (in.one_pass && in.chunk != 0) {
    if (in.chunk < in.max_seq_len) {
      return make_error(ErrorCode::bad_argument,
                        "chunk is {}, but a text is one pass in this model: it must be the context's {}", in.chunk,
                        in.max_seq_len);
    }
    wish = std::min(wish, in.chunk);
  }

  Plan smallest;
  for (const Stage& stage : kStages) {
    const std::uint32_t floor = in.max_seq_len != 0 ? wish : std::min(wish, stage.floor);
    Plan p;
    p.embedding_rows = stage.embedding_rows;
    p.chunk = in.chunk != 0 ? in.chunk : stage.chunk;
    p.ring_slots = in.ring_slots != 0 ? in.ring_slots : stage.ring_slots;
    p.slot_bytes = w.largest;
    p.max_seq_len = floor;
    if (in.one_pass) p.chunk = floor;
    p.kv = in.kv >= 0 ? static_cast<KvType>(in.kv) : smallest_kv(in, p, stage.kv);
    if (std::optional<Plan> fits = longest(in, p, floor, wish)) {
      fits->resident_budget = resident_budget(in, *fits);  // before pinning: measuring may use `pinned`
      widen(in, w, *fits);
      score_more(in, *fits);
      pin_rest(in, w, *fits, pinned);
      expect(in, w, pinned, *fits);
      return *fits;
    }
    smallest = p;
    smallest.chunk = widest(in, p.chunk, floor);
  }
  const double mib = 1024.0 * 1024.0;
  smallest.resident_budget = resident_budget(in, smallest);
  const std::uint64_t least = in.measure(smallest);
  for (std::size_t i = 0; i < in.segments.size(); ++i) pinned[i] = in.segments[i].vectors;
  expect(in, w, pinned, smallest);
  const Error refusal = make_error(
      ErrorCode::budget_too_small,
      "this model needs at least {:.2f} MiB (context {}, {} KV cache, {} slot{} of {:.2f} MiB), and the "
      "budget is {:.2f} MiB; with {:.2f} MiB everything stays",
      static_cast<double>(least) / mib + 0.005, smallest.max_seq_len, kKvNames[static_cast<std::size_t>(smallest.kv)],
      smallest.ring_slots, smallest.ring_slots == 1 ? "" : "s", static_cast<double>(w.largest) / mib,
      static_cast<double>(in.budget) / mib, static_cast<double>(smallest.resident_budget) / mib + 0.005);
  if (smallest.rate <= 0) return refusal;
  return make_error(ErrorCode::budget_too_small, "{}: about {:.1f} tokens/s instead of {:.1f}",
                    std::string_view(refusal.sentence), smallest.resident_rate, smallest.rate);
}

}  // namespace qsf
