//===- Arguments.h - the tensors of a call ----------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_ARGUMENTS_H
#define ATTN_TOOLS_CALL_ARGUMENTS_H

#include "runtime/attn.h"
#include "tools/call/Array.h"

#include <charconv>
#include <map>
#include <string_view>

namespace attn {

/// Returns a failure with the last error message of the runtime if `status` is an error, and success otherwise.
Failure toFailure(attn_status status);

/// Parses `text` as a decimal number. Returns false if `text` is anything else.
template <typename Integer> bool parseInteger(std::string_view text, Integer &number) {
  const char *end = text.data() + text.size();
  auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end;
}

/// Sizes of dynamic dimensions by name.
using DimSizes = std::map<std::string, int64_t>;

/// Parses each "name=n" of `dims`.
Failure parseDims(const std::vector<std::string> &dims, DimSizes &sizes);

/// Reads argument `index` of the signature.
Failure getArgument(const attn_function *function, attn_role role, int32_t index,
                    attn_argument &argument);

/// The indices of the in-out inputs, which `function` also writes to.
std::vector<int32_t> getInOut(const attn_function *function);

/// The tensors of a call for the runtime. They point into the arrays, which must outlive this object and keep their
/// memory. `results` are the outputs, then one array for each of `inOut`, which a call uses in place of that input.
class Arguments {
public:
  Arguments(std::vector<Array> &inputs, std::vector<Array> &results,
            const std::vector<int32_t> &inOut);
  Arguments(const Arguments &) = delete;

  /// Sets the data of tensor `i`, where outputs follow inputs.
  void setData(size_t i, void *data) { tensors[i].data = data; }
  /// The device that holds all tensors; by default the CPU.
  void setDevice(DLDevice device) {
    for (DLTensor &tensor : tensors)
      tensor.device = device;
  }

  size_t getNumInputs() const { return numInputs; }
  size_t getNumOutputs() const { return pointers.size() - numInputs; }
  const DLTensor *const *getInputs() const { return pointers.data(); }
  const DLTensor *const *getOutputs() const { return pointers.data() + numInputs; }

private:
  std::vector<DLTensor> tensors;
  std::vector<const DLTensor *> pointers;
  size_t numInputs;
};

/// Makes random inputs of `function`, the same in every run. `dims`, each "name=n", are the sizes of its
/// dynamic dimensions.
Failure makeRandomInputs(const attn_function *function, const std::vector<std::string> &dims,
                         std::vector<Array> &inputs);

/// Makes zero outputs of `function` for these inputs, then copies of its in-out inputs.
Failure makeResults(const attn_function *function, std::vector<Array> &inputs,
                    std::vector<Array> &results);

} // namespace attn

#endif // ATTN_TOOLS_CALL_ARGUMENTS_H
