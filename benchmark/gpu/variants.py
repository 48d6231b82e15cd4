"""Variants of the kernel of an attention for sm_90a, to measure what its parts cost.

    for name, is_right, text in variants(ptx): ...

A variant changes the text of the step that overlaps products with a softmax: the products before `wgmma.wait_group 1`,
and the softmax from there to the conditional end. Variants that are not right leave something out, so only their times mean something:

* poly1 to poly4: one to four eighths of the exponentials are computed by multiply-adds instead of MUFU
* no-exp, no-max, no-copy, no-scores, no-values: without exponentials, maxima, copies of tiles, or most instructions of
  one of the two products
"""
import itertools
import re
import struct

# A minimax polynomial of 2^x on [-1/2, 1/2]. Its relative error is below 1e-4, less than half a unit of bf16.
COEFFICIENTS = [0.99992807, 0.69326099, 0.24261112, 0.05517166]
ROUND = 1.5 * 2**23  # adding this number rounds to an integer, which the low bits of the sum then hold


def bits(x):
    return "0f%08X" % struct.unpack(">I", struct.pack(">f", x))[0]


def exp2_by_multiply_adds(result, x):
    shifted, whole, rest, sum_, exponent = (f"%poly{i}" for i in range(5))
    return "\n".join([
        f"max.ftz.f32 {rest}, {x}, {bits(-126.0)};",
        f"add.rn.ftz.f32 {shifted}, {rest}, {bits(ROUND)};",
        f"sub.rn.ftz.f32 {whole}, {shifted}, {bits(ROUND)};",
        f"sub.rn.ftz.f32 {rest}, {rest}, {whole};",
        f"mov.b32 {sum_}, {bits(COEFFICIENTS[-1])};",
        *(f"fma.rn.ftz.f32 {sum_}, {sum_}, {rest}, {bits(c)};" for c in reversed(COEFFICIENTS[:-1])),
        f"shl.b32 {exponent}, {shifted}, 23;",
        f"add.s32 {result}, {sum_}, {exponent};",
    ])


class Step:
    """The lines of a kernel, and the numbers of those that a variant changes."""

    def __init__(self, ptx):
        self.lines = ptx.split("\n")
        self.wait = self.find(r"wgmma\.wait_group\.sync\.aligned 1;", 0)
        self.softmax = list(self.follow(self.wait))
        begin = max(i for i in range(self.wait) if re.fullmatch(r"\$L\w+:", self.lines[i]))  # of the block with the wait
        products = [i for i in range(begin, self.wait) if "wgmma.mma_async" in self.lines[i]]
        commit = self.find(r"wgmma\.commit_group", products[0])
        self.scores = [i for i in products if i < commit]
        self.values = [i for i in products if i > commit]
        assert self.scores and self.values, "expected instructions of both products before the wait"
        # The first two exponentials are the factors of the rows.
        self.exponentials = [(i, match[1], match[2]) for i in self.softmax
                             if (match := re.match(r"\s*ex2\.approx\.ftz\.f32\s+(%\w+), (%\w+);", self.lines[i]))][2:]

    def find(self, pattern, start):
        return next(i for i in range(start, len(self.lines)) if re.search(pattern, self.lines[i]))

    def follow(self, start):
        """The numbers of the lines that run from `start` to the conditional end; the blocks may have any order."""
        labels = {line[:-1]: i for i, line in enumerate(self.lines) if re.fullmatch(r"\$L\w+:", line)}
        i = start
        while not re.search(r"@%p\d+ (trap|exit);", self.lines[i]):
            yield i
            jump = re.match(r"\s*bra\.uni\s+(\$L\w+);", self.lines[i])
            i = labels[jump[1]] if jump else i + 1

    def with_lines(self, changes):
        """The text with other lines; a line without text is left out."""
        lines = (changes.get(i, line) for i, line in enumerate(self.lines))
        return "\n".join(line for line in lines if line is not None)

    def polynomial(self, eighths):
        changes = {i: exp2_by_multiply_adds(result, x) for n, (i, result, x) in enumerate(self.exponentials)
                   if n * eighths // 8 != (n + 1) * eighths // 8}
        registers = self.find(r"^\s*\.reg", 0)
        changes[registers] = f".reg .b32 %poly<5>;\n{self.lines[registers]}"
        return self.with_lines(changes)

    def without_maxima(self):
        """The maximum of a row becomes the first score of each lane. The shuffles stay."""
        changes, shuffled = {}, set()
        for i in itertools.takewhile(lambda i: "vote.sync" not in self.lines[i], self.softmax):
            if match := re.search(r"shfl\.sync\S+\s+(%\w+)", self.lines[i]):
                shuffled.add(match[1])
            match = re.match(r"\s*max\.ftz\.f32\s+(%\w+), (%\w+), (%\w+);", self.lines[i])
            if match and not shuffled & {match[2], match[3]}:
                changes[i] = f"mov.b32 {match[1]}, {match[2]};"
        return self.with_lines(changes)

    def without_copies(self):
        changes = {}
        for i, line in enumerate(self.lines):
            if "cp.async.bulk.tensor" in line:
                changes[i] = None
            elif "mbarrier.arrive.expect_tx" in line:
                changes[i] = re.sub(r"\.expect_tx(.*\]), %\w+;", r"\1;", line)
        return self.with_lines(changes)


def variants(ptx):
    for name, is_right, text in edited(Step(ptx)):
        assert text != ptx, f"the variant {name} changes nothing"
        yield name, is_right, text


def edited(step):
    for eighths in (1, 2, 3, 4):
        yield f"poly{eighths}", True, step.polynomial(eighths)
    yield "no-exp", False, step.with_lines({i: f"abs.ftz.f32 {result}, {x};" for i, result, x in step.exponentials})
    yield "no-max", False, step.without_maxima()
    yield "no-copy", False, step.without_copies()
    yield "no-scores", False, step.with_lines(dict.fromkeys(step.scores[1:]))
    yield "no-values", False, step.with_lines(dict.fromkeys(step.values[1:]))


def with_ptx(module, ptx):
    """The LLVM IR of a library, which holds PTX as a constant, with other PTX."""
    data = ptx.rstrip("\0").encode() + b"\0"
    text = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in data)
    replaced, count = re.subn(r'(@kernels\.sm_90a = .*? constant )\[\d+ x i8\] c"[^"]*"', lambda match: f'{match[1]}[{len(data)} x i8] c"{text}"', module)
    assert count == 1, "expected one constant with the PTX of sm_90a"
    return replaced
