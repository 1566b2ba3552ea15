/* A claim of a test of the C API. One that is false ends the program with its line and the last error. */
#ifndef QSF_TESTS_EXPECT_H
#define QSF_TESTS_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

#include "qsf.h"

#define EXPECT(claim)                                                                       \
  do {                                                                                      \
    if (!(claim)) {                                                                         \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #claim, qsf_last_error()); \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

#endif
