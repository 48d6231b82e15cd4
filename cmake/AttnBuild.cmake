# Finds LLVM and MLIR 22, and defines attn_library() and attn_tool(), whose targets share one precompiled header.

find_package(MLIR REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(${MLIR_INCLUDE_DIRS} ${PROJECT_SOURCE_DIR}) # for TableGen

include(AttnMlir)

# The compile options of all code in this tree that includes headers of LLVM or MLIR.
set(attn_compile_options -Wall -Wextra -Wno-unused-parameter -fno-exceptions -fPIC)

# Installed tools look for LLVM's libraries in the folder from which the build linked them.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Parsing MLIR's headers takes seconds, so they are precompiled once. -fno-pch-timestamp lets ccache reuse the result.
add_library(attn_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/Precompiled.cpp)
target_link_libraries(attn_pch PUBLIC attn::mlir)
target_compile_options(attn_pch PRIVATE ${attn_compile_options})
target_precompile_headers(attn_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/Precompiled.h)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# attn_library(name SOURCES ... [LINK ...] [DEPENDS generated-targets...]) defines a static library.
function(attn_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC attn::mlir ${arg_LINK})
  target_include_directories(${name} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_BINARY_DIR}>"
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attn>)
  target_compile_options(${name} PRIVATE ${attn_compile_options})
  target_precompile_headers(${name} REUSE_FROM attn_pch)
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# attn_tool(name SOURCES ... LINK ...) defines a program in bin/.
function(attn_tool name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE attn::mlir ${arg_LINK})
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*address")
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/AddressSanitizer.cpp)
  endif()
  target_compile_options(${name} PRIVATE ${attn_compile_options})
  target_precompile_headers(${name} REUSE_FROM attn_pch)
endfunction()
