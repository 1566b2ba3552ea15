# The toolchain file of Debian's cross compiler for 64-bit Windows. Programs are linked statically, and run under wine with a
# prefix in the build folder.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -static)
endforeach()
# wine64 is on PATH only if wine, which also runs 32-bit programs, is installed.
find_program(qsf_wine NAMES wine64 wine PATHS /usr/lib/wine NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_COMMAND} -E env WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=
    WINEPREFIX=${CMAKE_BINARY_DIR}/wine ${qsf_wine})
# Header-only libraries, which the cross compiler does not have.
set(QSF_TEST_INCLUDE "$ENV{QSF_TEST_INCLUDE}" CACHE PATH "Folder of nlohmann/json.hpp and CLI/CLI.hpp")
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${QSF_TEST_INCLUDE})
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32 ${QSF_TEST_INCLUDE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
