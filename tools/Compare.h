//===- Compare.h - compare outputs with expected values ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_COMPARE_H
#define ATTN_TOOLS_COMPARE_H

#include "dialect/Reference.h"
#include "tools/call/Array.h"

#include "llvm/ADT/ArrayRef.h"

namespace attn {

/// A tensor with the elements of `array` as doubles.
ReferenceTensor toReference(const Array &array);

/// The index of the first element of `got` that differs from the element of `expected` by more than `tolerance`. If the
/// expected element is infinite or NaN, the element of `got` must be the same. None if all elements agree. The shapes
/// must be the same.
std::optional<int64_t> findDifference(const Array &got, const Array &expected, double tolerance);

/// Computes the results of `function` op by op in float64. `text` is the module after stage `stage`, in which values
/// must still be tensors.
llvm::Expected<std::vector<Array>>
interpretStage(llvm::StringRef text, llvm::StringRef stage, llvm::StringRef function,
               llvm::ArrayRef<Array> inputs, llvm::ArrayRef<std::pair<std::string, Array>> weights);

/// Computes the results of `function` of the model at `path` op by op in float64.
llvm::Expected<std::vector<Array>>
computeReference(llvm::StringRef path, llvm::StringRef function, llvm::ArrayRef<Array> inputs,
                 llvm::ArrayRef<std::pair<std::string, Array>> weights);

} // namespace attn

#endif // ATTN_TOOLS_COMPARE_H
