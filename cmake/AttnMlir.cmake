# attn::mlir: what everything that includes a header of LLVM or MLIR needs. For attn itself, and for those who build
# on its libraries: the package installs this file. After find_package(MLIR).

separate_arguments(attn_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")

add_library(attn::mlir INTERFACE IMPORTED)
target_compile_features(attn::mlir INTERFACE cxx_std_17)
target_include_directories(attn::mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(attn::mlir INTERFACE ${attn_llvm_definitions})
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(attn::mlir INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
endif()
target_link_libraries(attn::mlir INTERFACE MLIR LLVM)
