# cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCXX=... -P toy.cmake: an op is one file, and a mixer that emits it one
# line; its tensor is a line of the roles. In a copy of the sources they are added, and a model with them must then run.
cmake_minimum_required(VERSION 3.25)
set(here ${CMAKE_CURRENT_LIST_DIR})
include(${here}/../../support/toy.cmake)
toy_copy(base formats kernels file stream model text run)
file(COPY ${SOURCE}/tests/support DESTINATION ${copy}/tests)
file(COPY ${SOURCE}/tests/file/small_file.h DESTINATION ${copy}/tests/file)
file(COPY ${SOURCE}/tests/engine/host.h DESTINATION ${copy}/tests/engine)
file(COPY ${here}/toy_test.cpp DESTINATION ${copy}/tests)
file(COPY ${here}/CMakeLists.txt DESTINATION ${copy})

file(COPY ${here}/toy.cpp DESTINATION ${copy}/engine/model/ops)
toy_line(${copy}/include/qsf/file/layers.def "\nQSF_MIXER(" "QSF_MIXER(200, toy, \"a product, squared\")")
toy_line(${copy}/include/qsf/file/roles.h "\n    RoleRule{"
  "    RoleRule{static_cast<Role>(200), \"toy\", RoleScope::layer, true, Extent::dim, Extent::dim, [](const RoleContext& c) { return requirement::when(c.kind.mixer == Mixer::toy); }},")

# Scalar kernels suffice.
toy_build(none)
toy_run(${BUILD}/build/toy_test --gtest_brief=1)
