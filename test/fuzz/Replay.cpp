//===- Replay.cpp - the main function of a fuzz target without libFuzzer ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn-fuzz-TARGET [-mutations=N] FILE|FOLDER...
//
// Runs every file, and N mutations of it. The mutations depend only on the bytes of the file, not on other files.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <random>
#include <vector>

using Bytes = std::vector<uint8_t>;

static constexpr size_t kMinRoom = 4096;
static std::mt19937 generator;

/// Makes one of the changes that libFuzzer makes most often.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize) {
  auto below = [](size_t bound) { return generator() % bound; };
  size_t at = size ? below(size) : 0, length = size ? 1 + below(std::min<size_t>(size - at, 16)) : 0;
  switch (below(4)) {
  case 0: // change a bit
    if (size)
      data[at] ^= 1 << below(8);
    return size;
  case 1: // change a byte, often to a value that readers treat specially
    if (size)
      data[at] = below(2) ? below(256) : "\0\1\x7f\x80\xff\x0a 09"[below(9)];
    return size;
  case 2: // remove bytes
    std::copy(data + at + length, data + size, data + at);
    return size - length;
  default: // repeat bytes
    if (size + length > maxSize)
      return size;
    std::copy_backward(data + at, data + size, data + size + length);
    return size + length;
  }
}

static void run(const Bytes &input) {
  // Copy to a buffer of exactly this size, so that sanitizers detect reads beyond its end.
  std::unique_ptr<uint8_t[]> exact(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), exact.get());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
}

static void read(const std::string &path, std::vector<Bytes> &inputs) {
  if (llvm::sys::fs::is_directory(path)) {
    std::vector<std::string> files;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(path, error), end; it != end && !error; it.increment(error))
      files.push_back(it->path());
    llvm::sort(files); // the order of files in a folder depends on the file system
    for (const std::string &file : files)
      read(file, inputs);
    return;
  }
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  attn::fuzz::expect(bool(file), "a file that can be read, got '" + path + "'");
  inputs.emplace_back((*file)->getBuffer().bytes_begin(), (*file)->getBuffer().bytes_end());
}

int main(int argc, char **argv) {
  std::vector<Bytes> inputs;
  unsigned mutations = 0;
  for (llvm::StringRef word : llvm::ArrayRef(argv, argc).drop_front())
    if (word.consume_front("-mutations="))
      attn::fuzz::expect(!word.getAsInteger(10, mutations), "a number of mutations");
    else
      read(word.str(), inputs);
  attn::fuzz::expect(!inputs.empty(), "an input");
  for (const Bytes &input : inputs) {
    run(input);
    generator.seed(llvm::xxh3_64bits(input));
    for (unsigned i = 0; i < mutations; ++i) {
      Bytes mutated = input;
      mutated.resize(std::max(2 * input.size(), kMinRoom));
      size_t size = input.size();
      for (unsigned changes = 1 + generator() % 3; changes; --changes)
        size = LLVMFuzzerCustomMutator(mutated.data(), size, mutated.size(), generator());
      mutated.resize(size);
      run(mutated);
    }
  }
  llvm::outs() << inputs.size() << " inputs, each with " << mutations << " mutations\n";
  return 0;
}
