//===- DrawMasks.h - pictures of masks and tiles -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_DRAWMASKS_H
#define ATTN_TOOLS_DRAWMASKS_H

#include "driver/MaskTiles.h"

#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Draws with block characters. The rows of a picture have at most 100 columns.
void drawText(llvm::ArrayRef<MaskTiles> masks, llvm::raw_ostream &out);

/// Draws an SVG image, with one picture below the other.
void drawSVG(llvm::ArrayRef<MaskTiles> masks, llvm::raw_ostream &out);

} // namespace attn

#endif // ATTN_TOOLS_DRAWMASKS_H
