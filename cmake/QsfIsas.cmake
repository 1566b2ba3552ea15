# The instruction sets, slowest first, because the engine uses the last that runs. An instruction set is one line and its vector
# vocabulary, engine/kernels/isa/<name>.h. The line states its name, the processors that may have it and the compiler's flags.
# kNeeds in the vocabulary states the processor features that the code requires.

if(EMSCRIPTEN)
  set(qsf_processors wasm)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(qsf_processors x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(qsf_processors arm)
endif()
list(APPEND qsf_processors any)
set(QSF_ISAS "" CACHE STRING "Build only these instruction sets and scalar; empty: all")

function(qsf_isa name processors)
  if(NOT processors IN_LIST qsf_processors OR (QSF_ISAS AND NOT name IN_LIST QSF_ISAS AND NOT name STREQUAL "scalar"))
    return()
  endif()
  if(EMSCRIPTEN AND name STREQUAL "scalar" AND NOT QSF_TESTS)
    return()  # no module contains it, because a page loads a variant that its browser can run
  endif()
  set(source ${CMAKE_BINARY_DIR}/engine/kernels/isa_${name}.cpp)
  configure_file(${CMAKE_SOURCE_DIR}/engine/kernels/isa.cpp.in ${source} @ONLY)
  # Processors with another instruction set use the scalar unit in tests only, and full optimization takes four times as long.
  if(name STREQUAL "scalar" AND NOT qsf_processors STREQUAL "any")
    list(APPEND ARGN -O1)
  endif()
  list(APPEND ARGN ${qsf_light_sanitizers})
  # GCC assumes a stack alignment of 32 and 64 bytes, which Windows does not have (GCC bug 54412).
  if(WIN32 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND name MATCHES "avx|amx")
    list(APPEND ARGN -Wa,-muse-unaligned-vector-move)
  endif()
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${ARGN}")
  set(qsf_isas ${qsf_isas} ${name} PARENT_SCOPE)
  if(EMSCRIPTEN)  # separate libraries, so that a module waits only for its own
    add_library(qsf_isa_${name} STATIC ${source})
    target_link_libraries(qsf_isa_${name} PUBLIC qsf_engine_flags qsf_kernels)
    # No kernel takes more than a quarter of a thread's stack.
    target_compile_options(qsf_isa_${name} PRIVATE ${qsf_shareable} -Wframe-larger-than=8192)
  else()
    set(qsf_isa_sources ${qsf_isa_sources} ${source} PARENT_SCOPE)
  endif()
endfunction()

qsf_isa(scalar any)
qsf_isa(sse41 x86 -msse4.1)
qsf_isa(avx2 x86 -mavx2 -mfma -mf16c)
qsf_isa(avxvnni x86 -mavx2 -mfma -mf16c -mavxvnni)
set(qsf_avx512vnni -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni)
# This tuning makes products of many columns 2 to 5 % faster on an AMD EPYC of family 25: docs/decisions/0007.
qsf_isa(avx512vnni x86 ${qsf_avx512vnni} -mtune=icelake-server)
qsf_isa(amx x86 ${qsf_avx512vnni} -mamx-tile -mamx-int8)
qsf_isa(neon arm)
qsf_isa(neondot arm -march=armv8.2-a+dotprod)
qsf_isa(simd wasm -msimd128)
qsf_isa(relaxedpairs wasm -msimd128 -mrelaxed-simd)
qsf_isa(relaxed wasm -msimd128 -mrelaxed-simd)

# Writes the source of the list in which the engine finds instruction sets.
function(qsf_isa_list source)
  list(JOIN ARGN ", isa_" qsf_isa_names)
  list(JOIN ARGN ", &isa_" qsf_isa_pointers)
  configure_file(${CMAKE_SOURCE_DIR}/engine/kernels/isas.cpp.in ${source} @ONLY)
endfunction()
qsf_isa_list(${CMAKE_BINARY_DIR}/engine/kernels/isas.cpp ${qsf_isas})
list(APPEND qsf_isa_sources ${CMAKE_BINARY_DIR}/engine/kernels/isas.cpp)
