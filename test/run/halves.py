"""halves.py FOLDER: every f16 becomes the f32 that it is, and f32 the nearest f16, ties to even, at every level."""
import pathlib, struct, subprocess, sys

LEVELS = ["x86-64", "x86-64-v3", "x86-64-v4"]
MODULE = """
func.func @f(%x: tensor<{n}x{t}>) -> tensor<{n}x{other}> {{
  %e = tensor.empty() : tensor<{n}x{other}>
  %r = linalg.map ins(%x : tensor<{n}x{t}>) outs(%e : tensor<{n}x{other}>) (%in: {t}, %init: {other}) {{
    %v = arith.{cast} %in : {t} to {other}
    linalg.yield %v : {other}
  }}
  return %r : tensor<{n}x{other}>
}}
"""
DTYPES = {"f16": ("<f2", "H"), "f32": ("<f4", "I"), "f64": ("<f8", "Q")}


def is_nan(t, bits):
    return bits & 0x7FFF > 0x7C00 if t == "f16" else bits & 0x7FFFFFFF > 0x7F800000


def bits_of(code, letter, number):
    return struct.unpack("<" + letter, struct.pack("<" + code, number))[0]


def convert(folder, t, other, cast, values, level):
    """The bits that the code makes of the bits `values`; none if this CPU does not run the level."""
    (dtype, letter), (_, result) = DTYPES[t], DTYPES[other]
    model, source = folder / f"{t}-{other}.mlir", folder / f"{t}-{other}.npy"
    model.write_text(MODULE.format(n=len(values), t=t, other=other, cast=cast))
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(values)},), }}\n".encode()
    data = struct.pack(f"<{len(values)}{letter}", *values)
    source.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    command = ["attn-run", model, f"--input={source}", f"--level={level}", f"--output-dir={folder}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode and "expected a level that this CPU runs" in run.stderr:
        return None
    assert not run.returncode, run.stderr
    output = (folder / "0.npy").read_bytes()
    return struct.unpack(f"<{len(values)}{result}", output[-len(values) * struct.calcsize("<" + result):])


def check(folder, t, other, cast, values, wanted):
    for level in LEVELS:
        results = convert(folder, t, other, cast, values, level)
        for value, got, want in zip(values, results or [], wanted):
            # Of a NaN neither the sign nor the payload is promised.
            same = got == want or (is_nan(other, got) and is_nan(other, want))
            assert same, f"{t} to {other} at {level}: expected {want:#x} of {value:#x}, got {got:#x}"
        if results:
            print(f"{t} to {other} at {level}: {len(values)} values")


folder = pathlib.Path(sys.argv[1])
halves = list(range(1 << 16))
numbers = [struct.unpack("<e", struct.pack("<H", half))[0] for half in halves]
singles = [bits_of("f", "I", number) for number in numbers]
check(folder, "f16", "f32", "extf", halves, singles)

# All that halves are, what lies between two of them, and a step of f32 to either side of that.
finite = [half for half in halves if (half & 0x7FFF) < 0x7C00]
sources, wanted = [], []
for half in finite:
    following = 65536.0 if half & 0x7FFF == 0x7BFF else abs(numbers[(half & 0x7FFF) + 1])
    middle = (abs(numbers[half]) + following) / 2
    sign = (half & 0x8000) << 16
    tie = bits_of("f", "I", middle) | sign
    above = half + 1
    even = half if half % 2 == 0 else above
    sources += [singles[half], tie - 1, tie, tie + 1]
    wanted += [half, half, even, above]
for special, want in ((0x7F800000, 0x7C00), (0xFF800000, 0xFC00), (0x7F7FFFFF, 0x7C00), (0x00000001, 0),
                      (0x80000001, 0x8000), (0x7FC00000, 0x7E00), (0x47800000, 0x7C00)):
    sources.append(special)
    wanted.append(want)
check(folder, "f32", "f16", "truncf", sources, wanted)

# f64 goes through f32, which no value of f16 or tie notices.
def widen(bits):
    return bits_of("d", "Q", struct.unpack("<f", struct.pack("<I", bits))[0])


pairs = [(widen(source), want) for source, want in zip(sources, wanted)]
check(folder, "f64", "f16", "truncf", [source for source, _ in pairs], [want for _, want in pairs])
