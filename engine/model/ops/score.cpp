// Ops of models that score a pair of texts.
#include <algorithm>

#include "model/pass.h"

namespace qsf {
namespace {

/// Adds one of two vectors, by the text that a column is of.
Advance add_by_text(Pass& pass, const Op& op) {
  const float* const first = pass.vector(op.weight, 0);
  const float* const second = pass.vector(op.bias, 1);
  const std::uint32_t n = pass.width(op.out);
  for (std::uint32_t t = 0; t < pass.n(); ++t) {
    pass.kernels().add(pass.at(op.out, t), pass.columns()[t].second ? second : first, n);
  }
  pass.count(op_add.name, {}, pass.n());
  return Advance::done;
}

/// Gives every column the mean of all columns of its sequence. All columns of the pass must want hidden states.
Advance mean(Pass& pass, const Op& op) {
  const std::uint32_t width = pass.width(op.in);
  for (std::uint32_t begin = 0, end = 0; begin < pass.n(); begin = end) {
    while (end < pass.n() && pass.columns()[end].sequence == pass.columns()[begin].sequence) ++end;
    for (std::uint32_t i = 0; i < width; ++i) {
      double sum = 0;
      for (std::uint32_t t = begin; t < end; ++t) sum += double{pass.at(op.in, t)[i]};
      const auto value = static_cast<float>(sum / (end - begin));
      for (std::uint32_t t = begin; t < end; ++t) pass.at(op.out, t)[i] = value;
    }
  }
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

/// out = weight . in + bias. Sums in double, in the order of the values.
Advance score(Pass& pass, const Op& op) {
  const float* const weight = pass.vector(op.weight, 0);
  const double bias = op.has_bias ? double{*pass.vector(op.bias, 1)} : 0;
  const std::uint32_t width = pass.width(op.in);
  for (std::uint32_t t = 0; t < pass.n(); ++t) {
    const float* const x = pass.at(op.in, t);
    double sum = bias;
    for (std::uint32_t i = 0; i < width; ++i) sum += double{weight[i]} * double{x[i]};
    *pass.at(op.out, t) = static_cast<float>(sum);
  }
  pass.count(op.row->name, {}, pass.n());
  return Advance::done;
}

}  // namespace

const OpRow op_add_by_text{"add", Work::add, add_by_text};
const OpRow op_mean{"mean", Work::add, mean};
const OpRow op_score{"score", Work::matmul, score};

}  // namespace qsf
