# qsf_room(name [rooms it includes...] [LIBS libraries...]) makes the static library qsf_<name> of engine/<name>/*.cpp.
# The kernels are built once more per instruction set of QsfIsas.cmake.

add_library(qsf_flags INTERFACE)
target_compile_options(qsf_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(qsf_flags INTERFACE -Wno-restrict)  # false for std::string's operator+: GCC bug 105651
endif()
set(QSF_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined or thread")
if(QSF_SANITIZE)
  set(qsf_sanitizers -fsanitize=${QSF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(qsf_flags INTERFACE ${qsf_sanitizers})
  target_link_options(qsf_flags INTERFACE ${qsf_sanitizers})
endif()
if(WIN32)
  target_compile_definitions(qsf_flags INTERFACE _WIN32_WINNT=0x0A00 NOMINMAX WIN32_LEAN_AND_MEAN)
endif()
if(EMSCRIPTEN)
  target_compile_options(qsf_flags INTERFACE -fno-exceptions -fno-rtti)
  # For objects that are linked into modules with shared memory and without. They may hold nothing thread_local.
  set(qsf_shareable -matomics -mbulk-memory)
endif()
add_library(qsf_engine_flags INTERFACE)
target_link_libraries(qsf_engine_flags INTERFACE qsf_flags)
target_compile_options(qsf_engine_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
target_include_directories(qsf_flags INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_include_directories(qsf_engine_flags INTERFACE ${CMAKE_SOURCE_DIR}/engine)

set(CMAKE_OPTIMIZE_DEPENDENCIES ON)  # no archive waits for another one

include(QsfIsas)
# A sentence is written once, if ever: small rather than quick.
set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/base/format.cpp ${CMAKE_SOURCE_DIR}/engine/base/decimal.cpp
                            PROPERTIES COMPILE_OPTIONS -Os SKIP_PRECOMPILE_HEADERS ON)
# These have loops of their own in which the time goes.
set(qsf_quick engine/base/checksum.cpp engine/model/ops/recurrence.cpp
    engine/model/ops/convolution.cpp)
if(EMSCRIPTEN)
  list(TRANSFORM qsf_quick PREPEND ${CMAKE_SOURCE_DIR}/)
  set_source_files_properties(${qsf_quick} PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
endif()

# What most sources include, where it is parsed once: parsing is half of compiling. Clang's native builds parse it in every
# source but the tests', so that none does without what it must include.
set(qsf_precompiled <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <limits> <memory> <optional> <span> <string>
    <string_view> <type_traits> <utility> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False of precompiled strings, whose code GCC takes for ours.
  set(qsf_precompiled_flags -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()

function(qsf_room name)
  cmake_parse_arguments(room "" "" "LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/${name}/*.cpp
       ${CMAKE_SOURCE_DIR}/engine/${name}/ops/*.cpp)
  if(name STREQUAL "kernels")
    list(APPEND sources ${qsf_isa_sources})
  endif()
  if(NOT sources)
    message(FATAL_ERROR "The room engine/${name} is empty")
  endif()
  add_library(qsf_${name} STATIC ${sources})
  target_compile_options(qsf_${name} PRIVATE ${qsf_shareable})
  if(EMSCRIPTEN)
    target_compile_options(qsf_${name} PRIVATE -Os)  # what a page loads; the time goes into the instruction set's unit
  endif()
  target_link_libraries(qsf_${name} PUBLIC qsf_engine_flags PRIVATE ${room_LIBS})
  if(EMSCRIPTEN AND name STREQUAL "base")
    target_precompile_headers(qsf_base PRIVATE ${qsf_precompiled})
  elseif(EMSCRIPTEN)
    target_precompile_headers(qsf_${name} REUSE_FROM qsf_base)
  endif()
  foreach(other IN LISTS room_UNPARSED_ARGUMENTS)
    target_link_libraries(qsf_${name} PUBLIC qsf_${other})
  endforeach()
  if(name STREQUAL "kernels" AND EMSCRIPTEN)
    foreach(isa IN LISTS qsf_isas)  # all of them, or the one that a program names in its property QSF_ISA
      set(wanted $<TARGET_PROPERTY:QSF_ISA>)
      target_link_libraries(
        qsf_kernels INTERFACE $<$<OR:$<STREQUAL:${wanted},>,$<STREQUAL:${wanted},${isa}>>:qsf_isa_${isa}>)
    endforeach()
  endif()
endfunction()
