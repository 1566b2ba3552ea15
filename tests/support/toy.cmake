# For tests that add something to a copy of the sources and build that: ${copy} is where it lies.
set(copy ${BUILD}/source)
file(REMOVE_RECURSE ${copy})

# The engine's rooms of these names, with what builds them.
function(toy_copy)
  foreach(room IN LISTS ARGN)
    file(COPY ${SOURCE}/engine/${room} DESTINATION ${copy}/engine)
  endforeach()
  file(COPY ${SOURCE}/cmake ${SOURCE}/include DESTINATION ${copy})
endfunction()

# One line after the last that matches.
function(toy_line path last line)
  file(READ ${path} text)
  string(FIND "${text}" "${last}" at REVERSE)
  if(at LESS 0)
    message(FATAL_ERROR "${path} holds no ${last}")
  endif()
  string(SUBSTRING "${text}" ${at} -1 rest)
  string(SUBSTRING "${rest}" 1 -1 rest)
  string(FIND "${rest}" "\n" end)
  math(EXPR at "${at} + ${end} + 2")
  string(SUBSTRING "${text}" 0 ${at} before)
  string(SUBSTRING "${text}" ${at} -1 after)
  file(WRITE ${path} "${before}${line}\n${after}")
endfunction()

function(toy_run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

# Scalar kernels and those named suffice, and quick compiling matters more than quick code.
function(toy_build isas)
  toy_run(${CMAKE_COMMAND} -S ${copy} -B ${BUILD}/build -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${CXX}
          -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DQSF_ISAS=${isas})
  toy_run(${CMAKE_COMMAND} --build ${BUILD}/build --parallel 2)
endfunction()
