//===- FatBinary.cpp - add machine code for GPUs to PTX --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/FatBinary.h"
#include "codegen/emit/OutputFiles.h"

#include "llvm/IR/Constants.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;

/// Runs `program`, one of the tools that come with CUDA.
static llvm::Error run(llvm::StringRef program, llvm::ArrayRef<std::string> arguments) {
  llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(program);
  if (!path)
    return llvm::createStringError("expected " + program + " on PATH for --cubin, got none");
  TemporaryFile output;
  if (llvm::Error error = output.create("txt"))
    return error;
  llvm::SmallVector<llvm::StringRef> command = {*path};
  llvm::append_range(command, arguments);
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), output.path(), output.path()};
  if (llvm::sys::ExecuteAndWait(*path, command, /*Env=*/std::nullopt, redirects) == 0)
    return llvm::Error::success();
  llvm::Expected<std::string> text = output.read();
  if (!text)
    return text.takeError();
  return llvm::createStringError("expected " + program +
                                 " to make machine code, got: " + llvm::StringRef(*text).trim());
}

static llvm::Expected<std::string> makeFatBinary(llvm::StringRef level, llvm::StringRef ptx) {
  TemporaryFile text, code, both;
  llvm::Error error = text.create("ptx", ptx);
  if (!error)
    error = code.create("cubin");
  if (!error)
    error = both.create("fatbin");
  if (!error)
    error = run("ptxas", {"-arch=" + level.str(), "-o", code.path().str(), text.path().str()});
  std::string number = level.substr(level.find('_') + 1).str();
  if (!error)
    error = run("fatbinary", {"-64", "--create=" + both.path().str(),
                              "--image3=kind=elf,sm=" + number + ",file=" + code.path().str(),
                              "--image3=kind=ptx,sm=" + number + ",file=" + text.path().str()});
  if (error)
    return std::move(error);
  return both.read();
}

llvm::Error attn::makeFatBinaries(llvm::Module &module, const LibraryInfo &library) {
  llvm::SmallVector<std::string> levels;
  for (const FunctionInfo &function : library.functions)
    for (const VariantInfo &variant : function.variants)
      if (!variant.kernels.empty() && !llvm::is_contained(levels, variant.level))
        levels.push_back(variant.level);
  if (levels.empty())
    return llvm::createStringError("expected a level for GPUs with --cubin, got none");
  for (const std::string &level : levels) {
    llvm::GlobalVariable *ptx =
        module.getGlobalVariable("kernels." + level, /*AllowInternal=*/true);
    llvm::StringRef text =
        llvm::cast<llvm::ConstantDataArray>(ptx->getInitializer())->getAsCString();
    llvm::Expected<std::string> bytes = makeFatBinary(level, text);
    if (!bytes)
      return bytes.takeError();
    auto *data = llvm::ConstantDataArray::getString(module.getContext(), *bytes, /*AddNull=*/false);
    auto *fat = new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true,
                                         llvm::GlobalValue::InternalLinkage, data);
    fat->setAlignment(llvm::Align(8));
    fat->takeName(ptx);
    ptx->replaceAllUsesWith(fat);
    ptx->eraseFromParent();
  }
  return llvm::Error::success();
}
