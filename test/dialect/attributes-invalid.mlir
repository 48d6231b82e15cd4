// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected 'attn.version' of at most 1, got 2 : i64}}
module attributes {attn.version = 2 : i64} {}

// -----

// expected-error @+1 {{expected 'attn.version' of at most 1, got "1"}}
module attributes {attn.version = "1"} {}

// -----

// expected-error @+1 {{expected 'attn.stage' to be a string, got 6 : i64}}
module attributes {attn.stage = 6} {}

// -----

// expected-error @+1 {{expected 'attn.target' to be a target such as #attn.cpu, got "x86-64"}}
module attributes {attn.target = "x86-64"} {}

// -----

// expected-error @+1 {{expected 'attn.targets' to be an array of targets such as #attn.cpu, got ["x86-64"]}}
module attributes {attn.targets = ["x86-64"]} {}

// -----

// expected-error @+1 {{expected vectors of a power of two of at least 32 bits, got 384}}
#t = #attn.cpu<"x", vector = 384, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>

// -----

// expected-error @+1 {{expected at least 8 registers that are not spare, got 4 with 0 spare}}
#t = #attn.cpu<"x", vector = 256, registers = 4, l1 = 32768, l2 = 1048576, has = fma>

// -----

// expected-error @+1 {{expected at least one multiply-add, load and store in a cycle, got 4, 0 and 2}}
#n = #attn.pipelines<multiplies = 4, loads = 0, stores = 2, latency = 2, exponential = 22>

// -----

// expected-error @+1 {{expected tiles of at least one query and one key, got q = 0, k = 64}}
#p = #attn.plan<"per-head", q = 0, k = 64>

// -----

// expected-error @+1 {{expected a name}}
#s = #attn.symbol<"", 0 to 4>

// -----

// expected-error @+1 {{expected a range of sizes, got -1 to 4}}
#s = #attn.symbol<"x.0", -1 to 4>

// -----

// expected-error @+1 {{expected a range of sizes, got 5 to 4}}
#s = #attn.symbol<"x.0", 5 to 4>

// -----

// expected-error @+1 {{expected 'attn.symbols' to be an array of #attn.symbol, got ["x.0"]}}
func.func private @f(tensor<?xf32>) attributes {attn.symbols = ["x.0"]}

// -----

// expected-error @+1 {{expected 'attn.dims' to hold one string for each dimension of 'tensor<?x4xf32>', got ["x.0"]}}
func.func private @f(tensor<?x4xf32> {attn.dims = ["x.0"]}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4>]}

// -----

// expected-error @+1 {{expected 'attn.dims' to hold one string for each dimension of 'index', got []}}
func.func private @f(index {attn.dims = []})

// -----

// expected-error @+1 {{expected a symbol for exactly the dynamic dimensions of 'tensor<?x4xf32>', got ["x.0", "x.0"]}}
func.func private @f(tensor<?x4xf32> {attn.dims = ["x.0", "x.0"]}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4>]}

// -----

// expected-error @+1 {{expected symbol 'x.0' among 'attn.symbols'}}
func.func private @f(tensor<?xf32> {attn.dims = ["x.0"]})

// -----

// The symbol in a result must be declared too.
// expected-error @+1 {{expected symbol 'x.1' among 'attn.symbols'}}
func.func private @f() -> (tensor<?xf32> {attn.dims = ["x.1"]}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4>]}

// -----

// expected-error @+1 {{expected 'attn.bound' on a tensor of i8, i16, i32 or i64, got 'tensor<64xi1>'}}
func.func private @f(tensor<64xi1> {attn.bound = 9 : i64})

// -----

// expected-error @+1 {{expected 'attn.bound' on a tensor of i8, i16, i32 or i64, got 'tensor<4xf32>'}}
func.func private @f(tensor<4xf32> {attn.bound = 9 : i64})

// -----

// expected-error @+1 {{expected 'attn.bound' to be a size or one of 'attn.symbols', got unit}}
func.func private @f(tensor<4xi32> {attn.bound})

// -----

// expected-error @+1 {{expected 'attn.bound' to be a size or one of 'attn.symbols', got -1 : i64}}
func.func private @f(tensor<4xi32> {attn.bound = -1 : i64})

// -----

// expected-error @+1 {{expected 'attn.bound' to be a size or one of 'attn.symbols', got "y.0"}}
func.func private @f(tensor<4xi32> {attn.bound = "y.0"}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4>]}

// -----

// expected-error @+1 {{expected 'attn.below' to be a size or one of 'attn.symbols', got "y.0"}}
func.func private @f(tensor<4xi32> {attn.bound = 4 : i64, attn.below = "y.0"}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4>]}

// -----

// expected-error @+1 {{expected 'attn.bound' beside 'attn.below'}}
func.func private @f(tensor<4xi32> {attn.below = 4 : i64})

// -----

// expected-error @+1 {{expected 'attn.unsigned' on a tensor of i8, got 'tensor<4xi32>'}}
func.func private @f(tensor<4xi32> {attn.unsigned})

// -----

// expected-error @+1 {{expected 'attn.in_out' to be the number of a result, got unit}}
func.func private @f(tensor<4xf32> {attn.in_out}) -> tensor<4xf32>

// -----

// expected-error @+1 {{expected 'attn.in_out' to be the number of a result, got 1 : i64}}
func.func private @f(tensor<4xf32> {attn.in_out = 1 : i64}) -> tensor<4xf32>

// -----

// expected-error @+1 {{expected 'attn.in_out' to be the number of a result, got 0 : i128}}
func.func private @f(tensor<4xf32> {attn.in_out = 0 : i128}) -> tensor<4xf32>

// -----

// expected-error @+1 {{expected a result of type 'tensor<4xf32>' for the 'attn.in_out' of argument 0, got 'tensor<5xf32>'}}
func.func private @f(tensor<4xf32> {attn.in_out = 0}) -> tensor<5xf32>

// -----

// expected-error @+1 {{expected no weight with 'attn.in_out', got argument 0}}
func.func private @f(tensor<4xf32> {attn.weight, attn.in_out = 0}) -> tensor<4xf32>

// -----

// expected-error @+1 {{expected one argument for result 0, got arguments 0 and 2}}
func.func private @f(tensor<4xf32> {attn.in_out = 0}, tensor<4xf32>, tensor<4xf32> {attn.in_out = 0}) -> tensor<4xf32>

// -----

// The body must skip products whose first factor is 0, as attn.skips_zeros says; this body adds every product.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @guarded(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{expected 'attn.skips_zeros' on an op that adds products except where the first factor is 0}}
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) attrs = {attn.skips_zeros} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %z, %product : f32
    linalg.yield %sum : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{expected a task of 1 to 1048576 rows, got rows = 0}}
#t = #attn.task<rows = 0>

// -----

// expected-error @+1 {{expected the number of a group to be at least 0, got group = -1}}
#t = #attn.task<rows = 8, group = -1>

// -----

// expected-error @+1 {{expected 'attn.task' to be an #attn.task, got 8 : i64}}
module attributes {attn.task = 8} {}

// -----

// expected-error @+1 {{expected 'attn.one_query' without a value, on an attn.attention}}
module attributes {attn.one_query} {}

// -----

// expected-error @+1 {{expected parts with the schedule decode only, got part = 64 with per-head}}
#p = #attn.plan<"per-head", q = 8, k = 16, part = 64>

// -----

// expected-error @+1 {{expected a part of at least 0 keys, got part = -1}}
#p = #attn.plan<"decode", q = 8, k = 16, part = -1>

// -----

// expected-error @+1 {{expected a group of 1 with the schedule decode, got group = 2}}
#p = #attn.plan<"decode", q = 8, k = 16, group = 2>

// -----

// expected-error @+1 {{expected a group of more than 1 and the schedule per-head or phased with transposes = true, got group = 1 and per-head}}
#p = #attn.plan<"per-head", q = 8, k = 16, transposes = true>

// -----

// expected-error @+1 {{expected 2 to 4 stages, or 0, got stages = 5}}
#p = #attn.plan<phased, q = 8, k = 16, stages = 5>

// -----

// expected-error @+1 {{expected 2 to 4 stages, or 0, got stages = 1}}
#p = #attn.plan<phased, q = 8, k = 16, stages = 1>

// -----

// expected-error @+1 {{expected a group of 1 and the schedule phased or decode with stages, got group = 2 and phased}}
#p = #attn.plan<phased, q = 8, k = 16, group = 2, stages = 2>

// -----

func.func @after() {
  // expected-error @+1 {{expected an attn.online_step that computes scores as the next op}}
  attn.after_scores {
  }
  return
}

// -----

// expected-error @+1 {{expected 'attn.compute' to be bf16, got f16}}
module attributes {attn.compute = f16} {}

// -----

// expected-error @+1 {{expected 0 to 32 blocks of a multiprocessor, got blocks = 33}}
#l = #attn.launch<threads = 64, blocks = 33>

// -----

// expected-error @+1 {{expected at most 1024 threads in warps of 32, got producers = 48 beside 64}}
#l = #attn.launch<threads = 64, producers = 48>

// -----

// expected-error @+1 {{expected a tensor of 2 to 5 dimensions and a dimension before the last, got offset = 8, rank = 2, dim = 1}}
#m = #attn.tensor_map<offset = 8, rank = 2, dim = 1, rows = 64, bytes = 2>

// -----

// expected-error @+1 {{expected 1 to 256 rows of elements of 1, 2 or 4 bytes, got rows = 512, bytes = 2}}
#m = #attn.tensor_map<offset = 8, rank = 3, dim = 1, rows = 512, bytes = 2>
