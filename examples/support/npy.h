//===- npy.h - read a NumPy file ---------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   \x93NUMPY, version (2 bytes), length of the text (2 bytes, 4 from version 2 on),
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 14, 64), }, elements
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLE_NPY_H
#define EXAMPLE_NPY_H

#include "tensor.h"

#include <cstdlib>

/// Reads a row-major float32 array.
inline Tensor readNpy(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(path + ": expected a file that can be opened");
  unsigned char start[12] = {};
  file.read(reinterpret_cast<char *>(start), 10);
  if (!file || std::string(start + 1, start + 6) != "NUMPY")
    throw std::runtime_error(path + ": expected a .npy file");
  uint32_t length = start[8] | start[9] << 8;
  if (start[6] > 1) {
    file.read(reinterpret_cast<char *>(start + 10), 2);
    length |= uint32_t(start[10]) << 16 | uint32_t(start[11]) << 24;
  }
  if (length > 1 << 16)
    throw std::runtime_error(path + ": expected a header under 64 KiB");
  std::string text(length, ' ');
  file.read(text.data(), length);

  size_t shapeBegin = text.find("'shape': (");
  if (!file || text.find("'descr': '<f4'") == std::string::npos ||
      text.find("'fortran_order': False") == std::string::npos || shapeBegin == std::string::npos)
    throw std::runtime_error(path + ": expected row-major float32, got " + text);
  std::vector<int64_t> shape;
  for (const char *next = text.c_str() + shapeBegin + 10;; ++next) {
    char *end;
    int64_t size = std::strtoll(next, &end, 10);
    if (end == next)
      break;
    shape.push_back(size);
    next = end;
    if (*next != ',')
      break;
  }
  return readElements(file, std::move(shape), path);
}

#endif // EXAMPLE_NPY_H
