"""masks.py FOLDER: checks that the speed of a mask does not depend on how a graph spells it.

Each condition is given to scaled_dot_product_attention, and is spelled by hand in four ways. The spellings must run
and skip as many tiles as the mask of scaled_dot_product_attention, need no more memory for temporary results, and give
the results that torch computes. Conditions come from positions, ids, lengths and masks of the caller; some consist of
several parts, which the spellings apply one after the other.

A finite fill runs as many tiles as -inf if each row keeps a pair, and more if a row keeps none. Infinities and NaN at
hidden keys have no influence. If the fill is added to the score, a NaN in a hidden key counts, as in torch.
"""
import functools
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from torch import nn

BATCH, HEADS, ROWS, SIZE = 2, 2, 256, 32
torch.manual_seed(1)
IDS = torch.stack([torch.arange(ROWS) // 64, torch.arange(ROWS) // 50])
PADDING = torch.arange(ROWS) < torch.tensor([[200], [256]])
PAIRS = IDS[:, None, :, None] == IDS[:, None, None, :]
FIRST = torch.arange(ROWS)[None, :] < torch.tensor([[190], [220]])


def positions():
    i = torch.arange(ROWS)
    return i[:, None], i[None, :]


def of_pairs(ids):
    return ids[:, None, :, None], ids[:, None, None, :]


def same(ids):
    q, k = of_pairs(ids)
    return q == k


def causal():
    q, k = positions()
    return q >= k


def prefix():
    q, k = positions()
    return (k < 60) | (q >= k)


def blocks():
    q, k = positions()
    return q // 64 == k // 64


def window_and_sinks():
    q, k = positions()
    return ((k < 4) | (q - k < 40)) & (q >= k)


def grid():
    q, k = positions()
    return (q // 64 == k // 64) | ((q % 64 == k % 64) & (q > 128))


def windows_of_heads():
    q, k = positions()
    return (q - k).abs() <= torch.tensor([16, 64])[:, None, None]


def later_keys():
    q, k = positions()
    return k >= q


# The parts of each condition, and the inputs that they read.
CONDITIONS = {
    "alone": (lambda ids: [same(ids) & (ids >= 0)[:, None, :, None]], [IDS]),
    "documents": (lambda ids: [same(ids)], [IDS]),
    "documents_and_causal": (lambda ids: [same(ids) & causal()], [IDS]),
    "documents_then_causal": (lambda ids: [same(ids), causal()], [IDS]),
    "documents_then_padding": (lambda ids, keep: [same(ids), keep[:, None, None, :]], [IDS, PADDING]),
    "not_other_documents": (lambda ids: [~((of_pairs(ids)[0] != of_pairs(ids)[1]) | ~causal())], [IDS]),
    "blocks": (lambda: [blocks()], []),
    "blocks_then_first_keys": (lambda first: [blocks() | causal(), first[:, None, None, :] > 0], [FIRST.long()]),
    "prefix": (lambda: [prefix()], []),
    "window_and_sinks": (lambda: [window_and_sinks()], []),
    "grid": (lambda: [grid()], []),
    "windows_of_heads": (lambda: [windows_of_heads()], []),
    "later_keys": (lambda: [later_keys()], []),
    "given": (lambda pairs: [pairs], [PAIRS]),
    "given_float": (lambda pairs: [pairs > 0.5], [PAIRS.float()]),
    "given_then_documents": (lambda pairs, ids: [pairs, same(ids)], [PAIRS, IDS]),
}
SPELLINGS = {
    "masked_fill": lambda scores, keep: scores.masked_fill(~keep, -torch.inf),
    "where": lambda scores, keep: torch.where(keep, scores, -torch.inf),
    "added": lambda scores, keep: scores + torch.where(keep, 0.0, -torch.inf),
    "added_fill": lambda scores, keep: scores + torch.zeros(keep.shape).masked_fill(~keep, -torch.inf),
}


FINITE = {f"{name} with {fill:g}": functools.partial(lambda apply, fill, scores, keep: apply(scores, keep, fill), apply, fill)
          for name, apply in {"masked_fill": lambda scores, keep, fill: scores.masked_fill(~keep, fill),
                              "where": lambda scores, keep, fill: torch.where(keep, scores, fill),
                              "added": lambda scores, keep, fill: scores + torch.where(keep, 0.0, fill),
                              "added product": lambda scores, keep, fill: scores + (1 - keep.float()) * fill,
                              "subtracted": lambda scores, keep, fill: scores - ~keep * -fill}.items()
          for fill in (-1e4, -1e9, -1e20)}
SUMS = "added", "subtracted"  # the spellings that add the fill to the score
# Each row keeps a pair with these conditions.
FILLED = ["documents", "documents_and_causal", "prefix", "later_keys"]


class Attention(nn.Module):
    def __init__(self, parts, spelling):
        super().__init__()
        self.parts, self.spelling = parts, spelling

    def forward(self, q, k, v, *inputs):
        parts = self.parts(*inputs)
        if self.spelling == "sdpa":
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=functools.reduce(torch.logical_and, parts))
        scores = q @ k.mT * SIZE ** -0.5
        for keep in parts:
            scores = {**SPELLINGS, **FINITE}[self.spelling](scores, keep)
        return scores.softmax(-1) @ v


def export(folder, name, spelling):
    """Saves a spelling, and returns the module, random inputs and the path of the file."""
    parts, inputs = CONDITIONS[name]
    module = Attention(parts, spelling)
    inputs = [*(torch.randn(BATCH, HEADS, ROWS, SIZE) for _ in range(3)), *inputs]
    path = folder / f"{name}-{spelling.replace(' ', '-')}.pt2"
    torch.export.save(torch.export.export(module, tuple(inputs)), path)
    return module, inputs, path


def call(path, inputs, *options):
    """Compiles and calls a file, and returns what attn-run says."""
    command = ["attn-run", path, "--json", "--target=x86-64-v3", *options]
    for i, tensor in enumerate(inputs):
        np.save(path.with_suffix(f".{i}.npy"), tensor.numpy())
        command.append(f"--input={path.with_suffix(f'.{i}.npy')}")
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{path.stem}: {result.stderr}")
    return json.loads(result.stdout)


def measure(folder, name, spelling):
    """Compares the results of a spelling with torch's, and returns the numbers of tiles and the size of the workspace."""
    module, inputs, path = export(folder, name, spelling)
    # In a row without a key, sums with a fill are rounded to float32, so that they may become equal.
    rounds = name == "alone" and spelling.startswith(SUMS)
    wide = inputs if rounds else [x.double() if x.is_floating_point() and x.dim() == 4 else x for x in inputs]
    np.save(path.with_suffix(".npy"), module(*wide).float().numpy())
    said = call(path, inputs, f"--expect={path.with_suffix('.npy')}", f"--tolerance={2e-3 if rounds else 1e-4}")
    return said["tiles_run"], said["tiles_skipped"], said["workspace_bytes"]


def check_hostile(folder, spelling):
    """Key 5 belongs to the first document. Whatever it holds, the other rows have the same bits."""
    _, inputs, path = export(folder, "documents", spelling)
    outputs = []
    for value in (0.5, torch.inf, torch.nan):
        for i in (1, 2):
            inputs[i][:, :, 5] = value
        (folder / "out").mkdir(exist_ok=True)
        call(path, inputs, f"--output-dir={folder / 'out'}")
        outputs.append(np.load(folder / "out" / "0.npy"))
    ids = IDS.numpy()
    for b in range(BATCH):
        others = ids[b] != ids[b][5]
        for out in outputs[1:]:
            if not np.array_equal(out[b][:, others], outputs[0][b][:, others]) or np.isfinite(out[b][:, ~others]).any():
                sys.exit(f"{spelling}: expected key 5 to influence the rows of its document only")


def check_sums(folder, spelling):
    """Where a fill is added, a NaN in key 5 makes every row NaN, and a value at key 5 influences its document only."""
    _, inputs, path = export(folder, "documents", spelling)
    (folder / "out").mkdir(exist_ok=True)
    for i in (2, 1):
        inputs[i][:, :, 5] = torch.nan
        call(path, inputs, f"--output-dir={folder / 'out'}")
        out = np.load(folder / "out" / "0.npy")
        for b in range(BATCH):
            expected = (IDS[b] == IDS[b][5]).numpy() | (i == 1)
            if not np.array_equal(np.isnan(out[b]).all(-1), np.broadcast_to(expected, out[b].shape[:-1])):
                sys.exit(f"{spelling}: expected NaN in the {'keys' if i == 1 else 'values'} to make {expected.sum()} rows NaN")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in [name for name in CONDITIONS if name != "alone"]:
        run, skipped, workspace = measure(folder, name, "sdpa")
        if run == 0 or run + skipped == 0:
            sys.exit(f"{name}: expected tiles, got {run} run and {skipped} skipped")
        for spelling in SPELLINGS:
            found = measure(folder, name, spelling)
            if found[:2] != (run, skipped) or found[2] > workspace:
                sys.exit(f"{name}, {spelling}: expected {run} tiles run, {skipped} skipped and a workspace of at most {workspace} bytes, got {found}")
        for spelling in FINITE if name in FILLED else []:
            found = measure(folder, name, spelling)[:2]
            if found != (run, skipped):
                sys.exit(f"{name}, {spelling}: expected {run} tiles run and {skipped} skipped, got {found}")
        print(f"{name}: {run} tiles run, {skipped} skipped")
    IDS[0, 100] = -1  # a query without a key
    for fill in FINITE:
        run, skipped, _ = measure(folder, "alone", fill)
        print(f"a row without a key, {fill}: {run} tiles run, {skipped} skipped")
        if fill.startswith(SUMS):
            check_sums(folder, fill)
        else:
            check_hostile(folder, fill)


if __name__ == "__main__":
    main()
