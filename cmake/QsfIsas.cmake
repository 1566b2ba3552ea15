# The instruction sets. A line is all that one needs beside its vocabulary, engine/kernels/vec/<name>.h: its name, the
# processors that may have it and the compiler's flags. Slowest first: of those that run, the last is the best.
# What a processor must show before the code runs is kNeeds in the vocabulary.

if(EMSCRIPTEN)
  set(QSF_WASM_VARIANT relaxed CACHE STRING "simd or relaxed")
  set(qsf_processors wasm wasm-${QSF_WASM_VARIANT})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(qsf_processors x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(qsf_processors arm)
endif()
list(APPEND qsf_processors any)
set(QSF_ISAS "" CACHE STRING "Build only these instruction sets beside scalar; empty: all")

function(qsf_isa name processors)
  if(NOT processors IN_LIST qsf_processors OR (QSF_ISAS AND NOT name IN_LIST QSF_ISAS AND NOT name STREQUAL "scalar"))
    return()
  endif()
  if(EMSCRIPTEN AND name STREQUAL "scalar" AND NOT QSF_TESTS)
    return()  # in no module: a page loads the variant that its browser can run
  endif()
  set(source ${CMAKE_BINARY_DIR}/engine/kernels/isa_${name}.cpp)
  configure_file(${CMAKE_SOURCE_DIR}/engine/kernels/isa.cpp.in ${source} @ONLY)
  # Checks of undefined behaviour make inlined vector code take many minutes; the scalar unit has them, of the same kernels.
  if(QSF_SANITIZE AND NOT name STREQUAL "scalar")
    list(APPEND ARGN -fno-sanitize=undefined)
  endif()
  # There GCC takes the stack to be aligned to 32 and 64 bytes, which it is not (GCC bug 54412).
  if(WIN32 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND name MATCHES "avx|amx")
    list(APPEND ARGN -Wa,-muse-unaligned-vector-move)
  endif()
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${ARGN}")
  set(qsf_isas ${qsf_isas} ${name} PARENT_SCOPE)
  if(EMSCRIPTEN)  # apart, so that a module waits for its own only
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
# Products of many columns are 2 to 5 % faster so on an AMD EPYC of family 25: docs/decisions/0007.
qsf_isa(avx512vnni x86 ${qsf_avx512vnni} -mtune=icelake-server)
qsf_isa(amx x86 ${qsf_avx512vnni} -mamx-tile -mamx-int8)
qsf_isa(neon arm)
qsf_isa(neondot arm -march=armv8.2-a+dotprod)
qsf_isa(simd wasm -msimd128)
qsf_isa(relaxedpairs wasm-relaxed -msimd128 -mrelaxed-simd)
qsf_isa(relaxed wasm-relaxed -msimd128 -mrelaxed-simd)

# The source of the list that the engine finds them by.
function(qsf_isa_list source)
  list(JOIN ARGN ", isa_" qsf_isa_names)
  list(JOIN ARGN ", &isa_" qsf_isa_pointers)
  configure_file(${CMAKE_SOURCE_DIR}/engine/kernels/isas.cpp.in ${source} @ONLY)
endfunction()
qsf_isa_list(${CMAKE_BINARY_DIR}/engine/kernels/isas.cpp ${qsf_isas})
list(APPEND qsf_isa_sources ${CMAKE_BINARY_DIR}/engine/kernels/isas.cpp)
