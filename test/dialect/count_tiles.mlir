// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @count_tiles
// CHECK-SAME: %[[DONE:.*]]: index, %[[SKIPPED:.*]]: index)
func.func @count_tiles(%run: index, %skipped: index) {
  // CHECK: attn.count_tiles run(%[[DONE]]) skipped(%[[SKIPPED]])
  attn.count_tiles run(%run) skipped(%skipped)
  return
}
