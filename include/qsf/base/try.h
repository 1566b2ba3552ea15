// Early return with the error of a call. These are macros, because a template cannot return from its caller.
#pragma once

#include "qsf/base/result.h"

/// Returns the error of a Status or a Result, if it is one.
#define QSF_TRY(...)                                         \
  do {                                                       \
    if (const auto& qsf_tried = (__VA_ARGS__); !qsf_tried) { \
      return qsf_tried.error();                              \
    }                                                        \
  } while (false)

/// Declares `name` as the value of a Result, or returns its error.
#define QSF_LET(name, ...)                          \
  auto name##_result = (__VA_ARGS__);               \
  if (!name##_result) return name##_result.error(); \
  auto& name = *name##_result
