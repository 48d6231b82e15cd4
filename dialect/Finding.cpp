//===- Finding.cpp - what passes report to users ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Finding.h"

using namespace mlir;
using namespace attn;

/// The lists of attn.report, in the order of the enum Finding.
static constexpr llvm::StringLiteral kLists[] = {"attentions", "extra_work", "slow_loops",
                                                 "unchecked"};

llvm::StringRef attn::getListName(Finding kind) { return kLists[size_t(kind)]; }

InFlightDiagnostic attn::emitFinding(Location loc, Finding kind, std::optional<double> share) {
  InFlightDiagnostic remark = emitRemark(loc);
  remark.getUnderlyingDiagnostic()->getMetadata().push_back(DiagnosticArgument(getListName(kind)));
  if (share)
    remark.getUnderlyingDiagnostic()->getMetadata().push_back(DiagnosticArgument(*share));
  return remark;
}

std::optional<Finding> attn::getFinding(Diagnostic &diagnostic) {
  for (const DiagnosticArgument &argument : diagnostic.getMetadata())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::String)
      for (auto [i, list] : llvm::enumerate(kLists))
        if (argument.getAsString() == list)
          return Finding(i);
  return std::nullopt;
}

std::optional<double> attn::getShare(Diagnostic &finding) {
  for (const DiagnosticArgument &argument : finding.getMetadata())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Double)
      return argument.getAsDouble();
  return std::nullopt;
}
