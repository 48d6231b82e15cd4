"""Tests the emulator of PTX with programs of a few instructions, and with programs for which it must raise an error."""
import unittest

import numpy as np

import machine
import program

BASE = 1 << 40  # of global memory


def run(body, arguments=b"", memory=None, threads=32, shared=256, late=False, parameters=".param .b64 p0, .param .b64 p1",
        allocations=None, block=0):
    """Runs a kernel and returns the registers of its warps."""
    registers = ".reg .pred %p<99>;\n.reg .b16 %rs<99>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<99>;\n"
    text = (".version 8.0\n.target sm_80\n.extern .shared .align 1024 .b8 shared[];\n"
            f".visible .entry k(\n{parameters}\n)\n.maxntid 32\n{{\n{registers}{body}\nret;\n}}\n")
    parsed = program.parse(text)
    memory = np.zeros(64, np.uint64) if memory is None else memory
    data = memory.view(np.uint8)
    device = machine.Memory("global", data, BASE, allocations or [(BASE, data.size)])
    seen = []
    start = machine.Warp.__init__

    def remember(warp, *rest):
        start(warp, *rest)
        seen.append(warp)
    machine.Warp.__init__ = remember
    try:
        machine.Block(parsed, parsed.kernels["k"], block, threads, shared, arguments, device, late).run()
    finally:
        machine.Warp.__init__ = start
    return [warp.registers for warp in seen]


def f32(register):
    return register.view(np.float32)


class Arithmetic(unittest.TestCase):
    def test_integers(self):
        r = run("mov.u32 %r1, %tid.x;\nadd.s32 %r2, %r1, -3;\nmul.wide.u32 %rd1, %r1, 3000000000;\nshr.s32 %r3, %r2, 1;\n"
                "setp.lt.s32 %p1, %r2, 0;\nselp.b32 %r4, 7, %r1, %p1;\nbfe.u32 %r5, %r1, 1, 2;\nshl.b32 %r6, %r1, 40;")[0]
        lanes = np.arange(32)
        np.testing.assert_array_equal(r["%r2"].view(np.int32), lanes - 3)
        np.testing.assert_array_equal(r["%rd1"], lanes.astype(np.uint64) * np.uint64(3000000000))
        np.testing.assert_array_equal(r["%r3"].view(np.int32), (lanes - 3) >> 1)
        np.testing.assert_array_equal(r["%r4"], np.where(lanes < 3, 7, lanes))
        np.testing.assert_array_equal(r["%r5"], lanes >> 1 & 3)
        np.testing.assert_array_equal(r["%r6"], 0)

    def test_signed_division(self):
        r = run("mov.b64 %rd1, -7;\nmov.b64 %rd2, 2;\ndiv.s64 %rd3, %rd1, %rd2;\nrem.s64 %rd4, %rd1, %rd2;")[0]
        self.assertEqual((r["%rd3"].view(np.int64)[0], r["%rd4"].view(np.int64)[0]), (-3, -1))

    def test_floats(self):
        r = run("mov.b32 %r1, 0f3F800000;\nmov.b32 %r2, 0f7FC00000;\nmax.ftz.f32 %r3, %r1, %r2;\n"
                "mov.b32 %r4, 0f00000001;\nmul.rn.ftz.f32 %r5, %r4, %r1;\nmul.rn.f32 %r6, %r4, %r1;\n"
                "mov.b32 %r7, 0fFF800000;\nex2.approx.ftz.f32 %r8, %r7;\nsetp.neu.ftz.f32 %p1, %r2, %r2;\nsetp.eq.ftz.f32 %p2, %r2, %r2;")[0]
        self.assertEqual(f32(r["%r3"])[0], 1)
        self.assertEqual(f32(r["%r5"])[0], 0)
        self.assertEqual(r["%r6"].view(np.uint32)[0], 1)
        self.assertEqual(f32(r["%r8"])[0], 0)
        self.assertTrue(r["%p1"].all() and not r["%p2"].any())

    def test_rounding_to_bf16(self):
        r = run("mov.b32 %r1, 0f3F808000;\nmov.b32 %r2, 0f3F818000;\ncvt.rn.bf16x2.f32 %r3, %r1, %r2;")[0]
        self.assertEqual(r["%r3"][0], 0x3F803F82)  # ties go to even

    def test_halves_of_registers(self):
        r = run("mov.b32 %r1, 0x12345678;\nmov.b32 {%rs1, %rs2}, %r1;\nmov.b32 %r2, {%rs2, %rs1};\nmov.b64 %rd1, {%r1, %r2};")[0]
        self.assertEqual(r["%r2"][0], 0x56781234)
        self.assertEqual(r["%rd1"][0], 0x5678123412345678)


class Control(unittest.TestCase):
    def test_lanes_that_branch_apart_join_again(self):
        r = run("mov.u32 %r1, %tid.x;\nmov.b32 %r2, 0;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra $then;\nadd.s32 %r2, %r2, 1;\nbra.uni $join;\n"
                "$then:\nadd.s32 %r2, %r2, 2;\n$join:\nadd.s32 %r2, %r2, 10;\nbar.sync 0;")[0]
        np.testing.assert_array_equal(r["%r2"], np.where(np.arange(32) < 5, 12, 11))

    def test_loops_of_different_lengths(self):
        r = run("mov.u32 %r1, %tid.x;\nmov.b32 %r2, 0;\n$loop:\nadd.s32 %r2, %r2, 1;\nsetp.le.u32 %p1, %r2, %r1;\n@%p1 bra $loop;\nbar.sync 0;")[0]
        np.testing.assert_array_equal(r["%r2"], np.arange(32) + 1)

    def test_some_lanes_return(self):
        r = run("mov.u32 %r1, %tid.x;\nmov.b32 %r2, 1;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra $end;\nmov.b32 %r2, 2;\n$end:")[0]
        np.testing.assert_array_equal(r["%r2"], np.where(np.arange(32) < 5, 1, 2))

    def test_barriers_order_the_warps(self):
        body = ("mov.u32 %r1, %tid.x;\nmov.b64 %rd1, shared;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nst.shared.b32 [%rd3], %r1;\n"
                "bar.sync 0;\nxor.b32 %r2, %r1, 32;\nmul.wide.u32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd1, %rd4;\nld.shared.b32 %r3, [%rd5];")
        warps = run(body, threads=64)
        for warp, r in enumerate(warps):
            np.testing.assert_array_equal(r["%r3"], np.arange(32) + 32 * (1 - warp))
        # Without the barrier, a warp reads memory that no thread has written yet.
        warps = run(body.replace("bar.sync 0;\n", ""), threads=64)
        self.assertTrue((warps[0]["%r3"] == 0xffffffff).all())

    def test_barrier_that_a_warp_never_reaches(self):
        body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra $end;\nbar.sync 0;\n$end:"
        with self.assertRaisesRegex(machine.Fault, "all threads wait: bar.sync 0"):
            run(body, threads=64)

    def test_barrier_for_some_lanes(self):
        with self.assertRaisesRegex(machine.Fault, "a barrier for some lanes only"):
            run("mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra $end;\nbar.sync 0;\n$end:")


class Registers(unittest.TestCase):
    """Three warpgroups start with 168 registers for each thread."""

    def move(self, producer, consumer):
        run("mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 256;\n@%p1 bra $L1;\n"
            f"setmaxnreg.dec.sync.aligned.u32 {producer};\nbra.uni $L2;\n$L1:\n"
            f"setmaxnreg.inc.sync.aligned.u32 {consumer};\n$L2:", threads=384)

    def test_registers_of_other_warpgroups(self):
        self.move(40, 232)
        self.move(24, 240)

    def test_more_registers_than_at_the_start(self):
        with self.assertRaisesRegex(machine.Fault, "deadlock of setmaxnreg: the threads ask for 65536 registers, and the block has 64512"):
            self.move(32, 240)


class MemoryAccess(unittest.TestCase):
    LOAD = "mov.u32 %r1, %tid.x;\nld.param.b64 %rd1, [p0];\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"

    def arguments(self, *values):
        return np.array(values, np.uint64).tobytes()

    def test_loads_and_stores(self):
        memory = np.arange(64, dtype=np.uint32)
        r = run(self.LOAD + "ld.global.b32 %r2, [%rd3+4];\nst.global.b32 [%rd3], %r2;", self.arguments(BASE, 0), memory.view(np.uint64))[0]
        np.testing.assert_array_equal(r["%r2"], np.arange(32) + 1)
        np.testing.assert_array_equal(memory[:32], np.arange(32) + 1)

    def test_access_outside_an_allocation(self):
        with self.assertRaisesRegex(machine.Fault, "access outside global memory"):
            run(self.LOAD + "ld.global.b32 %r2, [%rd3];", self.arguments(BASE, 0), allocations=[(BASE, 124)])
        with self.assertRaisesRegex(machine.Fault, "access outside shared memory"):
            run("mov.b64 %rd1, shared;\nld.shared.b32 %r1, [%rd1+256];")

    def test_misaligned_access(self):
        with self.assertRaisesRegex(machine.Fault, "misaligned access of global memory"):
            run(self.LOAD + "ld.global.b32 %r2, [%rd3+2];", self.arguments(BASE, 0))

    COPY = ("mov.u32 %r1, %tid.x;\nld.param.b64 %rd1, [p0];\nmul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd3, %rd1, %rd2;\nmov.b64 %rd4, shared;\n"
            "add.s64 %rd5, %rd4, %rd2;\nmov.b32 %r9, 16;\ncp.async.cg.shared.global [%rd5], [%rd3], 16, %r9;\ncp.async.commit_group;\n")

    def test_copies_end_at_the_wait(self):
        memory = np.arange(64, dtype=np.uint64) * np.uint64(0x100000001)
        for late in (False, True):
            r = run(self.COPY + "ld.shared.b32 %r2, [%rd5];\ncp.async.wait_group 0;\nld.shared.b32 %r3, [%rd5];", self.arguments(BASE, 0),
                    memory, shared=512, late=late)[0]
            expected = 2 * np.arange(32)
            np.testing.assert_array_equal(r["%r3"], expected)
            np.testing.assert_array_equal(r["%r2"], 0xffffffff if late else expected)

    def test_copies_of_fewer_bytes_end_with_zeros(self):
        memory = np.full(64, 0x0101010101010101, np.uint64)
        r = run(self.COPY.replace("mov.b32 %r9, 16", "mov.b32 %r9, 6") + "cp.async.wait_group 0;\nld.shared.b64 %rd6, [%rd5];",
                self.arguments(BASE, 0), memory, shared=512)[0]
        self.assertEqual(r["%rd6"][0], 0x0000010101010101)

    def test_copies_that_nobody_waits_for(self):
        with self.assertRaisesRegex(machine.Fault, "ends before its asynchronous copies"):
            run(self.COPY, self.arguments(BASE, 0), shared=512)


class Matrices(unittest.TestCase):
    """Lane l holds the elements that the manual of PTX assigns to it, with g = l / 4 and t = l % 4."""

    def multiply(self, element, depth):
        rng = np.random.default_rng(0)
        left, right = rng.integers(-4, 5, (16, depth)), rng.integers(-4, 5, (depth, 8))
        pack = {"bf16": machine.to_bf16, "f16": lambda x: x.astype(np.float16).view(np.uint16)}.get(element)
        g, t = np.arange(32) // 4, np.arange(32) % 4
        if pack:
            def pair(x, y):
                return pack(x.astype(np.float32)).astype(np.uint32) | pack(y.astype(np.float32)).astype(np.uint32) << np.uint32(16)
            a = [pair(left[g + r, 2 * t + c], left[g + r, 2 * t + c + 1]) for c in (0, 8) for r in (0, 8)]
            b = [pair(right[2 * t + k, g], right[2 * t + k + 1, g]) for k in (0, 8)]
        else:
            a = [left[g + r, t + c].astype(np.float32).view(np.uint32) for c in (0, 4) for r in (0, 8)]
            b = [right[t + k, g].astype(np.float32).view(np.uint32) for k in (0, 4)]
        loads, memory = "", np.concatenate(a + b).astype(np.uint32).view(np.uint64)
        for i in range(6):
            loads += f"ld.global.b32 %r{i + 2}, [%rd3+{128 * i}];\n"
        r = run(MemoryAccess.LOAD + loads + f"mov.b32 %r9, 0f3F800000;\nmma.sync.aligned.m16n8k{depth}.row.col.f32.{element}.{element}.f32 "
                "{%r10, %r11, %r12, %r13}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%r9, %r9, %r9, %r9};", np.array([BASE, 0], np.uint64).tobytes(), memory)[0]
        expected = left @ right + 1
        for i, name in enumerate(["%r10", "%r11", "%r12", "%r13"]):
            np.testing.assert_array_equal(f32(r[name]), expected[g + 8 * (i // 2), 2 * t + i % 2])

    def test_products(self):
        for element, depth in [("bf16", 16), ("f16", 16), ("tf32", 8)]:
            with self.subTest(element):
                self.multiply(element, depth)

    def test_ldmatrix(self):
        # Row i of matrix j, 8 elements of 16 bits, is at the address that lane 8 * j + i has.
        store = ("mov.u32 %r1, %tid.x;\nmov.b64 %rd1, shared;\nmul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd3, %rd1, %rd2;\nmov.b32 %r2, 0;\n")
        for i in range(4):
            store += f"shl.b32 %r3, %r1, 8;\nadd.s32 %r4, %r3, {2 * i};\nadd.s32 %r5, %r4, 1;\nshl.b32 %r6, %r5, 16;\nor.b32 %r7, %r6, %r4;\nst.shared.b32 [%rd3+{4 * i}], %r7;\n"
        g, t = np.arange(32) // 4, np.arange(32) % 4
        for kind in ("", ".trans"):
            r = run(store + f"bar.sync 0;\nldmatrix.sync.aligned.m8n8.x4{kind}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%rd3];", shared=512)[0]
            for matrix, name in enumerate(["%r10", "%r11", "%r12", "%r13"]):
                def element(row, column):
                    row, column = (column, row) if kind else (row, column)
                    return (8 * matrix + row) * 256 + column
                np.testing.assert_array_equal(r[name], element(g, 2 * t) | element(g, 2 * t + 1) << 16)


class Refusals(unittest.TestCase):
    def test_unknown_instruction(self):
        with self.assertRaisesRegex(machine.Fault, "an instruction that the emulator lacks: frobnicate.b32"):
            run("frobnicate.b32 %r1, %r2;")

    def test_local_memory(self):
        with self.assertRaisesRegex(ValueError, "expected an instruction or a register"):
            run(".local .align 4 .b8 depot[28];")


if __name__ == "__main__":
    unittest.main()
