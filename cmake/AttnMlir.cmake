# Defines attn::mlir: the options and libraries for code that includes headers of LLVM or MLIR. attn itself uses this
# file, and attn's CMake package contains it for projects that link attn's libraries. Include it after
# find_package(MLIR).

separate_arguments(attn_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")

add_library(attn::mlir INTERFACE IMPORTED)
target_compile_features(attn::mlir INTERFACE cxx_std_17)
target_include_directories(attn::mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(attn::mlir INTERFACE ${attn_llvm_definitions})
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(attn::mlir INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
endif()
target_link_libraries(attn::mlir INTERFACE MLIR LLVM)
