# cmake -DMODULE=file.js -P worker_type.cmake: threads run the script of the worker that starts them, which a bundler may
# have made a classic one, so what kind they are is for that worker to say.
file(READ ${MODULE} text)
string(REGEX REPLACE "([\"']?type[\"']?) *: *[\"']module[\"']" "\\1:Module[\"workerType\"]" changed "${text}")
if(changed STREQUAL text AND NOT text MATCHES "workerType")
  message(FATAL_ERROR "${MODULE} starts no module workers that this knows.")
endif()
file(WRITE ${MODULE} "${changed}")
