//===- Fixture.h - random tensors and a context with all dialects -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_REFERENCE_FIXTURE_H
#define ATTN_TEST_REFERENCE_FIXTURE_H

#include "codegen/Target.h"
#include "driver/Interpreter.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

#include <gtest/gtest.h>
#include <random>

namespace attn {

/// The base class of tests that interpret modules.
class InterpreterTest : public testing::Test {
protected:
  InterpreterTest() : context(registry(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  /// Returns a tensor of normally distributed elements.
  ReferenceTensor normal(llvm::ArrayRef<int64_t> shape) {
    ReferenceTensor result(shape);
    for (double &element : result.elements)
      element = std::normal_distribution<double>()(random);
    return result;
  }

  mlir::MLIRContext context;
  std::mt19937 random{0};

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    mlir::registerAllDialects(registry);
    mlir::registerAllExtensions(registry);
    registry.insert<AttnDialect>();
    registerTargets(registry);
    return registry;
  }
};

} // namespace attn

#endif // ATTN_TEST_REFERENCE_FIXTURE_H
