"""with_torch.py EXAMPLES: tests the package attn with PyTorch and transformers. EXAMPLES is the folder examples."""
import copy
import dataclasses
import pathlib
import sys
import tempfile
import unittest
import warnings

EXAMPLES = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(EXAMPLES))

import attn
import attn.dynamo
import attn.transformers
import torch
import transformers
from multi_head_attention import MultiHeadAttention


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def assertNear(self, got, expected, tolerance=2e-6):
        self.assertEqual(got.shape, expected.shape)
        self.assertEqual(got.dtype, expected.dtype)
        if got.numel():
            error = (got.double() - expected.double()).abs().max().item()
            self.assertLessEqual(error, tolerance * max(1, expected.abs().max().item()))

    def assertError(self, pattern):
        return self.assertRaisesRegex(attn.Error, pattern)


class Pair(torch.nn.Module):
    """A module with several kinds of arguments and results."""

    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(32, 4)
        self.register_buffer("shift", torch.tensor(2.0), persistent=False)

    def forward(self, x, others, mask=None, *, scale=1.0, flag=False):
        y = self.attention(x) * scale + others["a"] + self.shift
        return {"sum": y + others["list"][0], "both": (y, None, x if flag else -x), "number": 3, "size": x.shape[1]}


class Modules(Case):
    def setUp(self):
        super().setUp()
        self.module = MultiHeadAttention(64, 8).eval()
        self.x = torch.randn(2, 14, 64)
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)

    def test_sizes(self):
        kernel = attn.compile(self.module, (self.x,), dynamic={"x": {0: "B", 1: "S"}})
        for batch, length in ((2, 14), (1, 1), (1, 2), (3, 77)):
            x = torch.randn(batch, length, 64)
            self.assertNear(kernel(x), self.module(x))
        for batch, length in ((0, 3), (3, 0)):
            self.assertEqual(kernel(torch.zeros(batch, length, 64)).shape, (batch, length, 64))
        self.assertLess(kernel.check(self.x), 1e-5)

    def test_types(self):
        for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
            module = copy.deepcopy(self.module).to(dtype)
            x = self.x.to(dtype)
            kernel = attn.compile(module, (x,))
            expected = copy.deepcopy(module).float()(x.float()).to(dtype)
            self.assertNear(kernel(x), expected, tolerance)
            self.assertNear(kernel(self.x, copy=True), expected, tolerance)
            self.assertLess(kernel.check(x), 1e-2)
            with self.assertError("error"):
                kernel.check(x, tolerance=1e-5)

    def test_errors(self):
        with self.assertError("call module.eval"):
            attn.compile(MultiHeadAttention(64, 8), (self.x,))
        half_trained = copy.deepcopy(self.module)
        half_trained.dropout.train()
        with self.assertError("dropout in training mode"):
            attn.compile(half_trained, (self.x,))
        with self.assertError("names of arguments \\(x\\), got 'y'"):
            attn.compile(self.module, (self.x,), dynamic={"y": {0: "B"}})
        with self.assertError("expected the arguments of forward"):
            attn.compile(self.module, (self.x, self.x))
        with self.assertError("torch.export cannot export"):
            attn.compile(self.module, (torch.randn(2, 14, 63),))
        kernel = attn.compile(self.module, (self.x,))
        with torch.enable_grad(), self.assertError("without gradients"):
            kernel(self.x.clone().requires_grad_())
        with self.assertError("expected float32, got float64"):
            kernel(self.x.double())
        with self.assertError("contiguous"):
            kernel(self.x.transpose(0, 1).contiguous().transpose(0, 1))

    def test_ranges_of_sizes(self):
        class Sliced(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("tril", torch.tril(torch.ones(64, 64)))

            def forward(self, x, others):
                s = x.shape[1]
                scores = (x @ x.transpose(-1, -2)).masked_fill(self.tril[:s, :s] == 0, float("-inf"))
                return torch.softmax(scores, -1) @ x + others["a"]

        module, x = Sliced().eval(), torch.randn(2, 14, 64)
        for size in ("S", ("S", 2, 64), torch.export.Dim("S", max=64)):
            with self.assertError("cannot export Sliced for all sizes; .* as \\('S', 2, 63\\) in place of the name"):
                attn.compile(module, (x, {"a": x}), dynamic={"x": {1: size}, "others": {"a": {1: size}}})
        for size, other in ((("S", 2, 63), "S"), ("S", ("S", 2, 63)), (("S", 2, 63), ("S", 2, 63)), (torch.export.Dim("S", max=63),) * 2):
            kernel = attn.compile(module, (x, {"a": x}), dynamic={"x": {-2: size}, "others": {"a": {1: other}}})
            for length in (1, 14, 63):
                y = torch.randn(2, length, 64)
                self.assertNear(kernel(y, {"a": y}), module(y, {"a": y}))
            with self.assertError("expected size in \\[0, 63\\] in dimension 1, got 64"):
                kernel(torch.randn(2, 64, 64), {"a": torch.randn(2, 64, 64)})
        kernel = attn.compile(self.module, (self.x,), dynamic={"x": ("B", 14, 64)})  # a size for each dimension
        self.assertEqual(kernel(torch.randn(5, 14, 64)).shape, (5, 14, 64))
        for dynamic, pattern in (
                ({"x": {5: "B"}}, "dimensions of the argument 'x' from 0 to 2, because its rank is 3, got 5"),
                ({"others": {"a": {"S": 1}}}, "dimensions of the argument 'others\\['a'\\]' from 0 to 2, .* got 'S'"),
                (True, "expected a dictionary with the sizes that may change, such as {'x': {0: 'B'}}, got True"),
                ({"x": {1: ("S", 2)}}, "expected a name and the least and greatest size, such as \\('S', 2, 256\\), got \\('S', 2\\)"),
                ({"x": {1: ("S", 9, 4)}}, "expected a name and the least and greatest size"),
                ({"x": {1: ("S", 2, 9)}}, "expected 'S' from 2 to 9, got 14 in dimension 1 of the argument 'x'"),
                ({"x": {0: "B"}, "others": {"a": {0: "B"}}}, "an example with at least 2 as 'B', .* got 1 in dimension 0 of the argument 'x'"),
                ({"x": {0: ("S", 2, 9), 1: ("S", 2, 20)}}, "expected one range of 'S', got \\(2, 9\\) and \\(2, 20\\)")):
            example = x[:1] if "got 1" in pattern else x
            with self.subTest(dynamic=dynamic), self.assertError(pattern):
                attn.compile(module, (example, {"a": example}), dynamic=dynamic)

    def test_masks_with_tensors(self):
        table = torch.ones(8, 8, dtype=torch.bool)
        for function, pattern in ((lambda b, h, q, k: table[q, k], "to be a further parameter of the function"),
                                  (lambda b, h, q, k: torch.abs(q - k) < 5, "got torch's abs")):
            with self.assertError(pattern):
                attn.attention(mask=function, heads=1, head_size=8)
        width = torch.tensor(5)
        kernel = attn.attention(mask=lambda b, h, q, k: (k <= q) & (q - k < width), heads=1, head_size=8)
        self.assertEqual(kernel.report.attentions[0]["mask"], "#attn.window<left = 4, right = 0>")

    def test_wrong_examples(self):
        with self.assertError("expected a tuple of example arguments, such as \\(x,\\), got an array"):
            attn.compile(self.module, self.x)
        with self.assertError("expected a tuple of example arguments, such as \\(x,\\), got a dictionary"):
            attn.compile(self.module, {"x": self.x})
        with self.assertError("expected a dictionary of example keyword arguments, got an array"):
            attn.compile(self.module, (), self.x)

        for wrong, got in ((self.x.to("meta"), "a tensor on the device meta"), (self.x.to_sparse(), "a tensor of layout torch.sparse_coo; call x.to_dense")):
            with self.assertError("expected the example argument 'x' in memory, got " + got):
                attn.compile(self.module, (wrong,))
            with self.assertError("argument 'x' expected an array of numbers in memory, got " + got):
                attn.compile(self.module, (self.x,))(wrong)
            with self.assertError("argument 'x' expected an array of numbers in memory, got " + got):
                attn.compile(EXAMPLES / "models" / "mha.pt2")(wrong)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(self.module, (self.x,))
        with self.assertError("expected a module of Python, got one of torch.jit"):
            attn.compile(traced, (self.x,))

        class Dropout(torch.nn.Module):
            def forward(self, x):
                return torch.nn.functional.dropout(torch.softmax(x @ x.transpose(-1, -2), -1), 0.1) @ x

        with self.assertError(r"with_torch.py:\d+: expected a dropout that is off .* F.dropout needs training=self.training"):
            attn.compile(Dropout().eval(), (self.x,))
        with torch.autocast("cpu"), self.assertError("expected torch.autocast to be off"):
            attn.compile(self.module, (self.x,))

    def test_arguments_and_results(self):
        module = Pair().eval()
        x, a, b = torch.randn(3, 2, 5, 32).unbind()
        kernel = attn.compile(module, (x, {"a": a, "list": [b]}), {"scale": 2.0})
        expected = module(x, {"a": a, "list": [b]}, scale=2.0)
        for got in (kernel(x, {"a": a, "list": [b]}, scale=2.0), kernel(x, others={"a": a, "list": [b]}, mask=None, scale=2.0)):
            self.assertEqual(list(got), ["sum", "both", "number", "size"])
            self.assertEqual((got["number"], got["size"]), (3, 5))
            self.assertNear(got["sum"], expected["sum"])
            self.assertNear(got["both"][0], expected["both"][0])
            self.assertIsNone(got["both"][1])
            self.assertNear(got["both"][2], -x)
        with self.assertError("argument 'scale': expected 2.0, the value at compile time, got 3.0"):
            kernel(x, {"a": a, "list": [b]}, scale=3.0)
        with self.assertError("argument 'others\\['a'\\]': expected an array or a tensor, got None"):
            kernel(x, {"a": None, "list": [b]}, scale=2.0)
        with self.assertError("argument 'others': expected 2 parts, as at compile time, got 3"):
            kernel(x, {"a": a, "list": [b, b]}, scale=2.0)
        with self.assertError("expected the arguments of forward"):
            kernel(x)

    def test_repeated_examples(self):
        """torch.export merges arguments that are the same tensor, so attn passes copies to torch.export."""

        class Apart(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(5, 8))

            def forward(self, q, k, v, more=(), *, last):
                return torch.softmax(q @ k.transpose(-1, -2), -1) @ v + 2 * more[0]["a"] + 3 * more[1] + 4 * last + self.weight

        module = Apart().eval()
        x, one = torch.randn(2, 5, 8), torch.randn(4, 5, 8)[1:3]
        q, k, v, a, b, c = torch.randn(6, 2, 5, 8).unbind()
        expected = module(q, k, v, ({"a": a}, b), last=c)
        for example in (x, one, x.transpose(0, 1).contiguous().transpose(0, 1)):
            kernel = attn.compile(module, (example, example, example, ({"a": example}, example)), {"last": example})
            self.assertNear(kernel(q, k, v, ({"a": a}, b), last=c), expected)
        weight = module.weight.detach().expand(1, 5, 8)
        kernel = attn.compile(module, (weight, weight, weight, ({"a": module.weight}, module.weight)), {"last": weight})
        q, k, v, a, b, c = torch.randn(6, 1, 5, 8).unbind()
        self.assertNear(kernel(q, k, v, ({"a": a[0]}, b[0]), last=c), module(q, k, v, ({"a": a[0]}, b[0]), last=c))
        with self.assertError("exported with a different tensor for each argument"):
            attn.compile(torch.export.export(module, (x, x, x, ({"a": a}, b)), {"last": c}))

    def test_omitted_arguments(self):
        """An argument that a call omits has forward's default value, not the value at compile time."""

        class Flag(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = MultiHeadAttention(64, 8)

            def forward(self, x, causal=True, **more):
                y = self.attention(x) * (2 if more.get("double") else 1)
                return y if causal else -y

        module = Flag().eval()
        causal = "argument 'causal': expected False, the value at compile time, got True"
        for args, kwargs in (((self.x, False), {}), ((self.x,), {"causal": False}), ((), {"x": self.x, "causal": False})):
            kernel = attn.compile(module, args, kwargs)
            for call in (kernel, kernel.as_module(module)):
                self.assertNear(call(self.x, False), module(self.x, False))
                self.assertNear(call(self.x, causal=False), module(self.x, False))
                for wrong in ((self.x,), (self.x, True)):
                    with self.assertError(causal):
                        call(*wrong)
            with self.assertError(causal):
                kernel.check(self.x)
        kernel = attn.compile(module, (self.x,), {"double": True})
        self.assertNear(kernel(self.x, double=True), module(self.x, double=True))
        for call in (kernel, kernel.as_module(module)):
            with self.assertError("argument 'double': expected True, the value at compile time, but it is missing"):
                call(self.x)
            with self.assertError("argument 'double': expected True, the value at compile time, got False"):
                call(self.x, double=False)
            with self.assertError("argument 'triple': expected no such argument, as at compile time, got 1"):
                call(self.x, double=True, triple=1)
            with self.assertError("argument 'causal': expected True, the value at compile time, got 1"):
                call(self.x, 1, double=True)
        kernel = attn.compile(module, (self.x,))
        with self.assertError("argument 'x': expected an array or a tensor, got a list"):
            kernel([self.x], True)

    def test_numbers(self):
        """A result that is a number stays a number."""

        class Numbers(torch.nn.Module):
            def forward(self, x):
                return x.shape[1]

        class Constants(torch.nn.Module):
            def forward(self, x):
                return 7, x * 2, 0.5, True, "text", None, x.shape[1]

        kernel = attn.compile(Numbers().eval(), (self.x,), dynamic={"x": {1: "S"}})
        self.assertEqual(type(kernel(self.x)), int)
        self.assertEqual(kernel(self.x[:, :5].contiguous()), 5)
        kernel = attn.compile(Constants().eval(), (self.x,), dynamic={"x": {1: "S"}})
        got = kernel(self.x)
        self.assertEqual([type(result) for result in got], [int, torch.Tensor, float, bool, str, type(None), int])
        self.assertEqual((got[0], *got[2:]), (7, 0.5, True, "text", None, 14))
        self.assertNear(got[1], 2 * self.x)

    def test_weights(self):
        kernel, other = attn.compile(self.module, (self.x,)), MultiHeadAttention(64, 8).eval()
        kernel.load_state_dict(other.state_dict())
        self.assertNear(kernel(self.x), other(self.x))
        with tempfile.TemporaryDirectory() as folder:
            kernel.save(f"{folder}/layer.so")
            self.assertTrue(torch.equal(attn.load(f"{folder}/layer.so")(self.x), kernel(self.x)))
        self.assertLess(kernel.check(self.x), 1e-5)
        other.out_proj.bias.add_(1)
        with self.assertError("changed in place"):
            kernel.check(self.x)
        for state, pattern in (({"a": self.x}, "got 'a'"), ({}, "expected 4 weights|expected a tensor, got none"),
                               ({**other.state_dict(), "out_proj.bias": self.x}, "out_proj.bias")):
            with self.subTest(pattern), self.assertError(pattern):
                kernel.load_state_dict(state)

    def test_values_in_code(self):
        """A mask in a buffer is part of the code, so its values must not change. Another mask gives other code."""

        class Causal(torch.nn.Module):
            def __init__(self, mask):
                super().__init__()
                self.register_buffer("mask", mask)
                self.linear = torch.nn.Linear(16, 16)

            def forward(self, x):
                scores = (x @ x.transpose(-1, -2)).masked_fill(self.mask == 0, float("-inf"))
                return torch.softmax(scores, -1) @ self.linear(x)

        x = torch.randn(1, 12, 16)
        lower, all_ones = torch.tril(torch.ones(12, 12)), torch.ones(12, 12)
        causal, full = (Causal(mask).eval() for mask in (lower, all_ones))
        kernel = attn.compile(causal, (x,))
        self.assertEqual(kernel.report.attentions[0]["mask"], "#attn.causal")
        self.assertNear(kernel(x), causal(x))
        self.assertNear(attn.compile(full, (x,))(x), full(x))
        kernel.load_state_dict({**full.state_dict(), "mask": lower})
        with self.assertError("the buffer 'mask'"):
            kernel.load_state_dict(full.state_dict())
        for persistent in (True, False):
            causal = Causal(lower.clone())
            causal.register_buffer("mask", causal.mask, persistent=persistent)
            kernel = attn.compile(causal.eval(), (x,))
            compiled = kernel.as_module(causal)
            self.assertNear(compiled(x), causal(x))
            causal.mask.mul_(1)  # increments the version counter, but changes no value
            self.assertNear(compiled(x), causal(x))
            causal.mask.fill_(1)
            with self.assertWarnsRegex(UserWarning, "runs in PyTorch, because .* the buffer 'mask'"):
                self.assertNear(compiled(x), causal(x))
            self.assertNear(compiled(x), causal(x))
            with self.assertError("the buffer 'mask'"):
                kernel.load_state_dict({**causal.state_dict(), "mask": causal.mask})
            causal.mask = lower.clone()
            self.assertNear(compiled(x), causal(x))
            if persistent:
                causal.load_state_dict(full.state_dict())
                self.assertNear(compiled(x), causal(x))

    def test_order_and_defaults(self):
        class Named(torch.nn.Module):
            def forward(self, parts, factor=2.0, shift=None, **more):
                return torch.softmax(parts["x"] @ parts["y"].transpose(-1, -2), -1) @ more["z"] * factor

        x, y, z = torch.randn(3, 2, 5, 8).unbind()
        module = Named().eval()
        kernel = attn.compile(module, ({"x": x, "y": y},), {"z": z})
        self.assertNear(kernel({"y": y, "x": x}, z=z), module({"x": x, "y": y}, z=z))
        self.assertNear(kernel({"x": x, "y": y}, factor=2.0, z=z), module({"x": x, "y": y}, z=z))
        with self.assertError("argument 'factor': expected 2.0, the value at compile time, got 3.0"):
            kernel({"x": x, "y": y}, factor=3.0, z=z)
        with self.assertError("structure|parts"):
            kernel({"x": x, "w": y}, z=z)

    def test_buffers(self):
        class Counter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = MultiHeadAttention(64, 8)
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x):
                self.calls.add_(1)
                return self.attention(x) * self.calls

        module = Counter().eval()
        kernel = attn.compile(module, (self.x,))
        expected = module.attention(self.x)
        self.assertNear(kernel(self.x), expected)
        self.assertNear(kernel(self.x), 2 * expected)
        self.assertEqual(kernel.buffers["calls"].item(), 2)
        self.assertEqual(module.calls.item(), 0)
        kernel.bench(self.x, seconds=0.01)
        self.assertEqual((kernel.buffers["calls"].item(), module.calls.item()), (2, 0))
        del kernel.buffers["calls"]
        with self.assertError("expected k.buffers to have 'calls'"):
            kernel(self.x)
        compiled = attn.compile(module, (self.x,)).as_module(module)
        compiled(self.x)
        self.assertEqual(module.calls.item(), 1)
        self.assertEqual(list(compiled.state_dict()), list(module.state_dict()))

    def test_complex_results(self):
        class Complex(torch.nn.Module):
            def forward(self, x):
                y = torch.softmax(x @ x.transpose(-1, -2), -1) @ x
                return torch.view_as_complex(y.reshape(2, 8, 4, 2))

        module, x = Complex().eval(), torch.randn(2, 8, 8)
        got, expected = attn.compile(module, (x,))(x), module(x)
        self.assertEqual(got.dtype, torch.complex64)
        self.assertNear(torch.view_as_real(got), torch.view_as_real(expected))

    def test_copies(self):
        kernel = attn.compile(self.module, (self.x,))
        with self.assertError("k.save"):
            copy.deepcopy(kernel)
        with self.assertError("on the device meta"):
            attn.compile(MultiHeadAttention(64, 8).to("meta").eval(), (self.x,))
        with self.assertError("expected a dictionary"):
            kernel.load_state_dict(None)
        self.assertNear(kernel(torch.nn.Parameter(self.x)), self.module(self.x))

    def test_no_attention(self):
        linear = torch.nn.Linear(64, 8).eval()
        report = attn.compile(linear, (self.x,)).report
        self.assertIn("no attention found", str(report))
        self.assertIn("no attention found", report._repr_html_())
        kernel = attn.compile(self.module, (self.x,))
        self.assertNotIn("no attention found", str(kernel.report) + kernel.report._repr_html_())

    def test_causal_tiles(self):
        class Causal(torch.nn.Module):
            def forward(self, x):
                return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)

        x = torch.randn(1, 2, 200, 16)
        report = attn.compile(Causal().eval(), (x,)).report
        share = str(report).partition("tiles skipped: ")[2].splitlines()[0]
        self.assertRegex(share, r"^\d+\.\d %$")
        self.assertIn(f"<td>{share}</td>", report._repr_html_())

    def test_no_weights(self):
        class Plain(torch.nn.Module):
            def forward(self, q, k, v):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        q, k, v = torch.randn(3, 2, 4, 9, 8).unbind()
        kernel = attn.compile(Plain().eval(), (q, k, v))
        self.assertNear(kernel(q, k, v), Plain()(q, k, v))
        with self.assertError("expected a function with weights|got 'a'"):
            kernel.load_state_dict({"a": q})

    def test_complex_weights(self):
        class Rotary(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("turn", torch.polar(torch.ones(8, 4), torch.randn(8, 4)))

            def forward(self, x):
                q = torch.view_as_real(torch.view_as_complex(x.reshape(2, 8, 4, 2)) * self.turn).flatten(2)
                return torch.softmax(q @ q.transpose(-1, -2), -1) @ x

        module, x = Rotary().eval(), torch.randn(2, 8, 8)
        self.assertNear(attn.compile(module, (x,))(x), module(x))

    def test_exported_program(self):
        program = torch.export.export(self.module, (self.x,))
        self.assertNear(attn.compile(program)(self.x), self.module(self.x))

    def test_as_module(self):
        compiled = attn.compile(self.module, (self.x,)).as_module(self.module)
        self.assertNear(compiled(self.x), self.module(self.x))
        self.module.out_proj.bias.add_(1)
        self.assertNear(compiled(self.x), self.module(self.x))
        self.module.load_state_dict(MultiHeadAttention(64, 8).state_dict())
        self.assertNear(compiled(self.x), self.module(self.x))
        with torch.enable_grad(), self.assertWarnsRegex(UserWarning, "runs in PyTorch, because a gradient is required"):
            compiled(self.x).sum().backward()
        self.assertIsNotNone(self.module.out_proj.weight.grad)
        with self.assertError("compiled from a module"):
            attn.compile(EXAMPLES / "models" / "mha.pt2").as_module(self.module)

    def test_as_module_copy(self):
        kernel = attn.compile(self.module, (self.x,))
        strided = self.x.transpose(1, 2).contiguous().transpose(1, 2)
        with self.assertError("contiguous"):
            kernel.as_module(self.module)(strided)
        compiled = kernel.as_module(self.module, copy=True)
        self.assertNear(compiled(strided), self.module(self.x))
        self.assertNear(compiled(self.x.double()), self.module(self.x))
        self.assertNear(copy.deepcopy(compiled)(strided), self.module(self.x))

    def test_as_module_copies(self):
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), attn.compile(self.module, (self.x,)).as_module(self.module)).eval()
        expected = model(self.x)
        other = copy.deepcopy(model)
        self.assertTrue(torch.equal(other(self.x), expected))
        other[1].out_proj.bias.add_(1)
        changed = other[1].layer(other[0](self.x))
        for _ in range(2):  # each module keeps its own weights
            self.assertNear(other(self.x), changed)
            self.assertTrue(torch.equal(model(self.x), expected))
        with tempfile.TemporaryDirectory() as folder:
            with self.assertError("cannot be pickled.* state_dict"):
                torch.save(model, f"{folder}/model.pt")
            torch.save(other.state_dict(), f"{folder}/state.pt")
            model.load_state_dict(torch.load(f"{folder}/state.pt"))
        self.assertNear(model(self.x), changed)

    def test_one_kernel_for_two_layers(self):
        layers = [self.module, MultiHeadAttention(64, 8).eval()]
        kernel = attn.compile(self.module, (self.x,))
        compiled = [kernel.as_module(layer) for layer in layers]
        for _ in range(2):
            for one, layer in zip(compiled, layers):
                self.assertNear(one(self.x), layer(self.x))
        kernel.load_state_dict(MultiHeadAttention(64, 8).state_dict())
        self.assertNear(compiled[0](self.x), self.module(self.x))

    def test_as_module_in_torch_compile(self):
        kernel = attn.compile(self.module, (self.x,), dynamic={"x": {1: "S"}})
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), kernel.as_module(self.module), torch.nn.GELU()).eval()
        for backend in ("eager", "inductor", "attn"):
            for mode in (torch.inference_mode, torch.no_grad):
                torch._dynamo.reset()
                compiled = torch.compile(model, backend=backend)
                for length in (14, 20, 33):
                    x = torch.randn(2, length, 64)
                    with self.subTest(backend, length=length), mode():
                        self.assertNear(compiled(x), model[2](self.module(model[0](x))))

    def test_bench(self):
        table = attn.compile(self.module, (self.x,)).bench(self.x, against=("eager", "onnxruntime"), seconds=0.05)
        self.assertEqual([row[0] for row in table.rows], ["attn", "eager", "onnxruntime"])
        self.assertEqual(table.failures, {})
        self.assertGreater(table["eager"], 0)

    def test_threads(self):
        kernel = attn.compile(self.module, (self.x,))
        expected = kernel(self.x)
        before = torch.get_num_threads()
        for count in (1, 3):
            torch.set_num_threads(count)
            self.assertTrue(torch.equal(kernel(self.x), expected))
        torch.set_num_threads(before)


def models():
    """Yields names, small models of transformers with random weights, and functions that make inputs of a length."""
    t = transformers
    sizes = dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=64, intermediate_size=128, vocab_size=100)

    def tokens(batch, length):
        return {"input_ids": torch.randint(0, 100, (batch, length))}

    yield "bert", t.BertModel(t.BertConfig(**sizes)), tokens
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(n_layer=2, n_head=4, n_embd=64, vocab_size=100, bos_token_id=1, eos_token_id=1)), tokens
    yield "llama", t.LlamaForCausalLM(t.LlamaConfig(num_key_value_heads=2, **sizes)), tokens
    sizes.pop("vocab_size")
    yield "vit", t.ViTModel(t.ViTConfig(image_size=64, **sizes)), lambda batch, length: {"pixel_values": torch.randn(2, 3, 64, 64)}


class Backend(Case):
    def setUp(self):
        super().setUp()
        torch._dynamo.reset()
        attn.dynamo.reports.clear()

    def test_models(self):
        for name, model, inputs in models():
            with self.subTest(name), torch.inference_mode():
                model.eval()
                torch._dynamo.reset()
                attn.dynamo.reports.clear()
                compiled = torch.compile(model, backend="attn")
                for batch, length in ((2, 16), (2, 24), (2, 33), (2, 50)):
                    x = inputs(batch, length)
                    options = {} if name == "vit" else {"use_cache": False} if name != "bert" else {}
                    self.assertNear(compiled(**x, **options)[0], model(**x, **options)[0], 5e-6)
                whole = [report for report in attn.dynamo.reports if "compiled as a whole" in report]
                # Dynamo compiles one graph for the first length, and another for all other lengths.
                self.assertEqual(len(whole), 1 if name == "vit" else 2, attn.dynamo.reports)

    def test_parts(self):
        class Mixed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = MultiHeadAttention(64, 8), MultiHeadAttention(64, 8)

            def forward(self, x):
                y = self.first(x) + x
                y = torch.fft.rfft(y, dim=-1).real[..., :1] * 0.1 + y  # an op that attn does not support
                return self.second(y), y.mean()

        module = Mixed().eval()
        compiled = torch.compile(module, backend="attn")
        with torch.inference_mode():
            for length in (14, 20, 33):
                x = torch.randn(2, length, 64)
                for got, expected in zip(compiled(x), module(x)):
                    self.assertNear(got, expected, 5e-6)
            module.first.out_proj.bias.add_(1)
            for got, expected in zip(compiled(x), module(x)):
                self.assertNear(got, expected, 5e-6)
        self.assertRegex(attn.dynamo.reports[0], "compiled in 2 parts: multi_head_attention.py:31 .*aten.fft_rfft.default")

    def test_weights_of_inference_mode(self):
        """Weights may be made in inference mode, although such tensors have no version counter."""
        x = torch.randn(2, 14, 64)
        with torch.inference_mode():
            module = MultiHeadAttention(64, 8).eval()
            self.assertNear(torch.compile(module, backend="attn")(x), module(x))
        self.assertIn("compiled as a whole", attn.dynamo.reports[-1])

    def test_options(self):
        module, x = MultiHeadAttention(64, 8).eval(), torch.randn(2, 14, 64)
        for options, tolerance in (({"schedule": "whole-scores"}, 2e-6), ({"schedule": "unfused", "target": "x86-64"}, 2e-6),
                                   ({"compute": "bf16"}, 2e-2)):
            torch._dynamo.reset()
            with torch.inference_mode():
                got = torch.compile(module, backend="attn", options=options)(x)
                self.assertNear(got, module(x), tolerance)
            self.assertRegex(attn.dynamo.reports[-1], "compiled as a whole: .*" + options.get("schedule", ""))
        for options, pattern in (({"options": {"tarrget": "native"}}, "\\(target, schedule, compute, fallback\\), got 'tarrget'"),
                                 ({"options": {"schedule": "fast"}}, "expected one of per-head, .*, got 'fast'"),
                                 ({"options": {"target": "avx9"}}, "got 'avx9'"), ({"mode": "max-autotune"}, "expected no mode")):
            torch._dynamo.reset()
            with self.subTest(pattern), torch.inference_mode():
                with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, pattern) as context:
                    torch.compile(module, backend="attn", **options)(x)
                self.assertIsInstance(context.exception.inner_exception, attn.Error)

    def test_transformer_encoder(self):
        """In inference mode, each encoder layer of PyTorch is one op, which attn decomposes."""
        x = torch.randn(2, 20, 64)
        ends = torch.tensor([20, 12])
        hidden = torch.ones(20, 20, dtype=torch.bool).triu(1)
        padding = torch.arange(20) >= ends[:, None]
        for options in ({}, {"norm_first": True, "activation": "gelu"}):
            layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, **options)
            model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
            for masks in ({}, {"mask": hidden}, {"src_key_padding_mask": padding}, {"mask": hidden, "src_key_padding_mask": padding}):
                torch._dynamo.reset()
                with self.subTest(masks=list(masks), options=options), torch.inference_mode():
                    got, expected = torch.compile(model, backend="attn")(x, **masks), model(x, **masks)
                    for of_got, of_expected, end in zip(got, expected, ends if "src_key_padding_mask" in masks else (20, 20)):
                        self.assertNear(of_got[:end], of_expected[:end], 5e-6)
                    self.assertIn("compiled as a whole", attn.dynamo.reports[-1])

    def test_changed_mask(self):
        """If a mask whose values are part of the code changes, the graph runs in PyTorch."""

        class Masked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.tril(torch.ones(12, 12)))

            def forward(self, x):
                return torch.softmax((x @ x.transpose(-1, -2)).masked_fill(self.mask == 0, float("-inf")), -1) @ x

        module, x = Masked().eval(), torch.randn(1, 12, 16)
        compiled = torch.compile(module, backend="attn")
        with torch.no_grad():
            self.assertNear(compiled(x), module(x))
            self.assertIn("compiled as a whole", attn.dynamo.reports[-1])
            module.mask.fill_(1)
            self.assertNear(compiled(x), module(x))

    def test_left(self):
        module = MultiHeadAttention(64, 8).eval()
        torch.compile(module, backend="attn")(torch.randn(2, 14, 64)).sum().backward()
        self.assertIn("a gradient is required", attn.dynamo.reports[-1])
        with torch.no_grad():
            linear = torch.nn.Linear(4, 4)
            x = torch.randn(2, 4)
            self.assertNear(torch.compile(linear, backend="attn")(x), linear(x))
        self.assertIn("no attention", attn.dynamo.reports[-1])

    def test_flex_attention(self):
        from torch.nn.attention.flex_attention import flex_attention

        class Flex(torch.nn.Module):
            def forward(self, q, k, v):
                q = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: torch.where(i >= j, score, -float("inf")))
                return torch.nn.functional.scaled_dot_product_attention(q, k, v)

        x = torch.randn(1, 2, 16, 16)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertNear(torch.compile(Flex(), backend="attn")(x, x, x), Flex()(x, x, x))
        self.assertIn("left to PyTorch, because it uses flex_attention", attn.dynamo.reports[-1])

    def test_vmap(self):
        f = torch.vmap(lambda t: torch.nn.functional.scaled_dot_product_attention(t, t, t))
        x = torch.randn(2, 3, 16, 16)
        with torch.no_grad():
            self.assertNear(torch.compile(f, backend="attn")(x), f(x))
        self.assertIn("left to PyTorch, because it uses torch.vmap", attn.dynamo.reports[-1])

    def test_called_directly(self):
        self.assertTrue(callable(attn.dynamo.backend))
        self.assertIn("attn", torch._dynamo.list_backends())


class Transformers(Case):
    def test_models(self):
        attn.transformers.register()
        for name, model, inputs in models():
            with self.subTest(name), torch.inference_mode(), warnings.catch_warnings():
                warnings.simplefilter("error")
                model.eval()
                for batch, length in ((2, 16), (1, 33)):
                    x = inputs(batch, length)
                    kept = torch.ones(1)
                    if "input_ids" in x and batch == 2:
                        x["attention_mask"] = torch.ones_like(x["input_ids"])
                        x["attention_mask"][0, :5] = 0
                    model.set_attn_implementation("eager")
                    expected = model(**x)[0]
                    model.set_attn_implementation("attn")
                    got = model(**x)[0]
                    if "attention_mask" in x:
                        got, expected = got[x["attention_mask"].bool()], expected[x["attention_mask"].bool()]
                    self.assertNear(got, expected, 5e-6)

    def test_generate(self):
        attn.transformers.register()
        _, model, inputs = list(models())[2]
        model.eval()
        x, texts = inputs(1, 7), []
        for kind in ("eager", "attn"):
            model.set_attn_implementation(kind)
            with torch.inference_mode():
                texts.append(model.generate(**x, max_new_tokens=8, do_sample=False, pad_token_id=0))
        self.assertTrue(torch.equal(*texts))

    def test_softcap_and_sinks(self):
        attn.transformers.register()
        sizes = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16, hidden_size=64, intermediate_size=128,
                     vocab_size=100, pad_token_id=0, bos_token_id=0, eos_token_id=0, sliding_window=8)
        gemma = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(attn_logit_softcapping=2.0, query_pre_attn_scalar=4, **sizes))
        oss = transformers.GptOssForCausalLM(transformers.GptOssConfig(num_local_experts=2, num_experts_per_tok=1, **sizes))
        for layer in oss.model.layers:
            layer.self_attn.sinks.data.normal_()
        attn.transformers._warned.clear()
        for model in (gemma.eval(), oss.eval()):
            for length in (5, 20):
                x = torch.randint(1, 100, (2, length))
                mask = torch.ones_like(x)
                mask[0, :3] = 0
                for options in ({}, {"attention_mask": mask}):
                    with self.subTest(type(model).__name__, options=list(options)), torch.inference_mode(), warnings.catch_warnings():
                        warnings.simplefilter("error" if model is gemma else "ignore")
                        model.set_attn_implementation("eager")
                        expected = model(x, **options).logits[mask.bool()]
                        model.set_attn_implementation("attn")
                        self.assertNear(model(x, **options).logits[mask.bool()], expected, 5e-6)
        self.assertEqual(attn.transformers._warned, {"s_aux is given"})
        gemma.set_attn_implementation("attn")
        with self.assertWarnsRegex(UserWarning, "a gradient is required"):
            got = gemma(x).logits
        gemma.set_attn_implementation("eager")
        self.assertNear(got, gemma(x).logits, 5e-6)

    def test_in_compiled_graphs(self):
        """torch.compile(backend="attn") compiles attn's own attention with the rest of the graph."""
        attn.transformers.register()
        for name, model, inputs in models():
            x = inputs(2, 16)
            model.eval().set_attn_implementation("eager")
            torch._dynamo.reset()
            with self.subTest(name), torch.inference_mode():
                expected = model(**x)[0]
                model.set_attn_implementation("attn")
                self.assertNear(torch.compile(model, backend="attn")(**x)[0], expected, 5e-6)
                self.assertIn("compiled as a whole", attn.dynamo.reports[-1])

    def test_fallback(self):
        attn.transformers.register()
        _, model, inputs = next(models())
        model.set_attn_implementation("attn")
        attn.transformers._warned.clear()
        with self.assertWarnsRegex(UserWarning, "runs in PyTorch, because a gradient is required"):
            model.eval()(**inputs(1, 8))[0].sum().backward()


if __name__ == "__main__":
    unittest.main()
