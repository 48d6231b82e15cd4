"""merge.py DIR: compares attn.online_merge with its reference, at every ISA level that this CPU runs.

For each query, the op merges n + 1 states of the online softmax, those of disjoint parts of the keys. A state is a
maximum, a sum and accumulators. Queries have different kinds of states: without a key in any part, with keys in only
one part, NaN, infinite or huge maxima. The numbers of queries leave a tail after the last full vector, at levels with
FMA and without it. With `rows`, the 7 accumulators of a query are adjacent, and do not fill a vector.
"""
import array, math, pathlib, random, struct, subprocess, sys

from levels import RUN, find_levels

MODULE = """func.func @merge(%ms: tensor<{N}x{Q}xf32>, %ls: tensor<{N}x{Q}xf32>, %as: tensor<{N}x{ACC}xf32>,
                 %m: tensor<{Q}xf32>, %l: tensor<{Q}xf32>, %a: tensor<{ACC}xf32>)
    -> (tensor<{Q}xf32>, tensor<{Q}xf32>, tensor<{ACC}xf32>) {{
  %r:3 = attn.online_merge {rows} ins(%ms, %ls, %as : tensor<{N}x{Q}xf32>, tensor<{N}x{Q}xf32>, tensor<{N}x{ACC}xf32>)
      outs(%m, %l, %a : tensor<{Q}xf32>, tensor<{Q}xf32>, tensor<{ACC}xf32>) {{scale = {scale} : f32}}
      -> tensor<{Q}xf32>, tensor<{Q}xf32>, tensor<{ACC}xf32>
  return %r#0, %r#1, %r#2 : tensor<{Q}xf32>, tensor<{Q}xf32>, tensor<{ACC}xf32>
}}
"""
NONE, NAN = (-math.inf, 0.0, 0.0), (math.nan, math.nan)  # the state of no keys; a NaN sum and NaN accumulators
rng = random.Random(1)
folder = pathlib.Path(sys.argv[1])


def some(max):
    """Returns a state with this maximum: (max, sum, the standard deviation of its accumulators)."""
    return max, rng.uniform(0.5, 9), 1.0


# Each function returns n + 1 states of one query: the state that the op updates, and the states of n parts of the keys.
KINDS = [
    lambda n: [some(rng.gauss(0, 3)) for _ in range(n + 1)],
    lambda n: [NONE] * (n + 1),
    lambda n: [(-math.inf, 1.0, 0.0)] + [NONE] * n,  # a sum of 1 without any key
    lambda n: [NONE] * n + [some(3.0)],
    lambda n: [some(-2.0)] + [NONE] * n,
    lambda n: [NONE, (1.0, *NAN)] + [some(2.0)] * (n - 1),
    lambda n: [some(1.0)] * n + [(-math.inf, *NAN)],  # all scores of the last part are NaN
    lambda n: [(math.nan, *NAN)] + [some(2.0)] * n,  # a sink of NaN
    lambda n: [some(0.0)] * n + [(math.inf, *NAN)],
    lambda n: [NONE] + [some(rng.choice([3e38, -3e38, 3e38])) for _ in range(n)],
    lambda n: [NONE] + [some(1e6 + rng.randint(0, 4)) for _ in range(n)],
    lambda n: [some(-1e30)] + [some(-1e6)] * n,
]


def save(path, shape, values):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}\n".encode()
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + array.array("f", values).tobytes())


def compare(levels, n, queries, scale, rows):
    # The first kind is random, so that queries of different kinds are in the tail.
    first = rng.randrange(len(KINDS))
    states = [KINDS[(first + q) % len(KINDS)](n) for q in range(queries)]
    accs = [[[state[part][2] * rng.gauss(0, 1) for state in states] for _ in range(7)] for part in range(n + 1)]
    of = lambda i, part: [state[part][i] for state in states]
    parts = range(1, n + 1)
    save(folder / "0.npy", [n, queries], sum([of(0, part) for part in parts], []))
    save(folder / "1.npy", [n, queries], sum([of(1, part) for part in parts], []))
    shape = [7, queries]
    if rows:
        shape = [queries, 7]
        accs = [list(map(list, zip(*acc))) for acc in accs]
    save(folder / "2.npy", [n, *shape], sum([row for part in parts for row in accs[part]], []))
    save(folder / "3.npy", [queries], of(0, 0))
    save(folder / "4.npy", [queries], of(1, 0))
    save(folder / "5.npy", shape, sum(accs[0], []))
    (folder / "merge.mlir").write_text(MODULE.format(N=n, Q=queries, ACC="x".join(map(str, shape)), scale=scale,
                                                     rows="rows" if rows else ""))
    for level in levels:
        done = subprocess.run([*RUN, folder / "merge.mlir", "--reference", "--tolerance=1e-6", f"--level={level}"]
                              + [f"--input={folder / str(i)}.npy" for i in range(6)], capture_output=True, text=True)
        if done.returncode and "a level that this CPU runs" not in done.stderr:
            sys.exit(f"{n} parts, {queries} queries, scale {scale}, rows {rows}, {level}: {done.stderr.strip()}")


folder.mkdir(parents=True, exist_ok=True)
levels = find_levels(folder)
for n, queries in [(1, 1), (1, 16), (3, 5), (8, 33)]:
    for scale in ["1.0", "1.250000e-01", "1.44"]:
        for rows in [False, True]:
            compare(levels, n, queries, scale, rows)
    print(f"{n} part{'s' * (n > 1)}, {queries} quer{'ies' if queries > 1 else 'y'}")
