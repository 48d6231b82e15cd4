# Installs the tools, and the component `compiler` of attn's CMake package. Passes, plugins and tools outside this
# source tree are built with this component. runtime/ installs the runtime.

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/attn)

install(TARGETS attn-import attn-lsp-server attn-reduce attn-run attnc COMPONENT tools)
# This folder has the manual pages (man/) and the completion of options in bash (bash-completion/).
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tools)

foreach(library dialect form passes target cpu gpu emit pipeline frontend driver)
  set_target_properties(attn_${library} PROPERTIES EXPORT_NAME ${library})
  install(TARGETS attn_${library} EXPORT attn-compiler COMPONENT compiler)
endforeach()
install(TARGETS attn-opt EXPORT attn-compiler COMPONENT compiler)
install(EXPORT attn-compiler
  FILE attn-compiler-targets.cmake
  NAMESPACE attn::
  DESTINATION ${package}
  COMPONENT compiler)

configure_file(${CMAKE_CURRENT_LIST_DIR}/attn-compiler.cmake.in attn-compiler.cmake @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/attn-compiler.cmake ${CMAKE_CURRENT_LIST_DIR}/AttnMlir.cmake
  DESTINATION ${package}
  COMPONENT compiler)

# Headers keep their paths in the source tree: "dialect/Attn.h", "passes/Passes.h.inc".
install(DIRECTORY dialect passes codegen frontend driver support
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn
  COMPONENT compiler
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
foreach(folder dialect passes codegen/cpu codegen/emit codegen/gpu)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/${folder}/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn/${folder}
    COMPONENT compiler
    FILES_MATCHING PATTERN "*.inc" PATTERN CMakeFiles EXCLUDE)
endforeach()
