// One pass: some columns go through all stages, op by op. It stops at each segment that is not in memory yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "kernels/kernels.h"
#include "model/observer.h"
#include "model/program.h"
#include "model/routing.h"
#include "model/row_cache.h"
#include "model/sequence_memory.h"
#include "qsf/base/workers.h"
#include "qsf/model/work.h"
#include "stream/plan.h"
#include "stream/streamer.h"

namespace qsf {

#ifdef __wasm__
inline constexpr bool kChoosesKernels = false;  // a module has one instruction set
#else
inline constexpr bool kChoosesKernels = true;
#endif

/// One token on its way through the model. The other columns of a pass do not change a bit of it.
struct Column {
  std::uint32_t token = 0;
  std::uint32_t position = 0;  // in its sequence
  std::uint32_t sequence = 0;
  bool wants_logits = false;
  bool wants_hidden = false;  // its last hidden state, after the final norm; excludes logits
  bool second = false;        // it is of the second text of a pair
  // In a pass that guesses: the row of the hidden state of the token before this one, of the pass before.
  std::uint32_t hidden_row = 0;
  bool guess = false;  // its token is a guess, after all known ones of its sequence
};

/// The model that a pass computes.
struct ModelView {
  const Config& config;
  const Weights& weights;
  const Program& program;
};

/// The memory of a model's weights and of its sequences.
struct ModelMemory {
  Streamer& streamer;
  SequenceMemory& memory;
};

/// The means to compute.
struct Machine {
  const Kernels& kernels;
  const Workers& workers;
};

class Pass {
 public:
  /// Takes memory for plan.chunk columns and `logits_rows` rows of logits; fails with out_of_memory. With
  /// `keeps_hidden` each pass keeps the last hidden states of its columns, for begin_guesses(). All parts must outlive
  /// this object, except the workers, which are copied.
  Status init(Arena& arena, const ModelView& model, const ModelMemory& memory, const Machine& machine, const Plan& plan,
              std::uint32_t logits_rows, bool keeps_hidden = false);
  /// Takes memory for an observer, which sums from now on.
  Status observe(Arena& arena, Observe what, const ObservedRoom& room) {
    return observer_.init(arena, what, *program_, *weights_, {config_->n_layers, config_->dim, chunk_}, room);
  }
  Observer& observer() { return observer_; }

  /// Begins a pass and forgets an unfinished one. Columns of a sequence must be neighbours with positions that ascend
  /// by one, and must exist until the pass is done. The first `layers` compute them, then the head those that want an
  /// output.
  void begin(std::span<const Column> columns, std::uint32_t layers);
  void begin(std::span<const Column> columns) { begin(columns, config_->n_layers); }
  /// Begins a pass of the layer that guesses. A column has the token after its position, and the row of the position's
  /// hidden state in the pass before, whose states this pass replaces. Logits are of the token after that.
  void begin_guesses(std::span<const Column> columns);
  /// Does one piece of the pass. Returns blocked if it waits for a segment.
  Advance advance();
  /// Returns the work that the last advance() did, or could not do because it was blocked.
  Work work() const { return work_; }
  /// [rows, vocab_size]: the columns that want logits, in their order; valid after the pass.
  std::span<float> logits() const;
  /// [rows, dim]: the same for columns that want hidden states.
  std::span<float> hidden() const;
  /// [rows, pooled_width()]: these hidden states after the model's dense matrix, if it has one, or their scores. The
  /// rows of a text whose mean is scored all have the score.
  std::span<float> pooled() const;
  std::uint32_t pooled_width() const { return config_->table.model.score != 0 ? 1 : config_->dim; }
  /// Uses the kernels at `isa` in available_kernels() for products with weights of a format (index in kFormats).
  void use_kernel(std::size_t format, Batch batch, std::size_t isa) {
    if constexpr (kChoosesKernels)
      kernel_overrides_[static_cast<std::size_t>(batch)][format] = static_cast<std::uint8_t>(isa + 1);
  }
  /// Return the number of experts selected, each once for a layer of a pass, and found in memory then.
  std::uint64_t experts_chosen() const { return routing_.n_chosen; }
  std::uint64_t experts_found() const { return routing_.n_found; }
  std::span<const KernelCount> counts() const { return {counts_.data(), n_counts_}; }

  // The functions for ops.

  const Kernels& kernels() const { return *kernels_; }
  /// Returns the kernels for a product of `n` columns.
  const Kernels& product_kernels(std::size_t format, std::uint32_t n) const {
    if constexpr (!kChoosesKernels) return *kernels_;
    const std::uint8_t at = kernel_overrides_[static_cast<std::size_t>(n == 1 ? Batch::one : Batch::many)][format];
    return at == 0 ? *kernels_ : *available_kernels()[at - 1u];
  }
  const Workers& workers() const { return workers_; }
  const SequenceMemory& memory() const { return *memory_; }
  Streamer& streamer() { return *streamer_; }
  const Weights& weights() const { return *weights_; }
  const Config& config() const { return *config_; }
  const StageProgram& program() const { return program_->of_stage(stage_); }
  /// Whether a pass reads whole tables, from which columns use single rows.
  bool sweeps() const { return program_->sweeps(); }
  std::uint32_t stage() const { return stage_; }
  std::uint32_t& item() { return item_; }
  /// The columns that the stage computes: all, or those that want logits.
  std::span<const Column> columns() const { return columns_.first(n_); }
  std::uint32_t n() const { return n_; }
  /// Limits the rest of the stage to columns that want logits.
  void keep_logits() { n_ = n_logits_; }
  /// Returns the weight or bias of an op, which always exists. A pass that guesses has a last norm of its own.
  const TensorEntry& tensor(Role role) const {
    if (guesses_ && role == Role::final_norm) return *weights_->find(last_layer_, Role::guess_norm);
    return *weights_->find(program_->stage_of(role, stage_), role);
  }
  /// Returns scratch memory for a row, [dim]. The first vector() writes to the same memory.
  float* row() { return vectors_[0].data(); }
  /// Returns a vector as floats, [cols], valid until the next call with the same `which` (0 or 1).
  const float* vector(Role role, std::size_t which = 0) { return vector(role, which, 0, tensor(role).cols); }
  /// The same for elements [begin, begin + n).
  const float* vector(Role role, std::size_t which, std::uint32_t begin, std::uint32_t n);

  std::uint32_t width(Buf buf) const { return program().widths[static_cast<std::size_t>(buf)]; }
  /// Returns a column of a buffer, [width], which the next columns follow.
  float* at(Buf buf, std::uint32_t column) const {
    return bufs_[static_cast<std::size_t>(buf)].data() + std::size_t{column} * width(buf);
  }
  /// Must be called after a write to `buf`: discards its rounded columns.
  void wrote(Buf buf) {
    if (quantized_ == buf) quantized_ = Buf::none;
  }
  /// Returns the columns of `buf`, rounded once for all products.
  const QuantizedColumns& quantized(Buf buf) { return quantized(buf, n_); }
  /// The same for its first `n` columns. `n` must stay the same until the next write to the buffer.
  const QuantizedColumns& quantized(Buf buf, std::uint32_t n);
  /// Returns `cols` values of each column, [n, stride] from `x` on, rounded. Discards other rounded columns.
  const QuantizedColumns& quantized_part(const float* x, std::uint32_t stride, std::uint32_t cols);
  /// Returns the range of the schedule with the experts of the stage.
  ScheduleRange chosen_range() const { return program_->chosen_in(stage_); }
  /// Reports that the first `n` columns of `buf` enter the product with a tensor.
  void entered(Role role, Buf buf, std::uint32_t n) {
    if (!observes()) return;
    observer_.add(program_->stage_of(role, stage_), role, at(buf, 0), width(buf), n, workers_);
  }
  /// Whether inputs of products are summed, which must happen in one order.
  bool observes() const { return !observer_.seen().empty(); }
  /// The selection of the stage's router.
  Routing& routing() { return routing_; }
  std::span<float> scores() const { return scores_; }
  /// Rows of the stage's RoPE table: [n, dims / 2].
  const float* cosines(std::uint32_t column) const { return angle(cos_, column); }
  const float* sines(std::uint32_t column) const { return angle(sin_, column); }

  void count(std::string_view op, std::string_view type, std::uint64_t calls);
  /// Calls body(begin, count) for parts of the columns, cut between panels, on the workers.
  template <class Body>
  void for_columns(Body body) {
    for_columns(n_, body);
  }
  template <class Body>
  void for_columns(std::uint32_t n, Body body) {
    const std::uint32_t panels = (n + kPanel - 1) / kPanel;
    const std::uint32_t parts = std::min(panels, workers_.count);
    parallel_for(workers_, parts, [&](std::uint32_t part) {
      const std::uint32_t begin = panels * part / parts * kPanel;
      body(begin, std::min(panels * (part + 1) / parts * kPanel, n) - begin);
    });
  }

  /// The rows of the embedding that were used last.
  RowCache& embedding_rows() { return rows_; }

 private:
  const float* angle(std::span<float> of, std::uint32_t column) const;
  bool enter_stage();
  void round(const float* x, std::uint32_t stride, std::uint32_t cols, std::uint32_t n);
  void gather(Buf buf, Buf room);
  void gather_outputs();
  void begin(std::span<const Column> columns, std::uint32_t first, std::uint32_t last);
  void keep_hidden();

  const Config* config_ = nullptr;
  const Weights* weights_ = nullptr;
  const Program* program_ = nullptr;
  Streamer* streamer_ = nullptr;
  SequenceMemory* memory_ = nullptr;
  const Kernels* kernels_ = nullptr;
  /// [batch][format]: 1 + index in available_kernels(), or 0 for kernels_
  std::array<std::array<std::uint8_t, kFormats.size()>, kBatchNames.size()> kernel_overrides_{};
  Workers workers_;
  std::array<std::span<float>, kBufs> bufs_;  // each [chunk, widest], logits [logits_rows, vocab_size]
  QuantizedColumns xq_;
  Buf quantized_ = Buf::none;        // the buffer whose columns are in xq_
  std::span<float> cos_, sin_;       // [RoPE table][chunk, dims / 2]
  std::span<std::uint32_t> angles_;  // start of each RoPE table in cos_ and sin_
  Routing routing_;
  std::span<float> scores_;                  // [tasks at a time, heads of a task, tokens, capacity]
  std::array<std::span<float>, 2> vectors_;  // [longest_vector] each: vectors widened to float
  RowCache rows_;
  Observer observer_;
  std::uint32_t chunk_ = 0;

  std::span<const Column> columns_;
  std::array<ScheduleRange, 2> ranges_;
  std::uint32_t n_ = 0, n_logits_ = 0, n_hidden_ = 0;
  std::uint32_t first_layer_ = 1, last_layer_ = 0;  // stages of the first and the last layer
  bool keeps_hidden_ = false;
  bool guesses_ = false;  // the pass is one of the layer that guesses
  std::uint32_t stage_ = 0, op_ = 0, item_ = 0;
  bool entered_ = false;
  Work work_ = Work::embed;
  std::array<KernelCount, 64> counts_{};
  std::size_t n_counts_ = 0;
};

}  // namespace qsf
