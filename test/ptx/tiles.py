"""tiles.py FOLDER: compares the tiles that an emulated GPU runs and skips with those that follow from the mask.

Each attention has two heads, and a causal mask or a dense mask of documents, which is packed at the call. The
results are compared with the reference too. The kernels for the capability 9.0 copy tiles with producers, and those for
8.0 with all threads.
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

import attention

QUERIES, KEYS = 150, 400
SIZES = (QUERIES, KEYS, 64, 64, 2)
# Each document has a number of queries, a first key, and a key after its last one.
DOCUMENTS = [(128, 280, 400), (22, 0, 40)]
LEVELS = {80: "sm_80", 90: "sm_90a"}


def keeps(variant):
    """Returns which pairs of queries and keys the mask keeps."""
    q, k = np.arange(QUERIES)[:, None], np.arange(KEYS)[None]
    if variant == "causal":
        return k <= q
    queries, first, end = zip(*DOCUMENTS)
    return (k >= np.repeat(first, queries)[:, None]) & (k < np.repeat(end, queries)[:, None])


def count(kept, tile_queries, tile_keys):
    """Returns the number of tiles with a kept pair, and of the other tiles."""
    run = 0
    for q in range(0, QUERIES, tile_queries):
        keys = np.flatnonzero(kept[q:q + tile_queries].any(axis=0))
        run += len(set(keys // tile_keys))
    return run, math.ceil(QUERIES / tile_queries) * math.ceil(KEYS / tile_keys) - run


def main():
    folder = pathlib.Path(sys.argv[1])
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((1, 2, n, 64)).astype(np.float16) for n in (QUERIES, KEYS, KEYS)]
    for variant in ("causal", "dense"):
        kept = keeps(variant)
        arrays = inputs + ([kept[None]] if variant == "dense" else [])
        for i, array in enumerate(arrays):
            np.save(folder / f"{i}.npy", array)
        path = attention.write(folder, SIZES, variant, "f16")
        for capability, level in LEVELS.items():
            plan = attention.plan(path, capability)
            tile = tuple(map(int, re.search(r"tiles of (\d+) queries and (\d+) keys", plan).groups()))
            said = subprocess.run(["attn-run", path, "--device=cuda", "--reference", f"--tolerance={attention.TYPES['f16']}", "--json",
                                   *(f"--input={folder / str(i)}.npy" for i in range(len(arrays)))],
                                  stdout=subprocess.PIPE, check=True, env={**os.environ, "ATTN_FAKE_CAPABILITY": str(capability)})
            said = json.loads(said.stdout)
            got, expected = (said["tiles_run"], said["tiles_skipped"]), tuple(2 * n for n in count(kept, *tile))
            if got != expected:
                sys.exit(f"{variant} at {level}: expected {expected[0]} tiles run and {expected[1]} skipped, got {got[0]} and {got[1]}")
            print(f"{variant} at {level}: {got[0]} tiles run, {got[1]} skipped")


main()
