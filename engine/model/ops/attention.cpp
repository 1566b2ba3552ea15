// Softmax attention with grouped KV heads, QK-norm and RoPE.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "model/pass.h"
#include "model/rotation.h"
#include "model/state.h"
#include "qsf/base/exact.h"

namespace qsf {
namespace {

/// Returns the number of whole spans before a position, by which its queries grow.
std::uint32_t spans_before(const LayerKind& kind, std::uint32_t position) {
  return (position + kind.query_from_one) / kind.query_span;
}

/// Returns the factor of the queries of a position after so many spans.
float growth_of(const LayerKind& kind, std::uint32_t spans) {
  return static_cast<float>(1 + double{kind.query_growth} * exact::log(1.0 + spans));
}

/// Normalizes every head, [head_dim], if the op has a weight or the kind has norms without, and applies RoPE, in place.
/// Queries may then grow with their position.
Advance rope_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const std::uint32_t head_dim = kind.head_dim, n_heads = pass.width(op.out) / head_dim;
  const float* weight = op.has_weight ? pass.vector(op.weight) : nullptr;
  const std::size_t next = kind.norms_by_head != 0 ? head_dim : 0;  // from a head's weights to the next head's
  const bool norms = weight != nullptr || kind.bare_head_norm != 0;
  const bool is_rms = weight == nullptr || kind.norm == Norm::rms_norm;
  const bool late = kind.late_head_norm != 0, grows = op.out == Buf::q && kind.query_growth != 0;
  const auto normalize = [&](std::uint32_t begin, std::uint32_t count) {
    if (!norms) return;
    for (std::size_t i = 0; i < std::size_t{count} * n_heads; ++i) {
      float* const head = pass.at(op.out, begin) + i * head_dim;
      const float* const own = weight != nullptr ? weight + i % n_heads * next : nullptr;
      if (is_rms) {
        pass.kernels().rms_norm(head, own, head, head_dim, kind.norm_epsilon);
      } else {
        pass.kernels().layer_norm(head, own, nullptr, head, head_dim, kind.norm_epsilon);
      }
    }
  };
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    if (!late) normalize(begin, count);
    if (kind.rope_dims != 0) {
      pass.kernels().rope({pass.at(op.out, begin), count, pass.width(op.out), n_heads, head_dim, kind.rope_dims,
                           pass.cosines(begin), pass.sines(begin)});
    }
    if (late) normalize(begin, count);
    for (std::uint32_t t = begin; t < begin + count && grows; ++t) {
      const std::uint32_t spans = spans_before(kind, pass.columns()[t].position);
      if (spans != 0) pass.kernels().scale(pass.at(op.out, t), growth_of(kind, spans), pass.width(op.out));
    }
  });
  const OpRow& norm = is_rms ? op_rms_norm : op_layer_norm;
  if (norms) pass.count(norm.name, {}, std::uint64_t{pass.n()} * n_heads);
  if (kind.rope_dims != 0) pass.count(op_rope.name, {}, 1);
  return Advance::done;
}

/// Returns the length of the blocks that are rotated. A latent is rotated by itself, because it is a value too.
std::uint32_t rotated_by(const LayerKind& kind) {
  return rotation_block(kind.head_dim, kind.mixer == Mixer::latent ? kind.latent_dim : 0);
}

/// Stores keys and values, [n, n_kv_heads * head_dim], of n columns from `first` on, and rotates them before if their
/// forms are rotated.
void store(Pass& pass, const KvMemory& memory, const KvMemory& exact, std::uint32_t first, std::uint32_t n) {
  const LayerKind& kind = *pass.program().kind;
  const KvForms forms = forms_of(pass.memory().type());
  const std::uint32_t position = pass.columns()[first].position, head_dim = kind.head_dim;
  const auto keep = [&](KvForm form, float* x, std::byte* to, std::byte* exactly) {
    if (forms.rotates()) rotate(x, head_dim, rotated_by(kind), false);
    pass.kernels().kv_store[static_cast<std::size_t>(form)](x, head_dim, to);
    if (exactly != nullptr) pass.kernels().kv_store[static_cast<std::size_t>(KvForm::f16)](x, head_dim, exactly);
  };
  parallel_for(pass.workers(), kind.n_kv_heads, [&](std::uint32_t head) {
    for (std::uint32_t t = 0; t < n; ++t) {
      const std::uint32_t at = position + t;
      if (memory.choice != KvChoice::none) make_room(memory, head, at);
      const std::size_t begin = std::size_t{head} * head_dim;
      const bool is_exact = exact.capacity != 0;
      keep(forms.key, pass.at(Buf::k, first + t) + begin, memory.key(head, at),
           is_exact ? exact.key(head, at) : nullptr);
      if (memory.n_values == 0) continue;
      keep(forms.value, pass.at(Buf::v, first + t) + begin, memory.value(head, at),
           is_exact ? exact.value(head, at) : nullptr);
    }
  });
}

/// The division of attention among threads.
struct AttentionTasks {
  std::uint32_t heads;      // query heads of a task: those of one KV head if that keeps all threads busy, else 1
  std::uint32_t under_way;  // tasks at a time

  AttentionTasks(const LayerKind& kind, std::uint32_t threads, bool together)
      : heads(together || kind.n_kv_heads % threads == 0 ? kind.n_heads / kind.n_kv_heads : 1),
        under_way(std::min(kind.n_heads / heads, threads)) {}
};

/// Stores keys and values of a run of columns, then replaces the queries with the heads' outputs, [n, n_heads *
/// head_dim]. If positions see later ones, the pass has all columns of a sequence, and their keys and values are stored
/// at its first.
Advance attend_step(Pass& pass, const Op& op) {
  const LayerKind& kind = *pass.program().kind;
  const std::uint32_t first = pass.item();
  const Column& column = pass.columns()[first];
  const KvMemory memory = pass.memory().kv(column.sequence, pass.stage());
  const KvMemory exact = pass.memory().exact(column.sequence, pass.stage());
  const auto type = static_cast<std::size_t>(pass.memory().type());
  const std::uint32_t head_dim = kind.head_dim, group = kind.n_heads / kind.n_kv_heads;
  const bool chooses = memory.choice != KvChoice::none;
  const AttentionTasks tasks(kind, pass.workers().count, chooses);
  const bool both_ways = kind.bidirectional != 0;
  std::uint32_t most = memory.window == memory.capacity && exact.capacity == 0 ? kMostScored : kTogether;
  if (chooses) most = std::min(most, memory.until_choice(column.position));
  std::uint32_t rest = run_of_sequence(pass.columns(), first, both_ways ? pass.n() : most);
  // A token sees at most the positions that exist after this run, or all that are kept.
  const std::size_t seen = std::min(memory.capacity, column.position + rest);
  const std::size_t scored = pass.scores().size() / (std::size_t{tasks.under_way} * tasks.heads * seen);
  const std::uint32_t n = static_cast<std::uint32_t>(std::min<std::size_t>({scored, most, rest}));
  if (!both_ways) rest = n;
  const float* sinks = op.has_weight ? pass.vector(op.weight) : nullptr;
  const std::uint32_t n_buckets = kind.distance_buckets;
  const float* biases = n_buckets != 0 ? pass.vector(Role::distance_bias, 1) : nullptr;
  if (kind.kv_from == 0 && (!both_ways || column.position == 0)) store(pass, memory, exact, first, rest);
  const std::uint32_t block = forms_of(pass.memory().type()).rotates() ? rotated_by(kind) : 0;
  std::atomic<std::uint32_t> next = 0;
  parallel_for(pass.workers(), tasks.under_way, [&](std::uint32_t strand) {
    AttendArgs args;
    args.stride = pass.width(op.in);
    args.n_heads = tasks.heads;
    args.head_dim = head_dim;
    args.capacity = memory.capacity;
    args.position = column.position;
    args.n_positions = n;
    args.window = memory.window;
    args.first_kept = memory.first_kept;
    if (memory.choice == KvChoice::snapkv) {  // all slots up to the query's own
      args.position = column.position < memory.capacity ? column.position : memory.slot(column.position);
      args.window = memory.capacity;
      args.first_kept = 0;
    }
    args.aligned = kind.window_aligned != 0;
    args.scale = scale_of_scores(kind);
    if (both_ways) {
      args.ahead = memory.window - 1;
      args.length = column.position + rest;
    }
    args.cap = kind.score_cap;
    args.exact = {.capacity = exact.capacity, .window = exact.window, .first = exact.first_kept};
    args.scores = &pass.scores()[std::size_t{strand} * tasks.heads * n * seen];
    for (std::uint32_t head; (head = next.fetch_add(tasks.heads, std::memory_order_relaxed)) < kind.n_heads;) {
      args.q = pass.at(op.in, first) + std::size_t{head} * head_dim;
      args.out = pass.at(op.out, first) + std::size_t{head} * head_dim;
      args.k = memory.keys(head / group);
      args.v = memory.values(head / group);
      if (exact.capacity != 0) {
        args.exact.k = exact.keys(head / group);
        args.exact.v = exact.values(head / group);
      }
      const auto rotate_all = [&](Buf buf, bool back) {
        for (std::uint32_t t = first; t < first + n && block != 0; ++t) {
          rotate(pass.at(buf, t) + std::size_t{head} * head_dim, tasks.heads * head_dim, block, back);
        }
      };
      rotate_all(op.in, true);
      if (sinks != nullptr) args.sinks = sinks + head;
      if (kind.alibi != 0) args.slopes = &pass.program().slopes[head];
      if (biases != nullptr) {
        args.by_distance = {biases + std::size_t{head} * n_buckets, &pass.program().buckets[kind.bucket_reach],
                            n_buckets, kind.bucket_reach};
      }
      pass.kernels().attend[type](args);
      rotate_all(op.out, true);
      if (chooses) add_weights(memory, head / group, column.position, args);
    }
  });
  pass.count(op_attend.name, kKvNames[type], std::uint64_t{n} * kind.n_heads);
  pass.item() += n;
  return pass.item() < pass.n() ? Advance::working : Advance::done;
}

void emit(Builder& b, Buf in, Buf out) {
  b.product(Role::attn_q, Role::attn_q_bias, in, Buf::q);  // [n_heads * head_dim, dim]
  const LayerKind& kind = b.kind();
  const bool has_keys = kind.kv_from == 0, gated = kind.attention_gate != 0;
  if (has_keys) {
    b.product(Role::attn_k, Role::attn_k_bias, in, Buf::k);  // [n_kv_heads * head_dim, dim]
    if (kind.v_from_k != 0) {
      b.copy(Buf::k, Buf::v);
    } else {
      b.product(Role::attn_v, Role::attn_v_bias, in, Buf::v);  // [n_kv_heads * head_dim, dim]
    }
    if (kind.v_norm != 0) b.emit({.row = &op_value_norm, .in = Buf::v, .out = Buf::v});
  }
  if (gated) b.product(Role::attn_gate, Role::attn_gate, in, Buf::z);  // [n_heads * head_dim, dim]
  const bool by_head = kind.norms_by_head != 0;
  for (const auto& [role, buf] : {std::pair(Role::attn_q_norm_all, Buf::q), std::pair(Role::attn_k_norm_all, Buf::k)}) {
    if (!by_head && b.has(role)) b.norm(role, role, buf, buf);
  }
  b.in_place(op_rope, by_head ? Role::attn_q_norm_all : Role::attn_q_norm, Buf::q);  // [n_heads * head_dim], [head_dim]
  if (has_keys) b.in_place(op_rope, by_head ? Role::attn_k_norm_all : Role::attn_k_norm, Buf::k);
  b.uses(Role::distance_bias);                      // [n_heads, distance_buckets]
  b.in_place(op_attend, Role::attn_sinks, Buf::q);  // [n_heads]
  if (b.has(Role::attn_sub_norm)) b.norm(Role::attn_sub_norm, Role::attn_sub_norm, Buf::q, Buf::q);
  if (gated) b.emit({.row = &op_sigmoid_gate, .in = Buf::q, .out = Buf::z});
  b.product(Role::attn_o, Role::attn_o_bias, gated ? Buf::z : Buf::q, out);  // [dim, n_heads * head_dim]
}

MemoryNeed memory(const LayerKind& kind, std::uint32_t) {
  return {kind.n_kv_heads, kind.head_dim, kind.window, 0, kind.bidirectional != 0, kind.kv_from};
}

void emit_none(Builder&, Buf, Buf) {}
MemoryNeed no_memory(const LayerKind&, std::uint32_t) { return {}; }

}  // namespace

float scale_of_scores(const LayerKind& kind) {
  if (kind.attention_scale != 0) return kind.attention_scale;
  const std::uint32_t width = kind.mixer == Mixer::latent ? kind.latent_head_dim : kind.head_dim;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)));
}

const OpRow op_rope{"rope", Work::rope, rope_step};
const OpRow op_attend{"attend", Work::attention, attend_step};
const MixerRow mixer_attention{emit, memory};
const MixerRow mixer_none{emit_none, no_memory};

}  // namespace qsf
