#include "model/forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "qsf/base/exact.h"
#include "qsf/base/half.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

/// One instruction of a block. An op whose tensor the section lacks is left out.
struct Op {
  Work kind;
  Role role;  // norm and matmul: the weight; rope: a norm of every head, where the section has it
  Role bias;  // matmul: added where the section has it
  Buf in, out;
};
constexpr Role kNoBias = Role::token_embd;

constexpr std::array kBlock{
    Op{Work::norm, Role::attn_norm, kNoBias, Buf::x, Buf::normed},
    Op{Work::matmul, Role::attn_q, Role::attn_q_bias, Buf::normed, Buf::q},
    Op{Work::matmul, Role::attn_k, Role::attn_k_bias, Buf::normed, Buf::k},
    Op{Work::matmul, Role::attn_v, Role::attn_v_bias, Buf::normed, Buf::v},
    Op{Work::rope, Role::attn_q_norm, kNoBias, Buf::q, Buf::q},
    Op{Work::rope, Role::attn_k_norm, kNoBias, Buf::k, Buf::k},
    Op{Work::attention, Role::attn_q, kNoBias, Buf::q, Buf::q},
    Op{Work::matmul, Role::attn_o, Role::attn_o_bias, Buf::q, Buf::normed},
    Op{Work::add, Role::attn_o, kNoBias, Buf::normed, Buf::x},
    Op{Work::norm, Role::ffn_norm, kNoBias, Buf::x, Buf::normed},
    Op{Work::matmul, Role::ffn_gate, kNoBias, Buf::normed, Buf::gate},
    Op{Work::matmul, Role::ffn_up, kNoBias, Buf::normed, Buf::up},
    Op{Work::activate, Role::ffn_gate, kNoBias, Buf::up, Buf::gate},
    Op{Work::matmul, Role::ffn_down, Role::ffn_bias, Buf::gate, Buf::normed},
    Op{Work::add, Role::ffn_down, kNoBias, Buf::normed, Buf::x},
};

std::array<std::uint32_t, kBufs> buffer_widths(const Config& c) {
  return {c.dim, c.dim, c.q_dim(), c.kv_dim(), c.kv_dim(), c.ffn_dim, c.ffn_dim};
}

std::uint32_t widest(const Config& c) { return std::max({c.dim, c.q_dim(), c.ffn_dim}); }

}  // namespace

std::uint64_t Forward::bytes_per_column(const Config& c) {
  std::uint64_t floats = c.head_dim;  // RoPE's cosines and sines
  for (const std::uint32_t width : buffer_widths(c)) floats += width;
  const std::uint64_t padded = padded_cols(widest(c));
  return floats * sizeof(float) + padded + padded / kGroup * 4 * sizeof(float);
}

std::uint64_t Forward::fixed_bytes(const Config& c) { return (widest(c) + c.head_dim / 2) * sizeof(float); }

Status Forward::init(Arena& arena, const Config& config, const Weights& weights, Streamer& streamer,
                     const Kernels& kernels, const Workers& workers, const Plan& plan,
                     std::span<const float> rope_divisors, std::uint32_t logits_rows) {
  config_ = &config;
  weights_ = &weights;
  streamer_ = &streamer;
  kernels_ = &kernels;
  workers_ = workers;
  QSF_TRY(kv_.init(arena, config, plan.kv, plan.kv_capacity));

  Status failed;
  const auto take = [&]<class T>(std::span<T>& to, std::uint64_t count, Region region) {
    if (!failed) return;
    const auto taken = arena.take<T>(count, region);
    if (!taken) {
      failed = taken.error();
    } else {
      to = *taken;
    }
  };
  widths_ = buffer_widths(config);
  for (std::size_t i = 0; i < kBufs; ++i) take(bufs_[i], std::uint64_t{plan.chunk} * widths_[i], Region::activations);
  const std::uint64_t padded = padded_cols(widest(config));
  std::span<std::int8_t> codes;
  std::span<float> d, sums, half_sums;
  take(codes, plan.chunk * padded, Region::activations);
  take(d, plan.chunk * padded / kGroup, Region::activations);
  take(sums, plan.chunk * padded / kGroup, Region::activations);
  take(half_sums, plan.chunk * padded / kGroup * 2, Region::activations);
  take(rope_cos_, std::uint64_t{plan.chunk} * config.head_dim / 2, Region::activations);
  take(rope_sin_, std::uint64_t{plan.chunk} * config.head_dim / 2, Region::activations);
  take(rope_frequency_, config.head_dim / 2, Region::activations);
  take(scores_, kTogether * std::uint64_t{config.n_heads} * plan.kv_capacity, Region::activations);
  take(vector_, widest(config), Region::activations);
  take(logits_, std::uint64_t{logits_rows} * config.vocab_size, Region::logits);
  row_stride_ = static_cast<std::uint32_t>(align_up(config.dim * sizeof(float)) / sizeof(float));
  take(rows_, std::uint64_t{plan.embedding_rows} * row_stride_, Region::embedding_rows);
  take(cached_, plan.embedding_rows, Region::embedding_rows);
  if (!failed) return failed;
  xq_ = {codes.data(), d.data(), sums.data(), half_sums.data(), 0};

  // As Hugging Face does: float frequencies, float angles. The power itself is exact to double.
  for (std::uint32_t i = 0; i < rope_frequency_.size(); ++i) {
    const double exponent = -2.0 * i / config.head_dim;
    const auto frequency = static_cast<float>(exact::pow(config.rope_theta, exponent));
    rope_frequency_[i] = rope_divisors.empty() ? frequency : frequency / rope_divisors[i];
  }

  for (std::size_t i = 0; i < kFormats.size(); ++i) counts_[i] = {"matmul", kFormats[i].name, 0};
  counts_[kCountQuantize].op = "quantize";
  counts_[kCountNorm].op = "rms_norm";
  for (std::size_t i = 0; i < kKvNames.size(); ++i) counts_[kCountAttend + i] = {"attend", kKvNames[i], 0};
  counts_[kCountSilu].op = "silu";
  counts_[kCountAdd].op = "add";
  counts_[kCountRope].op = "rope";
  counts_[kCountEmbed].op = "embed";
  return {};
}

void Forward::begin(std::span<const std::uint32_t> tokens, std::uint32_t first, std::uint32_t logits_rows) {
  tokens_ = tokens;
  first_ = first;
  logits_rows_ = logits_rows;
  layer_ = op_ = item_ = 0;
  embedded_ = false;
  quantized_ = Buf::none;
  streamer_->begin_pass(logits_rows > 0);

  const std::size_t half = rope_frequency_.size();
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (std::size_t i = 0; i < half; ++i) {
      rope_sin_[t * half + i] = static_cast<float>(first + t) * rope_frequency_[i];
    }
  }
  const auto n = static_cast<std::uint32_t>(tokens.size() * half);
  kernels_->sin_cos(rope_sin_.data(), rope_sin_.data(), rope_cos_.data(), n);
}

Forward::Advance Forward::advance() {
  if (!embedded_) return embed();
  if (layer_ < config_->n_layers) return layer_op();
  return head_op();
}

Forward::Advance Forward::embed() {
  work_ = Work::embed;
  for (; item_ < tokens_.size(); ++item_) {
    if (!embed_token(item_)) return Advance::blocked;
  }
  item_ = 0;
  embedded_ = true;
  return Advance::working;
}

bool Forward::embed_token(std::uint32_t column) {
  const std::uint32_t token = tokens_[column], dim = config_->dim;
  float* x = at(Buf::x, column);
  Cached* oldest = nullptr;
  for (Cached& c : cached_) {
    if (c.token == token + 1) {
      std::memcpy(x, &rows_[static_cast<std::size_t>(&c - cached_.data()) * row_stride_], dim * sizeof(float));
      c.used = ++lookups_;
      return true;
    }
    if (oldest == nullptr || c.used < oldest->used) oldest = &c;
  }

  const TensorEntry& table = weights_->embedding();
  const std::uint32_t segment = weights_->segment_of_row(table, token);
  const std::byte* raw = streamer_->acquire(segment, Streamer::Use::lookup);
  if (raw == nullptr) return false;
  const Weights::Rows rows = weights_->rows_in(table, segment);
  const Format& format = *find_format(table.format);
  const auto row = static_cast<std::size_t>(row_bytes(format, dim));
  const std::uint32_t within = token - rows.begin;
  const std::byte* data = raw + rows.offset;
  if (format.quantized()) {
    const std::uint32_t strip = within / kTileRows;
    dequantize_tile_row(format, {data + strip * kTileRows * row, kTileRows * row}, within % kTileRows, {x, dim});
  } else {
    dequantize_row(format, {data + within * row, row}, {x, dim});
  }
  streamer_->release(segment);
  ++counts_[kCountEmbed].calls;
  if (oldest != nullptr) {
    *oldest = {token + 1, ++lookups_};
    std::memcpy(&rows_[static_cast<std::size_t>(oldest - cached_.data()) * row_stride_], x, dim * sizeof(float));
  }
  return true;
}

bool Forward::vectors_ready(std::uint32_t section) {
  bool ready = true;
  for (std::size_t role = 0; role < kRoleNames.size(); ++role) {
    const TensorEntry* t = weights_->find(section, static_cast<Role>(role));
    if (t == nullptr || (weights_->tables().segments[t->first_segment].flags & kSegmentVectors) == 0) continue;
    ready &= streamer_->acquire(t->first_segment) != nullptr;
  }
  return ready;
}

const float* Forward::vector(const TensorEntry& t, std::span<float> to) {
  const SegmentEntry& s = weights_->tables().segments[t.first_segment];
  const std::byte* data = streamer_->acquire(t.first_segment) + (t.raw_offset - s.raw_begin);
  const Format& format = *find_format(t.format);
  if (format.id == FormatId::f16) {
    kernels_->widen_f16(data, to.data(), t.cols);
  } else {
    dequantize_row(format, {data, static_cast<std::size_t>(row_bytes(format, t.cols))}, to.first(t.cols));
  }
  return to.data();
}

void Forward::quantize(Buf buf, std::uint32_t first_column, std::uint32_t n, std::uint32_t cols) {
  if (quantized_ == buf) return;
  xq_.padded = padded_cols(cols);
  for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
    kernels_->quantize_columns(at(buf, first_column + begin), width(buf), cols, count, xq_.from(begin));
  });
  quantized_ = buf;
  ++counts_[kCountQuantize].calls;
}

/// The product of the segment at item_; done when it was the last.
Forward::Advance Forward::matmul(const TensorEntry& tensor, Buf in, std::uint32_t first_column, std::uint32_t n,
                                 float* y, std::uint32_t y_stride) {
  const std::uint32_t segment = tensor.first_segment + item_;
  const std::byte* raw = streamer_->acquire(segment);
  if (raw == nullptr) return Advance::blocked;
  const auto format = static_cast<std::size_t>(format_index(tensor.format));
  if (kFormats[format].quantized()) quantize(in, first_column, n, tensor.cols);

  const Weights::Rows rows = weights_->rows_in(tensor, segment);
  const std::uint64_t row = row_bytes(kFormats[format], tensor.cols);
  constexpr std::uint32_t kMinRows = 64;  // per task: the seed's phase 4.3
  const std::uint32_t tasks = workers_.count > 1 ? std::max(rows.count / kMinRows, 1u) : 1;
  const std::uint32_t per_task = static_cast<std::uint32_t>(align_up((rows.count + tasks - 1) / tasks, kTileRows));
  parallel_for(workers_, (rows.count + per_task - 1) / per_task, [&](std::uint32_t task) {
    const std::uint32_t begin = task * per_task;
    MatmulArgs args;
    args.weights = raw + rows.offset + begin * row;
    args.rows = std::min(per_task, rows.count - begin);
    args.cols = tensor.cols;
    args.x = at(in, first_column);
    args.x_stride = width(in);
    args.xq = xq_;
    args.n = n;
    args.y = y + rows.begin + begin;
    args.y_stride = y_stride;
    kernels_->matmul[format](args);
  });
  streamer_->release(segment);
  ++counts_[kCountMatmul + format].calls;
  return ++item_ == tensor.n_segments ? Advance::done : Advance::working;
}

void Forward::norm(const TensorEntry& weight, Buf in, Buf out, std::uint32_t first_column, std::uint32_t n) {
  const float* w = vector(weight, vector_);
  for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = first_column + begin; t < first_column + begin + count; ++t) {
      kernels_->rms_norm(at(in, t), w, at(out, t), config_->dim, config_->norm_epsilon);
    }
  });
  if (quantized_ == out) quantized_ = Buf::none;
  counts_[kCountNorm].calls += n;
}

/// QK-norm (a null weight: none) and RoPE of every head of the chunk's queries or keys.
void Forward::rotate(const TensorEntry* weight, Buf buf) {
  const std::uint32_t hd = config_->head_dim, n = static_cast<std::uint32_t>(tokens_.size());
  const std::uint32_t n_heads = width(buf) / hd;
  if (weight != nullptr) {
    const float* w = vector(*weight, vector_);
    for (std::size_t i = 0; i < std::size_t{n} * n_heads; ++i) {
      float* head = at(buf, 0) + i * hd;
      kernels_->rms_norm(head, w, head, hd, config_->norm_epsilon);
    }
    counts_[kCountNorm].calls += std::uint64_t{n} * n_heads;
  }
  for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
    const std::size_t angles = std::size_t{begin} * hd / 2;
    kernels_->rope({at(buf, begin), count, width(buf), n_heads, hd, &rope_cos_[angles], &rope_sin_[angles]});
  });
  ++counts_[kCountRope].calls;
}

/// The cache and attention of n tokens from `column` on; the heads' outputs replace their queries.
void Forward::attention(std::uint32_t column, std::uint32_t n) {
  const Config& c = *config_;
  const std::uint32_t hd = c.head_dim, group = c.n_heads / c.n_kv_heads;
  const std::uint32_t position = first_ + column, capacity = kv_.capacity();
  const auto type = static_cast<std::size_t>(kv_.type());
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hd)));
  for (std::uint32_t t = 0; t < n; ++t) {
    const std::size_t slot = (position + t) % capacity * kv_.position_bytes();
    for (std::uint32_t kv_head = 0; kv_head < c.n_kv_heads; ++kv_head) {
      const std::size_t begin = std::size_t{kv_head} * hd;
      kernels_->kv_store[type](at(Buf::k, column + t) + begin, hd, kv_.keys(layer_, kv_head) + slot);
      kernels_->kv_store[type](at(Buf::v, column + t) + begin, hd, kv_.values(layer_, kv_head) + slot);
    }
  }
  // Query heads that share a cache go together where that leaves no thread idle.
  const std::uint32_t together = c.n_kv_heads % workers_.count == 0 ? group : 1;
  parallel_for(workers_, c.n_heads / together, [&](std::uint32_t task) {
    const std::uint32_t head = task * together, kv_head = head / group;
    float* const q = at(Buf::q, column) + std::size_t{head} * hd;
    AttendArgs args;
    args.q = args.out = q;
    args.stride = width(Buf::q);
    args.k = kv_.keys(layer_, kv_head);
    args.v = kv_.values(layer_, kv_head);
    args.n_heads = together;
    args.head_dim = hd;
    args.capacity = capacity;
    args.position = position;
    args.n_positions = n;
    args.window = c.window != 0 ? std::min(c.window, capacity) : capacity;
    args.scale = scale;
    args.scores = &scores_[std::size_t{head} * kTogether * capacity];
    kernels_->attend[type](args);
  });
  counts_[kCountAttend + type].calls += std::uint64_t{n} * c.n_heads;
}

Forward::Advance Forward::layer_op() {
  const std::uint32_t section = layer_ + 1, n = static_cast<std::uint32_t>(tokens_.size());
  if (op_ == 0 && item_ == 0 && !vectors_ready(section)) return Advance::blocked;
  const Op& op = kBlock[op_];
  const TensorEntry* weight = weights_->find(section, op.role);
  work_ = op.kind;

  switch (op.kind) {
    case Work::embed:
    case Work::sample:
      break;  // not in a block
    case Work::norm:
      norm(*weight, op.in, op.out, 0, n);
      break;
    case Work::matmul: {
      const Advance advance = matmul(*weight, op.in, 0, n, at(op.out, 0), width(op.out));
      if (advance != Advance::done) return advance;
      if (const TensorEntry* bias = weights_->find(section, op.bias); bias != nullptr && op.bias != kNoBias) {
        const float* b = vector(*bias, vector_);
        for (std::uint32_t t = 0; t < n; ++t) kernels_->add(at(op.out, t), b, width(op.out));
        counts_[kCountAdd].calls += n;
      }
      if (quantized_ == op.out) quantized_ = Buf::none;
      break;
    }
    case Work::rope:
      rotate(weight, op.out);
      break;
    case Work::attention:
      attention(item_, std::min(n - item_, kTogether));
      item_ += kTogether;
      quantized_ = Buf::none;
      if (item_ < n) return Advance::working;
      break;
    case Work::activate:
      for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
        kernels_->silu(at(op.out, begin), at(op.in, begin), count * width(op.out));
      });
      counts_[kCountSilu].calls += n;
      quantized_ = Buf::none;
      break;
    case Work::add:
      for_columns(n, [&](std::uint32_t begin, std::uint32_t count) {
        kernels_->add(at(op.out, begin), at(op.in, begin), count * width(op.out));
      });
      counts_[kCountAdd].calls += n;
      break;
  }
  item_ = 0;
  if (++op_ == kBlock.size()) {
    op_ = 0;
    ++layer_;
    if (layer_ == config_->n_layers && logits_rows_ == 0) return Advance::done;
  }
  return Advance::working;
}

Forward::Advance Forward::head_op() {
  const std::uint32_t n = logits_rows_, first = static_cast<std::uint32_t>(tokens_.size()) - n;
  if (op_ == 0) {
    const std::uint32_t section = weights_->final_section();
    if (!vectors_ready(section)) return Advance::blocked;
    work_ = Work::norm;
    norm(*weights_->find(section, Role::final_norm), Buf::x, Buf::normed, first, n);
    op_ = 1;
    return Advance::working;
  }
  work_ = Work::matmul;
  return matmul(weights_->head(), Buf::normed, first, n, logits_.data(), config_->vocab_size);
}

}  // namespace qsf
