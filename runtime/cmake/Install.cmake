# Installs the runtime, its headers, attn.pc and the CMake package attn, to which the build of the compiler adds the
# component `compiler`.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
install(TARGETS attn_runtime attn_runtime_static EXPORT attn-runtime COMPONENT runtime)
install(FILES attn.h attn.hpp attn_kernel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT runtime)
install(EXPORT attn-runtime
  FILE attn-runtime.cmake
  NAMESPACE attn::
  DESTINATION ${package}
  COMPONENT runtime)

include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/attn-config.cmake.in attn-config.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_BINDIR
  NO_SET_AND_CHECK_MACRO
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(attn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/attn-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/attn-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/AttnAddLibrary.cmake
  DESTINATION ${package}
  COMPONENT runtime)

# Paths are relative to attn.pc, so that the installation can be moved, unless absolute folders were given.
foreach(folder LIBDIR INCLUDEDIR)
  string(TOLOWER pc_${folder} variable)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(${variable} "${CMAKE_INSTALL_FULL_${folder}}")
  else()
    file(RELATIVE_PATH ${variable} /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_${folder}})
    string(PREPEND ${variable} "\${pcfiledir}/")
  endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/attn.pc.in attn.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/attn.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT runtime)
