//===- Archive.h - the entries of a .pt2 file --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_ARCHIVE_H
#define ATTN_FRONTEND_PT2_ARCHIVE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

struct zip;

namespace attn::pt2 {

/// A zip file whose entries are stored, not compressed, below one top folder of any name. The file
/// is not trusted: neither one entry nor all entries together may be larger than the file on disk.
class Archive {
public:
  static llvm::Expected<Archive> open(llvm::StringRef path);

  bool contains(llvm::StringRef entry) const { return entries.contains(entry); }

  /// Reads `entry`, a path without the top folder, and verifies its checksum.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> read(llvm::StringRef entry) const;

private:
  struct Entry {
    uint64_t index, size;
  };
  struct Close {
    void operator()(struct zip *file) const;
  };
  std::unique_ptr<struct zip, Close> file;
  llvm::StringMap<Entry> entries;
};

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_ARCHIVE_H
