//===- MarkStage.cpp - which stage wrote a module --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   module attributes {attn.stage = "import"} {...}
// becomes
//   module attributes {attn.stage = "raise"} {...}
//
// The pass runs at the end of each stage, so that tools can refuse a file that another stage wrote.
// Test: test/tools/stages.test
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"

namespace attn {
#define GEN_PASS_DEF_MARKSTAGE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct MarkStage : attn::impl::MarkStageBase<MarkStage> {
  using MarkStageBase::MarkStageBase;

  void runOnOperation() override {
    getOperation()->setAttr(AttnDialect::kStageAttr, StringAttr::get(&getContext(), stage));
  }
};
} // namespace
