#include "stream/plan.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/arena.h"

namespace qsf {
namespace {

constexpr std::uint32_t kLeastContext = 256;  // positions that a plan keeps before all else: a question and its answer
constexpr std::uint32_t kLastContext = 16;    // positions; with room for fewer, a plan is refused
constexpr std::uint64_t kContextShare = 16;   // a context takes, and adds to reading, a 16th of the weights
constexpr std::uint32_t kMostBeforeWeights = 2048;  // positions; the context grows further once all weights stay
constexpr std::uint32_t kWidestChunk = 256;         // columns; the widest chunk that a plan chooses if it streams
constexpr std::uint32_t kWidestResident = 128;      // and if everything is resident

/// A set of reductions. The sets are tried in order, once the context is at its least.
struct Reduction {
  std::uint32_t embedding_rows;
  std::uint32_t chunk;  // at least PlanInput::columns; 0: one column, whatever these are
  std::uint32_t ring_slots;
};
constexpr std::array kReductions{
    Reduction{64, 32, 3},  // one slot in use, two being filled
    Reduction{0, 32, 3},   // no cache of embedding rows
    Reduction{0, 8, 2},    // narrower prefill, plain double buffering
    Reduction{0, 1, 1},    // no prefetch
    Reduction{0, 0, 1},    // no column for each sequence
};

/// The types that a plan chooses without a wish, in the order of their measured loss, and of their bits if losses are
/// equal: docs/notes/2026-11-28-keys-and-values.md. 3 and 2 bits cost more quality than a shorter context.
constexpr std::array kByLoss{KvType::f32, KvType::f16, KvType::q8, KvType::k8v4, KvType::k4v4, KvType::q4};

/// Returns a type and those of more loss.
std::span<const KvType> from(KvType type) { return {std::ranges::find(kByLoss, type), kByLoss.end()}; }

struct Weights {
  std::uint64_t vectors = 0;
  std::uint64_t matrices = 0;  // buffer bytes of all matrices
  std::uint64_t largest = 0;
  std::uint64_t chosen = 0;  // part of `matrices`: segments that passes select
  std::uint64_t largest_chosen = 0;
  std::uint32_t n_chosen = 0;

  std::uint64_t all() const { return vectors + matrices; }
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

/// Returns the chunk, limited to the number of positions of all sequences.
std::uint32_t widest(const PlanInput& in, std::uint32_t chunk, std::uint32_t positions) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk, std::uint64_t{in.sequences} * positions));
}

/// Returns the plan with all weights resident.
Plan resident(Plan p) {
  p.ring_slots = p.embedding_rows = 0;
  return p;
}

/// Returns the plan with a context of `positions`, measured.
Plan measured(const PlanInput& in, const Measure& bytes, Plan p, std::uint32_t positions) {
  p.max_seq_len = positions;
  p.chunk = in.one_pass ? positions : widest(in, p.chunk, positions);
  p.total = bytes(p);
  return p;
}

/// Returns the plan for a context of `positions`: resident if that fits, else streaming if that fits.
std::optional<Plan> with_context(const PlanInput& in, const Plan& p, std::uint32_t positions) {
  for (const Plan& stage : {resident(p), p}) {
    if (stage.ring_slots == 0 && in.stream_all) continue;
    const Plan candidate = measured(in, in.measure, stage, positions);
    if (candidate.total <= in.budget.bytes()) return candidate;
  }
  return std::nullopt;
}

/// Returns the largest number in [low, high] that fits. `low` must fit.
template <class Fits>
std::uint32_t most_positions(std::uint32_t low, std::uint32_t high, Fits fits) {
  if (low >= high || fits(high)) return high;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// Returns the plan with the longest context in [floor, wish] that fits.
std::optional<Plan> longest(const PlanInput& in, const Plan& p, std::uint32_t floor, std::uint32_t wish) {
  std::optional<Plan> best = with_context(in, p, floor);
  if (!best) return best;
  most_positions(floor, wish, [&](std::uint32_t positions) {
    std::optional<Plan> fits = with_context(in, p, positions);
    if (fits) best = fits;
    return fits.has_value();
  });
  return best;
}

/// Returns the streaming plan of a set of reductions, without a context.
Plan begin(const PlanInput& in, const Weights& w, KvType kv, const Reduction& reduction) {
  Plan p;
  p.kv = kv;
  p.embedding_rows = in.keeps_rows ? reduction.embedding_rows : 0;
  p.chunk = in.chunk != 0 ? in.chunk : reduction.chunk != 0 ? std::max(reduction.chunk, in.columns) : 1;
  p.ring_slots = in.ring_slots != 0 ? in.ring_slots : reduction.ring_slots;
  p.slot_bytes = w.largest;
  return p;
}

/// Returns the smaller of two plans, streaming and resident.
Plan smallest(const PlanInput& in, const Measure& bytes, const Plan& p, std::uint32_t positions) {
  const Plan streaming = measured(in, bytes, p, positions);
  if (in.stream_all) return streaming;
  const Plan whole = measured(in, bytes, resident(p), positions);
  return whole.total < streaming.total ? whole : streaming;
}

/// A type of keys and values, and the budgets that choose it: from <= budget < below.
struct Precision {
  KvType type;
  std::uint64_t from, below;
};
constexpr std::uint64_t kAnyBudget = ~std::uint64_t{0};

/// The types that budgets choose, by loss. A budget chooses the one of least loss with which a plain session has room
/// for `positions`, or else the smallest.
class Precisions {
 public:
  Precisions(const PlanInput& in, std::uint32_t positions) {
    if (in.kv >= 0) {
      all_[n_++] = {static_cast<KvType>(in.kv), 0, kAnyBudget};
      return;
    }
    PlanInput plain = in;
    plain.sequences = plain.columns = 1;
    plain.chunk = plain.ring_slots = 0;
    plain.stream_all = false;
    std::uint64_t least = kAnyBudget;
    for (const KvType type : from(in.finest_kv)) {
      const Plan p = begin(plain, {}, type, kReductions.back());
      const std::uint64_t bytes = smallest(plain, in.plain, p, positions).total;
      if (bytes >= least) continue;  // with few values in a head or positions, a coarser type can take more bytes
      all_[n_++] = {type, bytes, least};
      least = bytes;
    }
    finest_budget_ = all_.front().from;
    all_[n_ - 1].from = 0;
  }

  /// Returns the least budget that chooses the finest type.
  std::uint64_t finest_budget() const { return finest_budget_; }
  KvType of(std::uint64_t budget) const {
    return std::ranges::find_if(all(), [&](const Precision& p) { return p.from <= budget; })->type;
  }
  /// Returns the plan of the least budget above `above`, out of those that `make` returns for each type. Its total is
  /// that budget.
  template <class Make>
  Plan least(std::uint64_t above, Make make) const {
    Plan found;
    found.total = kAnyBudget;
    for (const Precision& precision : all()) {
      if (precision.below <= above) continue;
      Plan p = make(precision.type);
      p.total = std::max(p.total, precision.from);
      if (p.total > above && p.total < precision.below && p.total < found.total) found = p;
    }
    return found;
  }

 private:
  std::span<const Precision> all() const { return std::span(all_).first(n_); }

  std::array<Precision, kKvNames.size()> all_{};
  std::size_t n_ = 0;
  std::uint64_t finest_budget_ = 0;
};

/// Returns the number of positions in [least, most] that takes a sixteenth of `bytes`, at most kMostBeforeWeights or
/// `least`.
std::uint32_t usual_context(const PlanInput& in, KvType kv, std::uint64_t bytes, std::uint32_t least,
                            std::uint32_t most) {
  most = std::min(most, std::max(least, kMostBeforeWeights));
  if (least >= most) return most;
  Plan p;
  p.kv = kv;
  p.chunk = 1;
  const auto takes = [&](std::uint32_t positions) { return measured(in, in.measure, p, positions).total; };
  const std::uint64_t room = takes(1) + bytes / kContextShare;
  return most_positions(least, most, [&](std::uint32_t positions) { return takes(positions) <= room; });
}

/// Lengths of a context, ascending: before a refusal, before coarser keys and values, while weights are streamed, at
/// most.
struct Contexts {
  std::uint32_t last, least, usual, most;
};

/// Returns the plan's total and a 32nd of the rest of the budget, which a plan may take to share more.
std::uint64_t with_a_32nd(const PlanInput& in, const Plan& p) { return p.total + (in.budget.bytes() - p.total) / 32; }

/// Widens passes while that takes at most a 32nd of the rest of the budget. A few columns select nearly all experts and
/// share them, so a chunk twice as wide reads half as much for each, from storage or, in a resident plan, from memory.
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

/// Makes room for more scores, up to `most` bytes of the plan. Tokens with room for their scores share the reading of
/// keys and values.
void score_more(const PlanInput& in, std::uint64_t most, Plan& p) {
  for (Plan more = p; more.scored_tokens < std::min(kMostScored, more.chunk); p = more) {
    more.scored_tokens *= 2;
    more.total = in.measure(more);
    if (more.total > most) return;
  }
}

/// Spends the rest of the budget on a context of up to `longest` positions; in a resident plan, on wider passes first
/// and on scores last. A 32nd is reserved for each of the two, even if they use less, so that more memory never
/// shortens a context.
void lengthen(const PlanInput& in, const Weights& w, std::uint32_t longest, Plan& p) {
  const std::uint64_t share = p.ring_slots == 0 ? with_a_32nd(in, p) - p.total : 0;
  const Plan narrow = p;
  widen(in, w, p);
  const std::uint64_t of_scores = share == 0 ? 0 : with_a_32nd(in, p) - p.total;
  Plan wide = p;
  if (in.chunk != 0) wide.chunk = in.chunk;
  p.max_seq_len = most_positions(p.max_seq_len, longest, [&](std::uint32_t positions) {
    return measured(in, in.measure, narrow, positions).total + 2 * share <= in.budget.bytes() &&
           measured(in, in.measure, wide, positions).total + share <= in.budget.bytes();
  });
  p = measured(in, in.measure, wide, p.max_seq_len);
  if (of_scores != 0) score_more(in, p.total + of_scores, p);
}

/// Adds as many expert slots as fit in `left` bytes. Returns the bytes that they take.
std::uint64_t add_expert_slots(const PlanInput& in, const Weights& w, std::uint64_t left, Plan& p) {
  const std::uint64_t without = in.measure(p);
  Plan with = p;
  with.expert_slot_bytes = w.largest_chosen;
  const auto bytes = [&](std::uint32_t slots) {
    with.expert_slots = slots;
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

/// Pins segments that every pass uses: first those with several uses, then segments at even distances, then any that
/// fit. Returns their bytes.
std::uint64_t pin_evenly(const PlanInput& in, const Weights& w, const Plan& p, std::uint64_t left,
                         std::span<bool> pinned) {
  const auto bytes = [&](std::size_t i) { return align_up(in.segments[i].bytes); };
  const auto pins = [&](std::size_t i) {
    const SegmentNeed& need = in.segments[i];
    return !pinned[i] && !need.lookup && !need.chosen && !need.unused;
  };
  std::uint64_t used = 0, target = 0;
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    pinned[i] = in.segments[i].vectors || (p.ring_slots == 0 && !in.segments[i].unused);
    if (!pins(i) || in.segments[i].uses < 2 || used + bytes(i) > left) continue;
    pinned[i] = true;
    used += bytes(i);
  }
  const std::uint64_t before = used;
  const auto could = static_cast<double>(w.matrices - w.chosen - before), rest = static_cast<double>(left - before);
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    if (!pins(i)) continue;
    target += bytes(i);  // pinned bytes stay below target * rest / could
    if (static_cast<double>(used - before + bytes(i)) * could <= static_cast<double>(target) * rest) {
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

/// Spends the rest of the budget: on pinning, on expert slots, on pinning look-ups.
void pin_rest(const PlanInput& in, const Weights& w, Plan& p, std::span<bool> pinned) {
  const std::uint64_t left = in.stream_all ? 0 : in.budget.bytes() - p.total;
  std::uint64_t used = pin_evenly(in, w, p, left, pinned);
  const bool keeps_chosen = p.ring_slots != 0 && w.n_chosen != 0;
  const std::uint64_t slots = keeps_chosen ? add_expert_slots(in, w, left - used, p) : 0;
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    const std::uint64_t bytes = align_up(in.segments[i].bytes);
    if (pinned[i] || !in.segments[i].lookup || used + slots + bytes > left) continue;
    pinned[i] = true;
    used += bytes;
  }
  p.total += used + slots;
  p.pinned_bytes = w.vectors + (p.ring_slots == 0 ? w.matrices : used);
}

/// Returns the least budget of a resident plan, with the context and precision of `p` if that is resident, else with
/// those that such a budget chooses.
std::uint64_t resident_budget(const PlanInput& in, const Weights& w, const Contexts& contexts,
                              const Precisions& precisions, Plan p) {
  if (p.ring_slots == 0) {
    p.scored_tokens = kFewestScored;
    if (in.chunk == 0) p.chunk = std::min(p.chunk, kReductions.front().chunk);
    return measured(in, in.measure, p, p.max_seq_len).total;
  }
  const auto usual = [&](KvType kv) {
    const std::uint32_t positions = usual_context(in, kv, w.all(), contexts.least, contexts.most);
    return measured(in, in.measure, resident(begin(in, w, kv, kReductions.front())), positions);
  };
  return precisions.least(in.stream_all ? 0 : in.budget.bytes(), usual).total;
}

/// Fills in the expected bytes and rates. Pinned segments are not read, and expert slots save the share of experts'
/// segments that they have room for.
template <class Pinned>
void expect(const PlanInput& in, const Weights& w, Pinned is_pinned, Plan& p) {
  const double kept = w.n_chosen == 0 ? 0 : std::min(1.0, static_cast<double>(p.expert_slots) / w.n_chosen);
  p.bytes_read = p.bytes_computed = 0;
  double streamed = 0, n_streamed = 0;  // uses of streamed segments: bytes in the ring, and number
  for (std::size_t i = 0; i < in.segments.size(); ++i) {
    const SegmentNeed& s = in.segments[i];
    p.bytes_computed += static_cast<double>(s.computed);
    if (is_pinned(i)) continue;
    p.bytes_read += static_cast<double>(s.read) * s.uses * (s.chosen ? 1 - kept : 1);
    if (s.lookup) continue;
    streamed += static_cast<double>(align_up(s.bytes)) * s.uses;
    n_streamed += s.uses;
  }
  const double slots = p.ring_slots, ring = slots * static_cast<double>(p.slot_bytes);
  const double held = streamed > 0 ? std::min(ring * n_streamed / streamed, slots * kPlacesOfSlot) : slots;
  p.rate = expected_rate(in.speed, p.bytes_read, p.bytes_computed, held);
  p.resident_rate = expected_rate(in.speed, 0, p.bytes_computed, 0);
}

Why context_why(const PlanInput& in, const Contexts& contexts, const Plan& p) {
  if (in.max_seq_len != 0 || (in.one_pass && in.chunk != 0)) return Why::asked;
  if (p.max_seq_len == in.model_seq_len) return Why::model;
  const bool pins = p.ring_slots != 0 && !in.stream_all;
  return pins && p.max_seq_len == contexts.usual ? Why::weights : Why::budget;
}

/// Returns the error for keys and values of type `kv`, if no plan with them fits.
Error refusal(const PlanInput& in, const Weights& w, const Contexts& contexts, const Precisions& precisions,
              KvType kv) {
  const auto last = [&](KvType type) {
    return smallest(in, in.measure, begin(in, w, type, kReductions.back()), contexts.last);
  };
  Plan least = precisions.least(in.budget.bytes(), last);
  least.resident_budget = resident_budget(in, w, contexts, precisions, last(least.kv));
  expect(in, w, [&](std::size_t i) { return in.segments[i].vectors; }, least);
  const Error why =
      make_error(ErrorCode::none, " (context {}, {} KV cache, {} slot{} of {:.2f} MiB)", least.max_seq_len,
                 kv_name(least.kv), least.ring_slots, least.ring_slots == 1 ? "" : "s", Budget::mib(w.largest));
  Error sentence = make_error(ErrorCode::budget_too_small, "{}; with {:.2f} MiB everything stays",
                              in.budget.refusal("this model", least.total, why.sentence).sentence,
                              Budget::enough_mib(least.resident_budget));
  if (least.rate > 0) {
    sentence = make_error(ErrorCode::budget_too_small, "{}: about {:.1f} tokens/s instead of {:.1f}",
                          std::string_view(sentence.sentence), least.resident_rate, least.rate);
  }
  for (const KvType type : from(kv)) {
    if (type == kv || last(type).total > in.budget.bytes()) continue;
    return make_error(ErrorCode::budget_too_small, "{}; keys and values in {} would fit",
                      std::string_view(sentence.sentence), kv_name(type));
  }
  return sentence;
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

std::string_view context_reason(Why why) {
  constexpr std::array<std::string_view, 4> kReasons{"as asked for", "the model's own",
                                                     "no longer while weights are streamed", "all that fits"};
  return kReasons[static_cast<std::size_t>(why)];
}

std::string_view kv_reason(Why why) {
  constexpr std::array<std::string_view, 4> kReasons{"as asked for", "the model's own", "", "finer ones do not fit"};
  return kReasons[static_cast<std::size_t>(why)];
}

Result<Plan> make_plan(const PlanInput& in, std::span<bool> pinned) {
  if (in.one_pass && in.chunk != 0 && in.chunk < in.max_seq_len) {
    return make_error(ErrorCode::bad_argument,
                      "chunk is {}, but a text is one pass in this model: it must be the context's {}", in.chunk,
                      in.max_seq_len);
  }
  const Weights w = measure(in.segments);
  const bool asked = in.max_seq_len != 0;
  Contexts contexts{};
  contexts.most = asked ? in.max_seq_len : in.model_seq_len;
  contexts.least = asked ? contexts.most : std::min(contexts.most, kLeastContext);
  const Precisions precisions(in, contexts.least);
  const std::uint32_t kv_positions = contexts.least;
  const KvType kv = precisions.of(in.budget.bytes());
  if (in.one_pass && in.chunk != 0) contexts.most = std::min(contexts.most, in.chunk);
  contexts.least = std::min(contexts.least, contexts.most);
  contexts.last = asked ? contexts.least : std::min(contexts.least, kLastContext);
  contexts.usual = usual_context(in, kv, std::min(w.all(), in.budget.bytes()), contexts.least, contexts.most);

  for (const Reduction& reduction : kReductions) {
    const std::uint32_t floor = reduction.ring_slots == 1 ? contexts.last : contexts.least;
    const std::uint32_t wish = &reduction == &kReductions.front() ? contexts.usual : contexts.least;
    const std::optional<Plan> found = longest(in, begin(in, w, kv, reduction), floor, wish);
    if (!found) continue;
    Plan p = *found;
    if (p.ring_slots == 0 || in.stream_all) {
      lengthen(in, w, contexts.most, p);
    } else {
      widen(in, w, p);
    }
    p.resident_budget = resident_budget(in, w, contexts, precisions, p);
    p.context_why = context_why(in, contexts, p);
    p.kv_why = in.kv >= 0 ? Why::asked : kv == in.finest_kv ? Why::model : Why::budget;
    p.kv_positions = kv_positions;
    p.finest_kv_budget = precisions.finest_budget();
    pin_rest(in, w, p, pinned);
    expect(in, w, [&](std::size_t i) { return pinned[i]; }, p);
    return p;
  }
  return refusal(in, w, contexts, precisions, kv);
}

}  // namespace qsf
