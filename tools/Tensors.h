//===- Tensors.h - the tensors of a call ------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_TENSORS_H
#define ATTN_TOOLS_TENSORS_H

#include "runtime/attn.h"
#include "tools/Npy.h"

#include "llvm/ADT/ArrayRef.h"

namespace attn {

/// Returns the error message of the runtime if `status` is an error.
llvm::Error toError(attn_status status);

/// The indices of the in-out inputs, which `function` also writes to.
llvm::SmallVector<int32_t> getInOut(const attn_function *function);

/// The tensors of a call for the runtime. They point into the arrays, which must outlive this object and keep their
/// memory. `results` are the outputs, then one array for each of `inOut`, which a call uses in place of that input.
class Arguments {
public:
  Arguments(llvm::MutableArrayRef<Array> inputs, llvm::MutableArrayRef<Array> results,
            llvm::ArrayRef<int32_t> inOut);
  Arguments(const Arguments &) = delete;

  /// Sets the data of tensor `i`, where outputs follow inputs.
  void setData(size_t i, void *data) { tensors[i].data = data; }

  llvm::ArrayRef<const DLTensor *> inputs() const {
    return llvm::ArrayRef(pointers).take_front(numInputs);
  }
  llvm::ArrayRef<const DLTensor *> outputs() const {
    return llvm::ArrayRef(pointers).drop_front(numInputs);
  }

private:
  llvm::SmallVector<DLTensor> tensors;
  llvm::SmallVector<const DLTensor *> pointers;
  size_t numInputs;
};

/// Parses each "name=n" of `dims`.
llvm::Expected<llvm::StringMap<int64_t>> parseDims(llvm::ArrayRef<std::string> dims);

/// Makes random inputs of `function`, the same in every run. `dims`, each "name=n", are the sizes of its
/// dynamic dimensions.
llvm::Expected<std::vector<Array>> makeRandomInputs(const attn_function *function,
                                                    llvm::ArrayRef<std::string> dims);

/// Makes zero outputs of `function` for these inputs, then copies of its in-out inputs.
llvm::Expected<std::vector<Array>> makeResults(const attn_function *function,
                                               llvm::MutableArrayRef<Array> inputs);

} // namespace attn

#endif // ATTN_TOOLS_TENSORS_H
