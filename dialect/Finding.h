//===- Finding.h - what passes report to users -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A finding is a remark that names the list of the report to which it belongs. attn-opt prints a finding like any other
// remark; the driver adds the findings of all stages to attn.report.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_FINDING_H
#define ATTN_DIALECT_FINDING_H

#include "mlir/IR/Diagnostics.h"

#include <optional>

namespace attn {

/// The kinds of findings, one for each list of the report. docs/report.md says what each list holds.
enum class Finding { Unfused, ExtraWork, SlowLoop, Unchecked };

/// Starts the remark of a finding at `loc`. The caller adds the reason. `share` is the share of the op in the predicted
/// time of its function, if it is known.
mlir::InFlightDiagnostic emitFinding(mlir::Location loc, Finding kind,
                                     std::optional<double> share = std::nullopt);

/// The kind of `diagnostic` if it is a finding; none for any other diagnostic.
std::optional<Finding> getFinding(mlir::Diagnostic &diagnostic);

/// The share that emitFinding() was given.
std::optional<double> getShare(mlir::Diagnostic &finding);

/// The name of the list of attn.report that holds findings of this kind.
llvm::StringRef getListName(Finding kind);

} // namespace attn

#endif // ATTN_DIALECT_FINDING_H
