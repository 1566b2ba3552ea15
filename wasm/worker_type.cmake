# cmake -DMODULE=file.js -P worker_type.cmake: lets the worker that starts threads state their type and name. Threads run that
# worker's script, which a bundler may have made a classic script.
file(READ ${MODULE} text)
string(REGEX REPLACE "([\"']?type[\"']?) *: *[\"']module[\"']" "\\1:Module[\"workerType\"]" typed "${text}")
string(REGEX REPLACE "([\"']?name[\"']?) *: *[\"']em-pthread[\"']" "\\1:Module[\"workerName\"]" named "${typed}")
if(NOT named MATCHES "workerType" OR NOT named MATCHES "workerName")
  message(FATAL_ERROR "${MODULE} starts no module workers that this knows.")
endif()
file(WRITE ${MODULE} "${named}")
