"""graphs.py FOLDER: runs attentions with other ops around them, and unusual attentions, on an emulated GPU.

Compares the results with the reference in float64.
"""
import os
import pathlib
import subprocess
import sys

import numpy as np

MAPS = """
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#kt = affine_map<(q, k, d, e) -> (d, k)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#vt = affine_map<(q, k, d, e) -> (e, k)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#ot = affine_map<(q, k, d, e) -> (e, q)>
#p = affine_map<(q, k, d, e) -> (q, k)>
"""


def attention(queries, keys, element, key_map="#k", value_map="#v", out_map="#o", mask=""):
    shape = {"#k": f"{keys}x32", "#kt": f"32x{keys}", "#v": f"{keys}x48", "#vt": f"48x{keys}", "#o": f"{queries}x48",
             "#ot": f"48x{queries}"}
    q, k, v, o = (f"tensor<{size}x{element}>" for size in (f"{queries}x32", shape[key_map], shape[value_map], shape[out_map]))
    return MAPS + f"""
func.func @attention(%q: {q}, %k: {k}, %v: {v}) -> {o} {{
  %empty = tensor.empty() : {o}
  %o = attn.attention ins(%q, %k, %v : {q}, {k}, {v}) outs(%empty : {o}) {mask}
    {{indexing_maps = [#q, {key_map}, {value_map}, {out_map}], scale = 0.125 : f32}} -> {o}
  return %o : {o}
}}
"""


def product(right, order):
    return f"""
func.func @product(%x: tensor<150x200xf16>, %w: tensor<{right}xf16>) -> tensor<150x140xf32> {{
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<150x140xf32>
  %start = linalg.fill ins(%zero : f32) outs(%init : tensor<150x140xf32>) -> tensor<150x140xf32>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {order}>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<150x200xf16>, tensor<{right}xf16>) outs(%start : tensor<150x140xf32>) -> tensor<150x140xf32>
  return %y : tensor<150x140xf32>
}}
"""


GRAPHS = {
    "product": product("140x200", "(n, k)"),
    "product-of-rows": product("200x140", "(k, n)"),
    # There is one task, so the loop over tasks has one iteration, and must not be folded.
    "one-task": attention(20, 90, "f16"),
    "one-query": attention(1, 90, "bf16", mask="mask(#attn.causal<offset = 40>)"),
    # Threads write columns of the output, whose elements other threads have computed.
    "out-in-columns": attention(150, 90, "f16", out_map="#ot"),
    "out-in-columns-f32": attention(40, 90, "f32", out_map="#ot"),
    "keys-in-columns": attention(40, 200, "f16", key_map="#kt", value_map="#vt"),
    "keys-in-columns-short": attention(40, 9, "f32", key_map="#kt"),
    # The keys are divided into parts, whose states another kernel merges.
    "parts": attention(3, 2000, "f16", mask="mask(#attn.causal<offset = 1990>)"),
    "parts-f32": attention(3, 900, "f32"),
    "probabilities": MAPS + """
func.func @attention(%q: tensor<70x64xf16>, %k: tensor<150x64xf16>, %v: tensor<150x64xf16>) -> (tensor<70x64xf16>, tensor<70x150xf32>) {
  %empty = tensor.empty() : tensor<70x64xf16>
  %none = tensor.empty() : tensor<70x150xf32>
  %o:2 = attn.attention ins(%q, %k, %v : tensor<70x64xf16>, tensor<150x64xf16>, tensor<150x64xf16>)
    outs(%empty, %none : tensor<70x64xf16>, tensor<70x150xf32>) mask(#attn.causal<offset = 80>)
    {indexing_maps = [#q, #k, #v, #o, #p], scale = 0.125 : f32} -> tensor<70x64xf16>, tensor<70x150xf32>
  return %o#0, %o#1 : tensor<70x64xf16>, tensor<70x150xf32>
}
""",
    "softmax": """
func.func @f(%x: tensor<30x100xf32>) -> tensor<30x100xf32> {
  %init = tensor.empty() : tensor<30x100xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<30x100xf32>) outs(%init : tensor<30x100xf32>) -> tensor<30x100xf32>
  return %y : tensor<30x100xf32>
}
""",
    "sum-of-all": """
func.func @f(%x: tensor<30x20xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<f32>
  %filled = linalg.fill ins(%zero : f32) outs(%init : tensor<f32>) -> tensor<f32>
  %y = linalg.reduce { arith.addf } ins(%x : tensor<30x20xf32>) outs(%filled : tensor<f32>) dimensions = [0, 1]
  return %y : tensor<f32>
}
""",
    "constants": """
func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c = arith.constant dense<[1.0, 2.0, -3.0, 4.5]> : tensor<4xf32>
  %init = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<8x4xf32>, tensor<4xf32>) outs(%init : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
""",
}


def run(path, *options, capability=80):
    result = subprocess.run(["attn-run", path, "--device=cuda", *options], capture_output=True, text=True,
                            env={**os.environ, "ATTN_FAKE_CAPABILITY": str(capability)})
    if result.returncode:
        sys.exit(f"{path.stem} at {capability}: {result.stderr}")
    return result.stdout


def save(folder, name, text, *arrays):
    path = folder / f"{name}.mlir"
    path.write_text(text)
    options = [f"--output-dir={folder / name}"]
    for i, array in enumerate(arrays):
        np.save(folder / f"{name}-{i}.npy", array)
        options.append(f"--input={folder / f'{name}-{i}.npy'}")
    return path, options


def check_large_scores(folder):
    """Checks that equal scores of any magnitude have equal probabilities: the output is the mean of the values."""
    for element, size in (("f32", 1e5), ("f32", 700.0), ("f16", 1e4), ("f32", 3e15)):
        dtype = np.float16 if element == "f16" else np.float32
        values = np.random.default_rng(3).standard_normal((400, 48)).astype(dtype)
        path, options = save(folder, f"large-{element}-{size:g}", attention(5, 400, element), np.full((5, 32), size, dtype),
                             np.full((400, 32), size, dtype), values)
        run(path, *options)
        error = np.abs(np.load(folder / path.stem / "0.npy") - values.astype(np.float64).mean(0)).max()
        assert error < (2e-3 if element == "f16" else 1e-6), f"{path.stem}: error {error}"
        print(path.stem, "error", error)


def check_hidden_probabilities(folder):
    """Checks that the probability of a hidden pair is 0, even in a row that is NaN."""
    text = MAPS + """
func.func @attention(%q: tensor<40x32xf32>, %k: tensor<50x32xf32>, %v: tensor<50x48xf32>) -> (tensor<40x48xf32>, tensor<40x50xf32>) {
  %empty = tensor.empty() : tensor<40x48xf32>
  %none = tensor.empty() : tensor<40x50xf32>
  %o:2 = attn.attention ins(%q, %k, %v : tensor<40x32xf32>, tensor<50x32xf32>, tensor<50x48xf32>)
    outs(%empty, %none : tensor<40x48xf32>, tensor<40x50xf32>) mask(#attn.causal)
    {indexing_maps = [#q, #k, #v, #o, #p], scale = 0.125 : f32} -> tensor<40x48xf32>, tensor<40x50xf32>
  return %o#0, %o#1 : tensor<40x48xf32>, tensor<40x50xf32>
}
"""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 32), (50, 32), (50, 48)))
    k[3] = np.nan
    path, options = save(folder, "hidden", text, q, k, v)
    run(path, *options)
    probabilities = np.load(folder / "hidden" / "1.npy")
    row, column = np.indices(probabilities.shape)
    assert (probabilities[column > row] == 0).all(), "a hidden pair has another probability than 0"
    assert np.isnan(probabilities[(row >= 3) & (column <= row)]).all() and np.isfinite(probabilities[:3]).all()


def check_ranges(folder):
    """Checks that a length or an index that is out of range is reported after the call."""
    text = """
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#n = affine_map<(b, q, k, d, e) -> (b)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @attention(%q: tensor<3x20x32xf16>, %k: tensor<3x40x32xf16>, %v: tensor<3x40x32xf16>, %lengths: tensor<3xINT>) -> tensor<3x20x32xf16> {
  %empty = tensor.empty() : tensor<3x20x32xf16>
  %o = attn.attention ins(%q, %k, %v : tensor<3x20x32xf16>, tensor<3x40x32xf16>, tensor<3x40x32xf16>) captures(%lengths : tensor<3xINT>)
    outs(%empty : tensor<3x20x32xf16>) mask(#attn.lengths<0>) {indexing_maps = [#q, #k, #v, #n, #o], scale = 0.25 : f32} -> tensor<3x20x32xf16>
  return %o : tensor<3x20x32xf16>
}
"""
    q, k = np.ones((3, 20, 32), np.float16), np.ones((3, 40, 32), np.float16)
    for bits in (32, 64):
        for length in (40, 41, -1):
            lengths = np.array([5, length, 0], f"int{bits}")
            path, options = save(folder, f"lengths-{bits}-{length}", text.replace("INT", f"i{bits}"), q, k, k, lengths)
            result = subprocess.run(["attn-run", path, "--device=cuda", *options], capture_output=True, text=True)
            expected = "" if length == 40 else "attn-run: expected lengths and indices of input 3 in their range, got at least one outside\n"
            assert result.stderr == expected, f"{path.stem}: {result.stderr}"
            print(path.stem, "is", "refused" if expected else "accepted")
    text = """
func.func @read(%table: tensor<40xf32>, %i: tensor<3xINT> {attn.bound = 9 : i64, attn.below = 2 : i64 UNSIGNED}) -> tensor<3xf32> {
  %empty = tensor.empty() : tensor<3xf32>
  %read = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%i : tensor<3xINT>) outs(%empty : tensor<3xf32>) {
  ^bb0(%x: INT, %old: f32):
    %at = arith.index_cast %x : INT to index
    %y = tensor.extract %table[%at] : tensor<40xf32>
    linalg.yield %y : f32
  } -> tensor<3xf32>
  return %read : tensor<3xf32>
}
"""
    for dtype in ("int8", "uint8", "int16", "int32", "int64"):
        for index in (9, 10, 200) if dtype == "uint8" else (9, 10, -2, -3):
            indices = np.array([5, index, 0], dtype)
            kind = text.replace("INT", f"i{8 * indices.itemsize}").replace("UNSIGNED", ", attn.unsigned" * (dtype == "uint8"))
            path, options = save(folder, f"indices-{dtype}-{index}", kind, np.ones(40, np.float32), indices)
            result = subprocess.run(["attn-run", path, "--device=cuda", *options], capture_output=True, text=True)
            expected = "attn-run: expected lengths and indices of input 1 in their range, got at least one outside\n"
            expected = "" if -2 <= index <= 9 else expected
            assert result.stderr == expected, f"{path.stem}: {result.stderr}"
            print(path.stem, "is", "refused" if expected else "accepted")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, text in GRAPHS.items():
        path, _ = save(folder, name, text)
        tolerance = "3e-3" if "f16" in text else "2e-2" if "bf16" in text else "2e-5"
        tolerance = "2e-2" if "bf16" in text else tolerance
        for capability in (80, 90) if "f16" in text else (80,):
            print(name, capability, run(path, "--reference", f"--tolerance={tolerance}", capability=capability).splitlines()[-1], flush=True)
    check_large_scores(folder)
    check_hidden_probabilities(folder)
    check_ranges(folder)


main()
