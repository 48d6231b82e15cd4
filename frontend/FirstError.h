//===- FirstError.h - the first error as one line ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_FIRSTERROR_H
#define ATTN_FRONTEND_FIRSTERROR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Keeps the text of the first error that is reported while the object exists. The text starts with the location
/// of the error in the user's source if this location is known.
class FirstError : mlir::ScopedDiagnosticHandler {
public:
  /// `path` is the file that is read. A location in this file is printed without the file name.
  FirstError(mlir::MLIRContext &context, llvm::StringRef path) : ScopedDiagnosticHandler(&context) {
    setHandler([this, path](mlir::Diagnostic &diagnostic) {
      bool isError = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
      if (line.empty() && isError) {
        line = str(diagnostic, path);
        place = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>();
      }
      return mlir::success(isError); // warnings and remarks go to the next handler
    });
  }

  /// Where the error is; null if this is not known.
  mlir::FileLineColLoc getPlace() const { return place; }

  llvm::Error take() {
    return llvm::createStringError(line.empty() ? "expected a valid module" : line);
  }

private:
  static std::string str(mlir::Diagnostic &diagnostic, llvm::StringRef path) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (auto location = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) {
      if (location.getFilename() != path)
        stream << location.getFilename().getValue() << ":";
      stream << location.getLine() << ":";
      if (location.getColumn() != 0)
        stream << location.getColumn() << ":";
      stream << " ";
    }
    stream << diagnostic;
    return text;
  }

  std::string line;
  mlir::FileLineColLoc place;
};

} // namespace attn

#endif // ATTN_FRONTEND_FIRSTERROR_H
