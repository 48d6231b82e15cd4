//===- Graph.cpp - a .pt2 file: a valid zip file with arbitrary entries ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A changed byte of a zip file usually causes a checksum error, and the reader then reads no further. Here the input
// bytes are the entries themselves, separated by zeros: the graph, the table of the weights, the data of each weight.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <zip.h>

using namespace attn;

static void add(zip_t *file, const std::string &name, llvm::StringRef bytes) {
  zip_source_t *source = zip_source_buffer(file, bytes.data(), bytes.size(), /*freep=*/0);
  zip_int64_t index = zip_file_add(file, ("model/" + name).c_str(), source, ZIP_FL_OVERWRITE);
  fuzz::expect(source && index >= 0 && !zip_set_file_compression(file, index, ZIP_CM_STORE, 0),
               "an entry of a zip file");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::SmallVector<llvm::StringRef> entries;
  fuzz::toText(data, size).split(entries, '\0');
  std::string path = fuzz::pathOf(".pt2");
  zip_t *file = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  fuzz::expect(file, "a zip file");
  add(file, "byteorder", "little");
  for (size_t i = 0; i < entries.size(); ++i)
    add(file,
        i == 0   ? "models/model.json"
        : i == 1 ? "data/weights/model_weights_config.json"
                 : "data/weights/weight_" + std::to_string(i - 2),
        entries[i]);
  fuzz::expect(!zip_close(file), "a zip file that is written");
  fuzz::importModel(path);
  return 0;
}
