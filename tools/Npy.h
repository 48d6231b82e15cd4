//===- Npy.h - read and write .npy files ------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_NPY_H
#define ATTN_TOOLS_NPY_H

#include "codegen/emit/Interface.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn {

/// A dense row-major array. The element type is a code and bits, as in DLPack. Files store bfloat16
/// as uint16.
struct Array {
  uint8_t code = 2, bits = 32;
  llvm::SmallVector<int64_t> shape;
  std::vector<char> data;

  /// Null if the element type has no name.
  const DataType *getType() const;
  int64_t getNumElements() const;
  /// Element `i` as a number.
  double at(int64_t i) const;
};

/// Reads a file of any version whose arrays are little-endian and in C order.
llvm::Expected<Array> readNpy(llvm::StringRef path);

llvm::Error writeNpy(llvm::StringRef path, const Array &array);

} // namespace attn

#endif // ATTN_TOOLS_NPY_H
