"""tiles.py FOLDER: checks products and attentions of bf16 at level x86-64-amx against a reference in float64.

On a CPU that has the other features of the level but lacks AMX, attn-run-tiles emulates the AMX instructions. A tile
register has 16 rows and 16 columns of sums, and an instruction adds 32 products to each sum. The sizes of matrices
leave tails of rows, columns and products, or do not fill one tile.
"""
import itertools
import pathlib
import subprocess
import sys

PRODUCT = """
#x = affine_map<(m, n, k, g) -> (m, k, g)>
#w = affine_map<(m, n, k, g) -> (k, n, g)>
#y = affine_map<(m, n, k, g) -> (m, n)>
func.func @product(%x: tensor<{rows}x{k}x2xbf16> {{attn.name = "x"}}, %w: tensor<{k}x{n}x2xbf16>,
                   %start: {start} {{attn.name = "start"}}) -> tensor<{rows}x{n}xf32> {{
  %zero = arith.constant 0 : index
  %m = tensor.dim %x, %zero : tensor<{rows}x{k}x2xbf16>
  %e = tensor.empty({size}) : tensor<{rows}x{n}xf32>
  {init}
  %o = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<{rows}x{k}x2xbf16>, tensor<{k}x{n}x2xbf16>)
    outs(%s : tensor<{rows}x{n}xf32>) -> tensor<{rows}x{n}xf32>
  return %o : tensor<{rows}x{n}xf32>
}}
"""
# The initial value of the sums is a constant, a row, a column or a matrix.
FILL = """%c = arith.constant {number} : f32
  %s = linalg.fill ins(%c : f32) outs(%e : {{out}}) -> {{out}}"""
STARTS = {
    "zero": ("tensor<1xf32>", FILL.format(number="0.0")),
    "half": ("tensor<1xf32>", FILL.format(number="0.5")),
    "row": ("tensor<{n}xf32>", "%s = linalg.broadcast ins(%start : tensor<{n}xf32>) outs(%e : {out}) dimensions = [0]"),
    "column": ("tensor<{rows}xf32>", "%s = linalg.broadcast ins(%start : tensor<{rows}xf32>) outs(%e : {out}) dimensions = [1]"),
    "matrix": ("tensor<{rows}x{n}xf32>", "%s = linalg.add ins(%start, %start : {out}, {out}) outs(%e : {out}) -> {out}"),
}
ATTENTION = """
#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
func.func @attention(%q: tensor<2x{q}x{d}xbf16>, %k: tensor<2x?x{d}xbf16> {{attn.name = "k"}},
                     %v: tensor<2x?x{e}xbf16> {{attn.name = "v"}}) -> tensor<2x{q}x{e}xbf16> {{
  %out = tensor.empty() : tensor<2x{q}x{e}xbf16>
  %o = attn.attention ins(%q, %k, %v : tensor<2x{q}x{d}xbf16>, tensor<2x?x{d}xbf16>, tensor<2x?x{e}xbf16>)
    outs(%out : tensor<2x{q}x{e}xbf16>) {mask} {plan}
    {{{blocks}indexing_maps = [#q, #k, #v, #o], scale = 0.2 : f32}} -> tensor<2x{q}x{e}xbf16>
  return %o : tensor<2x{q}x{e}xbf16>
}}
"""


def run(name, text, tolerance, *options):
    path = folder / f"{name}.mlir"
    path.write_text(text)
    result = subprocess.run(["attn-run-tiles", path, "--level=x86-64-amx", "--reference", f"--tolerance={tolerance}", *options],
                            capture_output=True, text=True)
    assert not result.returncode, f"{path} {options}: {result.stderr}"
    print("right:", name)


folder = pathlib.Path(sys.argv[1])
sizes = [(m, n, k) for m in (15, 75) for n in (16, 65) for k in (10, 37)] + [(130, 96, 48), (32, 64, 2000)]
for (m, n, k), name, isDynamic in itertools.product(sizes, STARTS, [False, True]):
    if isDynamic and (m, k) != (75, 37):
        continue
    start, init = STARTS[name]
    rows = "?" if isDynamic else m
    fields = {"rows": rows, "n": n, "k": k, "out": f"tensor<{rows}x{n}xf32>"}
    text = PRODUCT.format(**fields, start=start.format(**fields), init=init.format(**fields), size="%m" if isDynamic else "")
    given = [f"--dim=x.0={m}"] if isDynamic else []
    run(f"product-{rows}-{m}x{n}x{k}-{name}", text, 1e-5, *given)
MASKS = {"": "", "causal": "mask(#attn.causal)", "window": "mask(#attn.window<left = 40, right = 9>)"}
PLANS = ["", 'plan(<"per-head", q = 32, k = 96, group = 2, transposes = true>)', 'plan(<"per-head", q = 48, k = 64, group = 2>)']
for (q, k, d, e), mask, (number, plan) in itertools.product(
        [(50, 129, 64, 48), (130, 300, 80, 64), (16, 33, 32, 16), (7, 200, 30, 6)], MASKS, enumerate(PLANS)):
    text = ATTENTION.format(q=q, d=d, e=e, mask=MASKS[mask], plan=plan, blocks="")
    run(f"attention-{q}x{k}x{d}x{e}-{mask}-plan-{number}", text, 2e-2, f"--dim=k.1={k}")
# With a head size of 1280, scores are summed in two parts. Users may edit the register blocks of a plan; not all of the
# blocks below have the size of tile registers.
for d, rows, vectors, depth in [(1280, 32, 2, 640), (64, 32, 2, 32), (64, 16, 3, 0), (64, 48, 1, 0), (64, 6, 4, 0)]:
    blocks = f"attn.blocks = {{scores = #attn.block<rows = {rows}, vectors = {vectors}, depth = {depth}>}}, "
    text = ATTENTION.format(q=70, d=d, e=16, mask=MASKS["causal"], plan=PLANS[1], blocks=blocks)
    run(f"attention-blocks-{d}-{rows}-{vectors}-{depth}", text, 2e-2, "--dim=k.1=200")
# A call without any key.
run("attention-no-keys", ATTENTION.format(q=40, d=64, e=16, mask="", plan="", blocks=""), 0, "--dim=k.1=0")
