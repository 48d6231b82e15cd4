"""halves.py FOLDER: checks conversions of f16 and bf16 at every ISA level that this CPU runs.

Each f16 and bf16 must convert to the f32 of the same value. f32 must convert to the nearest f16 or bf16, with ties to
even.
"""
import pathlib, struct, subprocess, sys

from levels import RUN, find_levels

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
DTYPES = {"f16": ("<f2", "H"), "bf16": ("<u2", "H"), "f32": ("<f4", "I"), "f64": ("<f8", "Q")}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}


def is_nan(t, bits):
    return bits & 0x7FFFFFFF > 0x7F800000 if t == "f32" else bits & 0x7FFF > INFINITY[t]


def bits_of(code, letter, number):
    return struct.unpack("<" + letter, struct.pack("<" + code, number))[0]


def convert(folder, t, other, cast, values, level):
    """Returns the bits to which compiled code converts the bits `values`, or None if this CPU cannot run the level."""
    (dtype, letter), (_, result) = DTYPES[t], DTYPES[other]
    model, source = folder / f"{t}-{other}.mlir", folder / f"{t}-{other}.npy"
    model.write_text(MODULE.format(n=len(values), t=t, other=other, cast=cast))
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(values)},), }}\n".encode()
    data = struct.pack(f"<{len(values)}{letter}", *values)
    source.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    command = [*RUN, model, f"--input={source}", f"--level={level}", f"--output-dir={folder}"]
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
            # Neither the sign nor the payload of a NaN is specified.
            same = got == want or (is_nan(other, got) and is_nan(other, want))
            assert same, f"{t} to {other} at {level}: expected {want:#x} of {value:#x}, got {got:#x}"
        if results:
            print(f"{t} to {other} at {level}: {len(values)} values")


folder = pathlib.Path(sys.argv[1])
LEVELS = find_levels(folder)
halves = list(range(1 << 16))
numbers = [struct.unpack("<e", struct.pack("<H", half))[0] for half in halves]
singles = [bits_of("f", "I", number) for number in numbers]
check(folder, "f16", "f32", "extf", halves, singles)

check(folder, "bf16", "f32", "extf", halves, [half << 16 for half in halves])


def roundings(t, numbers):
    """Returns a list of f32 bits, and a list of the bits of type t that they round to.

    The f32 are all finite `numbers` of type t, the midpoints of adjacent numbers, and the f32 below and above each
    midpoint.
    """
    sources, wanted = [], []
    for half in halves:
        magnitude = half & 0x7FFF
        if magnitude >= INFINITY[t]:
            continue
        tie = bits_of("f", "I", (abs(numbers[half]) + abs(numbers[magnitude + 1])) / 2) | (half & 0x8000) << 16
        even = half if half % 2 == 0 else half + 1
        sources += [bits_of("f", "I", numbers[half]), tie - 1, tie, tie + 1]
        wanted += [half, half, even, half + 1]
    return sources, wanted


# Numbers round to infinity from the midpoint between the greatest finite number and the next power of two on.
numbers[INFINITY["f16"]] = 2.0**16
sources, wanted = roundings("f16", numbers)
for special, want in ((0x7F800000, 0x7C00), (0xFF800000, 0xFC00), (0x7F7FFFFF, 0x7C00), (0x00000001, 0),
                      (0x80000001, 0x8000), (0x7FC00000, 0x7E00), (0x47800000, 0x7C00)):
    sources.append(special)
    wanted.append(want)
check(folder, "f32", "f16", "truncf", sources, wanted)

# Compiled code converts f64 to f32 first. This changes no result, because all sources are f32 numbers.
def widen(bits):
    return bits_of("d", "Q", struct.unpack("<f", struct.pack("<I", bits))[0])


pairs = [(widen(source), want) for source, want in zip(sources, wanted)]
check(folder, "f64", "f16", "truncf", [source for source, _ in pairs], [want for _, want in pairs])

numbers = [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
numbers[INFINITY["bf16"]] = 2.0**128
sources, wanted = roundings("bf16", numbers)
for special, want in ((0x7F800000, 0x7F80), (0xFF800000, 0xFF80), (0x7F7FFFFF, 0x7F80), (0x00000001, 0),
                      (0x80000001, 0x8000), (0x7FC00000, 0x7FC0), (0x7F800001, 0x7FC0)):
    sources.append(special)
    wanted.append(want)
check(folder, "f32", "bf16", "truncf", sources, wanted)
check(folder, "f64", "bf16", "truncf", [widen(source) for source in sources], wanted)
