# qsf::lz4 and qsf::zstd: the system's libraries natively. When cross-compiling, and for WebAssembly, their sources: from
# the folder QSF_DEPS_DIR (lz4/, libzstd/; set-up makes it from Debian's source packages), else fetched by hash.

if(NOT CMAKE_CROSSCOMPILING)
  foreach(name lz4 zstd)
    find_library(QSF_${name}_LIBRARY ${name} REQUIRED)
    find_path(QSF_${name}_INCLUDE ${name}.h REQUIRED)
    add_library(qsf_dep_${name} INTERFACE)
    target_link_libraries(qsf_dep_${name} INTERFACE ${QSF_${name}_LIBRARY})
    target_include_directories(qsf_dep_${name} SYSTEM INTERFACE ${QSF_${name}_INCLUDE})
    add_library(qsf::${name} ALIAS qsf_dep_${name})
  endforeach()
  return()
endif()

set(QSF_DEPS_DIR "$ENV{QSF_DEPS_DIR}" CACHE PATH "Folder that holds the sources of lz4/ and libzstd/; empty: fetch them")

# qsf_source(variable folder url sha256)
function(qsf_source variable folder url sha256)
  if(QSF_DEPS_DIR)
    if(NOT IS_DIRECTORY ${QSF_DEPS_DIR}/${folder}/lib)
      message(FATAL_ERROR "QSF_DEPS_DIR is ${QSF_DEPS_DIR}, but ${folder}/lib is not there.")
    endif()
    set(${variable} ${QSF_DEPS_DIR}/${folder}/lib PARENT_SCOPE)
  else()
    include(FetchContent)
    FetchContent_Declare(qsf_${folder} URL ${url} URL_HASH SHA256=${sha256} DOWNLOAD_EXTRACT_TIMESTAMP OFF
                         SOURCE_SUBDIR none)
    FetchContent_MakeAvailable(qsf_${folder})
    set(${variable} ${qsf_${folder}_SOURCE_DIR}/lib PARENT_SCOPE)
  endif()
endfunction()

function(qsf_source_library name include)
  add_library(qsf_dep_${name} STATIC ${ARGN})
  target_include_directories(qsf_dep_${name} SYSTEM PUBLIC ${include})
  target_compile_options(qsf_dep_${name} PRIVATE -w ${qsf_shareable})
  add_library(qsf::${name} ALIAS qsf_dep_${name})
endfunction()

qsf_source(lz4 lz4 https://github.com/lz4/lz4/releases/download/v1.10.0/lz4-1.10.0.tar.gz
           537512904744b35e232912055ccf8ec66d768639ff3abe5788d90d792ec5f48b)
qsf_source_library(lz4 ${lz4} ${lz4}/lz4.c ${lz4}/lz4hc.c)

qsf_source(zstd libzstd https://github.com/facebook/zstd/releases/download/v1.5.7/zstd-1.5.7.tar.gz
           eb33e51f49a15e023950cd7825ca74a4a2b43db8354825ac24fc1b7ee09e6fa3)
file(GLOB zstd_sources ${zstd}/common/*.c ${zstd}/decompress/*.c ${zstd}/compress/*.c)
qsf_source_library(zstd ${zstd} ${zstd_sources})
target_compile_definitions(qsf_dep_zstd PRIVATE ZSTD_DISABLE_ASM=1 ZSTD_LEGACY_SUPPORT=0)
