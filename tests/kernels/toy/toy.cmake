# cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCXX=... -P toy.cmake: an instruction set is one file and one line, and
# a format one line. In a copy of the sources both are added, and the kernels' tests must then hold for them.
cmake_minimum_required(VERSION 3.25)
set(here ${CMAKE_CURRENT_LIST_DIR})
set(copy ${BUILD}/source)
file(REMOVE_RECURSE ${copy})
file(COPY ${SOURCE}/engine/base ${SOURCE}/engine/formats ${SOURCE}/engine/kernels DESTINATION ${copy}/engine)
file(COPY ${SOURCE}/cmake ${SOURCE}/include DESTINATION ${copy})
file(COPY ${SOURCE}/tests/support DESTINATION ${copy}/tests)
file(COPY ${SOURCE}/tests/kernels/cases.h ${SOURCE}/tests/kernels/cases.cpp ${SOURCE}/tests/kernels/matmul_test.cpp
          ${here}/toy_test.cpp DESTINATION ${copy}/tests/kernels)
file(COPY ${here}/CMakeLists.txt DESTINATION ${copy})

# One line after the last that matches.
function(add_line path last line)
  file(READ ${path} text)
  string(FIND "${text}" "${last}" at REVERSE)
  if(at LESS 0)
    message(FATAL_ERROR "${path} holds no ${last}")
  endif()
  string(SUBSTRING "${text}" ${at} -1 rest)
  string(FIND "${rest}" "\n" end)
  math(EXPR at "${at} + ${end} + 1")
  string(SUBSTRING "${text}" 0 ${at} before)
  string(SUBSTRING "${text}" ${at} -1 after)
  file(WRITE ${path} "${before}${line}\n${after}")
endfunction()

file(COPY ${here}/toy.h DESTINATION ${copy}/engine/kernels/vec)
add_line(${copy}/cmake/QsfIsas.cmake "\nqsf_isa(" "qsf_isa(toy any)")
add_line(${copy}/include/qsf/formats/format.h "\n    Format{"
  "    Format{own_type(60), \"toy\", 128, 100, 6, 0, f16_at(0), f16_at(2), {}, {{{4, 4}, {68, 2}}}, Rounding::min_max},")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()
# Scalar and toy suffice, and quick compiling matters more than quick code.
run(${CMAKE_COMMAND} -S ${copy} -B ${BUILD}/build -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DQSF_ISAS=toy)
run(${CMAKE_COMMAND} --build ${BUILD}/build --parallel 2)
run(${BUILD}/build/toy_test --gtest_brief=1 --gtest_filter=ToyTest.*:*/f_toy:*/f_q6_k:*/f_f16)
