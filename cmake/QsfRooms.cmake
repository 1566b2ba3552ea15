# qsf_room(name [rooms it includes...] [LIBS libraries...]) makes the static library qsf_<name> from engine/<name>/*.cpp.
# The kernels are built again for each instruction set of QsfIsas.cmake.

add_library(qsf_flags INTERFACE)
target_compile_options(qsf_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(qsf_flags INTERFACE -Wno-restrict)  # a false warning in std::string's operator+: GCC bug 105651
endif()
set(QSF_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined or thread")
if(QSF_SANITIZE)
  set(qsf_sanitizers -fsanitize=${QSF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(qsf_flags INTERFACE ${qsf_sanitizers})
  target_link_options(qsf_flags INTERFACE ${qsf_sanitizers})
  # For units of inlined loops: the checks of numbers, as traps. All other checks of undefined behaviour, and full
  # optimization, take several minutes for one unit. AddressSanitizer sees what the checks of pointers would.
  set(qsf_light_sanitizers -O1)
  if(QSF_SANITIZE MATCHES "undefined")
    set(checks signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow,bool,enum)
    list(APPEND qsf_light_sanitizers -fno-sanitize=undefined -fsanitize=${checks} -fsanitize-trap=${checks})
  endif()
  set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/formats/trellis.cpp PROPERTIES COMPILE_OPTIONS
                                                                                    "${qsf_light_sanitizers}")
endif()
# Hardening flags, with which a mistake ends the program instead of letting an attacker in. Sanitizers check more, and WebAssembly
# has its own bounds. The standard library's checks of indices are off in targets whose property QSF_UNCHECKED is on and in the
# sources of qsf_quick. Their loops take most of the time, and check sizes before they run.
add_library(qsf_hardened INTERFACE)
target_link_libraries(qsf_flags INTERFACE qsf_hardened)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT QSF_SANITIZE)
  set(qsf_checks_indices ON)
  set(qsf_fortify 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(qsf_fortify 2)
  endif()
  target_compile_options(qsf_hardened INTERFACE -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(qsf_hardened INTERFACE -fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_compile_options(qsf_hardened INTERFACE -mbranch-protection=standard)
  endif()
  target_compile_options(qsf_hardened INTERFACE "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${qsf_fortify}>")
  target_compile_definitions(
    qsf_hardened INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:QSF_UNCHECKED>>>:_GLIBCXX_ASSERTIONS>)
  target_link_options(qsf_hardened INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
endif()
if(WIN32)
  target_compile_definitions(qsf_flags INTERFACE _WIN32_WINNT=0x0A00 NOMINMAX WIN32_LEAN_AND_MEAN)
endif()
if(EMSCRIPTEN)
  target_compile_options(qsf_flags INTERFACE -fno-exceptions -fno-rtti)
  # Flags for objects that are linked into modules with and without shared memory. They must not contain thread_local data.
  set(qsf_shareable -matomics -mbulk-memory)
endif()
add_library(qsf_engine_flags INTERFACE)
target_link_libraries(qsf_engine_flags INTERFACE qsf_flags)
# Targets whose property QSF_EXCEPTIONS is on let the exception of refused memory through to the C API: see
# docs/decisions/0016. Nothing else throws or lets an exception through.
target_compile_options(
  qsf_engine_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:QSF_EXCEPTIONS>>>>:-fno-exceptions>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
target_include_directories(qsf_flags INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_include_directories(qsf_engine_flags INTERFACE ${CMAKE_SOURCE_DIR}/engine)

set(CMAKE_OPTIMIZE_DEPENDENCIES ON)  # archives do not wait for each other

include(QsfIsas)
# These sources are optimized for size, because a sentence is written at most once.
set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/base/format.cpp ${CMAKE_SOURCE_DIR}/engine/base/decimal.cpp
                            PROPERTIES COMPILE_OPTIONS -Os SKIP_PRECOMPILE_HEADERS ON)
# These sources have loops that take much of the time.
set(qsf_quick engine/base/checksum.cpp engine/model/ops/recurrence.cpp
    engine/model/ops/convolution.cpp)
list(TRANSFORM qsf_quick PREPEND ${CMAKE_SOURCE_DIR}/)
if(qsf_checks_indices)
  set_source_files_properties(${qsf_quick} PROPERTIES COMPILE_OPTIONS -U_GLIBCXX_ASSERTIONS)
elseif(EMSCRIPTEN)
  set_source_files_properties(${qsf_quick} PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
endif()

# As WebAssembly, these sources of a room compiled for speed run seldom, and those of a room compiled for size have loops.
set(qsf_seldom run/draft run/dry run/embedding run/guesser run/logprobs run/mirostat run/model run/opening run/penalties run/repeats run/sampler_options
    run/saved run/sampler run/saved_header run/sequence run/sequence_guesses run/session run/session_passes run/temperature run/truncation run/try_product)
set(qsf_loops model/choice model/rotation model/ops/pointwise)
foreach(list qsf_seldom qsf_loops)
  list(TRANSFORM ${list} PREPEND ${CMAKE_SOURCE_DIR}/engine/)
  list(TRANSFORM ${list} APPEND .cpp)
endforeach()
if(EMSCRIPTEN)
  set_source_files_properties(${qsf_seldom} PROPERTIES COMPILE_OPTIONS -Oz)
  set_source_files_properties(${qsf_loops} PROPERTIES COMPILE_OPTIONS -Os)
  # Its vectors of 16 bytes would become scalars. Every module needs these instructions.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/formats/tiling.cpp PROPERTIES
                              COMPILE_OPTIONS "-msimd128;-Oz" SKIP_PRECOMPILE_HEADERS ON)
endif()

# The precompiled headers, which most sources include, because parsing is half of compiling. Clang's build with ThreadSanitizer
# uses them in tests only, so that a missing include in another source is an error.
set(qsf_precompiled <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <limits> <memory> <optional> <span> <string>
    <string_view> <type_traits> <utility> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False warnings about precompiled strings, whose code GCC attributes to the project.
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
  if(name MATCHES "^(formats|kernels)$")
    set_target_properties(qsf_${name} PROPERTIES QSF_UNCHECKED ON)
  endif()
  target_compile_options(qsf_${name} PRIVATE ${qsf_shareable})
  if(EMSCRIPTEN)
    target_compile_options(qsf_${name} PRIVATE -Os)  # a page loads it, and the instruction set's unit takes most of the time
    if(name MATCHES "^(base|file|stream|text|model|templates|grammar|answers|chat)$")
      target_compile_options(qsf_${name} PRIVATE -Oz)
    endif()
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
    foreach(isa IN LISTS qsf_isas)  # all sets, or only that of a program's property QSF_ISA
      set(wanted $<TARGET_PROPERTY:QSF_ISA>)
      target_link_libraries(
        qsf_kernels INTERFACE $<$<OR:$<STREQUAL:${wanted},>,$<STREQUAL:${wanted},${isa}>>:qsf_isa_${isa}>)
    endforeach()
  endif()
endfunction()
