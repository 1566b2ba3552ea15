// Several streams (AltUp, Baykal et al. 2023). A layer computes one stream, x. Before it, each stream is predicted from
// all of them; after it, each is corrected by the change of the computed one. The factors of both come from a router
// that sees x. Before the first layer, the other streams are products of x; after the last one, x becomes the mean of
// all streams' products. Each op computes every column by itself.
#include <algorithm>
#include <array>
#include <cmath>

#include "model/pass.h"

namespace qsf {
namespace {

constexpr float kLeastSquare = 1e-5f;  // of the mean square of a stream that is scaled to another's length
constexpr std::uint32_t kParts = 8;    // of a sum, which is the sum of these in order

/// An op and its weight, which is null without one.
struct Task {
  Pass& pass;
  const Op& op;
  const float* weight;

  float* in(std::uint32_t t) const { return pass.at(op.in, t); }
  float* out(std::uint32_t t) const { return pass.at(op.out, t); }
  std::uint32_t width() const { return pass.width(op.out); }
  std::uint32_t dim() const { return pass.width(Buf::x); }
  std::uint32_t streams() const { return pass.program().kind->streams; }
  /// Returns a stream of column t, [dim].
  float* stream(std::uint32_t t, std::uint32_t i) const {
    return i == 0 ? pass.at(Buf::x, t) : pass.at(Buf::streams, t) + std::size_t{i - 1} * dim();
  }
};
using ColumnStep = void(const Task& task, std::uint32_t t);

Advance for_each_column(Pass& pass, const Op& op, ColumnStep* step) {
  const Task task{pass, op, op.has_weight ? pass.vector(op.weight) : nullptr};
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) step(task, t);
  });
  pass.wrote(Buf::streams);
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

template <ColumnStep* kStep>
Advance step_of(Pass& pass, const Op& op) {
  return for_each_column(pass, op, kStep);
}

/// Returns the mean of (x - less)^power for n values, added in one order for all instruction sets.
double mean_of(const float* x, std::uint32_t n, double less, int power) {
  std::array<double, kParts> parts{};
  for (std::uint32_t i = 0; i < n; ++i) {
    const double value = double{x[i]} - less;
    parts[i % kParts] += power == 2 ? value * value : value;
  }
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum / n;
}

/// Multiplies `out` by a vector.
void scale(const Task& task, std::uint32_t t) { task.pass.kernels().mul(task.out(t), task.weight, task.width()); }

/// Subtracts from the gates in `out` their mean plus gate_cut standard deviations. Gates below 0 become 0.
void cut(const Task& task, std::uint32_t t) {
  const std::uint32_t n = task.width();
  float* const gate = task.out(t);
  const double mean = mean_of(gate, n, 0, 1), deviation = std::sqrt(mean_of(gate, n, mean, 2));
  const auto least = static_cast<float>(mean + double{task.pass.program().kind->gate_cut} * deviation);
  for (std::uint32_t i = 0; i < n; ++i) gate[i] = gate[i] > least ? gate[i] - least : 0.0f;
}

/// Computes tanh(router(in) / dim), [streams]. The router is [streams, dim] as one vector.
void route(const Task& task, std::uint32_t t) {
  const Kernels& kernels = task.pass.kernels();
  MatmulArgs args;
  args.weights = reinterpret_cast<const std::byte*>(task.weight);
  args.rows = task.streams();
  args.cols = args.x_stride = task.dim();
  args.x = task.in(t);
  args.n = 1;
  args.y = task.out(t);
  args.y_stride = args.rows;
  kernels.matmul[static_cast<std::size_t>(format_index(FormatId::f32))](args);
  kernels.scale(args.y, 1.0f / static_cast<float>(args.cols), args.rows);
  kernels.soft_cap(args.y, args.rows, 1);
}

/// Returns the sum of factors[i] * values[i].
float dot(const float* factors, const float* values, std::uint32_t n) {
  float sum = 0;
  for (std::uint32_t i = 0; i < n; ++i) sum += factors[i] * values[i];
  return sum;
}

/// Adds to each stream the sum of all streams, each times its factor, which is a product of the router's values. Copies
/// x to Buf::predicted.
void predict(const Task& task, std::uint32_t t) {
  const std::uint32_t n = task.streams(), dim = task.dim();
  std::array<float, kMaxStreams * kMaxStreams> factors;  // [to, from]
  for (std::uint32_t i = 0; i < n * n; ++i) factors[i] = dot(task.weight + i * n, task.in(t), n);
  std::array<float*, kMaxStreams> streams;
  for (std::uint32_t i = 0; i < n; ++i) streams[i] = task.stream(t, i);
  for (std::uint32_t c = 0; c < dim; ++c) {
    std::array<float, kMaxStreams> values;
    for (std::uint32_t i = 0; i < n; ++i) values[i] = streams[i][c];
    for (std::uint32_t i = 0; i < n; ++i) streams[i][c] += dot(&factors[i * n], values.data(), n);
  }
  std::copy_n(streams[0], dim, task.pass.at(Buf::predicted, t));
}

/// Replaces each stream by its prediction plus the change of x, times a factor that is 1 plus a product of the router's
/// values.
void correct(const Task& task, std::uint32_t t) {
  const std::uint32_t n = task.streams(), dim = task.dim();
  float* const now = task.out(t);
  float* const change = task.pass.at(Buf::predicted, t);
  for (std::uint32_t c = 0; c < dim; ++c) {
    float& x = now[c];
    const float predicted = change[c];
    change[c] = x - predicted;
    x = predicted;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const float factor = 1 + dot(task.weight + i * n, task.in(t), n);
    float* const stream = task.stream(t, i);
    for (std::uint32_t c = 0; c < dim; ++c) stream[c] += change[c] * factor;
  }
}

/// Adds `in`, [dim], to each of the other streams.
void add(const Task& task, std::uint32_t t) {
  for (std::uint32_t i = 1; i < task.streams(); ++i) {
    task.pass.kernels().add(task.stream(t, i), task.in(t), task.dim());
  }
}

/// Scales each of the other streams in `out`, [streams - 1, dim], to the length of x.
void level(const Task& task, std::uint32_t t) {
  const std::uint32_t dim = task.dim();
  const double wanted = std::sqrt(mean_of(task.stream(t, 0), dim, 0, 2));
  for (std::uint32_t begin = 0; begin < task.width(); begin += dim) {
    float* const stream = task.out(t) + begin;
    const double is = std::sqrt(std::max(mean_of(stream, dim, 0, 2), double{kLeastSquare}));
    task.pass.kernels().scale(stream, static_cast<float>(wanted / is), dim);
  }
}

/// Makes x in `out` the mean of x and of `in`, [streams - 1, dim].
void join(const Task& task, std::uint32_t t) {
  const std::uint32_t n = task.streams(), dim = task.dim();
  for (std::uint32_t i = 1; i < n; ++i) {
    task.pass.kernels().add(task.out(t), task.in(t) + std::size_t{i - 1} * dim, dim);
  }
  task.pass.kernels().scale(task.out(t), 1.0f / static_cast<float>(n), dim);
}

}  // namespace

const OpRow op_scale_by_vector{"scale", Work::scale, step_of<scale>};
const OpRow op_cut_gates{"cut", Work::activate, step_of<cut>};
const OpRow op_route_streams{"route_streams", Work::route, step_of<route>};
const OpRow op_predict{"predict", Work::add, step_of<predict>};
const OpRow op_correct{"correct", Work::add, step_of<correct>};
const OpRow op_add_to_streams{"add", Work::add, step_of<add>};
const OpRow op_level_streams{"level_streams", Work::scale, step_of<level>};
const OpRow op_join_streams{"join_streams", Work::add, step_of<join>};

}  // namespace qsf
