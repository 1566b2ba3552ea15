# The libraries of the engine and the hosts.
# - qsf::uring is liburing, if pkg-config finds it.
# - qsf::zstd is the system's library, natively and unless QSF_ZSTD is off. Builds without it refuse segments of that compression.
#   Pages do not have it, because it would cost more than it saves.
# - qsf::lz4 is the system's library natively. Cross-compiled builds, such as WebAssembly, use its sources from the folder
#   QSF_DEPS_DIR (lz4/; set-up makes it from Debian's source package), or fetch them by hash.

if(NOT CMAKE_CROSSCOMPILING)
  find_library(QSF_lz4_LIBRARY lz4 REQUIRED)
  find_path(QSF_lz4_INCLUDE lz4.h REQUIRED)
  add_library(qsf_dep_lz4 INTERFACE)
  target_link_libraries(qsf_dep_lz4 INTERFACE ${QSF_lz4_LIBRARY})
  target_include_directories(qsf_dep_lz4 SYSTEM INTERFACE ${QSF_lz4_INCLUDE})
  add_library(qsf::lz4 ALIAS qsf_dep_lz4)
  option(QSF_ZSTD "Read and write segments compressed with ZSTD" ON)
  if(QSF_ZSTD)
    find_library(QSF_zstd_LIBRARY zstd REQUIRED)
    find_path(QSF_zstd_INCLUDE zstd.h REQUIRED)
    add_library(qsf_dep_zstd INTERFACE)
    target_link_libraries(qsf_dep_zstd INTERFACE ${QSF_zstd_LIBRARY})
    target_include_directories(qsf_dep_zstd SYSTEM INTERFACE ${QSF_zstd_INCLUDE})
    target_compile_definitions(qsf_dep_zstd INTERFACE QSF_HAVE_ZSTD=1)
    add_library(qsf::zstd ALIAS qsf_dep_zstd)
  endif()
  find_package(PkgConfig)
  if(PkgConfig_FOUND)
    pkg_check_modules(QSF_liburing IMPORTED_TARGET liburing)
  endif()
  if(QSF_liburing_FOUND)
    add_library(qsf::uring ALIAS PkgConfig::QSF_liburing)
  else()
    message(STATUS "liburing not found: files are read past the page cache by threads")
  endif()
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
