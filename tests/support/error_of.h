// The error of a result, for tests.
#pragma once

#include <gtest/gtest.h>

#include "qsf/base/result.h"

namespace qsf {

/// Returns the result's error. A success fails the test and returns an empty error, while its own error() would end the
/// program and with it the tests that follow. The function is in this namespace so that every room's tests find it.
template <class T>
Error error_of(const Result<T>& result) {
  if (!result) return result.error();
  ADD_FAILURE() << "this should be an error, and is a success";
  return {};
}

/// The same of a status, whose success has an empty error: the comparison with the expected one decides.
inline Error error_of(const Status& status) { return status.error(); }

}  // namespace qsf
