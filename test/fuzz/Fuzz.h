//===- Fuzz.h - functions that the fuzz targets share ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A target is one file that defines LLVMFuzzerTestOneInput. This function passes bytes to a reader of files, and aborts
// the process if the reader breaks a promise of its interface. libFuzzer chooses the bytes in the preset fuzz, and
// Replay.cpp chooses them in all other presets.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_FUZZ_H
#define ATTN_TEST_FUZZ_FUZZ_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>

// The functions that libFuzzer calls, and the function that it offers to mutators.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed);
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace attn::fuzz {

inline llvm::StringRef toText(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// Returns the path of a file with this suffix, in a folder that is removed when this process ends.
std::string pathOf(llvm::StringRef suffix);

/// Writes the bytes to pathOf(suffix) and returns this path.
std::string writeFile(llvm::StringRef suffix, llvm::StringRef bytes);

/// Aborts the process unless `condition` holds. `promise` describes the condition, for the message.
void expect(bool condition, llvm::StringRef promise);

/// Returns the text of the error, and aborts the process if the text is empty.
std::string textOf(llvm::Error error);

/// Imports the model at `path`, as attnc does, and checks the promises of an import.
void importModel(llvm::StringRef path);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_FUZZ_H
