# The toolchain file of the Emscripten on PATH, which in scripts/em-run.mjs is that of set-up.
find_program(QSF_EM_CONFIG em-config REQUIRED)
execute_process(COMMAND ${QSF_EM_CONFIG} EMSCRIPTEN_ROOT OUTPUT_VARIABLE qsf_emscripten_root
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
include(${qsf_emscripten_root}/cmake/Modules/Platform/Emscripten.cmake)
set(QSF_TEST_INCLUDE "$ENV{QSF_TEST_INCLUDE}" CACHE PATH "Folder of nlohmann/json.hpp; empty: the system's")
