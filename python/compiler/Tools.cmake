# attn-tools is a program for the package attn-compiler that contains all tools, LLVM and MLIR. It runs on systems
# without Debian's LLVM, but cannot load plugins, which need the shared libraries of LLVM.

# The main function of each tool gets a name of its own, such as attnc_main.
set(tools attn-import attn-lsp-server attn-opt attn-reduce attn-run attnc)
foreach(tool ${tools})
  string(REPLACE "-" "_" function ${tool}_main)
  add_library(${tool}_object OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/${tool}.cpp)
  target_link_libraries(${tool}_object PRIVATE attn_registry attn_tensors attn_command_line)
  target_compile_options(${tool}_object PRIVATE ${attn_compile_options})
  target_precompile_headers(${tool}_object REUSE_FROM attn_pch)
  target_compile_definitions(${tool}_object PRIVATE main=${function} ATTN_VERSION="${PROJECT_VERSION}")
  list(APPEND objects $<TARGET_OBJECTS:${tool}_object>)
endforeach()
# attn-call uses exceptions, so it is not built with LLVM's options.
list(APPEND tools attn-call)
add_library(attn-call_object OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/call/attn-call.cpp)
target_link_libraries(attn-call_object PRIVATE attn_call_parts)
target_compile_definitions(attn-call_object PRIVATE main=attn_call_main)
list(APPEND objects $<TARGET_OBJECTS:attn-call_object>)

# Code in LLVM's archives calls the initialisation functions of all targets of LLVM. Empty functions replace those of
# the targets that attn does not use, and of parts of the other targets, such as assembly parsers and disassemblers. So
# the linker leaves out the code of these targets and parts, more than 100 MB.
set(empty "")
foreach(target ${LLVM_TARGETS_TO_BUILD})
  set(parts AsmParser Disassembler TargetMCA)
  if(NOT target MATCHES "^(AArch64|NVPTX|X86)$")
    list(APPEND parts TargetInfo Target TargetMC AsmPrinter)
  endif()
  foreach(part ${parts})
    string(APPEND empty "void LLVMInitialize${target}${part}(void) {}\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT NoTargets.c CONTENT "${empty}")

file(GLOB archives ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a
  ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
list(FILTER archives EXCLUDE REGEX "libMLIR(CAPI|.*Test|MlirOptMain|ExecutionEngine\\.|ExecutionEngineShared|JitRunner)")
foreach(library command_line cpu dialect driver emit form frontend gpu call_parts passes pipeline registry target tensors)
  list(APPEND own attn_${library})
  list(APPEND own_files $<TARGET_FILE:attn_${library}>)
endforeach()
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
add_executable(attn-tools EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/Tools.cpp ${objects}
  ${CMAKE_CURRENT_BINARY_DIR}/NoTargets.c)
add_dependencies(attn-tools ${own})
# Link archives by file name, because LLVM's CMake targets would add LLVM's shared libraries. The archives depend on
# each other, so they form a group.
target_link_libraries(attn-tools PRIVATE
  -Wl,--start-group ${own_files} ${archives} -Wl,--end-group
  attn_runtime_static PkgConfig::libzip -Wl,-Bstatic z zstd -Wl,-Bdynamic pthread ${CMAKE_DL_LIBS})
# Relative relocations take 5 MB unless they are packed.
target_link_options(attn-tools PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,pack-relative-relocs -Wl,--gc-sections -Wl,-s)

# In the wheel, bin/attnc and the other tools are scripts that run attn-tools: a wheel cannot contain symbolic links.
foreach(tool ${tools})
  file(CONFIGURE OUTPUT wheel/${tool}
    CONTENT "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/attn-tools\" ${tool} \"$@\"\n" @ONLY)
  install(PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/wheel/${tool} DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
endforeach()
install(TARGETS attn-tools DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES LICENSE THIRD-PARTY.md DESTINATION share/attn COMPONENT wheel EXCLUDE_FROM_ALL)
