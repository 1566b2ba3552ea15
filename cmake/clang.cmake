# The toolchain file of presets that need clang. It selects the newest of clang-19 and later on PATH, else plain clang, unless
# CMAKE_C_COMPILER or CMAKE_CXX_COMPILER is set.
if(NOT CMAKE_C_COMPILER AND NOT CMAKE_CXX_COMPILER)
  foreach(version RANGE 60 19 -1)
    list(APPEND qsf_names clang++-${version})
  endforeach()
  find_program(qsf_clang NAMES ${qsf_names} clang++ NO_CACHE)
  if(qsf_clang)
    execute_process(COMMAND ${qsf_clang} -dumpversion OUTPUT_VARIABLE qsf_version OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT qsf_clang OR qsf_version VERSION_LESS 15)
    message(FATAL_ERROR "This preset needs clang on PATH: clang++-19 or newer, or a clang++ of 15 or newer; there is "
                        "\"${qsf_clang}\" ${qsf_version}. Debian: clang-19")
  endif()
  set(CMAKE_CXX_COMPILER ${qsf_clang})
  string(REGEX REPLACE "clang\\+\\+([^/]*)$" "clang\\1" CMAKE_C_COMPILER ${qsf_clang})
endif()
