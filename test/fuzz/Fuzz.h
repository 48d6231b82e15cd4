//===- Fuzz.h - what the fuzz targets share ----------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A target is one file that defines LLVMFuzzerTestOneInput: it gives bytes to a reader and fails the process where the
// reader breaks a promise. Who chooses the bytes is libFuzzer in the preset fuzz, and Replay.cpp in every other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_FUZZ_H
#define ATTN_TEST_FUZZ_FUZZ_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>

// What libFuzzer calls, and what it offers to mutators.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed);
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace attn::fuzz {

inline llvm::StringRef toText(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// The path of a file with this suffix, in a folder of this process that goes with it.
std::string pathOf(llvm::StringRef suffix);

/// Writes the bytes there; returns the path.
std::string writeFile(llvm::StringRef suffix, llvm::StringRef bytes);

/// Fails the process unless `condition` holds; `promise` says what was broken.
void expect(bool condition, llvm::StringRef promise);

/// The text of the error, which must have one.
std::string textOf(llvm::Error error);

/// Imports the model at `path`, as attnc does, and checks what an import promises.
void importModel(llvm::StringRef path);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_FUZZ_H
