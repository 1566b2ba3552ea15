# cmake --install: the programs with their completion files and manual pages, the libraries with their CMake package and pkg-config
# files, the public headers, documents and licences.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/qsf)
set_target_properties(libqsf_static PROPERTIES EXPORT_NAME static)
set_target_properties(libqsf_shared PROPERTIES EXPORT_NAME shared)
foreach(target libqsf_static libqsf_shared)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
endforeach()
# Inline functions are compiled in the engine and in its users, and linked once. Contraction in a user would change the engine's
# bits.
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

# Paths are relative to the .pc file's folder, so that a prefix can be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up "${up}")
set(qsf_needs "-llz4${qsf_zstd_flag}${qsf_uring_flag} -lstdc++ -pthread -ldl -lm")
# pkg-config cannot select the archive of a library, so the archive has its own package, as in CMake.
set(qsf_pc_name qsf)
set(qsf_pc_libs "-L\${libdir} -lqsf\nLibs.private: ${qsf_needs}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/qsf.pc.in ${made}/qsf.pc @ONLY)
set(qsf_pc_name qsf-static)
set(qsf_pc_libs "\${libdir}/libqsf.a ${qsf_needs}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/qsf.pc.in ${made}/qsf-static.pc @ONLY)
install(FILES ${made}/qsf.pc ${made}/qsf-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD_PARTY_NOTICES.md ${CMAKE_SOURCE_DIR}/README.md
              ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Each program writes its completion files and its manual page, so that they have every option.
if(NOT CMAKE_CROSSCOMPILING)
  set(help ${CMAKE_BINARY_DIR}/help)
  foreach(program qsf-run qsf-convert qsf-parity)
    add_custom_command(OUTPUT ${help}/${program} ${help}/_${program} ${help}/${program}.fish ${help}/${program}.1
      COMMAND ${CMAKE_COMMAND} -E make_directory ${help}
      COMMAND ${program} --completion bash > ${help}/${program}
      COMMAND ${program} --completion zsh > ${help}/_${program}
      COMMAND ${program} --completion fish > ${help}/${program}.fish
      COMMAND ${program} --man > ${help}/${program}.1
      DEPENDS ${program} VERBATIM)
    add_custom_target(${program}-help ALL DEPENDS ${help}/${program}.1)
    install(FILES ${help}/${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${help}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${help}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    install(FILES ${help}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endforeach()
endif()
