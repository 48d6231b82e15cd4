//===- Array.h - arrays, and their .npy files -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_ARRAY_H
#define ATTN_TOOLS_CALL_ARRAY_H

#include "tools/call/Failure.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn {

/// A dense row-major array. The element type is a code and bits, as in DLPack. Files store bfloat16
/// as uint16.
struct Array {
  uint8_t code = 2, bits = 32;
  std::vector<int64_t> shape;
  std::vector<char> data;

  /// The name of the element type, such as "f32", or null if the type has no name.
  const char *getTypeName() const;
  int64_t getNumElements() const;
  /// Element `i` as a number.
  double at(int64_t i) const;
};

/// Reads a .npy file of any version whose array is little-endian and in C order.
Failure readNpy(const std::string &path, Array &array);

Failure writeNpy(const std::string &path, const Array &array);

/// The bits of the f16 and the bf16 that are nearest to a finite number; ties go to even.
uint16_t toHalf(float value);
uint16_t toBFloat(float value);

} // namespace attn

#endif // ATTN_TOOLS_CALL_ARRAY_H
