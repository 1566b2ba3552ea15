// A model as instructions: one list of ops for every distinct kind of layer, made once at open from the layer table and
// the tensors that are there. Whatever can be known from it is taken from it: widths of buffers, lanes, RoPE tables,
// and the order in which segments are used.
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

/// The ops of one kind of section. Section 0 is the embedding, n_layers + 1 the head.
struct SectionProgram {
  static constexpr std::size_t kArenaBytes = 64 + kBufs * sizeof(std::uint32_t);
  const LayerKind* kind = nullptr;
  std::bitset<kRoles> has;  // tensors, by place in kRoleRules
  std::span<const Op> ops;
  std::array<std::uint32_t, kBufs> widths{};  // floats per column
  std::uint32_t rope = 0;                     // into Program::ropes
  std::span<const float> slopes;              // [n_heads] of ALiBi, as scores take them; or empty

  bool chooses() const {
    return std::ranges::any_of(ops, [](const Op& op) { return op.row->chooses; });
  }
};

/// Angles that heads are rotated by.
struct RopeTable {
  static constexpr std::size_t kArenaBytes = 32;
  float theta = 0;
  std::uint32_t dims = 0;
  bool scaled = false;
  float scale = 1;             // on cosines and sines
  std::span<float> frequency;  // [dims / 2]
  bool operator==(const RopeTable& o) const {
    return theta == o.theta && dims == o.dims && scaled == o.scaled && scale == o.scale;
  }
};

class Program {
 public:
  /// Everything given must outlive this. bad_tensor where a tensor has no use.
  Status init(Arena& arena, const Config& config, const Weights& weights);

  /// Where RoPE depends on it: how long the context may become.
  void set_context(std::uint32_t max_seq_len);

  const SectionProgram& of_section(std::uint32_t section) const { return programs_[of_section_[section]]; }
  std::uint32_t head_section() const { return static_cast<std::uint32_t>(of_section_.size() - 1); }
  /// Where a tensor that `section` uses lies.
  std::uint32_t section_of(Role role, std::uint32_t section) const {
    const Place place = rule_of(role).place;
    return place == Place::embedding ? 0 : place == Place::final ? head_section() : section;
  }
  /// The widest that each buffer is in any section.
  const std::array<std::uint32_t, kBufs>& widths() const { return widths_; }
  /// The widest activation that enters a product, and the longest vector.
  std::uint32_t widest_input() const { return widest_input_; }
  std::uint32_t longest_vector() const { return longest_vector_; }
  std::span<const RopeTable> ropes() const { return ropes_; }

  /// Segments in order of use by a whole pass, the head's last.
  std::span<const std::uint32_t> schedule() const { return schedule_; }
  /// The part of the schedule that sections [begin, end) use.
  ScheduleRange range(std::uint32_t begin, std::uint32_t end) const { return {starts_[begin], starts_[end]}; }
  /// Parts of the schedule that a pass uses where it chooses them: the experts' of each mixture, ascending.
  std::span<const ScheduleRange> chosen() const { return chosen_; }
  /// That of a section; empty where it has none.
  ScheduleRange chosen_in(std::uint32_t section) const;
  /// Most experts that a section has, and that a token takes of them.
  std::uint32_t most_experts() const { return most_experts_; }
  std::uint32_t most_used() const { return most_used_; }

 private:
  Status build(SectionProgram& program, std::uint32_t section, std::span<Op> ops);
  Status init_ropes(Arena& arena);
  Status init_slopes(Arena& arena);
  Status init_schedule(Arena& arena);

  const Config* config_ = nullptr;
  const Weights* weights_ = nullptr;
  std::span<SectionProgram> programs_;
  std::span<std::uint16_t> of_section_;  // [n_layers + 2]
  std::array<std::uint32_t, kBufs> widths_{};
  std::uint32_t widest_input_ = 0, longest_vector_ = 0;
  std::span<RopeTable> ropes_;
  std::span<std::uint32_t> schedule_;
  std::span<std::uint32_t> starts_;  // [n_layers + 3]: where a section's segments begin in the schedule
  std::span<ScheduleRange> chosen_;
  std::uint32_t most_experts_ = 0, most_used_ = 0;
};

/// Emits the ops of one section.
class Builder {
 public:
  Builder(const Config& config, const Weights& weights, std::uint32_t section, SectionProgram& program,
          std::span<Op> room)
      : config_(config), weights_(weights), section_(section), program_(program), room_(room) {}

  const LayerKind& kind() const { return *program_.kind; }
  const Config& config() const { return config_; }
  bool has(Role role) const { return weights_.has(section_of(role), role); }

  /// The norm of the section's kind, with its bias where there is one.
  void norm(Role weight, Role bias, Buf in, Buf out);
  /// out = weight * in + bias, where there is one.
  void product(Role weight, Role bias, Buf in, Buf out);
  /// In place: every value of `buf` times `factor`; nothing where that is 1.
  void scale(Buf buf, float factor);
  /// out += in
  void add(Buf in, Buf out) { emit({.row = &op_add, .in = in, .out = out}); }
  void copy(Buf in, Buf out);
  /// An op on one buffer, with a weight where the section has it.
  void in_place(const OpRow& row, Role weight, Buf buf);
  /// An op on one buffer with a weight, and a second tensor where the section has that.
  void with_weights(const OpRow& row, Role weight, Role bias, Buf buf);
  /// Any op. Reads and writes must name buffers whose widths are known: see set_width.
  void emit(const Op& op);
  void set_width(Buf buf, std::uint32_t width);
  /// An op uses a tensor that it does not name, where the section has it.
  void uses(Role role);
  std::uint32_t width(Buf buf) const { return program_.widths[static_cast<std::size_t>(buf)]; }

  void embedding();
  void layer();
  void head();

  std::size_t size() const { return n_; }
  const std::bitset<kRoles>& used() const { return used_; }

 private:
  std::uint32_t section_of(Role role) const {
    const Place place = rule_of(role).place;
    return place == Place::embedding ? 0 : place == Place::final ? config_.n_layers + 1 : section_;
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
  void post(Role norm, Role bias, Buf out);

  const Config& config_;
  const Weights& weights_;
  std::uint32_t section_;
  SectionProgram& program_;
  std::span<Op> room_;
  std::size_t n_ = 0;
  std::bitset<kRoles> used_;
};

}  // namespace qsf
