//===- Codegen.cpp - targets that generate code ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

#include "codegen/CodegenInterface.cpp.inc"

LogicalResult attn::moveSymbols(ModuleOp level, ModuleOp library,
                                llvm::function_ref<void(func::FuncOp)> change) {
  StringRef suffix = getTarget(level).getLevel();
  for (Operation &op : llvm::make_early_inc_range(*level.getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol)
      return op.emitError() << "expected only symbols in the module of a level, got '"
                            << op.getName() << "'";
    auto name = StringAttr::get(level.getContext(), symbol.getName() + "." + suffix);
    if (failed(SymbolTable::replaceAllSymbolUses(symbol, name, level)))
      return op.emitError() << "expected every op that may use '" << symbol.getName()
                            << "' to be registered";
    symbol.setName(name);
    if (auto function = dyn_cast<func::FuncOp>(op))
      change(function);
  }
  library.getBody()->getOperations().splice(library.getBody()->end(),
                                            level.getBody()->getOperations());
  level.erase();
  return success();
}

LLVM::LLVMStructType attn::getContextType(const LLVMTypeConverter &converter, bool hasPointer,
                                          TypeRange captured) {
  SmallVector<Type> fields;
  if (hasPointer)
    fields.push_back(LLVM::LLVMPointerType::get(&converter.getContext()));
  for (Type type : captured)
    fields.push_back(converter.convertType(type));
  return LLVM::LLVMStructType::getLiteral(&converter.getContext(), fields);
}

std::string attn::getKernelName(llvm::StringRef task, int64_t number) {
  std::string name = task.str() + "_" + std::to_string(number);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !llvm::isAlnum(c); }, '_');
  return llvm::isDigit(name.front()) ? "_" + name : name;
}
