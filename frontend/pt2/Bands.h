//===- Bands.h - buffers with one value inside a diagonal band ---*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Modules often keep the mask of their attention in a buffer, and forward() uses a part of it:
//
//   self.register_buffer("bias", torch.tril(torch.ones(1024, 1024)).view(1, 1, 1024, 1024))
//   att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
//
// Such values are imported as a formula of row and column. From the formula, attn derives which pairs of query and key
// the mask keeps, and the compiled code skips the tiles without a kept pair.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_BANDS_H
#define ATTN_FRONTEND_PT2_BANDS_H

#include "frontend/Frontend.h"
#include "frontend/graph/TensorBuilder.h"

namespace attn::pt2 {

/// The values of a matrix that has one value inside a diagonal band and another outside. An element is `inside` if
/// row - lower <= column <= row + upper, and `outside` otherwise. The matrix is in the last two dimensions of a tensor,
/// whose other dimensions have size 1.
struct Band {
  std::optional<int64_t> lower, upper; // a missing bound does not limit the band
  llvm::APInt inside, outside;         // the bits of the elements
};

/// Returns the band whose elements are `values`, or none if there is no such band. Also returns none for matrices that
/// are not masks: all elements are equal, there is a single row or column, or the band is bounded on both sides and
/// lacks element (0, 0).
std::optional<Band> findBand(const NamedTensor &values);

/// The only element of `values`, as a band without bounds; none unless there is exactly one.
std::optional<Band> findNumber(const NamedTensor &values);

/// A tensor of `sizes` with the elements of `band`.
graph::Tensor createBand(graph::TensorBuilder &b, const Band &band, llvm::ArrayRef<Size> sizes,
                         graph::DType dtype);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_BANDS_H
