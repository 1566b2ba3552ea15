#include "model/pass.h"

#include <cstring>

#include "qsf/base/half.h"
#include "qsf/base/try.h"

namespace qsf {

Status Pass::init(Arena& arena, const ModelView& model, const ModelMemory& memory, const Machine& machine,
                  const Plan& plan, std::uint32_t logits_rows, bool keeps_hidden) {
  const Program& program = model.program;
  config_ = &model.config;
  weights_ = &model.weights;
  program_ = &program;
  streamer_ = &memory.streamer;
  memory_ = &memory.memory;
  kernels_ = &machine.kernels;
  workers_ = machine.workers;
  chunk_ = plan.chunk;
  keeps_hidden_ = keeps_hidden;
  for (std::size_t i = 0; i < kBufs; ++i) {
    const auto buf = static_cast<Buf>(i);
    if ((buf == Buf::hidden || buf == Buf::joined) && !keeps_hidden) continue;
    const bool logits = buf == Buf::logits;
    QSF_TRY(arena.take(bufs_[i], std::uint64_t{logits ? logits_rows : chunk_} * program.widths()[i],
                       logits ? Region::logits : Region::activations));
  }
  const std::uint64_t padded = padded_cols(program.widest_input());
  std::span<std::int8_t> codes;
  std::span<float> d, sums, half_sums;
  QSF_TRY(arena.take(codes, chunk_ * padded, Region::activations));
  QSF_TRY(arena.take(d, chunk_ * padded / kGroup, Region::activations));
  QSF_TRY(arena.take(sums, chunk_ * padded / kGroup, Region::activations));
  QSF_TRY(arena.take(half_sums, chunk_ * padded / kGroup * 2, Region::activations));
  xq_ = {codes.data(), d.data(), sums.data(), half_sums.data(), 0};

  QSF_TRY(arena.take(angles_, program.ropes().size(), Region::tables));
  std::uint64_t n_angles = 0;
  for (std::size_t i = 0; i < program.ropes().size(); ++i) {
    if (!arena.is_dry()) angles_[i] = static_cast<std::uint32_t>(n_angles);
    n_angles += std::uint64_t{chunk_} * program.ropes()[i].dims / 2;
  }
  QSF_TRY(arena.take(cos_, n_angles, Region::activations));
  QSF_TRY(arena.take(sin_, n_angles, Region::activations));
  QSF_TRY(arena.take(scores_, std::min(chunk_, plan.scored_tokens) * memory_->scores(), Region::activations));
  QSF_TRY(routing_.init(arena, chunk_, program.most_experts(), program.most_used()));
  for (std::span<float>& vector : vectors_) {
    QSF_TRY(arena.take(vector, program.longest_vector(), Region::activations));
  }
  return rows_.init(arena, plan.embedding_rows, config_->dim);
}

void Pass::begin(std::span<const Column> columns, std::uint32_t layers) {
  guesses_ = false;
  begin(columns, 1, layers);
}

void Pass::begin_guesses(std::span<const Column> columns) {
  guesses_ = true;
  begin(columns, config_->guess_stage, config_->guess_stage);
}

void Pass::begin(std::span<const Column> columns, std::uint32_t first, std::uint32_t last) {
  columns_ = columns;
  n_ = static_cast<std::uint32_t>(columns.size());
  n_logits_ = static_cast<std::uint32_t>(std::ranges::count(columns, true, &Column::wants_logits));
  n_hidden_ = static_cast<std::uint32_t>(std::ranges::count(columns, true, &Column::wants_hidden));
  stage_ = op_ = item_ = 0;
  entered_ = false;
  quantized_ = Buf::none;
  for (const Column& c : columns) memory_->write(c.sequence, c.position + 1);
  const std::uint32_t head = program_->head_stage();
  first_layer_ = first;
  last_layer_ = last;
  const std::uint32_t end = n_logits_ > 0 ? head + 1 : head;
  // The layer that guesses is the one in front of the head.
  ranges_ = guesses_ ? std::array{program_->range(0, 1), program_->range(first, end)}
                     : std::array{program_->range(0, last + 1), program_->range(head, end)};
  streamer_->begin_pass(ranges_);

  const std::span<const RopeTable> ropes = program_->ropes();
  for (std::size_t table = 0; table < ropes.size(); ++table) {
    const std::size_t half = ropes[table].frequency.size(), first = angles_[table];
    for (std::size_t c = 0; c < columns.size(); ++c) {
      for (std::size_t i = 0; i < half; ++i) {
        sin_[first + c * half + i] = static_cast<float>(columns[c].position) * ropes[table].frequency[i];
      }
    }
    const auto n = static_cast<std::uint32_t>(columns.size() * half);
    kernels_->sin_cos(sin_.data() + first, sin_.data() + first, cos_.data() + first, n);
    if (ropes[table].scale == 1) continue;
    kernels_->scale(sin_.data() + first, ropes[table].scale, n);
    kernels_->scale(cos_.data() + first, ropes[table].scale, n);
  }
}

const float* Pass::angle(std::span<float> of, std::uint32_t column) const {
  const std::uint32_t table = program().rope;
  return of.data() + angles_[table] + std::size_t{column} * program_->ropes()[table].dims / 2;
}

std::span<float> Pass::logits() const {
  const std::span<float> all = bufs_[static_cast<std::size_t>(Buf::logits)];
  return all.first(std::size_t{n_logits_} * config_->vocab_size);
}

std::span<float> Pass::hidden() const {
  const StageProgram& head = program_->of_stage(program_->head_stage());
  const bool normed = head.has[role_index(Role::final_norm)];
  const std::span<float> rows = bufs_[static_cast<std::size_t>(normed ? Buf::normed : Buf::x)];
  return rows.subspan(std::size_t{n_logits_} * config_->dim, std::size_t{n_hidden_} * config_->dim);
}

std::span<float> Pass::pooled() const {
  const bool dense = program_->of_stage(program_->head_stage()).has[role_index(Role::dense)];
  const bool scores = config_->table.model.score != 0;
  if (!dense && !scores) return hidden();
  const Buf rows = scores ? Buf::score : Buf::pooled;
  return bufs_[static_cast<std::size_t>(rows)].first(std::size_t{n_hidden_} * pooled_width());
}

/// Reduces a buffer to the columns that want an output: first those that want logits, then those that want hidden
/// states. `room` is a buffer of the same width or more.
void Pass::gather(Buf buf, Buf room) {
  const std::size_t row = width(buf) * sizeof(float);
  std::uint32_t logits = 0, hidden = 0;
  float* const aside = bufs_[static_cast<std::size_t>(room)].data();
  const auto kept = [&](std::uint32_t i) { return n_logits_ == 0 ? at(buf, i) : aside + std::size_t{i} * width(buf); };
  for (std::uint32_t from = 0; from < columns_.size(); ++from) {
    if (columns_[from].wants_hidden) std::memmove(kept(hidden++), at(buf, from), row);
    if (columns_[from].wants_logits) std::memmove(at(buf, logits++), at(buf, from), row);
  }
  if (n_logits_ != 0) std::memcpy(at(buf, n_logits_), aside, n_hidden_ * row);
}

/// Reduces the streams to the columns that want an output.
void Pass::gather_outputs() {
  const std::uint32_t n = n_logits_ + n_hidden_;
  if (n == n_ && (n_logits_ == 0 || n_hidden_ == 0)) return;
  gather(Buf::x, Buf::normed);
  if (program().kind->streams != 0) gather(Buf::streams, Buf::gate);
  n_ = n;
}

/// Keeps the last hidden states of all columns. The first op of the head is the norm that makes them.
void Pass::keep_hidden() {
  Op norm = program().ops.front();
  norm.out = Buf::hidden;
  norm.row->step(*this, norm);
}

/// Prepares the stage. Returns false while its vectors are being read.
bool Pass::enter_stage() {
  const auto there = [&](std::uint32_t stage) {
    const Weights::Segments vectors = weights_->vectors_of(stage);
    bool ready = true;
    for (std::uint32_t i = 0; i < vectors.n; ++i) ready &= streamer_->acquire(vectors.first + i) != nullptr;
    return ready;
  };
  // The norm of the layers' inputs and the biases of distances are of the head's vectors.
  const LayerKind& kind = *program().kind;
  const bool early = stage_ == 0 && (kind.layer_input != 0 || kind.distance_buckets != 0);
  // Otherwise the reads would show which pinned experts a text selects first.
  if (stage_ == 0 && sweeps() && !streamer_->preload(Streamer::Pinned::chosen)) return false;
  if (!there(stage_) || (early && !there(program_->head_stage()))) return false;
  if (stage_ == program_->head_stage()) {
    if (keeps_hidden_) keep_hidden();
    gather_outputs();
  }
  quantized_ = Buf::none;
  observer_.enter(stage_, at(Buf::x, 0), at(Buf::streams, 0), n_);
  return true;
}

Advance Pass::advance() {
  const StageProgram& program = program_->of_stage(stage_);
  if (!entered_) {
    if (!program.ops.empty()) work_ = program.ops[0].row->work;
    if (!enter_stage()) return Advance::blocked;
    entered_ = true;
  }
  if (op_ < program.ops.size() && n_ > 0) {
    const Op& op = program.ops[op_];
    work_ = op.row->work;
    const Advance advance = op.row->step(*this, op);
    if (advance != Advance::done) return advance;
    wrote(op.out);
    item_ = 0;
    ++op_;
  }
  if (op_ < program.ops.size() && n_ > 0) return Advance::working;
  observer_.leave(stage_, at(Buf::x, 0), at(Buf::streams, 0), n_);
  op_ = 0;
  entered_ = false;
  stage_ = stage_ == last_layer_ ? program_->head_stage() : stage_ == 0 ? first_layer_ : stage_ + 1;
  const std::uint32_t end = program_->head_stage() + (n_logits_ + n_hidden_ > 0 || keeps_hidden_ ? 1 : 0);
  return stage_ < end ? Advance::working : Advance::done;
}

const float* Pass::vector(Role role, std::size_t which, std::uint32_t begin, std::uint32_t n) {
  const TensorEntry& t = tensor(role);
  const SegmentEntry& s = weights_->tables().segments[t.first_segment];
  const Format& format = *find_format(t.format);
  const std::uint64_t at = t.raw_offset - s.raw_begin + row_bytes(format, begin);
  const std::byte* data = streamer_->acquire(t.first_segment) + at;
  const std::span<float> to = vectors_[which];
  if (format.id == FormatId::f16) {
    kernels_->widen_f16(data, to.data(), n);
  } else {
    dequantize_row(format, {data, static_cast<std::size_t>(row_bytes(format, n))}, to.first(n));
  }
  return to.data();
}

const QuantizedColumns& Pass::quantized(Buf buf, std::uint32_t n) {
  if (quantized_ == buf) return xq_;
  round(at(buf, 0), width(buf), width(buf), n);
  quantized_ = buf;
  return xq_;
}

const QuantizedColumns& Pass::quantized_part(const float* x, std::uint32_t stride, std::uint32_t cols) {
  round(x, stride, cols, n_);
  quantized_ = Buf::none;
  return xq_;
}

void Pass::round(const float* x, std::uint32_t stride, std::uint32_t cols, std::uint32_t n) {
  xq_.padded = padded_cols(cols);
  const ScaleOf scale_of = program().kind->column_scale != 0 ? ScaleOf::column : ScaleOf::group;
  for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
    kernels_->quantize_columns(x + std::size_t{begin} * stride, stride, cols, count, scale_of, xq_.from(begin));
  });
  count("quantize", {}, 1);
}

void Pass::count(std::string_view op, std::string_view type, std::uint64_t calls) {
  for (std::size_t i = 0; i < n_counts_; ++i) {
    if (counts_[i].op == op && counts_[i].type == type) {
      counts_[i].calls += calls;
      return;
    }
  }
  if (n_counts_ < counts_.size()) counts_[n_counts_++] = {op, type, calls};
}

}  // namespace qsf
