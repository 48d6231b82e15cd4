//===- FatBinary.cpp - machine code of GPUs beside PTX ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/FatBinary.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;

/// A file that is removed with the object.
namespace {
class TemporaryFile {
public:
  explicit TemporaryFile(llvm::StringRef suffix) {
    (void)llvm::sys::fs::createTemporaryFile("attn", suffix, name);
  }
  ~TemporaryFile() { (void)llvm::sys::fs::remove(name); }

  std::string path() const { return name.str().str(); }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(name);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  void write(llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(name, error) << text;
  }

private:
  llvm::SmallString<128> name;
};
} // namespace

/// Runs a program of CUDA.
static llvm::Error run(llvm::StringRef program, llvm::ArrayRef<std::string> arguments) {
  llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(program);
  if (!path)
    return llvm::createStringError("expected " + program + " on PATH for --cubin, got none");
  TemporaryFile output("txt");
  std::string outputPath = output.path();
  llvm::SmallVector<llvm::StringRef> command = {*path};
  llvm::append_range(command, arguments);
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(outputPath),
                                                llvm::StringRef(outputPath)};
  if (llvm::sys::ExecuteAndWait(*path, command, /*Env=*/std::nullopt, redirects) == 0)
    return llvm::Error::success();
  return llvm::createStringError("expected " + program + " to make machine code, got: " +
                                 llvm::StringRef(output.read()).trim());
}

static llvm::Expected<std::string> makeFatBinary(llvm::StringRef level, llvm::StringRef ptx) {
  TemporaryFile text("ptx"), code("cubin"), both("fatbin");
  text.write(ptx);
  if (llvm::Error error = run("ptxas", {"-arch=" + level.str(), "-o", code.path(), text.path()}))
    return std::move(error);
  std::string number = level.substr(level.find('_') + 1).str();
  if (llvm::Error error =
          run("fatbinary", {"-64", "--create=" + both.path(),
                            "--image3=kind=elf,sm=" + number + ",file=" + code.path(),
                            "--image3=kind=ptx,sm=" + number + ",file=" + text.path()}))
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
