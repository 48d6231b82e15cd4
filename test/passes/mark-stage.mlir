// attn-mark-stage replaces the attribute attn.stage of an earlier stage.
// RUN: attn-opt %s --attn-mark-stage=stage=tile | FileCheck %s

// CHECK: module attributes {attn.stage = "tile"}
module attributes {attn.stage = "schedule"} {
}
