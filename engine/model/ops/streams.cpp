// Several streams (AltUp, Baykal et al. 2023). A layer computes one stream, x. Before it, each stream is predicted from
// all of them; after it, each is corrected by the change of the computed one. The factors of both come from a router
// that sees x. Before the first layer, the other streams are products of x; after the last one, x becomes the mean of
// all streams' products.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/pass.h"

namespace qsf {
namespace {

constexpr std::uint32_t kBlock = 64;   // values of a stream that are computed together
constexpr float kLeastSquare = 1e-5f;  // of the mean square of a stream that is scaled to another's length
constexpr std::uint32_t kParts = 8;    // of a sum, which is the sum of these in order

/// Returns the sum of term(i) for i below n, in one order for all instruction sets.
template <class Term>
double sum_of(std::uint32_t n, Term term) {
  std::array<double, kParts> parts{};
  for (std::uint32_t i = 0; i < n; ++i) parts[i % kParts] += term(i);
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

double mean_square(const float* x, std::uint32_t n) {
  return sum_of(n, [&](std::uint32_t i) { return double{x[i]} * double{x[i]}; }) / n;
}

/// Multiplies `out`, [n, width], by a vector, [width].
Advance scale_step(Pass& pass, const Op& op) {
  const float* const vector = pass.vector(op.weight);
  const std::uint32_t width = pass.width(op.out);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) pass.kernels().mul(pass.at(op.out, t), vector, width);
  });
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

/// Subtracts from the gates in `out`, [n, ffn_dim], their mean plus gate_cut standard deviations. Gates below 0 become
/// 0.
Advance cut_step(Pass& pass, const Op& op) {
  const std::uint32_t width = pass.width(op.out);
  const double deviations = double{pass.program().kind->gate_cut};
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      float* const gate = pass.at(op.out, t);
      const double mean = sum_of(width, [&](std::uint32_t i) { return double{gate[i]}; }) / width;
      const auto square = [&](std::uint32_t i) { return (double{gate[i]} - mean) * (double{gate[i]} - mean); };
      const auto cut = static_cast<float>(mean + deviations * std::sqrt(sum_of(width, square) / width));
      for (std::uint32_t i = 0; i < width; ++i) gate[i] = gate[i] > cut ? gate[i] - cut : 0.0f;
    }
  });
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

/// Computes tanh(router(in) / dim), [n, streams]. The router is [streams, dim] as one vector.
Advance route_step(Pass& pass, const Op& op) {
  const std::uint32_t streams = pass.width(op.out), dim = pass.width(op.in);
  const float* const router = pass.vector(op.weight);
  const auto f32 = static_cast<std::size_t>(format_index(FormatId::f32));
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    MatmulArgs args;
    args.weights = reinterpret_cast<const std::byte*>(router);
    args.rows = streams;
    args.cols = dim;
    args.x = pass.at(op.in, begin);
    args.x_stride = dim;
    args.n = count;
    args.y = pass.at(op.out, begin);
    args.y_stride = streams;
    pass.kernels().matmul[f32](args);
    pass.kernels().scale(args.y, 1.0f / static_cast<float>(dim), count * streams);
    pass.kernels().soft_cap(args.y, count * streams, 1);
  });
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

/// The streams of one column: x, [dim], and the others, [streams - 1, dim].
struct Streams {
  float* x;
  float* others;
  std::uint32_t n, dim;
  float* of(std::uint32_t stream) const { return stream == 0 ? x : others + std::size_t{stream - 1} * dim; }
};

Streams streams_of(const Pass& pass, std::uint32_t column) {
  return {pass.at(Buf::x, column), pass.at(Buf::streams, column), pass.program().kind->streams, pass.width(Buf::x)};
}

/// Calls body(streams of a column, its router's values) for each column.
template <class Body>
Advance for_streams(Pass& pass, const Op& op, Body body) {
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) body(streams_of(pass, t), pass.at(op.in, t), t);
  });
  pass.wrote(Buf::streams);
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

/// Computes out[i] = sum over j of factors[i * n + j] * in[j] for n inputs and each of `rows` outputs.
void apply(const float* factors, const float* in, std::uint32_t n, std::uint32_t rows, float* out) {
  for (std::uint32_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (std::uint32_t j = 0; j < n; ++j) sum += factors[std::size_t{i} * n + j] * in[j];
    out[i] = sum;
  }
}

/// Adds to each stream the sum of all streams, each times its factor, which is a product of the router's values. Copies
/// x to Buf::predicted.
Advance predict_step(Pass& pass, const Op& op) {
  const float* const weight = pass.vector(op.weight);  // [streams, streams, streams]
  return for_streams(pass, op, [&](const Streams& all, const float* routed, std::uint32_t t) {
    std::array<float, kMaxStreams * kMaxStreams> factors;  // [to, from]
    apply(weight, routed, all.n, all.n * all.n, factors.data());
    std::array<std::array<float, kBlock>, kMaxStreams> sums;
    for (std::uint32_t begin = 0; begin < all.dim; begin += kBlock) {
      const std::uint32_t width = std::min(all.dim - begin, kBlock);
      for (std::uint32_t to = 0; to < all.n; ++to) {
        sums[to] = {};
        for (std::uint32_t from = 0; from < all.n; ++from) {
          const float factor = factors[to * all.n + from];
          const float* const values = all.of(from) + begin;
          for (std::uint32_t i = 0; i < width; ++i) sums[to][i] += factor * values[i];
        }
      }
      for (std::uint32_t to = 0; to < all.n; ++to) {
        float* const values = all.of(to) + begin;
        for (std::uint32_t i = 0; i < width; ++i) values[i] += sums[to][i];
      }
    }
    std::copy_n(all.x, all.dim, pass.at(Buf::predicted, t));
  });
}

/// Replaces each stream by its prediction plus the change of x, times a factor that is 1 plus a product of the router's
/// values.
Advance correct_step(Pass& pass, const Op& op) {
  const float* const weight = pass.vector(op.weight);  // [streams, streams]
  return for_streams(pass, op, [&](const Streams& all, const float* routed, std::uint32_t t) {
    std::array<float, kMaxStreams> factors;
    apply(weight, routed, all.n, all.n, factors.data());
    const float* const predicted = pass.at(Buf::predicted, t);
    for (std::uint32_t i = 0; i < all.dim; ++i) {
      const float change = all.x[i] - predicted[i];
      all.x[i] = predicted[i] + change * (1 + factors[0]);
      for (std::uint32_t stream = 1; stream < all.n; ++stream) all.of(stream)[i] += change * (1 + factors[stream]);
    }
  });
}

/// Adds `in`, [n, dim], to each of the other streams.
Advance add_step(Pass& pass, const Op& op) {
  return for_streams(pass, op, [&](const Streams& all, const float* added, std::uint32_t) {
    for (std::uint32_t stream = 1; stream < all.n; ++stream) pass.kernels().add(all.of(stream), added, all.dim);
  });
}

/// Scales each of the other streams in `out`, [n, streams - 1, dim], to the length of x.
Advance level_step(Pass& pass, const Op& op) {
  const std::uint32_t others = pass.program().kind->other_streams(), dim = pass.width(Buf::x);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      const double wanted = std::sqrt(mean_square(pass.at(Buf::x, t), dim));
      for (std::uint32_t stream = 0; stream < others; ++stream) {
        float* const values = pass.at(op.out, t) + std::size_t{stream} * dim;
        const double is = std::sqrt(std::max(mean_square(values, dim), double{kLeastSquare}));
        pass.kernels().scale(values, static_cast<float>(wanted / is), dim);
      }
    }
  });
  pass.count(op.row->name, {}, std::uint64_t{pass.n()} * others);
  return Advance::done;
}

/// Makes x the mean of x and of `in`, [n, streams - 1, dim].
Advance join_step(Pass& pass, const Op& op) {
  const std::uint32_t others = pass.program().kind->other_streams(), dim = pass.width(op.out);
  pass.for_columns([&](std::uint32_t begin, std::uint32_t count) {
    for (std::uint32_t t = begin; t < begin + count; ++t) {
      for (std::uint32_t stream = 0; stream < others; ++stream) {
        pass.kernels().add(pass.at(op.out, t), pass.at(op.in, t) + std::size_t{stream} * dim, dim);
      }
      pass.kernels().scale(pass.at(op.out, t), 1.0f / static_cast<float>(others + 1), dim);
    }
  });
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

}  // namespace

const OpRow op_scale_by_vector{"scale", Work::scale, scale_step};
const OpRow op_cut_gates{"cut", Work::activate, cut_step};
const OpRow op_route_streams{"route_streams", Work::route, route_step};
const OpRow op_predict{"predict", Work::add, predict_step};
const OpRow op_correct{"correct", Work::add, correct_step};
const OpRow op_add_to_streams{"add", Work::add, add_step};
const OpRow op_level_streams{"level_streams", Work::scale, level_step};
const OpRow op_join_streams{"join_streams", Work::add, join_step};

}  // namespace qsf
