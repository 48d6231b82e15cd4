"""Executes PTX on numpy arrays: a block of threads, its warps, and their memory.

Each register of a warp is an array with one element for each of its 32 lanes. A warp runs until it waits. If lanes take
different branches, a stack keeps the lanes that wait for the others. Asynchronous copies are done either at once
("eager") or as late as the program allows ("late"), when a thread waits for them. A program that forgets to wait gives
wrong results in one of the two modes. Accesses outside an allocation, misaligned accesses and barriers that some
threads never reach are errors.
"""
import bisect
import re

import numpy as np

import asynchronous
from asynchronous import Fault

LANES = np.arange(32)
ALL = np.ones(32, bool)
# Untyped PTX types, such as b32, are unsigned here.
TYPES = {"pred": np.bool_, "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16,
         "s16": np.int16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32, "b64": np.uint64,
         "u64": np.uint64, "s64": np.int64, "f64": np.float64, "f16": np.float16}
WIDER = {np.uint16: np.uint32, np.int16: np.int32, np.uint32: np.uint64, np.int32: np.int64}
EXPONENT, SIGN = np.uint32(0x7f800000), np.uint32(0x80000000)
NAN = np.array([0x7fffffff], np.uint32).view(np.float32)
CHUNK = 20000  # instructions after which a warp lets the others run


def from_bf16(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(numbers):
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7fff) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(numbers), np.uint32(0x7fff), rounded).astype(np.uint16)


def from_tf32(bits):
    """Converts tf32 to f32. The hardware ignores the low 13 bits."""
    return (bits & np.uint32(0xffffe000)).view(np.float32)


def canonical(numbers):
    """Replaces each NaN by the only NaN that arithmetic of the hardware returns."""
    is_nan = np.isnan(numbers)
    return np.where(is_nan, NAN, numbers) if is_nan.any() else numbers


def flush(numbers):
    """Replaces subnormal numbers by zeros of the same sign."""
    bits = canonical(numbers).view(np.uint32)
    return np.where(bits & EXPONENT == 0, bits & SIGN, bits).view(np.float32)


def some(mask):
    """Returns ALL for a mask of all lanes, None for a mask without lanes, and other masks unchanged."""
    return ALL if mask.all() else mask if mask.any() else None


class Memory:
    """Bytes at addresses from `base` on. Only those inside `allocations`, pairs of address and size, may be accessed."""

    def __init__(self, name, data, base=0, allocations=None):
        self.name, self.base = name, base
        self.views = {size: data.view(f"u{size}") for size in (1, 2, 4, 8)}
        spans = sorted(allocations if allocations is not None else [(base, data.size)])
        self.starts = [start for start, _ in spans]
        self.ends = [start + size for start, size in spans]

    def check(self, addresses, size, alignment):
        if len(self.starts) == 0 or int(np.bitwise_or.reduce(addresses)) & alignment - 1:
            raise Fault(f"misaligned access of {self.name} memory at {addresses}, {size} bytes")
        # Most accesses are in one allocation.
        which = bisect.bisect_right(self.starts, int(addresses.min())) - 1
        if which >= 0 and int(addresses.max()) + size <= self.ends[which]:
            return
        which = np.searchsorted(self.starts, addresses, "right") - 1
        if (which < 0).any() or (addresses + size > np.array(self.ends)[which]).any():
            raise Fault(f"access outside {self.name} memory at {addresses}, {size} bytes")

    def load(self, addresses, size, count):
        """`count` elements of `size` bytes at each address."""
        self.check(addresses, size * count, size * count)
        first = (addresses - self.base) // size
        return [self.views[size][first + i] for i in range(count)]

    def store(self, addresses, size, values):
        self.check(addresses, size * len(values), size * len(values))
        first = (addresses - self.base) // size
        for i, value in enumerate(values):
            self.views[size][first + i] = value


class Block:
    """A block of threads."""

    def __init__(self, program, kernel, number, threads, shared_bytes, arguments, memory, late=False,
                 late_products=None, blocks=1):
        self.program, self.kernel, self.number, self.threads, self.late = program, kernel, number, threads, late
        self.blocks = blocks  # of the grid
        self.late_products = late if late_products is None else late_products
        parameters = np.zeros(-(-max(kernel.parameter_bytes, 8) // 8) * 8, np.uint8)
        parameters[:len(arguments)] = np.frombuffer(arguments, np.uint8)
        # Bytes that no thread has written yet are NaN in every float type.
        shared = np.full(-(-max(shared_bytes, 8) // 8) * 8, 0xff, np.uint8)
        self.memories = {"global": memory, "shared": Memory("shared", shared, 0, [(0, shared_bytes)]),
                         "param": Memory("param", parameters)}
        self.unfenced = np.zeros(shared.size, np.uint8)  # 1 + the warp that wrote a byte, until its next fence
        self.copies = []  # the copies of boxes that have started and not ended
        self.barriers = {}  # by number

    def run(self):
        with np.errstate(all="ignore"):
            self.run_warps()
        if self.copies:
            raise Fault("the block ends before its copies")
        # A warp that asks for registers waits until other warps have given so many back.
        registers, most = sum(32 * warp.register_count for warp in self.warps), self.threads * self.launch_registers()
        if registers > most:
            raise Fault(f"deadlock of setmaxnreg: the threads ask for {registers} registers, and the block has {most}")

    def launch_registers(self):
        """The registers of a thread if the compiler gives it as many as a multiprocessor has."""
        return min(65536 // self.threads // 8 * 8, 256)

    def run_warps(self):
        self.warps = [Warp(self, i) for i in range(self.threads // 32)]
        running = [(warp, warp.run()) for warp in self.warps]
        while running:
            moved, still = False, []
            for warp, steps in running:
                try:
                    moved |= next(steps)
                    still.append((warp, steps))
                except StopIteration:
                    moved = True
            running = still
            if not moved and self.copies:
                self.run_copies()
            elif running and not moved:
                places = ", ".join(self.kernel.instructions[warp.position].text for warp, _ in running)
                raise Fault(f"all threads wait: {places}")

    def run_copies(self):
        while self.copies:
            self.copies.pop(0).run()


class Barrier:
    """Counts the threads that arrive, and how often all have arrived. Can `or` the conditions of all threads."""

    def __init__(self):
        self.arrived, self.times, self.holds, self.results = 0, 0, False, {}

    def arrive(self, threads, holds):
        self.arrived += 32
        self.holds |= bool(holds)
        if self.arrived > threads:
            raise Fault(f"{self.arrived} threads arrive at a barrier of {threads}")
        if self.arrived == threads:
            self.results[self.times] = self.holds
            self.arrived, self.times, self.holds = 0, self.times + 1, False


class Warp:
    def __init__(self, block, number):
        self.block, self.number, self.position = block, number, 0
        self.registers = {}
        thread = number * 32 + LANES
        self.special = {"%tid.x": thread, "%ntid.x": np.full(32, block.threads), "%laneid": LANES,
                        "%ctaid.x": np.full(32, block.number), "%nctaid.x": np.full(32, block.blocks)}
        for name in ("%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"):
            self.special[name] = np.zeros(32)
        self.special = {name: value.astype(np.uint32) for name, value in self.special.items()}
        self.register_count = block.launch_registers()
        self.copies, self.groups = [], []  # asynchronous copies since the last commit, and the groups of earlier copies
        self.waits_for = None  # a barrier, its count, and the register that gets its result
        self.products = asynchronous.Products()
        self.polls, self.stalled_at = False, None  # whether the warp found a barrier incomplete, and where

    def run(self):
        """Runs all lanes. Whenever another warp may run, yields whether this warp has executed an instruction."""
        kernel, count = self.block.kernel, 0
        steps = decode(self.block.program, kernel)
        # An entry has the next instruction, a mask of the lanes that run it, and the instruction at which they join the
        # lanes of the entry below. No mask is empty.
        stack = [[0, ALL, None]]
        while stack:
            top = stack[-1]
            position, mask, join = top
            if position == join or position == len(steps):
                stack.pop()
                continue
            self.position = position
            instruction, execute = kernel.instructions[position], steps[position]
            active = mask
            if instruction.predicate is not None:
                active = some(mask & (self.registers[instruction.predicate] ^ instruction.negated))
            count += 1
            top[0] = position + 1
            if execute is not None:
                if active is None:
                    continue
                execute(self, active)
                if self.waits_for:
                    (barrier, times, target), self.waits_for, first = self.waits_for, None, True
                    while barrier.times == times:
                        yield first
                        first = False
                    if target:
                        self.set(target, np.full(32, barrier.results[times]), ALL)
                if self.polls:
                    self.polls, moved = False, self.stalled_at != position
                    self.stalled_at = position
                    yield moved
            elif instruction.opcode.startswith("bra"):
                target = kernel.labels[instruction.operands[0]]
                if active is mask or active is not None and (active == mask).all():
                    top[0] = target
                elif active is not None:
                    top[0] = join = kernel.joins[position]
                    stack.append([position + 1, mask & ~active, join])
                    stack.append([target, active, join])
                if target <= position and count > CHUNK:
                    count = 0
                    yield True
            elif active is not None:  # the lanes end
                for entry in stack:
                    entry[1] = some(entry[1] & ~active)
                stack = [entry for entry in stack if entry[1] is not None]
        if self.copies or self.groups or self.products.open or self.products.groups:
            raise Fault("the kernel ends before its asynchronous copies or products")

    def poll(self, is_over):
        self.polls = not is_over
        if is_over:
            self.stalled_at = None

    def set(self, name, value, mask):
        if mask is not ALL:
            old = self.registers.get(name)
            value = np.where(mask, value, np.zeros(32, value.dtype) if old is None else old.view(value.dtype))
        self.registers[name] = value

    def copy(self, mask, target, source, size, count):
        """Copies 16 bytes to each lane's target; bytes from `count` on are zeros."""
        bytes_of = self.block.memories
        for lane in np.nonzero(mask)[0]:
            values = np.zeros(16, np.uint8)
            if count[lane]:
                address = np.array([int(source[lane])], np.int64)
                bytes_of["global"].check(address, int(count[lane]), size)
                begin = int(source[lane]) - bytes_of["global"].base
                values[:count[lane]] = bytes_of["global"].views[1][begin:begin + count[lane]]
            address = np.array([int(target[lane])], np.int64)
            bytes_of["shared"].check(address, size, size)
            bytes_of["shared"].views[1][int(target[lane]):int(target[lane]) + size] = values[:size]
            self.block.unfenced[int(target[lane]):int(target[lane]) + size] = self.number + 1


def decode(program, kernel):
    """Returns a function for each instruction of `kernel`, which executes the instruction on the lanes of a mask."""
    if not hasattr(kernel, "steps"):
        kernel.steps = [None if instruction.opcode.startswith("bra") or instruction.opcode in ("ret", "exit")
                        else Decoder(program, kernel, instruction).decode() for instruction in kernel.instructions]
    return kernel.steps


class Decoder(asynchronous.Instructions):
    """Makes the function of one instruction. The method named after its opcode returns this function."""

    def __init__(self, program, kernel, instruction):
        self.program, self.kernel, self.instruction = program, kernel, instruction
        self.parts = instruction.opcode.split(".")
        self.type = self.parts[-1]
        self.operands = instruction.operands

    def decode(self):
        method = getattr(self, "do_" + self.parts[0], None)
        if method is None:
            raise Fault(f"an instruction that the emulator lacks: {self.instruction.text}")
        return method()

    def read(self, operand, type_name):
        """Returns a function from a warp to the value of an operand."""
        dtype = TYPES[type_name]
        if operand.startswith("%") and not re.match(r"%(tid|ntid|ctaid|nctaid|laneid)", operand):
            def read_register(warp):
                value = warp.registers[operand]
                if value.dtype.itemsize == np.dtype(dtype).itemsize:
                    return value.view(dtype)
                return value.astype(dtype)
            return read_register
        if operand.startswith("%"):
            return lambda warp: warp.special[operand].astype(dtype)
        if operand.startswith(("0f", "0d")):
            value = np.full(32, int(operand[2:], 16), np.uint32 if operand[1] == "f" else np.uint64)
        elif operand in self.program.addresses:
            value = np.full(32, self.program.addresses[operand], np.uint64)
        elif operand in self.program.shared:
            value = np.zeros(32, np.uint64)
        elif operand in self.kernel.parameters:
            value = np.full(32, self.kernel.parameters[operand][0], np.uint64)
        else:
            value = np.full(32, int(operand, 0) & 0xffffffffffffffff, np.uint64)
        constant = value.astype(f"u{max(np.dtype(dtype).itemsize, 1)}").view(dtype)
        return lambda warp: constant

    def address(self, operand):
        """Returns a function from a warp to the addresses [register + offset] of its lanes."""
        base, _, offset = operand[1:-1].partition("+")
        wide = base.startswith("%rd") or not base.startswith("%")
        read, add = self.read(base.strip(), "u64" if wide else "u32"), int(offset or 0)
        return lambda warp: read(warp).astype(np.int64) + add

    def unary(self, compute):
        target, source = self.operands[0], self.read(self.operands[1], self.type)
        return lambda warp, mask: warp.set(target, compute(source(warp)), mask)

    def binary(self, compute):
        target, a, b = self.operands[0], self.read(self.operands[1], self.type), self.read(self.operands[2], self.type)
        return lambda warp, mask: warp.set(target, compute(a(warp), b(warp)), mask)

    def float_or_integer(self, on_floats, on_integers):
        if self.type not in ("f32", "f64"):
            return self.binary(on_integers)
        if "ftz" in self.parts:
            return self.binary(lambda a, b: flush(on_floats(flush(a), flush(b))))
        return self.binary(on_floats)

    def flushed(self, compute):
        return (lambda x: flush(compute(flush(x)))) if "ftz" in self.parts else compute

    # Moves

    def do_mov(self):
        target, source = self.operands
        if not isinstance(target, list) and not isinstance(source, list):
            return self.unary(lambda x: x.copy())
        whole = TYPES[self.type]
        bits = 4 * np.dtype(whole).itemsize  # of half a register
        half = TYPES[f"b{bits}"]
        if isinstance(target, list):
            read = self.read(source, self.type)
            return lambda warp, mask: [warp.set(name, (read(warp) >> whole(bits * i)).astype(half), mask)
                                       for i, name in enumerate(target) if name != "_"]
        low, high = (self.read(name, f"b{bits}") for name in source)
        return lambda warp, mask: warp.set(target, low(warp).astype(whole) | high(warp).astype(whole) << whole(bits), mask)

    def do_cvta(self):
        return self.unary(lambda x: x.copy())

    def do_selp(self):
        target = self.operands[0]
        a, b, c = (self.read(o, t) for o, t in zip(self.operands[1:], (self.type, self.type, "pred")))
        return lambda warp, mask: warp.set(target, np.where(c(warp), a(warp), b(warp)), mask)

    def do_cvt(self):
        target, to, of = self.operands[0], self.parts[-2], self.parts[-1]
        if to in ("bf16x2", "f16x2"):
            high, low = (self.read(o, "f32") for o in self.operands[1:])
            halve = to_bf16 if to == "bf16x2" else lambda x: x.astype(np.float16).view(np.uint16)
            return lambda warp, mask: warp.set(
                target, halve(low(warp)).astype(np.uint32) | halve(high(warp)).astype(np.uint32) << np.uint32(16), mask)
        if to == "bf16":
            source = self.read(self.operands[1], "f32")
            return lambda warp, mask: warp.set(target, to_bf16(source(warp)), mask)
        if of == "bf16":
            source = self.read(self.operands[1], "b16")
            return lambda warp, mask: warp.set(target, from_bf16(source(warp)), mask)
        source = self.read(self.operands[1], of)
        if "rzi" in self.parts or "rni" in self.parts or "rmi" in self.parts:
            rounding = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor}[next(p for p in self.parts if p in ("rzi", "rni", "rmi"))]
            return lambda warp, mask: warp.set(target, rounding(source(warp)).astype(TYPES[to]), mask)
        return lambda warp, mask: warp.set(target, source(warp).astype(TYPES[to]), mask)

    # Arithmetic

    def do_add(self):
        return self.float_or_integer(np.add, np.add)

    def do_sub(self):
        return self.float_or_integer(np.subtract, np.subtract)

    def do_mul(self):
        if self.type in ("f32", "f64"):
            return self.float_or_integer(np.multiply, np.multiply)
        dtype = TYPES[self.type]
        if "wide" in self.parts:
            return self.binary(lambda a, b: a.astype(WIDER[dtype]) * b.astype(WIDER[dtype]))
        if "hi" in self.parts:
            if self.type.endswith("64"):
                def high(a, b):
                    return np.array([(int(x) * int(y)) >> 64 for x, y in zip(a, b)]).astype(dtype)
                return self.binary(high)
            bits = 8 * np.dtype(dtype).itemsize
            return self.binary(lambda a, b: (a.astype(WIDER[dtype]) * b.astype(WIDER[dtype]) >> bits).astype(dtype))
        return self.binary(np.multiply)

    def do_mad(self):
        target, dtype = self.operands[0], TYPES[self.type]
        a, b = (self.read(o, self.type) for o in self.operands[1:3])
        if "wide" in self.parts:
            wide = "b64"
            c = self.read(self.operands[3], wide)
            return lambda warp, mask: warp.set(
                target, (a(warp).astype(WIDER[dtype]) * b(warp).astype(WIDER[dtype])).view(np.uint64) + c(warp), mask)
        c = self.read(self.operands[3], self.type)
        return lambda warp, mask: warp.set(target, a(warp) * b(warp) + c(warp), mask)

    def do_fma(self):
        target = self.operands[0]
        a, b, c = (self.read(o, self.type) for o in self.operands[1:])
        wide = np.float64 if self.type == "f32" else np.longdouble  # a product of two f32 is exact in f64
        finish = flush if "ftz" in self.parts else lambda x: x
        return lambda warp, mask: warp.set(
            target, finish((a(warp).astype(wide) * b(warp) + c(warp)).astype(TYPES[self.type])), mask)

    def do_div(self):
        if self.type in ("f32", "f64"):
            return self.binary(np.divide)

        def quotient(a, b):  # rounds toward zero
            safe = np.where(b == 0, 1, b).astype(a.dtype)
            if a.dtype.kind == "u":
                return a // safe
            result = np.abs(a) // np.abs(safe)
            return np.where((a < 0) != (safe < 0), -result, result)
        return self.binary(quotient)

    def do_rem(self):
        def remainder(a, b):
            safe = np.where(b == 0, 1, b).astype(a.dtype)
            return a % safe if a.dtype.kind == "u" else np.fmod(a, safe)
        return self.binary(remainder)

    def do_max(self):
        return self.float_or_integer(np.fmax, np.maximum)

    def do_min(self):
        return self.float_or_integer(np.fmin, np.minimum)

    def do_neg(self):
        return self.unary(np.negative)

    def do_abs(self):
        return self.unary(np.abs)

    def do_ex2(self):
        return self.unary(lambda x: flush(np.exp2(flush(x))))

    def do_lg2(self):
        return self.unary(lambda x: np.log2(flush(x)))

    def do_tanh(self):
        return self.unary(np.tanh)

    def do_rcp(self):
        return self.unary(self.flushed(lambda x: x.dtype.type(1) / x))

    def do_rsqrt(self):
        return self.unary(self.flushed(lambda x: x.dtype.type(1) / np.sqrt(x)))

    def do_sqrt(self):
        return self.unary(self.flushed(np.sqrt))

    def do_copysign(self):
        target = self.operands[0]
        a, b = self.read(self.operands[1], self.type), self.read(self.operands[2], self.type)
        return lambda warp, mask: warp.set(target, np.copysign(b(warp), a(warp)), mask)

    # Bits

    def do_and(self):
        return self.binary(np.bitwise_and)

    def do_or(self):
        return self.binary(np.bitwise_or)

    def do_xor(self):
        return self.binary(np.bitwise_xor)

    def do_not(self):
        return self.unary(np.invert)

    def shift(self, compute):
        target, a, by = self.operands[0], self.read(self.operands[1], self.type), self.read(self.operands[2], "u32")
        bits = 8 * np.dtype(TYPES[self.type]).itemsize

        def execute(warp, mask):
            value, distance = a(warp), by(warp)
            shifted = compute(value, np.minimum(distance, bits - 1).astype(value.dtype))
            gone = np.where(value < 0, -1, 0) if value.dtype.kind == "i" and compute is np.right_shift else 0
            warp.set(target, np.where(distance >= bits, gone, shifted).astype(value.dtype), mask)
        return execute

    def do_shl(self):
        return self.shift(np.left_shift)

    def do_shr(self):
        return self.shift(np.right_shift)

    def do_bfe(self):
        target, a = self.operands[0], self.read(self.operands[1], self.type)
        first, length = int(self.operands[2]), int(self.operands[3])
        kept = TYPES[self.type]((1 << length) - 1)
        return lambda warp, mask: warp.set(target, (a(warp) >> TYPES[self.type](first)) & kept, mask)

    def do_prmt(self):
        target, a, b = self.operands[0], self.read(self.operands[1], "u32"), self.read(self.operands[2], "u32")
        selector = int(self.operands[3], 0)

        def execute(warp, mask):
            both = a(warp).astype(np.uint64) | b(warp).astype(np.uint64) << np.uint64(32)
            result = np.zeros(32, np.uint64)
            for i in range(4):
                nibble = selector >> 4 * i & 15
                byte = both >> np.uint64(8 * (nibble & 7)) & np.uint64(255)
                if nibble & 8:  # copies of the sign
                    byte = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
                result |= byte << np.uint64(8 * i)
            warp.set(target, result.astype(np.uint32), mask)
        return execute

    def do_setp(self):
        compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
        name, target = self.parts[1], self.operands[0]
        a, b = self.read(self.operands[1], self.type), self.read(self.operands[2], self.type)
        if name == "nan":
            return lambda warp, mask: warp.set(target, np.isnan(a(warp)) | np.isnan(b(warp)), mask)
        if name == "num":
            return lambda warp, mask: warp.set(target, ~(np.isnan(a(warp)) | np.isnan(b(warp))), mask)
        unordered = self.type.startswith("f") and name.endswith("u") and name != "u"
        test = compare[name[:-1] if unordered else name]

        def execute(warp, mask):
            x, y = a(warp), b(warp)
            result = test(x, y)
            if unordered:
                result = result | np.isnan(x) | np.isnan(y)
            elif self.type.startswith("f") and name == "ne":
                result = result & ~(np.isnan(x) | np.isnan(y))
            warp.set(target, result, mask)
        return execute

    # Memory

    def memory(self):
        space = self.parts[1] if self.parts[1] in ("global", "shared", "param") else None
        if space is None:
            raise Fault(f"a memory access without a space: {self.instruction.text}")
        return space, np.dtype(TYPES[self.type]).itemsize

    def do_ld(self):
        (space, size), address, targets = self.memory(), self.address(self.operands[1]), self.operands[0]
        targets = targets if isinstance(targets, list) else [targets]
        dtype = TYPES[self.type]

        def execute(warp, mask):
            loaded = warp.block.memories[space].load(address(warp)[mask], size, len(targets))
            for name, elements in zip(targets, loaded):
                value = np.zeros(32, elements.dtype)
                value[mask] = elements
                warp.set(name, value.view(dtype), mask)
        return execute

    def do_st(self):
        (space, size), address, sources = self.memory(), self.address(self.operands[0]), self.operands[1]
        reads = [self.read(name, self.type) for name in (sources if isinstance(sources, list) else [sources])]

        def execute(warp, mask):
            places = address(warp)[mask]
            warp.block.memories[space].store(places, size, [read(warp)[mask].view(f"u{size}") for read in reads])
            if space == "shared":
                warp.block.unfenced[(places[:, None] + np.arange(size * len(reads))).ravel()] = warp.number + 1
        return execute

    def do_red(self):
        reductions = {"red.global.or.b32": np.bitwise_or, "red.global.add.u64": np.add}
        if self.instruction.opcode not in reductions:
            raise Fault(f"an instruction that the emulator lacks: {self.instruction.text}")
        combine, size = reductions[self.instruction.opcode], np.dtype(TYPES[self.type]).itemsize
        address, value = self.address(self.operands[0]), self.read(self.operands[1], self.type)

        def execute(warp, mask):
            memory = warp.block.memories["global"]
            for lane in np.nonzero(mask)[0]:
                place = address(warp)[lane:lane + 1]
                memory.store(place, size, [combine(memory.load(place, size, 1)[0], value(warp)[lane:lane + 1])])
        return execute

    def do_cp(self):
        opcode = self.instruction.opcode
        if opcode.startswith("cp.async.bulk.tensor"):
            return self.copy_box()
        if opcode == "cp.async.commit_group":
            def commit(warp, mask):
                warp.groups.append(warp.copies)
                warp.copies = []
            return commit
        if opcode in ("cp.async.wait_group", "cp.async.wait_all"):
            keep = int(self.operands[0]) if self.operands else 0

            def wait(warp, mask):
                while len(warp.groups) > keep:
                    for copy in warp.groups.pop(0):
                        if warp.block.late:
                            warp.copy(*copy)
            return wait
        target, source = self.address(self.operands[0]), self.address(self.operands[1])
        size = int(self.operands[2])
        count = self.read(self.operands[3], "u32") if len(self.operands) > 3 else lambda warp: np.full(32, size, np.uint32)

        def start(warp, mask):
            copy = (mask, target(warp), source(warp), size, count(warp))
            warp.copies.append(copy)
            if not warp.block.late:
                warp.copy(*copy)
        return start

    # Warps and blocks

    def do_shfl(self):
        target, a = self.operands[0].split("|")[0], self.read(self.operands[1], "b32")
        by = self.read(self.operands[2], "u32")
        source = {"bfly": lambda n: LANES ^ n, "idx": lambda n: n & 31, "down": lambda n: np.minimum(LANES + n, 31),
                  "up": lambda n: np.maximum(LANES - n, 0)}[self.parts[2]]

        def execute(warp, mask):
            if mask is not ALL:
                raise Fault(f"a shuffle of some lanes only: {self.instruction.text}")
            warp.set(target, a(warp)[source(by(warp).astype(np.int64))], mask)
        return execute

    def do_vote(self):
        target, a, kind = self.operands[0], self.read(self.operands[1], "pred"), self.parts[2]

        def execute(warp, mask):
            votes = a(warp)[mask]
            warp.set(target, np.full(32, votes.any() if kind == "any" else votes.all()), mask)
        return execute

    def do_bar(self):
        if self.parts[1] == "warp":  # nothing to do, because the lanes of a warp run together
            return lambda warp, mask: None
        reduces = self.parts[1] == "red"  # the operands are then the target, the barrier, the threads, and a condition
        if reduces and self.parts[2:] != ["or", "pred"]:
            raise Fault(f"an instruction that the emulator lacks: {self.instruction.text}")
        reads = [self.read(name, "u32") for name in (self.operands[1:3] if reduces else self.operands)]
        condition = self.read(self.operands[3], "pred") if reduces else None

        def execute(warp, mask):
            if mask is not ALL:
                raise Fault("a barrier for some lanes only")
            number, threads = (self.one(read, warp, mask) for read in (reads + [lambda warp: np.full(32, warp.block.threads)])[:2])
            barrier = warp.block.barriers.setdefault(number, Barrier())
            times = barrier.times
            barrier.arrive(threads, reduces and condition(warp).any())
            if "arrive" not in self.parts:
                warp.waits_for = (barrier, times, self.operands[0] if reduces else None)
        return execute

    do_barrier = do_bar

    def do_trap(self):
        def execute(warp, mask):
            raise Fault("the kernel stopped itself")
        return execute

    def from_half(self, element):
        return from_bf16 if element == "bf16" else lambda x: x.view(np.float16).astype(np.float32)

    # Matrices. The PTX manual says which elements each lane of a warp holds.

    def do_ldmatrix(self):
        targets, address, transposes = self.operands[0], self.address(self.operands[1]), "trans" in self.parts

        def execute(warp, mask):
            if mask is not ALL:
                raise Fault("a load of matrices by some lanes only")
            rows = np.stack(warp.block.memories["shared"].load(address(warp)[:8 * len(targets)], 2, 8), axis=1)
            for i, name in enumerate(targets):
                matrix = rows[8 * i:8 * i + 8]
                matrix = matrix.T if transposes else matrix
                pairs = np.ascontiguousarray(matrix).view(np.uint32)  # each holds two neighbours
                warp.set(name, pairs[LANES // 4, LANES % 4], mask)
        return execute

    def do_mma(self):
        element = self.parts[self.parts.index("f32") + 1]
        sums, left, right, start = self.operands
        group, in_group = LANES // 4, LANES % 4
        # The row and the column of each element that a lane holds of the left factor, and the depth and the column for
        # the right factor.
        if element == "tf32":
            left_at = [(group + 8 * (i & 1), in_group + 4 * (i >> 1)) for i in range(4)]
            right_at = [(in_group + 4 * i, group) for i in range(2)]
            depth, unpack = 8, lambda x: [from_tf32(x)]
        else:
            left_at = [(group + 8 * (i & 1), 2 * in_group + 8 * (i >> 1) + j) for i in range(4) for j in range(2)]
            right_at = [(2 * in_group + 8 * i + j, group) for i in range(2) for j in range(2)]
            convert, depth = self.from_half(element), 16

            def unpack(x):
                return [convert((x >> np.uint32(16 * j)).astype(np.uint16)) for j in range(2)]
        reads = {name: self.read(name, "b32") for name in left + right}
        starts = [self.read(name, "f32") for name in start]

        def matrix(warp, names, places, shape):
            result = np.empty(shape, np.float32)
            values = [part for name in names for part in unpack(reads[name](warp))]
            for place, value in zip(places, values):
                result[place] = value
            return result

        def execute(warp, mask):
            if mask is not ALL:
                raise Fault("a product of matrices by some lanes only")
            products = matrix(warp, left, left_at, (16, depth)) @ matrix(warp, right, right_at, (depth, 8))
            before = [read(warp) for read in starts]
            for i, name in enumerate(sums):
                warp.set(name, canonical(before[i] + products[group + 8 * (i >> 1), 2 * in_group + (i & 1)]), mask)
        return execute
