# cmake -DNM=... -DARCHIVE=... -P symbols.cmake: code built for one instruction set must not be linked into another's
# path, so the objects isa_*.cpp of the kernels define isa_* with their tables and nothing else that the linker could share.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${NM} -A --defined-only ${ARCHIVE} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" lines "${symbols}")
set(tables 0)
list(FILTER lines EXCLUDE REGEX "__odr_asan_gen_|___asan_globals_registered")  # AddressSanitizer's own
list(FILTER lines EXCLUDE REGEX " R \\.refptr\\.")  # addresses, by which Windows' programs find what lies in another object
foreach(line IN LISTS lines)
  # archive:object:address type name; lower-case types are local, save the weak and unique ones. Weak data (V) are
  # constants, the same bytes in every object.
  if(line MATCHES "isa_[a-z0-9]+\\.cpp[^:]*: *[0-9a-f]* ([A-UW-Zuw]) (.*)$")
    if("${CMAKE_MATCH_1} ${CMAKE_MATCH_2}" MATCHES "^[DR] _ZN3qsf[0-9]+isa_[a-z0-9]+E$")
      math(EXPR tables "${tables} + 1")
    else()
      message(SEND_ERROR "shared symbol: ${line}")
    endif()
  endif()
endforeach()
if(tables LESS 1)
  message(FATAL_ERROR "no kernel tables found in ${ARCHIVE}: is this the right archive?")
endif()
message(STATUS "${tables} kernel tables, no shared symbol beside them")
