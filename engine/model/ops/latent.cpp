// Latent attention (DeepSeek-AI 2024). All heads share one key of a position: a latent, [latent_dim], and a part that
// RoPE rotates, [rope_dims]. The latent is also the value of all heads. Queries are multiplied into its space, and
// outputs out of it, so that the heads' own keys and values never exist.
#include <algorithm>
#include <cmath>

#include "model/ops/parts.h"

namespace qsf {
namespace {

/// Multiplies each head's part of `in`, [n, n_heads, width(in) / n_heads], by its rows of a matrix, [n_heads * rows,
/// cols]. Uses the first `cols` values of a part, and writes the first `rows` values of the head's part of `out`. The
/// parts may also be streams.
Advance by_head_step(Pass& pass, const Op& op) {
  const TensorEntry& tensor = pass.tensor(op.weight);
  const LayerKind& kind = *pass.program().kind;
  const std::uint32_t n_heads = op.weight == Role::streams_out ? kind.other_streams() : kind.n_heads;
  const std::uint32_t rows = tensor.rows / n_heads;
  const std::uint32_t segment = tensor.first_segment + pass.item();
  const std::byte* raw = pass.streamer().acquire(segment);
  if (raw == nullptr) return Advance::blocked;
  const Weights::Rows all = pass.weights().rows_in(tensor, segment);
  const std::uint64_t row_size = row_bytes(*find_format(tensor.format), tensor.cols);
  for (std::uint32_t done = 0; done < all.count;) {
    const std::uint32_t head = (all.begin + done) / rows, within = (all.begin + done) % rows;
    MatmulArgs args;
    args.weights = raw + all.offset + done * row_size;
    args.rows = std::min(rows - within, all.count - done);
    args.cols = tensor.cols;
    args.x_stride = pass.width(op.in);
    args.x = pass.at(op.in, 0) + std::size_t{head} * (args.x_stride / n_heads);
    if (is_quantized(tensor)) args.xq = pass.quantized_part(args.x, args.x_stride, tensor.cols);
    args.n = pass.n();
    args.y_stride = pass.width(op.out);
    args.y = pass.at(op.out, 0) + std::size_t{head} * (args.y_stride / n_heads) + within;
    multiply(pass, tensor, args);
    done += args.rows;
  }
  pass.streamer().release(segment);
  return ++pass.item() < tensor.n_segments ? Advance::working : Advance::done;
}

/// Rotates the queries' rotated parts, Buf::decay [n, n_heads, rope_dims], and the key's, Buf::rate [n, rope_dims], and
/// puts them after the latents: `out` is [n, n_heads, latent_dim + rope_dims], Buf::k [n, latent_dim + rope_dims].
Advance join_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const std::uint32_t latent = kind.latent_dim, turned = kind.rope_dims;
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (const auto& [buf, n_heads] : {std::pair(Buf::decay, kind.n_heads), std::pair(Buf::rate, 1u)}) {
      pass.kernels().rope({pass.at(buf, begin), count, pass.width(buf), n_heads, turned, turned, pass.cosines(begin),
                           pass.sines(begin)});
    }
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      for (std::uint32_t head = 0; head < kind.n_heads; ++head) {
        std::copy_n(pass.at(Buf::decay, t) + std::size_t{head} * turned, turned,
                    pass.at(op.out, t) + std::size_t{head} * kind.head_dim + latent);
      }
      std::copy_n(pass.at(Buf::v, t), latent, pass.at(Buf::k, t));
      std::copy_n(pass.at(Buf::rate, t), turned, pass.at(Buf::k, t) + latent);
    }
  });
  pass.count(op_rope.name, {}, 1);
  return Advance::done;
}

void emit(Builder& b, Buf in, Buf out) {
  const LayerKind& kind = b.kind();
  Buf queries = in;
  if (kind.query_rank != 0) {
    queries = Buf::z;
    b.product(Role::latent_q_down, Role::latent_q_down, in, queries);  // [query_rank, dim]
    b.norm(Role::latent_q_norm, Role::latent_q_norm, queries, queries);
  }
  b.product(Role::latent_q, Role::latent_q, queries, Buf::q2);               // [n_heads * still_dims, query_rank]
  b.product(Role::latent_q_rope, Role::latent_q_rope, queries, Buf::decay);  // [n_heads * rope_dims, query_rank]
  b.product(Role::latent_kv, Role::latent_kv, in, Buf::v);                   // [latent_dim, dim]
  b.product(Role::latent_k_rope, Role::latent_k_rope, in, Buf::rate);        // [rope_dims, dim]
  b.norm(Role::latent_kv_norm, Role::latent_kv_norm, Buf::v, Buf::v);
  b.set_width(Buf::q, kind.q_dim());
  b.set_width(Buf::k, kind.head_dim);
  b.set_width(Buf::v2, kind.n_heads * kind.latent_value_dim);
  b.by_head(Role::latent_k_up, Buf::q2, Buf::q);  // [n_heads * latent_dim, still_dims]
  b.emit({.row = &op_latent_join, .in = Buf::q, .out = Buf::q});
  b.emit({.row = &op_attend, .in = Buf::q, .out = Buf::q});
  b.by_head(Role::latent_v_up, Buf::q, Buf::v2);                // [n_heads * latent_value_dim, latent_dim]
  b.product(Role::latent_out, Role::latent_out, Buf::v2, out);  // [dim, n_heads * latent_value_dim]
}

MemoryNeed memory(const LayerKind& kind, std::uint32_t) {
  return {.n_kv_heads = 1, .head_dim = kind.head_dim, .window = kind.window, .keys_only = true};
}

}  // namespace

const OpRow op_by_head{"matmul", Work::matmul, by_head_step};
const OpRow op_latent_join{"rope", Work::rope, join_step};
const MixerRow mixer_latent{emit, memory};

}  // namespace qsf
