"""hostile.py FOLDER: checks, on an emulated GPU, that infinities and NaN influence the result only at kept keys.

Values and keys are not finite at hidden keys, at kept keys, or at both; some rows of scores are NaN or -inf. The result
of a call must be close to that of a computation row by row over the kept keys, with infinities and NaN in the same
places.
"""
import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "run"))
from library import from_element, to_element

MODULE = """
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#m = affine_map<(q, k, d, e) -> (q, k)>
#o = affine_map<(q, k, d, e) -> (q, e)>
func.func @attention(%q: tensor<40x16x{t}>, %k: tensor<?x16x{t}> {{attn.name = "k"}}, %v: tensor<?x24x{t}>{argument}) -> tensor<40x24x{t}> {{
  %empty = tensor.empty() : tensor<40x24x{t}>
  %o = attn.attention ins(%q, %k, %v : tensor<40x16x{t}>, tensor<?x16x{t}>, tensor<?x24x{t}>) {capture} outs(%empty : tensor<40x24x{t}>)
    mask({mask}) {{indexing_maps = [#q, #k, #v, {map}#o], scale = 0.25 : f32}} -> tensor<40x24x{t}>
  return %o : tensor<40x24x{t}>
}}
"""
MASKS = {"causal": ("", "", "", "#attn.causal"), "window": ("", "", "", "#attn.window<left = 7, right = 30>"),
         "dense": (', %mask: tensor<40x?xi1> {attn.name = "mask"}', "captures(%mask : tensor<40x?xi1>)", "#m, ", "#attn.dense<0>")}
KEYS = 90
ABSOLUTE = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}


def reference(q, k, v, kept):
    out = np.zeros((len(q), v.shape[1]))
    for row in range(len(q)):
        keys = kept[row]
        scores = 0.25 * k[keys] @ q[row]
        greatest = np.max(scores, initial=-np.inf, where=~np.isnan(scores))
        p = np.exp(scores - (0 if np.isinf(greatest) and greatest < 0 else greatest))
        total = p.sum()
        counts = p > 2.0 ** -60  # a smaller probability may be 0 on a GPU, and a probability of 0 hides its value
        out[row] = 0 if total == 0 else (p[counts, None] / total * v[keys][counts]).sum(0) if not np.isnan(total) else np.nan
    return out


def write(path, array, element):
    """Writes an array as elements of a type, with the NaN whose bits are closest to those of an infinity."""
    elements = to_element(array, element)
    bits = elements.view(np.uint32 if element == "f32" else np.uint16)
    bits[np.isnan(array)] = {"f32": 0x7f800001, "f16": 0x7c01, "bf16": 0x7f81}[element]
    np.save(path, bits if element == "bf16" else elements)


folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(5)
for (mask, (argument, capture, position, attribute)), element, capability in itertools.product(MASKS.items(), ABSOLUTE, (80, 90)):
    if element == "f32" and capability == 90:
        continue  # the code would be the same
    q, k, v = (rng.standard_normal(shape) for shape in ((40, 16), (KEYS, 16), (KEYS, 24)))
    row, column = np.indices((40, KEYS))
    kept = {"causal": column <= row, "window": (column >= row - 7) & (column <= row + 30), "dense": rng.random((40, KEYS)) < 0.4}[mask]
    v[50, 3], v[60, 4], v[61, 4], v[62, 5], v[20, 6], v[21, 7], v[22, 7] = np.inf, -np.inf, np.inf, np.nan, np.inf, np.inf, -np.inf
    v[33, 8], v[34:39, 9] = np.nan, -np.inf
    k[70], k[71, 2] = np.nan, np.inf
    k[38, 0] = np.nan  # the last queries attend to this key
    q, k, v = (from_element(to_element(x, element)).astype(np.float64) for x in (q, k, v))
    text = MODULE.format(t=element, argument=argument, capture=capture, map=position, mask=attribute)
    name = folder / f"{mask}-{element}-{capability}"
    name.with_suffix(".mlir").write_text(text)
    inputs = []
    for i, array in enumerate([q, k, v]):
        inputs.append(f"{name}-{i}.npy")
        write(inputs[-1], array, element)
    if mask == "dense":
        inputs.append(f"{name}-3.npy")
        np.save(inputs[-1], kept)
    subprocess.run(["attn-run", name.with_suffix(".mlir"), "--device=cuda", "--guard", f"--output-dir={name}"]
                   + [f"--input={path}" for path in inputs], check=True, capture_output=True,
                   env={**os.environ, "ATTN_FAKE_CAPABILITY": str(capability)})
    got = np.load(name / "0.npy")
    got = from_element(got.view([("bf16", np.uint16)]) if element == "bf16" else got).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = reference(q, k, v, kept)
    for kind in (np.isnan, np.isposinf, np.isneginf):
        wrong = np.argwhere(kind(got) != kind(expected))
        assert not len(wrong), f"{name}: {kind.__name__} differs at {wrong[:5].tolist()}"
    finite = np.isfinite(expected)
    error = np.abs(got[finite] - expected[finite]).max()
    assert error <= ABSOLUTE[element], f"{name}: error {error}"
    print(name.name, f"error {error:.1e}, {np.isnan(expected).sum()} NaN, {np.isinf(expected).sum()} infinite")
