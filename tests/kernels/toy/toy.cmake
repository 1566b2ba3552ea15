# cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCXX=... -P toy.cmake: an instruction set is one file and one line, and
# a format one line. In a copy of the sources both are added, and the kernels' tests must then hold for them.
cmake_minimum_required(VERSION 3.25)
set(here ${CMAKE_CURRENT_LIST_DIR})
include(${here}/../../support/toy.cmake)
toy_copy(base formats kernels)
file(COPY ${SOURCE}/tests/support DESTINATION ${copy}/tests)
file(COPY ${SOURCE}/tests/kernels/cases.h ${SOURCE}/tests/kernels/cases.cpp ${SOURCE}/tests/kernels/matmul_test.cpp
          ${here}/toy_test.cpp DESTINATION ${copy}/tests/kernels)
file(COPY ${here}/CMakeLists.txt DESTINATION ${copy})

file(COPY ${here}/toy.h DESTINATION ${copy}/engine/kernels/isa)
toy_line(${copy}/cmake/QsfIsas.cmake "\nqsf_isa(" "qsf_isa(toy any -O1)")
toy_line(${copy}/include/qsf/formats/format.h "\n    Format{"
  "    Format{own_type(60), \"toy\", 128, 100, 6, 0, f16_at(0), f16_at(2), {}, {{{4, 4}, {68, 2}}}, Rounding::min_max},")
toy_build(toy)
# The toy's matrix tiles stand for those of processors that are seldom at hand: every format goes through them.
toy_run(${BUILD}/build/toy_test --gtest_brief=1
        --gtest_filter=ToyTest.*:*/f_toy:*/f_q6_k:*/f_f16:*EveryInstructionSetGivesTheScalarBits*)
