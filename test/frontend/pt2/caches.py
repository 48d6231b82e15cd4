"""Decodes token by token with caches of keys and values, which the graph writes to: caches.py FOLDER

There is one case for each form in which torch.export writes an update of a cache. A step projects its tokens, writes
their keys and values to the caches, and attends to all keys and values in the caches. The outputs of all steps must be
those of causal attention over the whole sequence, computed in float64. The caches must hold the keys and values of the
tokens so far; all other elements must be unchanged, bit for bit.
"""

import concurrent.futures
import os
import subprocess
import sys

import numpy as np

from program import Program

BATCH, HEADS, LENGTH, SIZE, TOKENS = 2, 3, 16, 8, 5
WIDTH = HEADS * SIZE
random = np.random.default_rng(1)
WEIGHT = random.standard_normal((3 * WIDTH, WIDTH)).astype("float32") / np.float32(WIDTH**0.5)
X = random.standard_normal((BATCH, TOKENS, WIDTH)).astype("float32")
# Elements of a cache that no step has written must have no influence, because a program need not initialise caches.
OLD = random.standard_normal((BATCH, HEADS, LENGTH, SIZE)).astype("float32")
CACHES = {"k_cache": OLD, "v_cache": np.flip(OLD, 0).copy()}
CASES = []


def case(**options):
    """Registers a function that writes `new`, keys or values, to `cache` at `position`, and returns the tensor that the
    attention reads."""
    return lambda write: CASES.append((write, options))


@case()
def index_copy_in_place(step, cache, new, position):
    return step("index_copy_.default", OLD, self=cache, dim=2, index=position, source=new)


@case(tokens=2)
def several_rows(step, cache, new, position):
    return step("index_copy_.default", OLD, self=cache, dim=2, index=position, source=new)


@case(kind="buffer")
def index_copy(step, cache, new, position):
    return step("index_copy.default", OLD, self=cache, dim=2, index=position, source=new)


@case(kind="user_input")
def index_copy_to_input(step, cache, new, position):
    return step("index_copy.default", OLD, self=cache, dim=2, index=position, source=new)


@case(is_input=True)
def index_copy_to_input_in_place(step, cache, new, position):
    return step("index_copy_.default", OLD, self=cache, dim=2, index=position, source=new)


@case()
def index_put_in_place(step, cache, new, position):
    step("index_put_.default", OLD, self=cache, indices=[None, None, position], values=new)
    return cache


@case(kind="buffer", tokens=5)
def index_put(step, cache, new, position):
    return step("index_put.default", OLD, self=cache, indices=[None, None, position], values=new)


@case(positions="of each sequence")
def a_position_for_each_sequence(step, cache, new, position):
    """cache[arange(BATCH), :, position] = new[:, :, 0]"""
    batch = step("arange.default", np.arange(BATCH), end=BATCH)
    row = step("select.int", OLD[:, :, 0], self=new, dim=2, index=0)
    step("index_put_.default", OLD, self=cache, indices=[batch, None, position], values=row)
    return cache


@case(kind="buffer", positions="known")
def slice_scatter(step, cache, new, position):
    return step("slice_scatter.default", OLD, self=cache, src=new, dim=2, start=position, end=position + 1)


@case(positions="known")
def slice_written_in_place(step, cache, new, position):
    part = step("slice.Tensor", OLD[:, :, :1], self=cache, dim=2, start=position, end=position + 1)
    step("copy_.default", OLD[:, :, :1], self=part, src=new)
    return cache


@case(positions="known")
def element_of_view_written_in_place(step, cache, new, position):
    """cache.flatten(0, 1)[:, position].copy_(new.flatten(0, 1)[:, 0])"""
    flat = OLD.reshape(-1, LENGTH, SIZE)
    view = step("view.default", flat, self=cache, size=list(flat.shape))
    element = step("select.int", flat[:, 0], self=view, dim=1, index=position)
    row = step("view.default", flat[:, 0], self=step("select.int", OLD[:, :, 0], self=new, dim=2, index=0),
               size=list(flat[:, 0].shape))
    step("copy_.default", flat[:, 0], self=element, src=row)
    return cache


@case(reads="old")
def old_rows_read_afterwards(step, cache, new, position):
    """The graph also returns the previous contents of the cache."""
    old = step("clone.default", OLD, self=cache)
    step.program.output(old)
    return step("index_copy_.default", OLD, self=cache, dim=2, index=position, source=new)


class Step:
    """The graph of a step for `tokens` tokens, and its file."""

    def __init__(self, write, folder, tokens=1, kind=None, is_input=False, positions="at call", reads=None, known=0):
        self.name = f"{write.__name__}_{known}"
        self.tokens, self.kind, self.reads = tokens, kind, reads
        self.positions = positions
        self.program = program = Program()
        of_sequences = positions == "of each sequence"
        x = program.input("x", X[:, :tokens])
        add = program.input if is_input or kind == "user_input" else program.buffer
        weight = program.weight("weight", WEIGHT)
        if positions == "known":
            position, last = known, known
        else:
            position = program.input("position", np.zeros(BATCH if of_sequences else tokens, "int64"))
            last = position
        caches = {name: add(name, array) for name, array in CACHES.items()}
        qkv = self("linear.default", np.empty((BATCH, tokens, 3 * WIDTH), "float32"), input=x, weight=weight)
        split = self("view.default", np.empty((BATCH, tokens, 3, HEADS, SIZE), "float32"), self=qkv,
                     size=[BATCH, tokens, 3, HEADS, SIZE])
        turned = np.empty((3, BATCH, HEADS, tokens, SIZE), "float32")
        parts = self("permute.default", turned, self=split, dims=[2, 0, 3, 1, 4])
        query, *new = (self("select.int", turned[0], self=parts, dim=0, index=i) for i in range(3))
        read = []
        for (name, cache), one in zip(caches.items(), new):
            read.append(write(self, cache, one, position))
            if kind:
                program.mutation(read[-1], name, kind)
        keys = self("arange.default", np.arange(LENGTH), end=LENGTH)
        rows = BATCH if of_sequences else tokens
        if positions != "known":
            last = self("view.default", np.zeros((rows, 1), "int64"), self=last, size=[rows, 1])
        shape = (BATCH, 1, 1, LENGTH) if of_sequences else (tokens, LENGTH)
        kept = np.zeros((rows, LENGTH), bool)
        mask = self("le.Tensor", kept, self=keys, other=last) if positions != "known" else self(
            "le.Scalar", kept[0], self=keys, other=last)
        if positions == "known":
            mask = self("view.default", kept[:1], self=mask, size=[1, LENGTH])
        elif of_sequences:
            mask = self("view.default", np.zeros(shape, bool), self=mask, size=list(shape))
        out = self("scaled_dot_product_attention.default", OLD[:, :, :tokens], query=query, key=read[0], value=read[1],
                   attn_mask=mask)
        merged = self("transpose.int", OLD[:, :, :tokens].transpose(0, 2, 1, 3), self=out, dim0=1, dim1=2)
        program.output(self("reshape.default", X[:, :tokens], self=merged, shape=[BATCH, tokens, WIDTH]))
        self.folder = os.path.join(folder, self.name)
        os.makedirs(self.folder, exist_ok=True)
        self.library = os.path.join(self.folder, "step.so")
        program.save(os.path.join(self.folder, "step.pt2"))
        run("attnc", os.path.join(self.folder, "step.pt2"), "-o", self.library, "--target=native", "--require-fused")

    def __call__(self, op, like, /, **arguments):
        return self.program.node("aten." + op, like, **arguments)

    def run(self, inputs):
        """Returns the results of a call: outputs, then caches."""
        flags = []
        for i, array in enumerate(inputs):
            path = os.path.join(self.folder, f"in{i}.npy")
            np.save(path, array)
            flags.append("--input=" + path)
        run("attn-run", self.library, "--guard", "--output-dir=" + self.folder, *flags)
        numbers = range(len(self.program.outputs) + len(CACHES))
        return [np.load(os.path.join(self.folder, f"{i}.npy")) for i in numbers]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")


def reference():
    """Returns the causal attention over all tokens, the keys and the values."""
    qkv = (X.astype("float64") @ WEIGHT.T.astype("float64")).reshape(BATCH, TOKENS, 3, HEADS, SIZE)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    scores = np.where(np.tri(TOKENS, dtype=bool), q @ k.swapaxes(-1, -2) / SIZE**0.5, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    out = p / p.sum(-1, keepdims=True) @ v
    return out.transpose(0, 2, 1, 3).reshape(X.shape), k, v


def check(write, options, folder):
    want, *rows = reference()
    caches = [array.copy() for array in CACHES.values()]
    tokens = options.get("tokens", 1)
    step = None if options.get("positions") == "known" else Step(write, folder, **options)
    for first in range(0, TOKENS, tokens):
        last = min(first + tokens, TOKENS)
        if last - first < tokens:
            break
        if options.get("positions") == "known":
            step = Step(write, folder, known=first, **options)
        before = [cache.copy() for cache in caches]
        positions = {"of each sequence": [np.full(BATCH, first)], "known": []}.get(
            step.positions, [np.arange(first, last)])
        *outputs, keys, values = step.run([X[:, first:last], *positions, *caches])
        for old, cache in zip(outputs, before):  # the graph may return the old caches first
            if len(outputs) > 1 and not np.array_equal(old, cache):
                raise AssertionError(f"{step.name}: expected the old rows of step {first}")
        error = np.abs(outputs[-1] - want[:, first:last]).max()
        if not error <= 1e-5 * np.abs(want).max():
            raise AssertionError(f"{step.name}: expected the attention of step {first}, got an error of {error}")
        caches = [keys, values]
        for cache, old, row in zip(caches, before, rows):
            kept = np.ones(LENGTH, bool)
            kept[first:last] = False
            if cache[:, :, kept].tobytes() != old[:, :, kept].tobytes():
                raise AssertionError(f"{step.name}: expected other rows as they were in step {first}")
            if not np.allclose(cache[:, :, first:last], row[:, :, first:last], atol=1e-5):
                raise AssertionError(f"{step.name}: expected new rows in step {first}")
    return step.name


def main(folder):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        checks = [pool.submit(check, write, options, folder) for write, options in CASES]
        failures = [str(check.exception()) for check in checks if check.exception()]
    print(*failures, f"{len(CASES)} ways to write a cache, {len(failures)} failures", sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
