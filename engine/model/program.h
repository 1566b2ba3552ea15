// A model as instructions: one list of ops for each distinct kind of stage, made at open from the layer table and the
// tensors of the file. The buffers' widths, the sequences' memory, the RoPE tables and the schedule follow from it.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/op.h"
#include "model/weights.h"
#include "stream/streamer.h"

namespace qsf {

/// The ops of one kind of stage. Stage 0 is the embedding, the last one the head.
struct StageProgram {
  static constexpr std::size_t kArenaBytes = 80 + kBufs * sizeof(std::uint32_t);
  const LayerKind* kind = nullptr;
  std::bitset<kRoles> has;  // tensors of the stage, by index in kRoleRules
  std::span<const Op> ops;
  std::array<std::uint32_t, kBufs> widths{};  // floats in a column
  std::uint32_t rope = 0;                     // index in Program::ropes
  std::span<const float> slopes;              // [n_heads], ALiBi's slopes scaled for scores; or empty
  std::span<const std::uint8_t> buckets;      // [2 * bucket_reach + 1], by distance; or empty

  bool chooses() const {
    return std::ranges::any_of(ops, [](const Op& op) { return op.row->chooses; });
  }
};

/// The angles by which heads are rotated.
struct RopeTable {
  static constexpr std::size_t kArenaBytes = 32;
  float theta = 0;
  std::uint32_t dims = 0;
  bool scaled = false;
  float scale = 1;             // factor of cosines and sines
  std::span<float> frequency;  // [dims / 2]
  bool operator==(const RopeTable& o) const {
    return theta == o.theta && dims == o.dims && scaled == o.scaled && scale == o.scale;
  }
};

class Program {
 public:
  /// All arguments must outlive this object. With `sweeps`, the schedule includes the tables from which columns use
  /// single rows, so that a pass reads them whole. Fails with bad_tensor if a tensor has no use, or out_of_memory.
  Status init(Arena& arena, const Config& config, const Weights& weights, bool sweeps = false);

  /// Sets the longest possible context, on which some RoPE tables depend.
  void set_context(std::uint32_t max_seq_len);

  const StageProgram& of_stage(std::uint32_t stage) const { return programs_[of_stage_[stage]]; }
  std::uint32_t head_stage() const { return static_cast<std::uint32_t>(of_stage_.size() - 1); }
  /// Returns the stage of the layer that guesses tokens; 0 if none does.
  std::uint32_t guess_stage() const { return config_->guess_stage; }
  /// Returns the stage that has a tensor which `stage` uses.
  std::uint32_t stage_of(Role role, std::uint32_t stage) const {
    const RoleScope place = rule_of(role).scope;
    return place == RoleScope::embedding ? 0 : place == RoleScope::final ? head_stage() : stage;
  }
  /// Returns the largest width of each buffer in any stage.
  const std::array<std::uint32_t, kBufs>& widths() const { return widths_; }
  /// The largest input of a product, and the longest vector.
  std::uint32_t widest_input() const { return widest_input_; }
  std::uint32_t longest_vector() const { return longest_vector_; }
  std::span<const RopeTable> ropes() const { return ropes_; }

  /// The segments in order of use by a whole pass, the head's last. Segments of a tied embedding occur twice if it is
  /// swept.
  std::span<const std::uint32_t> schedule() const { return schedule_; }
  bool sweeps() const { return sweeps_; }
  /// Ascending ranges of the schedule with tables from which columns use rows.
  std::span<const ScheduleRange> swept() const { return std::span(swept_).first(n_swept_); }
  /// Returns the range of the schedule that stages [begin, end) use.
  ScheduleRange range(std::uint32_t begin, std::uint32_t end) const { return {starts_[begin], starts_[end]}; }
  /// Ascending ranges of the schedule from which passes select: the experts of each mixture.
  std::span<const ScheduleRange> chosen() const { return chosen_; }
  /// Returns the range of a stage's experts, which is empty without a mixture.
  ScheduleRange chosen_in(std::uint32_t stage) const;
  /// The most experts in a stage, and the most that a token selects in one.
  std::uint32_t most_experts() const { return most_experts_; }
  std::uint32_t most_used() const { return most_used_; }

 private:
  Status build(StageProgram& program, std::uint32_t stage, std::span<Op> ops);
  Status init_ropes(Arena& arena);
  Status init_slopes(Arena& arena);
  Status init_buckets(Arena& arena);
  Status init_schedule(Arena& arena);

  const Config* config_ = nullptr;
  const Weights* weights_ = nullptr;
  std::span<StageProgram> programs_;
  std::span<std::uint16_t> of_stage_;  // [stages], index in programs_
  std::array<std::uint32_t, kBufs> widths_{};
  std::uint32_t widest_input_ = 0, longest_vector_ = 0;
  std::span<RopeTable> ropes_;
  std::span<std::uint32_t> schedule_;
  std::span<std::uint32_t> starts_;  // [stages + 1]: start of each stage in the schedule, and its end
  std::span<ScheduleRange> chosen_;
  std::array<ScheduleRange, 3> swept_{};  // of tokens, positions and layers' inputs
  std::uint32_t n_swept_ = 0;
  bool sweeps_ = false;
  std::uint32_t most_experts_ = 0, most_used_ = 0;
};

/// Emits the ops of one stage.
class Builder {
 public:
  Builder(const Config& config, const Weights& weights, std::uint32_t stage, StageProgram& program, std::span<Op> room)
      : config_(config), weights_(weights), stage_(stage), program_(program), room_(room) {}

  const LayerKind& kind() const { return *program_.kind; }
  const Config& config() const { return config_; }
  bool has(Role role) const { return weights_.has(stage_of(role), role); }

  /// Emits the norm of the stage's kind, with its bias if the stage has it. An epsilon of 0 stands for the kind's.
  void norm(Role weight, Role bias, Buf in, Buf out, float epsilon = 0);
  /// Emits out = weight * in + bias, if the stage has the bias. weight: [out, in], bias: [out].
  void product(Role weight, Role bias, Buf in, Buf out);
  /// Emits the product of each head's or stream's part of `in` with its rows of a matrix, to its part of `out`, whose
  /// width is known.
  void by_head(Role weight, Buf in, Buf out);
  /// Emits buf *= factor, except for a factor of 1.
  void scale(Buf buf, float factor);
  /// Emits out += in.
  void add(Buf in, Buf out) { emit({.row = &op_add, .in = in, .out = out}); }
  void copy(Buf in, Buf out);
  /// Emits an op on one buffer, with a weight if the stage has it.
  void in_place(const OpRow& row, Role weight, Buf buf);
  /// Emits an op on one buffer with a weight, and with a second tensor if the stage has it.
  void with_weights(const OpRow& row, Role weight, Role bias, Buf buf);
  /// Emits any op. It must read and write buffers with known widths (see set_width).
  void emit(const Op& op);
  void set_width(Buf buf, std::uint32_t width);
  /// States that an op uses a tensor which it does not name, if the stage has it.
  void uses(Role role);
  std::uint32_t width(Buf buf) const { return program_.widths[static_cast<std::size_t>(buf)]; }

  void embedding();
  void layer();
  void head();

  std::size_t size() const { return n_; }
  const std::bitset<kRoles>& used() const { return used_; }

 private:
  std::uint32_t stage_of(Role role) const {
    const RoleScope place = rule_of(role).scope;
    return place == RoleScope::embedding ? 0 : place == RoleScope::final ? config_.head_stage() : stage_;
  }
  void use(Op& op, Role weight, Role bias);
  void activate(Buf gate, Buf up);
  Buf network(Buf in);
  Buf dense(Buf in);
  Buf side_by_side(Buf in);
  void route(Buf in);
  Buf mixture(Buf in);
  void blocks();
  void layer_inputs();
  void layer_input();
  void streams(const OpRow& row, Role factors);
  void laurel(Buf in, Buf out);
  void guess_input();
  void post(Role norm, Role bias, Buf out, float stream_scale);
  void score(Buf last);

  const Config& config_;
  const Weights& weights_;
  std::uint32_t stage_;
  StageProgram& program_;
  std::span<Op> room_;
  std::size_t n_ = 0;
  std::bitset<kRoles> used_;
};

}  // namespace qsf
