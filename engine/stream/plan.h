// From a budget to a memory map: what is pinned for good, what is streamed through a ring of slots, how long the
// context may be. Knows sizes only, nothing of models.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/base/result.h"
#include "qsf/formats/kv.h"

namespace qsf {

/// What one segment asks of memory, in order of use within a pass over the model.
struct SegmentNeed {
  std::uint64_t bytes = 0;  // of a buffer that it can be read, decompressed and tiled in
  bool vectors = false;     // must be resident
  bool lookup = false;      // only single rows of it are used
  bool chosen = false;      // used where a pass chooses it: an expert's
  // What one token takes of it on average, in bytes: as read, and as computed with.
  std::uint32_t read = 0, computed = 0;
};

/// How fast the machine is, in bytes of weights a second, as its host measured it; 0: not known.
struct Speed {
  double read = 0, compute = 0;
};
/// Tokens a second to expect of decoding; 0 where the speed is not known. Reading goes on beside computing, but for
/// what the segments in the ring are too few to take apart: with one, nothing does.
double expected_rate(const Speed& speed, double bytes_read, double bytes_computed, double segments_in_ring);

/// Segments that a ring holds at most for each slot: most are smaller than the largest, which a slot has room for.
inline constexpr std::uint32_t kPlacesOfSlot = 4;

/// Tokens whose scores there is room for with all heads under way (with fewer heads there is for more): at least, and
/// where memory is left over.
inline constexpr std::uint32_t kFewestScored = 4, kMostScored = 64;

struct Plan {
  KvType kv = KvType::f16;
  std::uint32_t max_seq_len = 0;  // of each sequence
  std::uint32_t chunk = 0;        // columns per pass
  std::uint32_t scored_tokens = kFewestScored;
  std::uint32_t embedding_rows = 0;  // cached; 0 when the embedding is resident
  std::uint32_t ring_slots = 0;      // 0: everything is pinned
  std::uint64_t slot_bytes = 0;
  std::uint32_t chosen_slots = 0;  // that keep chosen segments
  std::uint64_t chosen_slot_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t total = 0;  // never above the budget
  // What is to be expected.
  double bytes_read = 0, bytes_computed = 0;  // for a token
  double rate = 0;                            // tokens a second, 0: not known
  std::uint64_t resident_budget = 0;          // with which everything stays, at this context and precision
  double resident_rate = 0;
};

/// Bytes that a session takes, all told, with a plan that pins vectors only, or everything where there are no slots:
/// asked of the code that takes them.
struct Measure {
  const void* context = nullptr;
  std::uint64_t (*bytes)(const void* context, const Plan& plan) = nullptr;

  std::uint64_t operator()(const Plan& plan) const { return bytes(context, plan); }
};

struct PlanInput {
  std::uint64_t budget = 0;  // bytes, all told
  Measure measure;
  std::span<const SegmentNeed> segments;
  KvType finest_kv = KvType::f16;   // where there is room: no coarser than the weights
  std::uint32_t model_seq_len = 0;  // what the model was made for
  std::uint32_t sequences = 1;      // that may share a pass
  // Wishes; 0 (kv: -1) leaves the choice to the plan, anything else is kept or refused.
  std::uint32_t max_seq_len = 0;
  std::uint32_t chunk = 0;
  std::uint32_t ring_slots = 0;
  int kv = -1;
  bool stream_all = false;  // pin nothing that need not be
  Speed speed;
  bool one_pass = false;  // a pass has as many columns as a sequence has positions
};

/// Chooses the plan and marks in `pinned` (one per segment) what stays. Everything resident is preferred; else the
/// smallest streaming plan is sought, reducing in this order: context, KV precision, embedding rows,
/// chunk and double buffering; then it refuses with budget_too_small and the budget that would do. What is left over
/// pins segments, so that the streamed ones are spread evenly over a pass and reading overlaps with computing; segments
/// that are chosen are pinned where all are, else they get slots of what the others leave, before look-ups, and passes
/// become wider for a small part of that. Where everything stays passes become wider, and there is room for more
/// scores, for small parts of the rest.
Result<Plan> make_plan(const PlanInput& input, std::span<bool> pinned);

}  // namespace qsf
