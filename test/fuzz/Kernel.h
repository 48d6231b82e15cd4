//===- Kernel.h - a function that is linked into the target ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_KERNEL_H
#define ATTN_TEST_FUZZ_KERNEL_H

#include "runtime/attn.hpp"
#include "test/fuzz/Fuzz.h"

extern "C" const struct attn_library_info *attn_query_kernel(void);

namespace attn::fuzz {

/// Creates a function of test/runtime/kernel.c.
inline rt::Function createFunction(const char *name) {
  attn_library *library = nullptr;
  expect(attn_library_from_query(attn_query_kernel, &library) == ATTN_OK, "a library");
  rt::Library owner(library);
  attn_function *function = nullptr;
  expect(attn_function_create(library, name, nullptr, &function) == ATTN_OK, "a function");
  return rt::Function(function);
}

/// Calls forward with these weights, so that sanitizers check the memory that it reads. The result does not matter.
inline void callForward(attn_function *forward, const attn_weights *weights) {
  float x[8] = {}, residual[8] = {}, y[8], total[1];
  int32_t lengths[1] = {2};
  int64_t sizes[3] = {1, 2, 4};
  auto tensor = [&](void *data, DLDataTypeCode code, int32_t rank) {
    return DLTensor{data, {kDLCPU, 0}, rank, {uint8_t(code), 32, 1}, sizes, nullptr, 0};
  };
  DLTensor tensors[] = {tensor(x, kDLFloat, 3), tensor(residual, kDLFloat, 3), tensor(lengths, kDLInt, 1),
                        tensor(y, kDLFloat, 3), tensor(total, kDLFloat, 1)};
  const DLTensor *inputs[] = {&tensors[0], &tensors[1], &tensors[2]}, *outputs[] = {&tensors[3], &tensors[4]};
  expect(attn_call(forward, weights, inputs, 3, outputs, 2, nullptr) == ATTN_OK, "a call that works");
}

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_KERNEL_H
