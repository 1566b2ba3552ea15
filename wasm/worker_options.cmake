# cmake -DMODULE=file.js -P worker_options.cmake: bundlers read a worker's options only where they stand as a literal, and
# some versions of Emscripten give them a name.
file(READ ${MODULE} text)
if(text MATCHES "var workerOptions=({[^}]*})")
  string(REPLACE ",workerOptions)" ",${CMAKE_MATCH_1})" text "${text}")
  file(WRITE ${MODULE} "${text}")
endif()
