# cmake -DCXX=... -DSOURCE=... -P format.cmake: the compiler takes case 0 of format.cpp, and none of the others.
foreach(case RANGE 0 13)
  execute_process(COMMAND ${CXX} -std=c++20 -fsyntax-only -I${SOURCE}/include -DCASE=${case}
                          ${CMAKE_CURRENT_LIST_DIR}/format.cpp
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE text)
  if(case EQUAL 0 AND failed)
    message(FATAL_ERROR "case 0 does not compile:\n${text}")
  elseif(case GREATER 0 AND NOT failed)
    message(FATAL_ERROR "case ${case} compiles")
  elseif(case GREATER 0 AND NOT text MATCHES "the_places_of_a_sentence_must|a number, an enumeration or a text|FormatString")
    message(FATAL_ERROR "case ${case} is refused for another reason:\n${text}")
  endif()
endforeach()
