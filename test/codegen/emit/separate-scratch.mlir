// RUN: attn-opt %s -attn-separate-scratch | FileCheck %s

// CHECK-DAG: #[[DOMAIN:.*]] = #llvm.alias_scope_domain<id = "task"
// CHECK-DAG: #[[A:.*]] = #llvm.alias_scope<id = "task.scratch_0", domain = #[[DOMAIN]]
// CHECK-DAG: #[[B:.*]] = #llvm.alias_scope<id = "task.scratch_64", domain = #[[DOMAIN]]
// CHECK-LABEL: @task(
// The first temporary begins at the start of the scratch memory. Loads of arguments, of bytes, and at an offset that is
// not constant get no alias scope.
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[A]]], alignment = 4 : i64, noalias_scopes = [#[[B]]]} : !llvm.ptr -> f32
// CHECK: llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[B]]], alignment = 4 : i64, noalias_scopes = [#[[A]]]} : f32
// CHECK-COUNT-3: llvm.load
// CHECK-NOT: alias_scopes
// CHECK: llvm.return
llvm.func @task(%workspaces: !llvm.ptr, %n: i64, %x: !llvm.ptr, %i: i64) {
  %scratch = llvm.getelementptr %workspaces[%n] {attn.scratch} : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %a = llvm.getelementptr inbounds %scratch[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> f32
  %second = llvm.getelementptr %scratch[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %b = llvm.getelementptr inbounds %second[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %v, %b {alignment = 4 : i64} : f32, !llvm.ptr
  %c = llvm.load %x : !llvm.ptr -> f32
  %byte = llvm.load %second : !llvm.ptr -> i8
  %third = llvm.getelementptr %scratch[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %d = llvm.load %third : !llvm.ptr -> f32
  llvm.return
}
