"""element_types.py FOLDER [N]: checks a product, a sum, a view and a conversion of each element type, and attentions of
half precision, at every ISA level that this CPU runs. With N, it checks all conversions and views, and one of N other
problems; the choice is the same in each run.

The reference is that of attn-run, which evaluates op by op in float64. Results of float types must equal the reference
up to the rounding of their type.
"""
import pathlib, random, subprocess, sys

from levels import NO_PAIRS, PAIRS, RUN, find_levels

TOLERANCE = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5, "f64": 1e-12}

CONTRACT = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<5x7x{t}>, %y: tensor<7x9x{t}>, %z: tensor<9x{t}>) -> (tensor<9x5x{t}>, tensor<5x9x{other}>) {{
  %zero = arith.constant {zero} : {t}
  %e = tensor.empty() : tensor<5x9x{t}>
  %s = linalg.fill ins(%zero : {t}) outs(%e : tensor<5x9x{t}>) -> tensor<5x9x{t}>
  %p = linalg.contract indexing_maps = [#a, #b, #c] ins(%x, %y : tensor<5x7x{t}>, tensor<7x9x{t}>) outs(%s : tensor<5x9x{t}>) -> tensor<5x9x{t}>
  %b = linalg.broadcast ins(%z : tensor<9x{t}>) outs(%e : tensor<5x9x{t}>) dimensions = [0]
  %q = linalg.add ins(%p, %b : tensor<5x9x{t}>, tensor<5x9x{t}>) outs(%e : tensor<5x9x{t}>) -> tensor<5x9x{t}>
  %et = tensor.empty() : tensor<9x5x{t}>
  %r = linalg.transpose ins(%q : tensor<5x9x{t}>) outs(%et : tensor<9x5x{t}>) permutation = [1, 0]
  %eo = tensor.empty() : tensor<5x9x{other}>
  %o = linalg.map ins(%q : tensor<5x9x{t}>) outs(%eo : tensor<5x9x{other}>) (%in: {t}, %init: {other}) {{
    %v = arith.{cast} %in : {t} to {other}
    linalg.yield %v : {other}
  }}
  return %r, %o : tensor<9x5x{t}>, tensor<5x9x{other}>
}}
"""
VIEW = """
func.func @f(%x: tensor<5x7x{t}>) -> tensor<7x5x{t}> {{
  %e = tensor.empty() : tensor<7x5x{t}>
  %r = linalg.transpose ins(%x : tensor<5x7x{t}>) outs(%e : tensor<7x5x{t}>) permutation = [1, 0]
  return %r : tensor<7x5x{t}>
}}
"""
EXP = """
func.func @f(%x: tensor<5x7x{t}>) -> tensor<5x7x{t}> {{
  %e = tensor.empty() : tensor<5x7x{t}>
  %r = linalg.exp ins(%x : tensor<5x7x{t}>) outs(%e : tensor<5x7x{t}>) -> tensor<5x7x{t}>
  return %r : tensor<5x7x{t}>
}}
"""
# The two factors and the sum may have three different element types. The first product is computed in register blocks,
# and the second in dot products. The sizes leave vectors that are not full.
PRODUCTS = """
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<{m}x{k}x{u}>, %y: tensor<{k}x{n}x{t}>, %z: tensor<{n}x{k}x{t}>)
    -> (tensor<{m}x{n}x{sum}>, tensor<{m}x{n}x{sum}>) {{
  %zero = arith.constant {zero} : {sum}
  %e = tensor.empty() : tensor<{m}x{n}x{sum}>
  %s = linalg.fill ins(%zero : {sum}) outs(%e : tensor<{m}x{n}x{sum}>) -> tensor<{m}x{n}x{sum}>
  %p = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %y : tensor<{m}x{k}x{u}>, tensor<{k}x{n}x{t}>)
    outs(%s : tensor<{m}x{n}x{sum}>) -> tensor<{m}x{n}x{sum}>
  %q = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %z : tensor<{m}x{k}x{u}>, tensor<{n}x{k}x{t}>)
    outs(%s : tensor<{m}x{n}x{sum}>) -> tensor<{m}x{n}x{sum}>
  return %p, %q : tensor<{m}x{n}x{sum}>, tensor<{m}x{n}x{sum}>
}}
"""
# The sizes leave a last group and a last panel that are not full.
PACK = """
func.func @f(%x: tensor<2x{n}x{k}x{u}>, %y: tensor<2x{k}x{n}x{u}>) -> ({out}, {out}) {{
  %e = tensor.empty() : {out}
  %p = attn.pack group({group}) ins(%x : tensor<2x{n}x{k}x{u}>) outs(%e : {out}) -> {out}
  %q = attn.pack from_rows group({group}) {scale} ins(%y : tensor<2x{k}x{n}x{u}>) outs(%e : {out}) -> {out}
  return %p, %q : {out}, {out}
}}
"""
# Queries, keys, values and outputs have half precision. The sizes leave tiles that are not full, and head sizes may be
# odd.
ATTENTION = """
#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
func.func @f(%q: tensor<2x{q}x{d}x{t}>, %k: tensor<2x{k}x{d}x{t}> {{attn.name = "k"}}, %v: tensor<2x{k}x{e}x{t}>) -> tensor<2x{q}x{e}x{t}> {{
  %e = tensor.empty() : tensor<2x{q}x{e}x{t}>
  %o = attn.attention ins(%q, %k, %v : tensor<2x{q}x{d}x{t}>, tensor<2x{k}x{d}x{t}>, tensor<2x{k}x{e}x{t}>)
    outs(%e : tensor<2x{q}x{e}x{t}>) {mask}
    {{indexing_maps = [#q, #k, #v, #o], scale = 0.3 : f32}} {score} -> tensor<2x{q}x{e}x{t}>
  return %o : tensor<2x{q}x{e}x{t}>
}}
"""
REGION = """score {{
  ^bb0(%h: index, %i: index, %j: index, %s: f32):
    %c = math.tanh %s : f32
    attn.yield %c : f32
  }}"""
# The attention of f32 loads vectors of a bias of f16 or bf16.
BIAS = """
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#b = affine_map<(q, k, d, e) -> (q, k)>
func.func @f(%x: tensor<37x8xf32>, %bias: tensor<37x37x{t}>) -> tensor<37x8xf32> {{
  %e = tensor.empty() : tensor<37x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<37x8xf32>, tensor<37x8xf32>, tensor<37x8xf32>)
    captures(%bias : tensor<37x37x{t}>) outs(%e : tensor<37x8xf32>)
    {{indexing_maps = [#q, #k, #v, #b, #o], scale = 1.0 : f32}} score {{
    ^bb0(%q: index, %k: index, %s: f32, %h: {t}):
      %w = arith.extf %h : {t} to f32
      %t = arith.addf %s, %w : f32
      attn.yield %t : f32
    }} -> tensor<37x8xf32>
  return %o : tensor<37x8xf32>
}}
"""
CONVERSIONS = [("f16", "f32", "extf"), ("f16", "f64", "extf"), ("f32", "f16", "truncf"), ("f32", "f64", "extf"),
               ("f64", "f16", "truncf"), ("f64", "f32", "truncf"), ("i8", "f16", "sitofp"), ("i16", "f32", "sitofp"),
               ("i32", "f64", "sitofp"), ("i64", "f16", "sitofp"), ("i64", "i8", "trunci"),
               ("bf16", "f32", "extf"), ("bf16", "f64", "extf"), ("f32", "bf16", "truncf"), ("f64", "bf16", "truncf"),
               ("i64", "bf16", "sitofp")]


def with_plan(attention, rows, group):
    """Returns the attention with a plan whose register blocks of scores have this number of rows."""
    plan = f'plan(<"per-head", q = 35, k = 33, group = {group}>)'
    blocks = f"attn.blocks = {{scores = #attn.block<rows = {rows}, vectors = 1>}}"
    return attention.replace("{indexing_maps", plan + " {" + blocks + ", indexing_maps")


def run(folder, name, text, tolerance, levels=None, options=()):
    if not name.startswith(("convert", "view")) and choice.random() * N >= 1:
        return
    path = folder / f"{name}.mlir"
    path.write_text(text)
    for level in levels or LEVELS:
        result = subprocess.run([*RUN, path, "--reference", f"--level={level}", f"--tolerance={tolerance}", *options],
                                capture_output=True, text=True)
        if result.returncode and "expected a level that this CPU runs" in result.stderr:
            continue
        assert not result.returncode, f"{name} at {level}: {result.stderr}"
        print(name, level)


folder, N = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
choice = random.Random(0)
LEVELS = find_levels(folder)
for t, other, cast in CONVERSIONS:
    text = CONTRACT.format(t=t, other=other, cast=cast, zero="0" if t[0] == "i" else "0.0")
    run(folder, f"convert-{t}-{other}", text, max(TOLERANCE.get(t, 0), TOLERANCE.get(other, 0)))
for t in ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f64"):
    run(folder, f"view-{t}", VIEW.format(t=t), 0)
for u, t, sum in [("f64", "f64", "f64"), ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f32", "bf16", "f32"),
                  ("bf16", "f16", "f32"), ("f32", "f32", "f64"), ("i8", "i8", "i32"), ("i8", "i16", "i32"), ("i32", "i32", "i32")]:
    for m, n, k in [(1, 37, 40), (13, 37, 40), (13, 3, 33), (50, 128, 400)]:
        text = PRODUCTS.format(u=u, t=t, sum=sum, m=m, n=n, k=k, zero="0" if sum[0] == "i" else "0.0")
        run(folder, f"products-{u}-{t}-{sum}-{m}x{n}x{k}", text, TOLERANCE.get(sum, 0))
for u, t, group in [("bf16", "bf16", 2), ("f16", "f16", 4), ("i8", "i8", 4), ("i8", "i8", 8), ("f32", "f32", 2), ("i64", "i64", 2),
                    ("f32", "bf16", 2), ("f32", "f16", 4)]:
    for n, k in [(37, 40), (5, 3), (64, 33)]:
        out = f"tensor<2x{-(-n // 32)}x{-(-k // group)}x32x{group}x{t}>"
        scale = "scale(0.5)" if t[0] != "i" else ""
        text = PACK.format(u=u, group=group, n=n, k=k, out=out, scale=scale)
        run(folder, f"pack-{u}-{t}-{group}-{n}x{k}", text, TOLERANCE[t] if u != t else 0)
for t in ("f16", "bf16"):
    for mask, score in [("", ""), ("mask(#attn.causal)", ""), ("", REGION), ("mask(#attn.window<left = 40, right = 9>)", REGION)]:
        for q, k, d, e in [(50, 129, 8, 6), (3, 131, 7, 5), (130, 260, 64, 64), (1, 64, 16, 16), (64, 1, 2, 1)]:
            text = ATTENTION.format(t=t, q=q, k=k, d=d, e=e, mask=mask, score=score.format(t=t))
            name = f"attention-{t}-{q}x{k}x{d}x{e}{'-masked' if mask else ''}{'-region' if score else ''}"
            run(folder, name, text, TOLERANCE[t] / 2)
    # A plan that users edit may have register blocks whose number of rows divides neither the 33 keys of a tile nor the
    # 3 keys of the last tile.
    for rows in (5, 6, 7):
        text = with_plan(ATTENTION.format(t=t, q=35, k=135, d=12, e=7, mask="mask(#attn.causal)", score=""), rows, group=1)
        run(folder, f"attention-{t}-rows-{rows}", text, TOLERANCE[t] / 2)
    # The head size of 384 makes long sums, whose register blocks have fewer rows.
    for k in (131, 135, 262):
        text = ATTENTION.format(t=t, q=32, k=k, d=384, e=32, mask="", score="")
        run(folder, f"attention-{t}-long-{k}", text, TOLERANCE[t] / 2)
# The next plans have the same numbers of rows, and groups of 2 for instructions that add 2 products at once. If the
# number of keys is dynamic, the keys after the last full block are computed in several blocks.
for rows in (5, 6, 7):
    for k in (135, "?"):
        text = with_plan(ATTENTION.format(t="bf16", q=35, k=k, d=12, e=7, mask="", score=""), rows, group=2)
        for keys in (135, 136, 142) if k == "?" else (135,):
            run(folder, f"attention-groups-{rows}-{k == '?'}-{keys}", text, TOLERANCE["bf16"] / 2, [PAIRS],
                [f"--dim=k.1={keys}"] if k == "?" else [])
for t in ("f16", "bf16"):
    run(folder, f"exp-{t}", EXP.format(t=t), TOLERANCE[t])
    run(folder, f"bias-{t}", BIAS.format(t=t), TOLERANCE["f32"])
# With --compute=bf16, products of f32 may round their factors to bf16. Levels without instructions for bf16 do not
# round.
for level, tolerance in [(PAIRS, TOLERANCE["bf16"] / 2), *((level, TOLERANCE["f32"]) for level in NO_PAIRS)]:
    for mask, score in [("", ""), ("mask(#attn.window<left = 40, right = 9>)", REGION)]:
        for q, k, d, e in [(50, 129, 8, 6), (3, 131, 8, 5), (130, 260, 64, 64), (50, 129, 7, 6)]:
            text = ATTENTION.format(t="f32", q=q, k=k, d=d, e=e, mask=mask, score=score.format(t="f32"))
            run(folder, f"compute-{level}-{q}x{k}x{d}x{e}{'-masked' if mask else ''}", text, tolerance, [level], ["--compute=bf16"])
    for m, n, k in [(1, 37, 40), (13, 37, 40), (50, 128, 400)]:
        text = PRODUCTS.format(u="f32", t="f32", sum="f32", m=m, n=n, k=k, zero="0.0")
        run(folder, f"compute-{level}-{m}x{n}x{k}", text, tolerance, [level], ["--compute=bf16"])
