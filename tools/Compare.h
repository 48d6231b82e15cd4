//===- Compare.h - outputs beside what they should be -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_COMPARE_H
#define ATTN_TOOLS_COMPARE_H

#include "dialect/Reference.h"
#include "tools/Npy.h"

#include "llvm/ADT/ArrayRef.h"

namespace attn {

/// The elements as doubles.
ReferenceTensor toReference(const Array &array);

struct Difference {
  double error;   ///< the largest, of the finite elements
  double largest; ///< magnitude expected of a finite element
};

/// Fails where the shapes differ, or an element is finite in one alone. `name` says in errors what
/// `got` is, `source` where `expected` comes from.
llvm::Expected<Difference> compare(const Array &got, const llvm::Twine &name, const Array &expected,
                                   llvm::StringRef source);

/// The first element of `got`, in order, that is further than `tolerance` from the one of `expected`, or finite,
/// infinite or NaN where that is not. The shapes are the same.
std::optional<int64_t> findDifference(const Array &got, const Array &expected, double tolerance);

/// What `function` of the module in `text`, as stage `stage` leaves it, gives, computed op by op in float64. Only
/// stages on tensors can be computed.
llvm::Expected<std::vector<Array>>
interpretStage(llvm::StringRef text, llvm::StringRef stage, llvm::StringRef function,
               llvm::ArrayRef<Array> inputs, llvm::ArrayRef<std::pair<std::string, Array>> weights);

/// What `function` of the model at `path` gives, computed op by op in float64.
llvm::Expected<std::vector<Array>>
computeReference(llvm::StringRef path, llvm::StringRef function, llvm::ArrayRef<Array> inputs,
                 llvm::ArrayRef<std::pair<std::string, Array>> weights);

} // namespace attn

#endif // ATTN_TOOLS_COMPARE_H
