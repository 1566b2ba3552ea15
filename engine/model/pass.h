// One pass: some columns go through all sections, op by op, and stop wherever a segment is not there yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "kernels/kernels.h"
#include "model/lanes.h"
#include "model/observer.h"
#include "model/program.h"
#include "model/routing.h"
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

/// One token on its way through the model. Which columns share a pass does not change a bit of any of them.
struct Column {
  std::uint32_t token = 0;
  std::uint32_t position = 0;  // in its sequence
  std::uint32_t sequence = 0;
  bool wants_logits = false;
  bool wants_hidden = false;  // its last hidden state, behind the final norm; then no logits
};

class Pass {
 public:
  /// Room for plan.chunk columns and `logits_rows` rows of logits. Everything given must outlive this.
  Status init(Arena& arena, const Config& config, const Weights& weights, const Program& program, Streamer& streamer,
              Lanes& lanes, const Kernels& kernels, const Workers& workers, const Plan& plan,
              std::uint32_t logits_rows);
  /// Room to sum up, from now on.
  Status observe(Arena& arena, Observe what, const ObservedRoom& room) {
    return observer_.init(arena, what, *program_, *weights_, {config_->n_layers, config_->dim, chunk_}, room);
  }
  Observer& observer() { return observer_; }

  /// Begins a pass, an unfinished one is forgotten. Columns of a sequence lie side by side, their positions ascending
  /// by one; they stay where they are until the pass is done.
  void begin(std::span<const Column> columns);
  /// Does one piece of the pass. blocked: a segment is awaited.
  Advance advance();
  /// What the last advance() did, or was about to do when it was blocked.
  Work work() const { return work_; }
  /// [rows, vocab_size]: of the columns that want logits, in their order; after the pass is done.
  std::span<float> logits() const;
  /// [rows, dim]: the same of those that want hidden states.
  std::span<float> hidden() const;
  /// [rows, dim]: these as pooling takes them, through the model's dense matrix where it has one.
  std::span<float> pooled() const;
  /// Of the available kernels' products with a format's weights, by its place in kFormats.
  void use_kernel(std::size_t format, Batch batch, std::size_t isa) {
    if constexpr (kChoosesKernels)
      chosen_[static_cast<std::size_t>(batch)][format] = static_cast<std::uint8_t>(isa + 1);
  }
  /// Experts that were taken, each once in a layer of a pass, and those of them that were there at once.
  std::uint64_t experts_chosen() const { return routing_.n_chosen; }
  std::uint64_t experts_found() const { return routing_.n_found; }
  std::span<const KernelCount> counts() const { return {counts_.data(), n_counts_}; }

  // For ops.

  const Kernels& kernels() const { return *kernels_; }
  /// Those whose product of `n` columns serves best.
  const Kernels& product_kernels(std::size_t format, std::uint32_t n) const {
    if constexpr (!kChoosesKernels) return *kernels_;
    const std::uint8_t place = chosen_[static_cast<std::size_t>(n == 1 ? Batch::one : Batch::many)][format];
    return place == 0 ? *kernels_ : *available_kernels()[place - 1u];
  }
  const Workers& workers() const { return workers_; }
  const Lanes& lanes() const { return *lanes_; }
  Streamer& streamer() { return *streamer_; }
  const Weights& weights() const { return *weights_; }
  const Config& config() const { return *config_; }
  const SectionProgram& program() const { return program_->of_section(section_); }
  std::uint32_t section() const { return section_; }
  std::uint32_t& item() { return item_; }
  /// Columns that the section computes: all, or those that want logits.
  std::span<const Column> columns() const { return columns_.first(n_); }
  std::uint32_t n() const { return n_; }
  /// From here on the section computes those only that want logits.
  void keep_logits() { n_ = n_logits_; }
  /// Of the weight or bias of an op: there, since programs are made of what is.
  const TensorEntry& tensor(Role role) const { return *weights_->find(program_->section_of(role, section_), role); }
  /// Room for a row of `dim` floats; the first vector() writes there too.
  float* row() { return vectors_[0].data(); }
  /// A small tensor as floats [cols], valid until the next call with the same `which` (0 or 1).
  const float* vector(Role role, std::size_t which = 0) { return vector(role, which, 0, tensor(role).cols); }
  /// The same of elements [begin, begin + n).
  const float* vector(Role role, std::size_t which, std::uint32_t begin, std::uint32_t n);

  std::uint32_t width(Buf buf) const { return program().widths[static_cast<std::size_t>(buf)]; }
  /// [n, width]
  float* at(Buf buf, std::uint32_t column) const {
    return bufs_[static_cast<std::size_t>(buf)].data() + std::size_t{column} * width(buf);
  }
  /// `buf` was written to: what was rounded from it is no more.
  void wrote(Buf buf) {
    if (quantized_ == buf) quantized_ = Buf::none;
  }
  /// The columns of `buf` rounded to int8, once for all products of it.
  const QuantizedColumns& quantized(Buf buf) { return quantized(buf, n_); }
  /// The same of its first `n`: for one `n` until the buffer is written to.
  const QuantizedColumns& quantized(Buf buf, std::uint32_t n);
  /// Of the schedule: the section's experts.
  ScheduleRange chosen_range() const { return program_->chosen_in(section_); }
  /// The first `n` columns of `buf` enter the product with a tensor.
  void entered(Role role, Buf buf, std::uint32_t n) {
    if (!observes()) return;
    observer_.add(program_->section_of(role, section_), role, at(buf, 0), width(buf), n, workers_);
  }
  /// Whether what enters products is summed up, in one order.
  bool observes() const { return !observer_.seen().empty(); }
  /// What the section's router chose.
  Routing& routing() { return routing_; }
  std::span<float> scores() const { return scores_; }
  /// Of the section's RoPE table: [n, dims / 2].
  const float* cosines(std::uint32_t column) const { return angle(cos_, column); }
  const float* sines(std::uint32_t column) const { return angle(sin_, column); }

  void count(std::string_view op, std::string_view type, std::uint64_t calls);
  /// body(begin, count) over the columns, cut for the workers between panels.
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

  /// Rows of the embedding that were looked up last, as floats.
  class RowCache {
   public:
    Status init(Arena& arena, std::uint32_t rows, std::uint32_t dim);
    /// Copies the row of a token; false when it is not there.
    bool get(std::uint32_t token, float* to);
    void put(std::uint32_t token, const float* row);

   private:
    struct Row {
      std::uint32_t token;  // 1 + id, 0 for none
      std::uint32_t used;   // when, in look-ups
    };
    std::span<float> data_;  // [rows, stride_]
    std::span<Row> rows_;
    std::uint32_t stride_ = 0, dim_ = 0, lookups_ = 0;
  };
  RowCache& embedding_rows() { return rows_; }

 private:
  const float* angle(std::span<float> of, std::uint32_t column) const;
  bool enter_section();
  void gather_outputs();

  const Config* config_ = nullptr;
  const Weights* weights_ = nullptr;
  const Program* program_ = nullptr;
  Streamer* streamer_ = nullptr;
  Lanes* lanes_ = nullptr;
  const Kernels* kernels_ = nullptr;
  /// By batch and format: 1 + place in available_kernels(), or 0.
  std::array<std::array<std::uint8_t, kFormats.size()>, kBatchNames.size()> chosen_{};
  Workers workers_;
  std::array<std::span<float>, kBufs> bufs_;  // each [chunk, widest]
  QuantizedColumns xq_;
  Buf quantized_ = Buf::none;        // what xq_ holds
  std::span<float> cos_, sin_;       // [RoPE table][chunk, dims / 2]
  std::span<std::uint32_t> angles_;  // where a RoPE table's begin
  Routing routing_;
  std::span<float> scores_;                  // [tasks under way, heads of a task, tokens, capacity] of a lane
  std::array<std::span<float>, 2> vectors_;  // norms and biases, widened to float
  RowCache rows_;
  Observer observer_;
  std::uint32_t chunk_ = 0;

  std::span<const Column> columns_;
  std::array<ScheduleRange, 1> range_;
  std::uint32_t n_ = 0, n_logits_ = 0, n_hidden_ = 0;
  std::uint32_t section_ = 0, op_ = 0, item_ = 0;
  bool entered_ = false;
  Work work_ = Work::embed;
  std::array<KernelCount, 64> counts_{};
  std::size_t n_counts_ = 0;
};

}  // namespace qsf
