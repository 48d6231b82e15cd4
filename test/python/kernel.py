"""kernel.py MODELS: tests the package attn with NumPy, without PyTorch. MODELS is examples/models."""
import array
import concurrent.futures
import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import attn
import numpy as np

MODELS = pathlib.Path(sys.argv.pop(1))


def reference(q, k, v, kept=True):
    """Returns softmax(Q K^T / sqrt(d)) V in float64 over the kept pairs; a query without a key gives 0."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    scores = np.where(kept, np.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = p.sum(-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", np.divide(p, total, out=np.zeros_like(p), where=total > 0), v)


def coordinates(batch, heads, queries, keys):
    return np.ogrid[:batch, :heads, :queries, :keys]


class Case(unittest.TestCase):
    def assertNear(self, got, expected, tolerance=2e-6):
        self.assertEqual(got.shape, expected.shape)
        self.assertLessEqual(np.abs(got - expected).max(initial=0), tolerance * max(1, np.abs(expected).max(initial=0)))

    def assertError(self, pattern, status=None):
        context = self.assertRaisesRegex(attn.Error, pattern)
        if status:
            self.addCleanup(lambda: self.assertEqual(context.exception.status, status))
        return context


class Calls(Case):
    @classmethod
    def setUpClass(cls):
        cls.x = np.load(MODELS / "mha.x.npy")
        cls.expected = np.load(MODELS / "mha.out.npy")
        cls.kernel = attn.compile(MODELS / "mha.pt2")

    def test_result(self):
        y = self.kernel(self.x)
        self.assertEqual(y.dtype, np.float32)
        self.assertNear(y, self.expected)

    def test_by_name(self):
        self.assertNear(self.kernel(x=self.x), self.expected)

    def test_out(self):
        out = np.empty_like(self.x)
        self.assertIs(self.kernel(self.x, out=out), out)
        self.assertNear(out, self.expected)
        out.flags.writeable = False
        with self.assertError("read-only"):
            self.kernel(self.x, out=out)

    def test_wrong_arguments(self):
        for arguments, pattern, status in (
                ((), "expected 1 inputs", "COUNT"), ((self.x, self.x), "expected 1 inputs", "COUNT"),
                ((self.x.astype(np.float64),), "expected float32, got float64.*copy=True", "DTYPE"),
                ((self.x[0],), "expected rank 3, got 2", "RANK"), ((self.x[:, :13],), "size 14 in dimension 1", "SHAPE"),
                ((self.x.transpose(1, 0, 2).copy().transpose(1, 0, 2),), "contiguous.*copy=True", "STRIDE"),
                ((None,), "argument 'x' expected an array, got None", "NULL"), ((3.0,), "expected an array, got 3.0", "NULL"),
                ((self.x.tolist(),), "argument 'x' expected an array or a tensor, got a list", "NULL")):
            with self.subTest(pattern), self.assertError(pattern, status):
                self.kernel(*arguments)
        with self.assertError("got 'y'", "NAME"):
            self.kernel(self.x, y=self.x)
        with self.assertRaises(TypeError):
            self.kernel(object())
        for wrong, got in ((np.array(["text"]), "an array of type <U4"), (self.x.astype(object), "an array of type object"),
                           (self.x.astype(self.x.dtype.newbyteorder()), "another byte order; pass copy=True")):
            with self.assertError(got, "DEVICE"):
                self.kernel(wrong)

    def test_copy(self):
        unaligned = np.frombuffer(b"0" + self.x.tobytes(), np.uint8)[1:].view(self.x.dtype).reshape(self.x.shape)
        self.assertNear(self.kernel(unaligned, copy=True), self.expected)
        self.assertNear(self.kernel(self.x.astype(self.x.dtype.newbyteorder()), copy=True), self.expected)
        strided = self.x.transpose(1, 0, 2).copy().transpose(1, 0, 2)
        self.assertNear(self.kernel(strided, copy=True), self.expected)
        self.assertNear(self.kernel(self.x.astype(np.float64), copy=True), self.expected)

    def test_buffers_of_other_packages(self):
        flat = array.array("f", self.x.ravel().tolist())
        view = memoryview(flat).cast("B").cast("f", self.x.shape)
        self.assertNear(self.kernel(view), self.expected)
        numbers = ctypes.c_float
        for size in reversed(self.x.shape):
            numbers *= size
        self.assertNear(self.kernel(numbers.from_buffer_copy(self.x.tobytes())), self.expected)
        out = numbers()
        self.kernel(view, out=out)
        self.assertNear(np.array(out, np.float32), self.expected)

    def test_masked_arrays(self):
        """A mask would be ignored, so arrays with masks are refused, also if their masks hide nothing."""
        masked = np.ma.masked_array(self.x, self.x > 1)
        refused = "expected an array without a mask, got a masked array; pass x.filled"
        for wrong in (masked, np.ma.array(self.x), masked.astype(np.float64), np.ma.masked):
            for call in (lambda: self.kernel(wrong), lambda: self.kernel(x=wrong),
                         lambda: self.kernel(wrong, copy=True), lambda: self.kernel.run((wrong,)),
                         lambda: self.kernel.workspace_size((wrong,))):
                with self.assertError(f"forward: argument 'x' {refused}"):
                    call()
        class Special(np.ma.MaskedArray):
            pass

        with self.assertError(refused):
            self.kernel(masked.view(Special), copy=True)
        with self.assertError(refused):
            self.kernel.check(masked)
        with self.assertError("plot_mask: expected arrays without a mask"):
            attn.plot_mask(lengths, 8, 8, np.ma.array([2], mask=[True]))
        out = np.ma.masked_array(np.zeros_like(self.x), self.x > 1)
        with self.assertError(f"forward: argument 'out' {refused}"):
            self.kernel(self.x, out=out)
        self.assertFalse(out.data.any())
        state = weights_of(self.kernel, 1)
        with self.assertError(f"forward: weight 'out_proj.bias' {refused}"):
            self.kernel.load_state_dict({**state, "out_proj.bias": np.ma.array(state["out_proj.bias"])})
        self.assertNear(self.kernel(self.x), self.expected)
        self.assertNear(self.kernel(masked.data), self.expected)
        kernel = attn.attention(heads=1, head_size=8, mask=lengths)
        q = np.ones((1, 1, 4, 8), np.float32)
        with self.assertError(f"attention: argument 'n' {refused}"):
            kernel(q, q, q, np.ma.array([2], mask=[True]))

    def test_layouts(self):
        """Arrays whose elements do not follow one another in memory are refused, or inputs converted by `copy=True`."""
        shape, size, as_strided = self.x.shape, self.x.size, np.lib.stride_tricks.as_strided

        def field(other):
            return np.zeros(shape, [("x", np.float32), ("other", other)])["x"]

        def unaligned():
            return np.zeros(4 * size + 1, np.uint8)[1:].view(np.float32).reshape(shape)

        def zeros(*sizes, dtype=np.float32):
            return np.zeros(sizes, dtype)

        layouts = ((zeros(*shape[::-1]).T, "expected stride 1 in dimension 2"), (zeros(*shape)[::-1], "got -896"),
                   (zeros(*shape)[..., ::-1], "got -1"), (zeros(2, 14, 128)[..., :64], "got 128"),
                   (zeros(2, 14, 128)[..., ::2], "got 2"), (zeros(14, 2, 64).swapaxes(0, 1), "got 128"),
                   (field(np.float32), "got 2"), (field(np.uint8), "expected strides of whole elements"),
                   (unaligned(), "aligned to 4 bytes"), (zeros(*shape, dtype=">f4"), "byte order"),
                   (zeros(*shape, dtype=np.float16), "expected float32, got float16"))
        for layout, pattern in layouts:
            with self.subTest(pattern):
                with self.assertError(f"argument 'out' .*{pattern}"):
                    self.kernel(self.x, out=layout)
                self.assertFalse(layout.any())
                if layout.dtype == np.float16:
                    continue
                layout[...] = self.x
                with self.assertError(f"argument 'x' .*{pattern}"):
                    self.kernel(layout)
                self.assertNear(self.kernel(layout, copy=True), self.expected)
        row = zeros(shape[2])
        for wrong, pattern in ((np.broadcast_to(row, shape), "expected a writable array, got a read-only array"),
                               (as_strided(row, shape, (0, 0, 4)), "in dimension 1 .*, got 0"),
                               (zeros(2, 14, 32, dtype=np.complex64), "expected rank 3, got 4"),
                               (np.float32(3), "expected a writable array"), ("text", "expected an array"),
                               (bytes(4 * size), "expected an array, got an object of type <class 'bytes'>"),
                               (np.array(["text"]), "expected elements that are numbers"),
                               (zeros(*shape, dtype=object), "expected elements that are numbers"),
                               (self.x, "memory of 'x'")):
            with self.subTest(pattern), self.assertError(f"forward: argument 'out' .*{pattern}"):
                self.kernel(self.x, out=wrong)
        for right in (zeros(1, *shape)[0], as_strided(zeros(size), shape, self.x.strides),
                      zeros(size).view(np.recarray).reshape(shape)):
            self.assertIs(self.kernel(self.x, out=right), right)
            self.assertNear(np.asarray(right), self.expected)
        kernel = attn.attention(heads=1, head_size=8)
        q = np.random.default_rng(0).standard_normal((1, 1, 4, 8), np.float32)
        strides = (4, 12, 32, 4)  # those of dimensions of size 1 do not matter
        strange, out = (as_strided(array, q.shape, strides) for array in (q, np.zeros_like(q)))
        self.assertNear(kernel(strange, strange, strange, out=out), reference(q, q, q))

    def test_layouts_of_weights(self):
        state = weights_of(self.kernel, 1)
        for change, pattern in ((np.asfortranarray, "expected stride 1"), (lambda x: x[::-1], "got -64"),
                                (lambda x: x.astype(">f4"), "expected elements that are numbers in this machine's"),
                                (lambda x: np.broadcast_to(x[:1], x.shape), "got 0"),
                                (lambda x: x.astype(object), "expected elements")):
            with self.subTest(pattern), self.assertError(f"forward: weight 'out_proj.weight' .*{pattern}"):
                self.kernel.load_state_dict({**state, "out_proj.weight": change(state["out_proj.weight"])})
        self.assertNear(self.kernel(self.x), self.expected)

    def test_dlpack(self):
        class Other:  # an array of a package that supports only DLPack
            def __init__(self, values):
                self.values = values

            def __dlpack__(self, **options):
                return self.values.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

            def __array_namespace__(self):
                return type("Space", (), {"from_dlpack": staticmethod(lambda values: Other(np.from_dlpack(values)))})

        class Alone(Other):  # an array of a package that cannot make arrays
            __array_namespace__ = None

        with self.assertError("argument 'x' expected an array of a package with from_dlpack, .* got an object of type Alone"):
            self.kernel(Alone(self.x))
        result = self.kernel(Other(self.x))
        self.assertIsInstance(result, Other)
        self.assertNear(result.values, self.expected)

    def test_run(self):
        statistics = {}
        (y,) = self.kernel.run((self.x,), None, statistics)
        self.assertNear(y, self.expected)
        self.assertGreater(statistics["nanoseconds"], 0)
        self.assertEqual(statistics["level"], self.kernel.level)
        self.assertGreater(self.kernel.workspace_size((self.x,)), 0)
        out = np.empty_like(y)
        self.kernel.run((self.x,), (out,))
        self.assertNear(out, self.expected)
        with self.assertRaises(TypeError):
            self.kernel.run((self.x,), ())
        with self.assertRaises(TypeError):
            self.kernel.run([self.x])

    def test_threads(self):
        expected = self.kernel(self.x)
        for count in (1, 2, 5, None):
            self.kernel.num_threads = count
            self.assertEqual(self.kernel.num_threads, count)
            self.assertEqual(self.kernel(self.x).tobytes(), expected.tobytes())
        for wrong in (0, -1):
            with self.assertError("num_threads"):
                self.kernel.num_threads = wrong

    def test_concurrent_calls_and_weights(self):
        """While one thread replaces the weights, each call of the other threads uses a single set of weights."""
        kernel = attn.compile(MODELS / "mha.pt2", num_threads=1)
        weights = [weights_of(kernel, seed) for seed in (1, 2)]
        expected = []
        for state in weights:
            kernel.load_state_dict(state)
            expected.append(kernel(self.x).tobytes())

        def call(_):
            return kernel(self.x).tobytes() in expected

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = [pool.submit(call, i) for i in range(400)]
            for i in range(50):
                kernel.load_state_dict(weights[i % 2])
            self.assertTrue(all(result.result() for result in results))

    def test_names(self):
        self.assertIsInstance(self.kernel, attn.Kernel)
        self.assertEqual(self.kernel.name, "forward")
        self.assertIn("x: f32[2, 14, 64]", repr(self.kernel))
        self.assertEqual(self.kernel.signature["inputs"][0]["name"], "x")
        self.assertEqual(self.kernel.manifest["functions"][0], self.kernel.signature)
        self.assertTrue(os.path.exists(self.kernel.path))


def weights_of(kernel, seed):
    rng = np.random.default_rng(seed)
    return {weight["name"]: rng.standard_normal(weight["shape"], np.float32) / 8 for weight in kernel.signature["weights"]}


class Sizes(Case):
    def test_any_length(self):
        kernel = attn.compile(MODELS / "gpt2.pt2")
        rng = np.random.default_rng(0)
        for length in (0, 1, 2, 3, 17, 70, 512):
            x = rng.standard_normal((1, length, 16), np.float32)
            self.assertEqual(kernel(x).shape, (1, length, 16))
        # The first rows of a causal block do not depend on later rows.
        self.assertNear(kernel(x)[:, :17], kernel(np.ascontiguousarray(x[:, :17])), 1e-5)
        with self.assertError("512", "SHAPE"):
            kernel(np.zeros((1, 513, 16), np.float32))

    def test_check(self):
        kernel = attn.compile(MODELS / "gpt2.pt2")
        x = np.load(MODELS / "gpt2.x.npy")
        self.assertLess(kernel.check(x), 1e-5)
        with self.assertError("error"):
            kernel.check(x, tolerance=1e-12)
        kernel.load_state_dict(weights_of(kernel, 3))
        self.assertLess(kernel.check(x), 1e-5)


class Buffers(Case):
    def test_decoder(self):
        kernel = attn.compile(MODELS / "llama-step.pt2")
        names = ["keys", "values"]
        self.assertEqual(list(kernel.buffers), names)
        token, position = np.array([[3]]), np.array([0])
        first = kernel(token, position)
        self.assertTrue(kernel.buffers["keys"].any())
        again = [np.zeros_like(kernel.buffers[name]) for name in names]
        self.assertEqual(kernel(token, position, *again).tobytes(), first.tobytes())
        self.assertEqual(again[0].tobytes(), kernel.buffers["keys"].tobytes())
        for name in names:
            kernel.buffers[name] = np.zeros_like(kernel.buffers[name])
        self.assertEqual(kernel(token, position).tobytes(), first.tobytes())
        for change in (lambda: kernel.buffers.__setitem__("nope", 3), lambda: kernel.buffers.update(nope=3)):
            with self.assertError("k.buffers: expected a name among keys, values, got 'nope'", "NAME"):
                change()
        with self.assertError("in \\[0, 39\\]", "VALUE"):
            kernel(token, np.array([40]))


class Files(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.x = np.load(MODELS / "mha.x.npy")

    def test_save_and_load(self):
        kernel = attn.compile(MODELS / "mha.pt2")
        kernel.save(self.folder / "layer.so")
        self.assertEqual({path.name for path in self.folder.iterdir()},
                         {"layer.so", "layer.h", "layer.json", "layer.safetensors"})
        loaded = attn.load(self.folder / "layer.so", num_threads=1)
        self.assertEqual(loaded(self.x).tobytes(), kernel(self.x).tobytes())
        self.assertIn("layer_forward", (self.folder / "layer.h").read_text())
        self.assertIsNone(loaded.report.json)
        for method in (loaded.check, loaded.bench, loaded.save):
            with self.assertError("expected a kernel from attn.compile"):
                method("x.so")

        state = weights_of(kernel, 1)
        kernel.load_state_dict(state)
        kernel.save(self.folder / "other.so")
        expected = kernel(self.x).tobytes()
        self.assertEqual(attn.load(self.folder / "other.so")(self.x).tobytes(), expected)
        self.assertEqual(attn.load(self.folder / "layer.so", weights=state)(self.x).tobytes(), expected)
        self.assertEqual(attn.load(self.folder / "layer.so", weights=self.folder / "other.safetensors")(self.x).tobytes(), expected)
        (self.folder / "layer.safetensors").unlink()
        with self.assertError("expected weights", "WEIGHTS"):
            attn.load(self.folder / "layer.so")
        with self.assertError("no such file", "FILE"):
            attn.load(self.folder / "absent.so")
        with self.assertError("ends in .so"):
            kernel.save(self.folder / "layer.txt")
        with self.assertError("x86-64-v9", "LEVEL"):
            attn.load(self.folder / "other.so", level="x86-64-v9")
        with self.assertError("expected one of its functions", "NAME"):
            attn.load(self.folder / "other.so", entry="backward")
        with self.assertError("expected the device"):
            attn.load(self.folder / "other.so", device="tpu")

    def test_weights(self):
        kernel = attn.compile(MODELS / "mha.pt2")
        before = kernel(self.x).tobytes()
        state = weights_of(kernel, 1)
        for change, pattern in (({"extra": self.x}, "extra"), ({"out_proj.bias": self.x}, "out_proj.bias"),
                                ({"out_proj.bias": np.zeros(64)}, "out_proj.bias"), ({"out_proj.bias": 3}, "out_proj.bias")):
            with self.subTest(pattern), self.assertRaisesRegex((attn.Error, TypeError), pattern):
                kernel.load_state_dict({**state, **change})
        with self.assertError("qkv_proj.weight|out_proj"):
            kernel.load_state_dict({"out_proj.bias": state["out_proj.bias"]})
        self.assertEqual(kernel(self.x).tobytes(), before)

    def test_wrong_models(self):
        (self.folder / "bad.mlir").write_text("func.func @f() {")
        (self.folder / "bad.pt2").write_text("not a zip")
        for path, pattern, status in ((self.folder / "bad.mlir", "bad.mlir", "COMPILE"), (self.folder / "bad.pt2", "bad.pt2", "COMPILE"),
                                      ("absent.pt2", "no such file", "FILE"), ("m.onnx", "does not read yet", "FILE"),
                                      ("m.txt", "expected a file that ends in", "FILE"), (3, "expected a module", "USAGE")):
            with self.subTest(path), self.assertError(pattern, status):
                attn.compile(path)
        with self.assertError("x86-64-v9", "COMPILE"):
            attn.compile(MODELS / "mha.pt2", target="x86-64-v9")
        with self.assertError("schedule", "COMPILE"):
            attn.compile(MODELS / "mha.pt2", schedule="fast")
        if not importlib.util.find_spec("torch"):
            with self.assertError("expected PyTorch, to find the GPU of the device 'cuda'", "DEVICE"):
                attn.compile(MODELS / "mha.pt2", device="cuda")

    def test_cache(self):
        cache = self.folder / "cache"
        code = "import attn, sys; print(attn.compile(sys.argv[1]).path)"
        run = lambda: subprocess.run([sys.executable, "-c", code, MODELS / "mha.pt2"], env={**os.environ, "ATTN_CACHE": str(cache)},
                                     check=True, capture_output=True, text=True).stdout
        first = run()
        times = {path: path.stat().st_mtime_ns for path in cache.rglob("*.so")}
        self.assertEqual(run(), first)
        self.assertEqual(times, {path: path.stat().st_mtime_ns for path in cache.rglob("*.so")})
        self.assertNotEqual(attn.compile(MODELS / "mha.pt2", cache=False).path, attn.compile(MODELS / "mha.pt2").path)
        kernel = attn.compile(MODELS / "mha.pt2")
        attn.clear_cache()
        self.assertFalse(os.path.exists(kernel.path))
        kernel(self.x)

    def test_damaged_cache(self):
        expected = attn.compile(MODELS / "mha.pt2")(self.x)
        for name, data in (("layer.so", b""), ("report.json", b"{"), ("report.json", None), ("layer.safetensors", b"x"), ("sums.json", None)):
            with self.subTest(name=name, data=data):
                place = pathlib.Path(attn.compile(MODELS / "mha.pt2").path).parent
                (place / name).unlink()
                if data is not None:
                    (place / name).write_bytes(data)
                self.assertTrue((attn.compile(MODELS / "mha.pt2")(self.x) == expected).all())


class Reports(Case):
    def test_report(self):
        report = attn.compile(MODELS / "gpt2.pt2").report
        self.assertIn("attention fused", str(report))
        self.assertEqual(report.attentions[0]["mask"], "#attn.causal")
        self.assertEqual(report.json["fused"], 1)
        self.assertIn("modeling_gpt2.py", report._repr_html_())
        picture = report.picture(hidden_states_1=64)
        self.assertIn("<svg", picture._repr_svg_())
        self.assertRegex(str(picture), r"64 queries, 64 keys(.|\n)*mask #attn.causal(.|\n)*skipped")
        for sizes, got in (({}, "none"), ({"x": 3}, "x")):
            with self.assertError(rf"expected the sizes that are not fixed, as in picture\(hidden_states_1=64\), got {got}"):
                report.picture(**sizes)
        with self.assertError("hidden_states_1 of at least 1, got 0"):
            report.picture(hidden_states_1=0)
        with self.assertError("expected no sizes, because all are fixed, got x"):
            attn.compile(MODELS / "mha.pt2").report.picture(x=3)

    def test_skipped_tiles(self):
        """The table and the text of a report give the same share of tiles that a call may skip."""
        for mask, share in ((window, "known at the call"), (lengths, "known at the call")):
            report = attn.attention(heads=1, head_size=8, mask=mask).report
            self.assertIn(f"tiles skipped: {share}", str(report))
            self.assertIn(f"<td>{share}</td>", report._repr_html_())
        self.assertNotIn("known at the call", attn.compile(MODELS / "mha.pt2").report._repr_html_())

    def test_bench(self):
        kernel = attn.compile(MODELS / "mha.pt2")
        table = kernel.bench(np.load(MODELS / "mha.x.npy"), against=(), seconds=0.05)
        self.assertRegex(str(kernel.report), r"measured: [0-9.]+ ms a call, 16 tiles run, 0 skipped")
        self.assertIn("measured", kernel.report._repr_html_())
        self.assertGreater(table["attn"], 0)
        self.assertEqual(table.rows[0][0], "attn")
        self.assertEqual(table.failures, {})
        self.assertIn("attn", table.title + str(table))
        self.assertIn("<table>", table._repr_html_())
        with self.assertError("got 'tensorflow'"):
            attn.compile(MODELS / "mha.pt2").bench(np.load(MODELS / "mha.x.npy"), against=("tensorflow",))


@attn.mask
def window(b, h, q, k):
    return (k <= q) & (q - k < 9)


@attn.mask
def lengths(b, h, q, k, n):
    return k < n[b]


@attn.mask
def documents(b, h, q, k, ids):
    return (ids[b, q] == ids[b, k]) & (k <= q)


@attn.mask
def given(b, h, q, k, keep: bool):
    return keep[b, q, k] | (q % 5 == 0)


@attn.mask
def dilated(b, h, q, k):
    return (abs(q - k) % 3 == h % 3) ^ ((q - k) // 4 > 2)


class Masks(Case):
    def check(self, mask, arrays, kept, found=None, heads=4, key_heads=4, queries=33, keys=50, **options):
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((2, h, n, 16), np.float32) for h, n in ((heads, queries), (key_heads, keys), (key_heads, keys)))
        kernel = attn.attention(mask=mask, heads=heads, key_heads=key_heads, head_size=16, **options)
        self.assertNear(kernel(q, k, v, *arrays), reference(q, k, v, kept), 3e-6)
        self.assertEqual(kernel.report.attentions[0].get("mask"), found)

    def test_masks(self):
        places = coordinates(2, 4, 33, 50)
        rng = np.random.default_rng(1)
        ids, keep = np.sort(rng.integers(0, 4, (2, 33))), rng.random((2, 33, 50)) < 0.5
        b, h, q, k = places
        n = np.array([0, 31])
        self.check(None, (), True, key_heads=2)
        self.check(window, (), window(*places), "#attn.window<left = 8, right = 0>", key_heads=2)
        self.check(lengths, (n,), k < n[b], "#attn.lengths<0>")
        # An array that is indexed both by q and by k requires as many queries as keys.
        self.check(documents, (ids,), documents(*coordinates(2, 4, 33, 33), ids), "#attn.and<[#attn.causal, #attn.dense<0>]>", key_heads=2, keys=33)
        self.check(lambda b, h, q, k: abs(q - k) < 6, (), abs(q - k) < 6, "#attn.window<left = 5, right = 5>")
        self.check(given, (keep,), given(*places, keep), "#attn.dense<0>", key_heads=1)
        self.check(dilated, (), dilated(*places), "#attn.dense<0>", key_heads=2)

    def test_options(self):
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((2, 7, 2, size), np.float32) for size in (8, 8, 12))
        kernel = attn.attention(heads=2, head_size=8, value_size=12, scale=8 ** -0.5, layout="bshd")
        expected = reference(*(x.transpose(0, 2, 1, 3) for x in (q, k, v))).transpose(0, 2, 1, 3)
        self.assertNear(kernel(q, k, v), expected)
        half = attn.attention(heads=2, head_size=8, value_size=12, layout="bshd", dtype="float16")
        self.assertNear(half(*(x.astype(np.float16) for x in (q, k, v))).astype(np.float64), expected, 3e-3)
        capped = attn.attention(heads=2, head_size=8, value_size=12, layout="bshd", softcap=0.5, mask=lambda b, h, q, k: k <= q)
        q, k, v = (x.transpose(0, 2, 1, 3).astype(np.float64) for x in (q, k, v))
        scores = np.where(np.tri(7, dtype=bool), 0.5 * np.tanh(q @ k.swapaxes(2, 3) * 8 ** -0.5 / 0.5), -np.inf)
        p = np.exp(scores)
        expected = (p / p.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)
        self.assertNear(capped(*(np.ascontiguousarray(x.transpose(0, 2, 1, 3), np.float32) for x in (q, k, v))), expected)
        self.assertEqual(capped.report.attentions[0]["mask"], "#attn.causal")
        for options, pattern in (({"heads": 0}, "heads of at least 1"), ({"key_heads": 3}, "key_heads divides"),
                                 ({"dtype": "int8"}, "dtype among"), ({"layout": "sbhd"}, "layout among"),
                                 ({"softcap": -1}, "softcap above 0"), ({"scale": float("nan")}, "a finite scale, got nan")):
            with self.subTest(pattern), self.assertError(pattern):
                attn.attention(**{"heads": 4, "head_size": 8, **options})

    def test_numbers_of_numpy(self):
        q, k = np.ogrid[:8, :8]
        self.check_picture(attn.plot_mask(lambda b, h, q, k: (np.int64(3) > np.abs(q - k)) & np.bool_(True), 8), [abs(q - k) < 3])
        self.check_picture(attn.plot_mask(lambda b, h, q, k: np.logical_and(np.int64(8) - q >= k, q % np.int64(2) == 0), 8),
                           [(8 - q >= k) & (q % 2 == 0)])

    def test_wrong_masks(self):
        table, ends = np.ones((8, 8), bool), np.array([3, 5])
        for function, pattern in (
                (lambda q, k: k <= q, "expected a function of b, h, q and k"),
                (lambda b, h, q, k: k <= q and q < 9, "traced once"),
                (lambda b, h, q, k: q + k, "expected a condition, got a whole number"),
                (lambda b, h, q, k: 3, "expected a condition, got 3"),
                (lambda b, h, q, k: q % k == 0, "positive whole number to divide by, got one that depends"),
                (lambda b, h, q, k, ids: k <= q, "does not"),
                (lambda b, h, q, k, ids: ids[q + 1] == k, "to be different coordinates"),
                (lambda b, h, q, k: (k <= q) + 1 == 2, "expected a whole number, got a condition"),
                (lambda b, h, q, k: table[q, k], "to be a further parameter of the function"),
                (lambda b, h, q, k: k < ends[b], "to be a further parameter of the function"),
                (lambda b, h, q, k: k < ends.tolist()[b], "to be a further parameter of the function"),
                (lambda b, h, q, k: q - k < ends, "got an array that is not a parameter"),
                (lambda b, h, q, k: int(q) < 3, "the function is traced once"),
                (lambda b, h, q, k: np.sqrt(q - k) < 5, "expected .* got numpy.sqrt"),
                (lambda b, h, q, k: np.where(q < k, q, k) < 5, "expected .* got numpy.where"),
                (lambda b, h, q, k: (q - k) / 2 < 5, "got /; use // for whole numbers"),
                (lambda b, h, q, k: 5 // (q + 1) < 5, "positive whole number to divide by, got one that depends"),
                (lambda b, h, q, k: (q - k) // 0.5 < 5, "positive whole number to divide by, got 0.5"),
                (lambda b, h, q, k: (q - k) ** 2 < 5, r"got \*\*"),
                (lambda b, h, q, k: (q >> 2) == (k >> 2), "got >>; use //"),
                (lambda b, h, q, k: q - k < 16.5, "expected a whole number, got 16.5"),
                (lambda b, h, q, k, w: q - k < w, r"expected indices of the array 'w', such as w\[b\]"),
                (lambda b, h, q, k, w: w, "expected indices of the array 'w'"),
                (lambda b, h, q, k, w=16: q - k < w, "expected parameters without default values for the arrays, got 'w=16'"),
                (lambda b, h, q, k, *, w: q - k < w[b], "expected parameters without default values for the arrays, got 'w'"),
                (lambda b, h, q, k, *w: q - k < 3, r"got '\*w'")):
            with self.subTest(pattern), self.assertError(pattern):
                attn.attention(mask=function, heads=1, head_size=8)

    def test_plot_mask(self):
        picture = attn.plot_mask(window, 64)
        self.assertIn("#attn.window", picture.text)
        self.assertEqual(str(picture), picture.text)
        self.assertIn("<svg", picture.svg)
        self.assertEqual(picture._repr_svg_(), picture.svg)
        with tempfile.TemporaryDirectory() as folder:
            picture.save(f"{folder}/mask.svg")
            self.assertEqual(pathlib.Path(f"{folder}/mask.svg").read_text(), picture.svg)
            with self.assertError("ends in .svg, got .*mask.png"):
                picture.save(f"{folder}/mask.png")
        self.assertIn("#attn.lengths", str(attn.plot_mask(lengths, 16, 32, np.array([20]))))

    def check_picture(self, picture, keeps):
        """Checks each cell of the text against the pairs that the masks of the pictures keep."""
        rows = [line.split()[-1] for line in str(picture).splitlines() if re.match(r"(queries)? +\d+ \S+$", line)]
        cells = np.array([list(row) for row in rows]).reshape(len(keeps), -1, len(rows[0]))
        for of_one, keep in zip(cells, keeps):
            height, width = -(-keep.shape[0] // 48), -(-keep.shape[1] // 80)
            keep = np.add.reduceat(keep.astype(int), range(0, keep.shape[0], height), 0)
            keep = np.add.reduceat(keep, range(0, keep.shape[1], width), 1)
            self.assertTrue(((of_one == "▒") | (of_one == "█"))[keep > 0].all())
            self.assertTrue(((of_one == "░") | (of_one == "·"))[keep == 0].all())

    def test_plot_any_mask(self):
        """The picture shows conditions that no named mask states, and attn skips the tiles that these hide."""
        q, k = np.ogrid[:100, :100]
        ids = np.repeat([[0, 1, 2, 3]], 25, axis=1)
        picture = attn.plot_mask(documents, 100, 100, ids)
        self.check_picture(picture, [(ids[0][:, None] == ids[0]) & (k <= q)])
        self.assertRegex(str(picture), r"mask #attn.and<\[#attn.causal, #attn.dense<0>\]> \(attn skips tiles because of this mask alone\)\n"
                         r"tiles: \d+ full, \d+ partial, [1-9]\d* skipped")
        self.check_picture(attn.plot_mask(documents, 100, 100, np.concatenate([ids, 0 * ids])),
                           [(ids[0][:, None] == ids[0]) & (k <= q), k <= q])
        self.check_picture(attn.plot_mask(lambda b, h, q, k: ((q - k) % 4 == 0) & (k <= q), 100), [((q - k) % 4 == 0) & (k <= q)])
        self.check_picture(attn.plot_mask(lambda b, h, q, k: (k <= q) & (q - k < 8 * (h + 1)), 100, heads=2),
                           [(k <= q) & (q - k < 8 * n) for n in (1, 2)])
        self.check_picture(attn.plot_mask(lambda b, h, q, k: ~(b % 2 == 0) | (k <= q), 100), [k <= q])
        self.check_picture(attn.plot_mask(window, 700, 90), [window(0, 0, *np.ogrid[:700, :90])])
        keep = np.random.default_rng(0).random((2, 33, 50)) < 0.05
        self.check_picture(attn.plot_mask(given, 33, 50, keep), [keep[b] | (np.arange(33)[:, None] % 5 == 0) for b in range(2)])
        self.check_picture(attn.plot_mask(lengths, 20, 90, np.array([0, 70, 90])), [np.arange(90) < np.full((20, 1), n) for n in (0, 70, 90)])
        self.assertIn("2 more pictures are not shown", str(attn.plot_mask(lengths, 8, 16, np.arange(10))))
        for arrays, pattern in (((), "expected the array 'ids', which the mask reads, but it is missing"),
                                ((ids, ids), r"expected 1 arrays \(ids\), got 2"), ((ids[0],), "'ids' to have 2 dimensions \\(b, q\\), got 1"),
                                ((ids[:, :99],), r"'ids' to have the sizes 1 \(b\), 100 \(q\), got \[1, 99\]")):
            with self.subTest(pattern), self.assertError(pattern):
                attn.plot_mask(documents, 100, 100, *arrays)
        with self.assertError("at most 67108864 pairs"):
            attn.plot_mask(window, 1 << 16)


if __name__ == "__main__":
    unittest.main()
