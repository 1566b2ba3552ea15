// Scalar exp, log, pow, sin and cos in double, from IEEE add, mul, div and sqrt alone: the same bits on every machine.
// The float vector forms of exp and tanh are kernels (kernels/exact.inl). Error bounds are tested against long double.
#pragma once

namespace qsf::exact {

double exp(double x);            // relative error <= 2^-50 over [-708, 709]
double log(double x);            // x > 0; relative error <= 2^-50
double pow(double x, double y);  // x > 0; relative error <= 2^-50 (1 + |y log x|)
double sin(double x);            // absolute error <= 2^-40 for |x| <= 2^24; a NaN beyond 2^30
double cos(double x);            // the same

}  // namespace qsf::exact
