//===- Report.h - the contents of attn.report ---------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The attribute attn.report is a dictionary, so that a stage file keeps the findings in a form that people and programs
// can read. docs/report.md says what its fields mean.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_REPORT_H
#define ATTN_DIALECT_REPORT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/JSON.h"

namespace attn {

/// "file:line" of the user's source, or "unknown source".
std::string getSource(mlir::Location loc);

/// The dictionaries of the list `name` in `fields`; none if there is no such list, or `fields` is null.
llvm::SmallVector<mlir::DictionaryAttr> getList(mlir::DictionaryAttr fields, llvm::StringRef name);

/// `attribute` as JSON. Attributes that JSON has no form for, such as masks, become their text.
llvm::json::Value toJSON(mlir::Attribute attribute);

/// The report as lines of text for people; the first line of each attention has no indentation.
std::string printReport(mlir::DictionaryAttr report);

/// Whether an entry of the list `attentions` stands for an attention that was fused.
bool isFused(mlir::DictionaryAttr attention);

/// The first line of the text of an attention.
std::string printAttention(mlir::DictionaryAttr attention);

} // namespace attn

#endif // ATTN_DIALECT_REPORT_H
