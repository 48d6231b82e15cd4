"""Emulates the asynchronous work of a block on sm_90a: copies of boxes, barriers in shared memory, and wgmma.

A barrier is 8 bytes of shared memory, with the fields of FIELDS. A tensor map has the format that test/ptx/Driver.cpp
writes; see Map. If a block is `late`, a box is copied only when all warps wait. If the products of a block are late,
a wgmma runs only when the warp that issued it waits for its sums, which are NaN until then. A copy or product reads the
contents that memory has when it runs. wgmma faults if it reads bytes that a thread wrote without a later
fence.proxy.async.
"""
import re

import numpy as np

LANES = np.arange(32)
FIELDS = {"phase": 1, "count": 20, "pending": 20, "bytes": 22}  # name: bits, from the lowest on
BYTES_BIAS = 1 << 21  # because the number of pending bytes may be negative temporarily


class Fault(Exception):
    """An operation that the GPU forbids."""


class Barrier:
    """A barrier in shared memory. A phase ends when all threads have arrived and all expected bytes are copied."""

    def __init__(self, memory, address):
        memory.check(np.array([address]), 8, 8)
        self.word, self.place = memory.views[8], (address - memory.base) // 8
        rest = int(self.word[self.place])
        for name, bits in FIELDS.items():
            setattr(self, name, rest & (1 << bits) - 1)
            rest >>= bits
        self.bytes -= BYTES_BIAS

    def store(self):
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending = self.phase ^ 1, self.count
        word, shift = 0, 0
        for name, bits in FIELDS.items():
            word |= (getattr(self, name) + (BYTES_BIAS if name == "bytes" else 0)) << shift
            shift += bits
        self.word[self.place] = word

    @staticmethod
    def create(memory, address, count):
        memory.check(np.array([address]), 8, 8)
        memory.views[8][(address - memory.base) // 8] = 0
        barrier = Barrier(memory, address)
        barrier.count = barrier.pending = count
        barrier.bytes = 0
        barrier.store()

    def arrive(self, count=1, expected=0):
        if self.pending < count:
            raise Fault(f"{count} threads arrive at a barrier that waits for {self.pending}")
        self.pending -= count
        self.bytes += expected
        self.store()

    def complete(self, count):
        self.bytes -= count
        self.store()


class Map:
    """A tensor map: a tensor in global memory and the sizes of a box, from 64-bit words in the order of the fields."""

    def __init__(self, words):
        magic, self.address, self.rank, self.size = (int(word) for word in words[:4])
        if magic != 0x6174746e:
            raise Fault("a copy without a tensor map")
        self.sizes = [int(word & np.uint64(0xffffffff)) for word in words[4:4 + self.rank]]
        self.box = [int(word >> np.uint64(32)) for word in words[4:4 + self.rank]]
        self.strides = [self.size] + [int(word) for word in words[9:9 + self.rank - 1]]


class BoxCopy:
    """A copy of a box to shared memory, with rows of 128 bytes that are swizzled, and zeros outside the tensor."""

    def __init__(self, block, tensor, target, coordinates, barrier):
        self.block, self.tensor, self.target, self.coordinates, self.barrier = block, tensor, target, coordinates, barrier

    def run(self):
        tensor, shared, memory = self.tensor, self.block.memories["shared"], self.block.memories["global"]
        row_bytes = tensor.box[0] * tensor.size
        if row_bytes != 128 or self.target % 1024:
            raise Fault(f"a swizzled copy of rows of {row_bytes} bytes to {self.target}")
        inside = max(0, min(tensor.box[0], tensor.sizes[0] - self.coordinates[0])) * tensor.size
        boxes = np.indices(tensor.box[:0:-1]).reshape(tensor.rank - 1, -1)[::-1]  # of the outer dimensions, by row
        for row, place in enumerate(boxes.T):
            at = [first + int(i) for first, i in zip(self.coordinates[1:], place)]
            values = np.zeros(row_bytes, np.uint8)
            if inside and self.coordinates[0] >= 0 and all(0 <= i < size for i, size in zip(at, tensor.sizes[1:])):
                source = tensor.address + self.coordinates[0] * tensor.size + sum(
                    i * stride for i, stride in zip(at, tensor.strides[1:]))
                memory.check(np.array([source]), inside, 16)
                values[:inside] = memory.views[1][source - memory.base:][:inside]
            begin = self.target + row * row_bytes
            shared.check(np.array([begin]), row_bytes, 128)
            units = np.arange(8) ^ (begin >> 7 & 7)
            shared.views[1][begin:begin + row_bytes].reshape(8, 16)[units] = values.reshape(8, 16)
        Barrier(shared, self.barrier).complete(row_bytes * boxes.shape[1])


class Products:
    """The wgmma instructions of one warp that have started, and whose sums are not in registers yet."""

    def __init__(self):
        self.open, self.groups, self.sums = [], [], {}

    def start(self, warp, product, late):
        names = product.targets
        if names not in self.sums:
            self.sums[names] = [warp.registers[name].view(np.float32).copy() if name in warp.registers else np.zeros(32, np.float32)
                                for name in names]
        self.open.append(product)
        if late:
            for name in names:
                warp.registers[name] = np.full(32, np.nan, np.float32)
        else:
            product.run(warp, self.sums[names])
            self.show(warp, names)

    def commit(self):
        self.groups.append(self.open)
        self.open = []

    def wait(self, warp, count, late):
        while len(self.groups) > count:
            group = self.groups.pop(0)
            if late:
                for product in group:
                    product.run(warp, self.sums[product.targets])
            running = {product.targets for other in self.groups + [self.open] for product in other}
            for names in {product.targets for product in group} - running:
                if late:
                    self.show(warp, names)
                del self.sums[names]

    def show(self, warp, names):
        for name, value in zip(names, self.sums[names]):
            warp.registers[name] = value.copy()


def factor_places(description, rows, depth_is_outer):
    """Returns the addresses of the 16-bit elements (row, depth) of a factor of `rows` rows and a depth of 16."""
    if description >> 62 != 1:
        raise Fault("a factor that is not swizzled by 128 bytes")
    start, leading, stride = ((description >> shift & 0x3fff) << 4 for shift in (0, 16, 32))
    row, depth = np.arange(rows)[:, None], np.arange(16)[None, :]
    if depth_is_outer:
        at = start + row // 64 * leading + depth // 8 * stride + depth % 8 * 128 + row % 64 * 2
    else:
        at = start + row // 8 * stride + row % 8 * 128 + depth * 2
    return at ^ (at >> 7 & 7) << 4


class Product:
    def __init__(self, targets, left, right, columns, clears, transposes_right, convert):
        self.targets, self.left, self.right, self.columns = targets, left, right, columns
        self.clears, self.transposes_right, self.convert = clears, transposes_right, convert

    def load(self, warp, places):
        block = warp.block
        block.memories["shared"].check(np.array([places.min(), places.max()]), 2, 2)
        if block.unfenced[places].any():
            raise Fault("wgmma reads what was written without fence.proxy.async")
        return self.convert(block.memories["shared"].views[2][places // 2])

    def run(self, warp, sums):
        group, in_group = LANES // 4, LANES % 4
        if callable(self.left):
            left = self.load(warp, factor_places(self.left(warp), 64, False)[16 * (warp.number % 4):][:16])
        else:
            left = np.empty((16, 16), np.float32)
            for i, read in enumerate(self.left):
                pair = read(warp)
                for j in range(2):
                    left[group + 8 * (i & 1), 2 * in_group + 8 * (i >> 1) + j] = self.convert(
                        (pair >> np.uint32(16 * j)).astype(np.uint16))
        right = self.load(warp, factor_places(self.right(warp), self.columns, self.transposes_right))
        with np.errstate(all="ignore"):
            products = left @ right.T
            for i in range(len(sums)):
                value = products[group + 8 * (i >> 1 & 1), i // 4 * 8 + 2 * in_group + (i & 1)]
                sums[i] = value if self.clears else sums[i] + value


class Instructions:
    """Methods of machine.Decoder."""

    def one(self, read, warp, mask):
        """Returns a value that is the same in all active lanes."""
        values = read(warp)[mask]
        if (values != values[0]).any():
            raise Fault(f"expected one value in all lanes: {self.instruction.text}")
        return int(values[0])

    def do_mbarrier(self):
        kind = self.parts[1]
        first = 0 if self.operands[0].startswith("[") else 1
        address = self.address(self.operands[first])
        others = [self.read(name, "u32") for name in self.operands[first + 1:]]
        result = self.operands[0] if first else None

        def execute(warp, mask):
            shared, values = warp.block.memories["shared"], [read(warp) for read in others]
            places = address(warp)
            if kind == "try_wait":
                ended = np.array([Barrier(shared, int(places[lane])).phase != values[0][lane] & 1 for lane in LANES])
                warp.poll(ended[mask].all())
                return warp.set(result, ended, mask)
            for lane in np.nonzero(mask)[0]:
                if kind == "init":
                    Barrier.create(shared, int(places[lane]), int(values[0][lane]))
                elif "expect_tx" in self.parts:
                    Barrier(shared, int(places[lane])).arrive(1, int(values[0][lane]))
                else:
                    Barrier(shared, int(places[lane])).arrive(int(values[0][lane]) if values else 1)
            if result and result != "_":
                warp.set(result, np.zeros(32, np.uint64), mask)
        return execute

    def copy_box(self):
        target, barrier = self.address(self.operands[0]), self.address(self.operands[2])
        tensor, coordinates = re.fullmatch(r"\[(\S+), \{(.*)\}\]", self.operands[1]).groups()
        tensor = self.read(tensor, "u64")
        coordinates = [self.read(name.strip(), "s32") for name in coordinates.split(",")]

        def execute(warp, mask):
            block = warp.block
            for lane in np.nonzero(mask)[0]:
                words = block.memories["param"].views[8][int(tensor(warp)[lane]) // 8:][:16]
                copy = BoxCopy(block, Map(words), int(target(warp)[lane]), [int(read(warp)[lane]) for read in coordinates],
                               int(barrier(warp)[lane]))
                if len(coordinates) != copy.tensor.rank:
                    raise Fault(f"{len(coordinates)} coordinates of a tensor of rank {copy.tensor.rank}")
                block.copies.append(copy)
            if not block.late:
                block.run_copies()
        return execute

    def do_fence(self):
        if "proxy" not in self.parts:
            return lambda warp, mask: None

        def execute(warp, mask):
            unfenced = warp.block.unfenced
            unfenced[unfenced == warp.number + 1] = 0
        return execute

    def do_setmaxnreg(self):
        count = int(self.operands[0])
        if count % 8 or not 24 <= count <= 256:
            raise Fault(f"{count} registers")
        gives = self.parts[1] == "dec"

        def execute(warp, mask):
            if (count > warp.register_count) == gives and count != warp.register_count:
                raise Fault(f"a change from {warp.register_count} to {count} registers")
            warp.register_count = count
        return execute

    def do_wgmma(self):
        kind = self.parts[1]
        if kind == "fence":
            return lambda warp, mask: None
        if kind == "commit_group":
            return lambda warp, mask: warp.products.commit()
        if kind == "wait_group":
            count = int(self.operands[0])
            return lambda warp, mask: warp.products.wait(warp, count, warp.block.late_products)
        columns, element = int(re.search(r"n(\d+)k16", self.instruction.opcode)[1]), self.parts[-1]
        targets, left, right, adds, *rest = self.operands
        in_registers = isinstance(left, list)
        left_reads = [self.read(name, "b32") for name in left] if in_registers else self.read(left, "u64")
        right_read, transposes = self.read(right, "u64"), int(rest[-1]) == 1
        if len(targets) != columns // 2 or [int(sign) for sign in rest[:2]] != [1, 1]:
            raise Fault(f"an instruction that the emulator lacks: {self.instruction.text}")

        def execute(warp, mask):
            if not mask.all():
                raise Fault("a product of matrices by some lanes only")
            product = Product(tuple(targets), left_reads if in_registers else lambda warp: self.one(left_reads, warp, mask),
                              lambda warp: self.one(right_read, warp, mask), columns, int(adds) == 0, transposes,
                              self.from_half(element))
            warp.products.start(warp, product, warp.block.late_products)
        return execute
