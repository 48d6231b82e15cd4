//===- Describe.cpp - print the content of a library ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   forward(x: f32[n, 64], lengths: i32[2], in-out cache: f32[512, 64]) -> (out: f32[n, 64])
//     weights    proj.weight: f32[64, 64]
//                proj.bias: f32[64]
//     sizes      n in [0, 512]
//     only where n != 64
//     values     lengths in [0, n]
//     levels     x86-64-v4 (runs here), x86-64-v3
//     workspace  per call 7168, per worker 3392 bytes
//     report     layer.py:31: attention fused, ..
//
//===----------------------------------------------------------------------===//

#include "tools/Describe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using llvm::StringRef;

namespace {

class Describer {
public:
  Describer(const FunctionInfo &function, llvm::raw_ostream &out) : function(function), out(out) {}

  void describe(StringRef level);

private:
  std::string tensor(const TensorInfo &tensor) const {
    auto sizes =
        llvm::map_range(tensor.shape, [&](const DimInfo &size) { return function.nameOf(size); });
    return (tensor.inOut ? "in-out " : "") + tensor.name + ": " + tensor.type->name.str() + "[" +
           llvm::join(sizes, ", ") + "]";
  }
  std::string tensors(const std::vector<TensorInfo> &list) const {
    return llvm::join(llvm::map_range(list, [&](const TensorInfo &t) { return tensor(t); }), ", ");
  }
  /// Prints lines, with `title` before the first line.
  template <typename Lines> void section(StringRef title, const Lines &lines) {
    for (const auto &line : lines) {
      out << "  " << llvm::left_justify(title, 11) << line << "\n";
      title = "";
    }
  }

  const FunctionInfo &function;
  llvm::raw_ostream &out;
};

} // namespace

void Describer::describe(StringRef level) {
  out << function.name << "(" << tensors(function.inputs) << ") -> (" << tensors(function.outputs)
      << ")\n";
  section("weights",
          llvm::map_range(function.weights, [&](const TensorInfo &t) { return tensor(t); }));
  section("sizes", llvm::map_range(function.inputSymbols(), [](const SymbolInfo &symbol) -> std::string {
            return llvm::formatv("{0} in [{1}, {2}]", symbol.name, symbol.min, symbol.max);
          }));
  std::vector<std::string> conditions, values;
  for (const SymbolInfo &symbol : function.symbols)
    if (symbol.formula && symbol.formula->isCondition())
      conditions.push_back(symbol.name);
  section("only where", conditions);
  for (const TensorInfo &tensor : function.inputs)
    if (tensor.bound)
      values.push_back(tensor.name + " in [" + function.leastOf(tensor) + ", " +
                       function.nameOf(*tensor.bound) + "]");
  section("values", values);
  if (function.variants.empty())
    return;
  const VariantInfo *shown = &function.variants.front();
  std::vector<std::string> levels;
  for (const VariantInfo &variant : function.variants) {
    levels.push_back(variant.level);
    if (variant.level != level)
      continue;
    levels.back() += " (runs here)";
    shown = &variant;
  }
  if (level.empty())
    levels.back() += "; none runs here";
  section("levels", llvm::ArrayRef{llvm::join(levels, ", ")});
  section("workspace", llvm::ArrayRef{shown->workspace + " bytes"});
  section("report", llvm::split(shown->report, '\n'));
}

void attn::describeFunction(const FunctionInfo &function, StringRef level, llvm::raw_ostream &out) {
  Describer(function, out).describe(level);
}
