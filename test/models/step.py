"""Calls a decoder for each token of a sequence in turn: step.py LIBRARY FOLDER

FOLDER has the tokens in llama.x.npy and, in llama.out.npy, the scores that torch computes for all tokens at once, in
float64. Each call must give the scores of its token. In the caches, all rows except that of the token must stay
unchanged, bit for bit.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

library, models = sys.argv[1], pathlib.Path(sys.argv[2])
tokens, expected = np.load(models / "llama.x.npy"), np.load(models / "llama.out.npy")
LONGEST = 40
# Rows of the caches that no call has written must have no influence, whatever they contain.
caches = [np.full((1, 2, LONGEST, 8), filler, "float32") for filler in (np.nan, 1e30)]
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for position in range(LONGEST):
        inputs = [tokens[:, position:position + 1], np.array([position]), *caches]
        for i, array in enumerate(inputs):
            np.save(folder / f"in{i}.npy", array)
        subprocess.run(["attn-run", library, *(f"--input={folder}/in{i}.npy" for i in range(len(inputs))),
                        f"--output-dir={folder}"], check=True, stdout=subprocess.DEVNULL)
        scores, *after = (np.load(folder / f"{i}.npy") for i in range(3))
        error = np.abs(scores - expected[:, position]).max()
        assert error <= 1e-5 * np.abs(expected).max(), f"expected other scores at {position}, off by {error}"
        for old, new in zip(caches, after):
            assert np.isfinite(new[:, :, position]).all(), f"expected numbers in row {position} of a cache"
            kept = np.arange(LONGEST) != position
            assert old[:, :, kept].tobytes() == new[:, :, kept].tobytes(), f"expected row {position} alone to change"
        caches = after
