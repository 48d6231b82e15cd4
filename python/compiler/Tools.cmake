# attn-tools: all tools in one program with LLVM and MLIR inside, for the package attn-compiler. It runs on systems without
# Debian's LLVM, but cannot load plugins, which need the shared libraries of LLVM.

# The main function of each tool gets a name of its own, such as attnc_main.
set(tools attn-import attn-lsp-server attn-opt attn-reduce attn-run attnc)
foreach(tool ${tools})
  string(REPLACE "-" "_" function ${tool}_main)
  add_library(${tool}_object OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/${tool}.cpp)
  target_link_libraries(${tool}_object PRIVATE attn_registry attn_tensors attn_command_line)
  target_compile_options(${tool}_object PRIVATE ${attn_compile_options})
  target_precompile_headers(${tool}_object REUSE_FROM attn_pch)
  target_compile_definitions(${tool}_object PRIVATE main=${function})
  list(APPEND objects $<TARGET_OBJECTS:${tool}_object>)
endforeach()
# attn-call is not built like code of LLVM: it has exceptions.
list(APPEND tools attn-call)
add_library(attn-call_object OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/call/attn-call.cpp)
target_link_libraries(attn-call_object PRIVATE attn_call_parts)
target_compile_definitions(attn-call_object PRIVATE main=attn_call_main)
list(APPEND objects $<TARGET_OBJECTS:attn-call_object>)

# LLVM's archives initialise every target that LLVM was built with, with all its parts. Empty functions replace those of
# the targets that attn does not use, and those of the parts that read assembly or machine code, so that the linker leaves
# out their code, more than 100 MB.
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
foreach(library command_line cpu dialect driver emit frontend gpu call_parts passes pipeline registry target tensors)
  list(APPEND own attn_${library})
  list(APPEND own_files $<TARGET_FILE:attn_${library}>)
endforeach()
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
add_executable(attn-tools EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/Tools.cpp ${objects}
  ${CMAKE_CURRENT_BINARY_DIR}/NoTargets.c)
add_dependencies(attn-tools ${own})
# Link archives by file, because LLVM's CMake targets would add its shared libraries. The archives depend on each other,
# so they form a group.
target_link_libraries(attn-tools PRIVATE
  -Wl,--start-group ${own_files} ${archives} -Wl,--end-group
  attn_runtime_static PkgConfig::libzip -Wl,-Bstatic z zstd -Wl,-Bdynamic pthread ${CMAKE_DL_LIBS})
# Relocations of the program's own addresses take 5 MB unless they are packed.
target_link_options(attn-tools PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,pack-relative-relocs -Wl,--gc-sections -Wl,-s)

# bin/attnc and the others are scripts that run attn-tools, because a wheel cannot contain symbolic links.
foreach(tool ${tools})
  file(CONFIGURE OUTPUT wheel/${tool}
    CONTENT "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/attn-tools\" ${tool} \"$@\"\n" @ONLY)
  install(PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/wheel/${tool} DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
endforeach()
install(TARGETS attn-tools DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES LICENSE THIRD-PARTY.md DESTINATION share/attn COMPONENT wheel EXCLUDE_FROM_ALL)
