// The division of a budget: which segments are pinned, which are streamed through a ring of slots, and how long the
// context is. A plan knows sizes only, no models.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/budget.h"
#include "qsf/base/result.h"
#include "qsf/formats/kv.h"

namespace qsf {

/// The memory needs of one segment. Segments are in order of use in a pass over the model.
struct SegmentNeed {
  std::uint64_t bytes = 0;  // of the buffer in which it is read, decompressed and tiled
  bool vectors = false;     // must be resident
  bool lookup = false;      // a pass uses single rows of it only
  bool chosen = false;      // an expert's: used only if a pass selects it
  std::uint8_t uses = 1;    // in a whole pass; each use reads the segment unless it is resident
  bool unused = false;      // no pass uses it; it takes no memory
  // Bytes of the segment that one token needs on average: as stored, and as the kernels compute with it.
  std::uint32_t read = 0, computed = 0;
};

/// The machine's speed, measured by its host, in bytes of weights per second. 0 means unknown.
struct Speed {
  double read = 0, compute = 0;
};
/// Returns the expected rate of decoding in tokens/s, or 0 if the speed is unknown. Reading overlaps with computing,
/// except for one part in `segments_in_ring` of the shorter of the two. With one segment nothing overlaps.
double expected_rate(const Speed& speed, double bytes_read, double bytes_computed, double segments_in_ring);

/// The most segments in a ring, for each slot. A slot has room for the largest segment, and most are smaller.
inline constexpr std::uint32_t kPlacesOfSlot = 4;

/// The tokens with room for their scores if all heads are computed at once, at least and with spare memory. With fewer
/// heads at once there is room for more.
inline constexpr std::uint32_t kFewestScored = 4, kMostScored = 64;

/// The reason for the length of a context, or for the precision of keys and values.
enum class Why : std::uint8_t { asked, model, weights, budget };
/// Returns a part of a sentence.
std::string_view context_reason(Why why);
std::string_view kv_reason(Why why);

struct Plan {
  KvType kv = KvType::f16;
  Why kv_why = Why::model;        // never `weights`
  std::uint32_t max_seq_len = 0;  // of each sequence
  Why context_why = Why::model;
  std::uint32_t chunk = 0;  // columns in a pass
  std::uint32_t scored_tokens = kFewestScored;
  std::uint32_t embedding_rows = 0;  // cached; 0 if the embedding is resident
  std::uint32_t ring_slots = 0;      // 0: everything is pinned
  std::uint64_t slot_bytes = 0;
  std::uint32_t expert_slots = 0;  // expert slots
  std::uint64_t expert_slot_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t total = 0;  // never above the budget
  // Expectations.
  double bytes_read = 0, bytes_computed = 0;  // for one token
  double rate = 0;                            // tokens/s, 0: unknown
  std::uint64_t resident_budget = 0;          // the least budget of a resident plan, with no shorter a context
  double resident_rate = 0;
  // The context that decides the precision, and the least budget that has room for it in the finest type.
  std::uint32_t kv_positions = 0;
  std::uint64_t finest_kv_budget = 0;
};

/// Returns all bytes of a session with a plan that pins vectors only, or everything if it has no slots. The code that
/// takes the memory also measures it.
struct Measure {
  const void* context = nullptr;
  std::uint64_t (*bytes)(const void* context, const Plan& plan) = nullptr;

  std::uint64_t operator()(const Plan& plan) const { return bytes(context, plan); }
};

struct PlanInput {
  Budget budget;
  Measure measure;
  /// The same for a session of the same model that is opened without options, so that no file is mapped. Ignores the
  /// plan's slot_bytes: slots have room for that session's largest segment.
  Measure plain;
  std::span<const SegmentNeed> segments;
  KvType finest_kv = KvType::f16;   // with enough room; no coarser than the weights
  std::uint32_t model_seq_len = 0;  // the context length that the model was made for
  std::uint32_t sequences = 1;      // sequences that may share a pass
  std::uint32_t columns = 1;        // of a pass if they fit, at most 32: one for each sequence, and one for its guess
  // Wishes. 0 (kv: -1) leaves the choice to the plan; any other value is kept, or the plan is refused.
  std::uint32_t max_seq_len = 0;
  std::uint32_t chunk = 0;
  std::uint32_t ring_slots = 0;
  int kv = -1;
  bool stream_all = false;  // pins only segments that must be pinned
  Speed speed;
  bool one_pass = false;   // a pass has as many columns as a sequence has positions
  bool keeps_rows = true;  // the session caches the rows of the embedding that it used last
};

/// Returns a plan, and marks the pinned segments in `pinned` (one for each segment), which a refusal leaves as it was.
/// The plan's goals, in order:
///
/// 1. A context: the wish, else 256 positions, or the model's own number if that is smaller.
/// 2. Keys and values of the finest type with which the smallest `plain` session has room for that context, else the
///    smallest type, down to 4 bits. Only the model, the budget and the wishes for context and precision decide this.
/// 3. Without a wish, a context of up to 2,048 that takes a sixteenth of the weights, or of the budget if that is
///    smaller. A plan that streams reads at most a sixteenth more for it.
/// 4. All weights resident.
/// 5. If all weights are: wider passes and room for more scores, each for at most a 32nd of the rest, then the longest
///    context that fits, up to the model's own. If not: pinned segments, first those that a pass uses more than once,
///    then so that streamed segments are spread evenly over a pass and reading overlaps with computing. Experts'
///    segments are pinned if all segments are; otherwise they get slots from the rest, before look-ups, and passes
///    become wider for a small part of it.
///
/// A smaller budget gives up these in turn: all weights, the longer context of 3, cached embedding rows, width of
/// passes down to `columns` and double buffering, precision. Then a context without a wish becomes shorter than 256,
/// down to 16. Then the plan fails with budget_too_small, which names the least budget that is enough.
Result<Plan> make_plan(const PlanInput& input, std::span<bool> pinned);

}  // namespace qsf
