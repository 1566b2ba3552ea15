# cmake --install: the programs, the libraries with their CMake package and pkg-config file, the public headers, licences.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/qsf)
set_target_properties(libqsf_static PROPERTIES EXPORT_NAME static)
set_target_properties(libqsf_shared PROPERTIES EXPORT_NAME shared)
foreach(target libqsf_static libqsf_shared)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
endforeach()
# Functions of headers are compiled in both places and linked once: contracted there, they would change the engine's bits.
target_compile_options(libqsf_static INTERFACE
                       $<INSTALL_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>>)
target_link_libraries(libqsf_static INTERFACE $<INSTALL_INTERFACE:qsf::dep_lz4>)
if(TARGET qsf::zstd)
  target_link_libraries(libqsf_static INTERFACE $<INSTALL_INTERFACE:zstd>)
  set(qsf_zstd_flag " -lzstd")
endif()
if(TARGET qsf::uring)
  target_link_libraries(libqsf_static INTERFACE $<INSTALL_INTERFACE:uring>)
  set(qsf_uring_flag " -luring")
endif()

install(TARGETS libqsf_static libqsf_shared EXPORT qsf
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS qsf-run qsf-convert qsf-parity RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT qsf NAMESPACE qsf:: FILE qsf-targets.cmake DESTINATION ${package})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(made ${CMAKE_BINARY_DIR}/package)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/qsf-config.cmake.in ${made}/qsf-config.cmake
                              INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${made}/qsf-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${made}/qsf-config.cmake ${made}/qsf-config-version.cmake DESTINATION ${package})

# From the .pc file's own folder, so that a prefix may be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up "${up}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/qsf.pc.in ${made}/qsf.pc @ONLY)
install(FILES ${made}/qsf.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
