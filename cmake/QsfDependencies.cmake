# qsf::lz4: the system's library natively. When cross-compiling, and for WebAssembly, its sources: from the folder
# QSF_DEPS_DIR (lz4/; set-up makes it from Debian's source package), else fetched by hash.

if(NOT CMAKE_CROSSCOMPILING)
  find_library(QSF_lz4_LIBRARY lz4 REQUIRED)
  find_path(QSF_lz4_INCLUDE lz4.h REQUIRED)
  add_library(qsf_dep_lz4 INTERFACE)
  target_link_libraries(qsf_dep_lz4 INTERFACE ${QSF_lz4_LIBRARY})
  target_include_directories(qsf_dep_lz4 SYSTEM INTERFACE ${QSF_lz4_INCLUDE})
  add_library(qsf::lz4 ALIAS qsf_dep_lz4)
  return()
endif()

set(QSF_DEPS_DIR "$ENV{QSF_DEPS_DIR}" CACHE PATH "Folder that holds the sources of lz4/; empty: fetch them")
if(QSF_DEPS_DIR)
  set(lz4 ${QSF_DEPS_DIR}/lz4/lib)
  if(NOT IS_DIRECTORY ${lz4})
    message(FATAL_ERROR "QSF_DEPS_DIR is ${QSF_DEPS_DIR}, but lz4/lib is not there.")
  endif()
else()
  include(FetchContent)
  FetchContent_Declare(qsf_lz4 URL https://github.com/lz4/lz4/releases/download/v1.10.0/lz4-1.10.0.tar.gz
                       URL_HASH SHA256=537512904744b35e232912055ccf8ec66d768639ff3abe5788d90d792ec5f48b
                       DOWNLOAD_EXTRACT_TIMESTAMP OFF SOURCE_SUBDIR none)
  FetchContent_MakeAvailable(qsf_lz4)
  set(lz4 ${qsf_lz4_SOURCE_DIR}/lib)
endif()

add_library(qsf_dep_lz4 STATIC ${lz4}/lz4.c ${lz4}/lz4hc.c)
target_include_directories(qsf_dep_lz4 SYSTEM PUBLIC ${lz4})
target_compile_options(qsf_dep_lz4 PRIVATE -w ${qsf_shareable})
add_library(qsf::lz4 ALIAS qsf_dep_lz4)
