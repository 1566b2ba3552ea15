# cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCC=... -DCXX=... -P install.cmake: what `cmake --install` leaves serves a
# project outside the tree, also after its folder was moved: every header by itself, C by pkg-config, C++ by find_package.
cmake_minimum_required(VERSION 3.25)
set(here ${CMAKE_CURRENT_LIST_DIR})
set(work ${BUILD}/install-test)
set(prefix ${work}/moved)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/first)
file(RENAME ${work}/first ${prefix})
file(COPY ${here}/consumer/ DESTINATION ${work}/source)

# Nothing that is installed leads back.
file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h ${prefix}/*.def)
foreach(path IN LISTS texts)
  file(READ ${path} text)
  foreach(place ${SOURCE} ${BUILD})
    string(FIND "${text}" "${place}/" at)
    if(at GREATER_EQUAL 0)
      message(FATAL_ERROR "${path} names ${place}")
    endif()
  endforeach()
endforeach()
file(GLOB licences ${prefix}/share/doc/qsf/*)
list(TRANSFORM licences REPLACE ".*/" "")
if(NOT licences STREQUAL "LICENSE;THIRD_PARTY_NOTICES.md")
  message(FATAL_ERROR "licences: ${licences}")
endif()

run(${CMAKE_COMMAND} -S ${work}/source -B ${work}/build -G "${GENERATOR}" -DCMAKE_C_COMPILER=${CC}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release -DQSF_PREFIX=${prefix} -DQSF_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${work}/build --parallel 2)

set(model ${work}/stories.qsf)
run(${prefix}/bin/qsf-convert ${SOURCE}/models/stories ${model} --quant-type 4bit --quiet)
set(text " there lived a man")
foreach(program story_shared story_static story_cpp)
  execute_process(COMMAND ${work}/build/${program} ${model} OUTPUT_VARIABLE told RESULT_VARIABLE failed)
  if(failed OR NOT told STREQUAL text)
    message(FATAL_ERROR "${program}: ${failed}, \"${told}\" instead of \"${text}\"")
  endif()
endforeach()
