"""effects.py: tests that torch.compile(backend="attn") and as_module do not change what programs compute.

Each test stands for a class of programs: those that write to memory, whose weights change, whose results share memory,
and that run in regions such as torch.autocast.
"""
import copy
import unittest
import warnings

import attn
import attn.dynamo
import torch
import torch.nn.functional as F
from attn._attn import packed_bytes
from torch.nn.functional import scaled_dot_product_attention as attend


def unsupported(x):
    """An op that attn does not support, so that the graph is divided."""
    return torch.fft.rfft(x, dim=-1).real[..., :1] * 0.01 + x


class Layer(torch.nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(attend(q, k, v).transpose(1, 2).flatten(2))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        attn.dynamo.reports.clear()

    def assertNear(self, got, expected):
        self.assertEqual((got.shape, got.dtype, got.stride()), (expected.shape, expected.dtype, expected.stride()))
        tolerance = 1e-2 if got.dtype == torch.bfloat16 else 5e-6
        got, expected = got.detach(), expected.detach()
        torch.testing.assert_close(got, expected, atol=tolerance * max(1, expected.abs().nan_to_num(0, 0).max()), rtol=0)

    def compare(self, program, *inputs, calls=1, report=None, fallback="aot_eager"):
        """Compares calls of a module or function, its inputs after the calls, and its buffers, with those in PyTorch."""
        other = copy.deepcopy(program)
        others = copy.deepcopy(inputs)
        compiled = torch.compile(program, backend="attn", options={"fallback": fallback})
        for _ in range(calls):
            with torch.no_grad():
                got, expected = compiled(*inputs), other(*others)
            got, expected = ([leaf for leaf in torch.utils._pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
                             for values in ((got, inputs), (expected, others)))
            for one, two in zip(got, expected, strict=True):
                self.assertNear(one, two)
            self.assertEqual(sharing(got), sharing(expected))
            if isinstance(program, torch.nn.Module):
                for one, two in zip(program.state_dict().values(), other.state_dict().values(), strict=True):
                    self.assertNear(one, two)
        if report:
            self.assertRegex(attn.dynamo.reports[0], report)


def sharing(tensors):
    """For each tensor, the number of the first tensor with the same memory."""
    first = {}
    return [first.setdefault(tensor.untyped_storage().data_ptr(), i) for i, tensor in enumerate(tensors)]


class Writes(Case):
    def test_left_to_pytorch(self):
        def program(x):
            y = x * 2
            y.add_(1)
            return y + 1, torch.fft.rfft(x).real

        self.compare(program, torch.zeros(2, 4), report="left to PyTorch")

    def test_between_parts(self):
        """A write to a tensor that PyTorch computes stays between the parts that read the tensor before and after."""

        def program(x, cache):
            y = attend(x, x, x)
            z = unsupported(y)
            before = attend(z, z, z)
            z.mul_(2)
            z[:, 1:3] = 0
            cache[:, :1] += z[:, :1]
            after = attend(z, cache, cache)
            torch.add(before, after, out=y)
            return y, before, after, z

        self.compare(program, torch.randn(2, 7, 8), torch.randn(2, 7, 8), calls=2, report="compiled in [23] parts")

    def test_within_a_part(self):
        """A part may write to memory that it allocates."""

        def program(x, bias):
            scores = x @ x.transpose(-1, -2)
            scores += bias
            scores.masked_fill_(torch.ones(7, 7, dtype=torch.bool).triu(1), -float("inf"))
            y = torch.softmax(scores, -1) @ x
            y.add_(x)
            return unsupported(y), scores

        self.compare(program, torch.randn(2, 7, 8), torch.randn(7, 7), report="compiled in 1 parts")

    def test_to_views(self):
        def program(x):
            y = attend(x, x, x)
            view = y.transpose(1, 2)[:, 2:4]
            view.mul_(3)
            first, second = y.chunk(2, -1)
            second.copy_(first.flip(1))
            return y, view, first

        self.compare(program, torch.randn(2, 7, 8), report="compiled as a whole")

    def test_caches(self):
        class Decoder(torch.nn.Module):
            def __init__(self, order):
                super().__init__()
                self.order = order
                self.register_buffer("cache", torch.zeros(1, 2, 8, 16).permute(order).contiguous().permute([order.index(i) for i in range(4)]))

            def forward(self, q, k, position):
                self.cache.index_copy_(2, position, k)
                return attend(q, self.cache, self.cache, torch.arange(8) <= position[:, None])

        for order, report in (((0, 1, 2, 3), "compiled as a whole"), ((0, 2, 1, 3), "left to PyTorch|compiled in 1 parts")):
            torch._dynamo.reset()
            attn.dynamo.reports.clear()
            plain, module = Decoder(order), Decoder(order)
            step = torch.compile(module, backend="attn", options={"fallback": "aot_eager"})
            with torch.no_grad():
                for positions in ([0, 1, 2], [3], [4], [6]):
                    q, k = torch.randn(2, 1, 2, len(positions), 16)
                    self.assertNear(*(f(q, k, torch.tensor(positions)) for f in (step, plain)))
                    self.assertTrue(torch.equal(module.cache, plain.cache))
            self.assertRegex(attn.dynamo.reports[0], report)

    def test_two_graphs_share_a_cache(self):
        cache = torch.zeros(1, 2, 8, 16)

        def write(k, position):
            cache.index_copy_(2, position, k)
            return attend(k, k, k)

        def read(q):
            return attend(q, cache, cache)

        writes, reads = (torch.compile(f, backend="attn", options={"fallback": "aot_eager"}) for f in (write, read))
        with torch.no_grad():
            for position in range(4):
                q, k = torch.randn(2, 1, 2, 1, 16)
                writes(k, torch.tensor([position]))
                self.assertNear(reads(q), read(q))
                self.assertTrue(torch.equal(cache[:, :, position], k[:, :, 0]))
                cache.mul_(0.5)

    def test_overlapping_inputs(self):
        def program(x, y):
            x.add_(1)
            return attend(x, y, y)

        whole = torch.randn(3, 7, 8)
        self.compare(program, whole[:2], whole[:2].clone(), report="compiled as a whole")
        compiled = torch.compile(program, backend="attn", options={"fallback": "aot_eager"})
        with torch.no_grad():
            for x, y in ((slice(0, 2), slice(1, 3)), (slice(0, 2), slice(0, 2))):
                one, two = whole.clone(), whole.clone()
                self.assertNear(compiled(one[x], one[y]), program(two[x], two[y]))
                self.assertTrue(torch.equal(one, two))

    def test_tensors_of_inference_mode(self):
        def program(x, cache):
            cache.add_(x)
            return attend(cache, cache, cache)

        with torch.inference_mode():
            x, cache = torch.randn(2, 3, 5, 8), torch.zeros(2, 3, 5, 8)
            self.compare(program, x, cache)
        with torch.no_grad(), self.assertRaisesRegex(RuntimeError, "outside InferenceMode"):
            torch.compile(program, backend="attn", options={"fallback": "eager"})(x, cache)
        self.assertIn("compiled as a whole", attn.dynamo.reports[-1])

    def test_copies(self):
        """A change of the shape copies a tensor that is not contiguous, so a write to the copy does not change it."""

        def program(x):
            x.flatten(0, 1).fill_(2)
            return attend(x, x, x)

        self.compare(program, torch.randn(4, 3, 16).transpose(0, 1), report="compiled as a whole")
        attn.dynamo.reports.clear()
        self.compare(lambda x: unsupported(program(x * 2)), torch.randn(4, 3, 16).transpose(0, 1), report="compiled in 1 part")

    def test_version_counters(self):
        """autograd notices that a kernel has written to a tensor."""
        x, cache = torch.randn(1, 4, 8), torch.zeros(1, 4, 8)

        def program(x, cache):
            cache.copy_(x)
            return attend(x, cache, cache)

        weight = torch.ones(1, 4, 8, requires_grad=True)
        product = weight * cache
        with torch.no_grad():
            torch.compile(program, backend="attn")(x, cache)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            product.sum().backward()


class Results(Case):
    def test_views(self):
        def program(x, y):
            z = attend(x, y, y)
            return x, y[:, 1:], z, z.transpose(1, 2), z[0], (x * 2).transpose(1, 2) + 1, z.expand(2, 2, 7, 8)

        self.compare(program, torch.randn(2, 7, 8), torch.randn(2, 7, 8), calls=2, report="compiled as a whole")

    def test_views_of_parts(self):
        def program(x):
            z = attend(x, x, x)
            view = z.transpose(1, 2)
            return z, view, view.transpose(1, 2), unsupported(z)

        self.compare(program, torch.randn(2, 7, 8), report="compiled in 1 parts")

    def test_no_inputs(self):
        self.compare(lambda: torch.tensor([1, 2]), report="it has no inputs")

    def test_weights_alone(self):
        """A graph that takes nothing but weights."""

        class Constant(Layer):
            def __init__(self):
                super().__init__()
                self.x = torch.nn.Parameter(torch.randn(2, 5, 16))

            def forward(self):
                return super().forward(self.x)

        module = Constant().eval()
        self.compare(module, report="compiled as a whole")
        with torch.no_grad(), self.assertWarnsRegex(UserWarning, "it takes no tensors"):
            self.assertNear(attn.compile(module).as_module(module)(), module())

    def test_weights_as_results(self):
        class Tied(Layer):
            def forward(self, x):
                return super().forward(x), self.qkv.weight.T, self.out.bias

        self.compare(Tied().eval(), torch.randn(2, 5, 16), report="compiled as a whole")


class Regions(Case):
    def test_autocast(self):
        class Cast(Layer):
            def forward(self, x, enabled):
                with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                    y = self.qkv(x)
                return attend(y, y, y), super().forward(x)

        for enabled, report in ((True, "compiled in 2 parts.*because torch.autocast is on$"), (False, "compiled as a whole")):
            torch._dynamo.reset()
            attn.dynamo.reports.clear()
            self.compare(Cast().eval(), torch.randn(2, 5, 16), enabled, report=report)
        layer, x = Layer().eval(), torch.randn(2, 5, 16)
        attn.dynamo.reports.clear()
        with torch.autocast("cpu"):
            self.compare(layer, x, report="left to PyTorch, because torch.autocast is on")

    def test_gradients(self):
        class Enabled(Layer):
            def forward(self, x):
                with torch.no_grad():
                    y = super().forward(x)
                with torch.enable_grad():
                    return super().forward(x) + y

        layer, x = Enabled().eval(), torch.randn(2, 5, 16)
        with torch.no_grad():
            self.assertTrue(torch.compile(layer, backend="attn", options={"fallback": "eager"})(x).requires_grad)
        layer.requires_grad_(False)
        self.compare(layer, x, report="a gradient is required")
        torch._dynamo.reset()
        attn.dynamo.reports.clear()
        self.compare(layer, x, report="compiled as a whole")

    def test_inference_mode(self):
        class Program(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = Layer()
                self.register_buffer("sign", torch.ones(3))

            def forward(self, x):
                q, k, v = self.layer.qkv(x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
                heads = attend(q, k, v).transpose(1, 2).flatten(2)  # a view of a result of the part
                torch.neg(self.sign, out=self.sign)
                other = heads * 2
                with torch.inference_mode():
                    other + heads
                return other + heads

        self.compare(Program().eval(), torch.randn(2, 5, 16), report="compiled in")

    def test_random(self):
        def program(x):
            y = attend(x, x, x) + torch.rand_like(x)
            return attend(y, y, y)

        torch.manual_seed(1)
        with torch.no_grad():
            expected = program(x := torch.randn(2, 7, 8))
            torch.manual_seed(1)
            x = torch.randn(2, 7, 8)
            self.assertNear(torch.compile(program, backend="attn", options={"fallback": "eager"})(x), expected)
        self.assertRegex(attn.dynamo.reports[-1], "compiled in 2 parts.*rand_like is random")

    def test_dropout(self):
        """Dropout in a model in training mode leaves the attentions before and after it to attn."""

        class Dropped(Layer):
            def forward(self, x):
                y = super().forward(x)
                return super().forward(F.dropout(y, 0.5, self.training))

        layer, x = Dropped(), torch.randn(2, 5, 16)
        with torch.no_grad():
            torch.manual_seed(1)
            expected = layer(x)
            torch.manual_seed(1)
            self.assertNear(torch.compile(layer, backend="attn", options={"fallback": "eager"})(x), expected)
        self.assertRegex(attn.dynamo.reports[-1], "compiled in 2 parts.*dropout is random")

    def test_fallbacks(self):
        def program(x):
            return attend(unsupported(x), x, x)

        for fallback in attn.dynamo.FALLBACKS:
            torch._dynamo.reset()
            self.compare(program, torch.randn(2, 7, 8), fallback=fallback)
            self.assertIn("compiled in 1 parts", attn.dynamo.reports[-1])
        with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "fallback to be one of inductor, aot_eager, eager, got 'x'"):
            torch._dynamo.reset()
            self.compare(program, torch.randn(2, 7, 8), fallback="x")

    def test_without_a_compiler(self):
        has_compiler, attn.dynamo._has_compiler = attn.dynamo._has_compiler, lambda: False
        self.addCleanup(setattr, attn.dynamo, "_has_compiler", has_compiler)
        self.compare(lambda x: attend(unsupported(x), x, x), torch.randn(2, 7, 8), fallback="inductor")
        self.assertIn("found no C++ compiler", attn.dynamo.reports[-1])


class Weights(Case):
    """Changed weights, for torch.compile of a whole graph and of parts, and for as_module."""

    def doors(self):
        class Divided(Layer):
            def forward(self, x):
                return super().forward(unsupported(x))

        x = torch.randn(2, 5, 16)
        for kind in (Layer, Divided):
            layer = kind().eval()
            yield layer, torch.compile(layer, backend="attn", options={"fallback": "aot_eager"}), x
        layer = Layer().eval()
        yield layer, attn.compile(layer, (x,)).as_module(layer), x

    def check(self, change):
        for layer, compiled, x in self.doors():
            torch._dynamo.reset()
            with torch.no_grad():
                self.assertNear(compiled(x), layer(x))
            change(layer, x)
            with torch.no_grad():
                self.assertNear(compiled(x), layer(x))
                change(layer, x)
                self.assertNear(compiled(x), layer(x))

    def test_optimizers(self):
        def step(make):
            def change(layer, x):
                with torch.enable_grad():
                    optimizer = make(layer.parameters())
                    layer(x).square().sum().backward()
                    optimizer.step()

            return change

        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
            for how in ("fused", "foreach", None):
                self.check(step(lambda parameters: kind(parameters, lr=0.05, **({how: True} if how else {}))))

    def test_changes(self):
        @torch.no_grad()
        def in_place(layer, x):
            layer.qkv.weight.mul_(1.5)
            layer.out.bias[3] += 1

        def replace(layer, x):
            layer.qkv.weight = torch.nn.Parameter(torch.randn(48, 16))

        def replace_twice(layer, x):
            for _ in range(3):  # the allocator may use the same address again
                replace(layer, x)

        def replace_module(layer, x):
            layer.out = torch.nn.Linear(16, 16).eval()

        def load(layer, x):
            layer.load_state_dict(Layer().state_dict(), assign=True)

        def load_copies(layer, x):
            layer.load_state_dict(Layer().state_dict())

        def set_data(layer, x):
            layer.qkv.weight.data = torch.randn(48, 16)

        def refresh(layer, x):
            layer.qkv.weight.data.mul_(2)
            layer.out.bias.detach().numpy()[:] = 3
            attn.refresh(layer)

        for change in (in_place, replace, replace_twice, replace_module, load, load_copies, set_data, refresh):
            with self.subTest(change.__name__):
                self.check(change)

    def test_inference_mode(self):
        with torch.inference_mode():
            layer, x = Layer().eval(), torch.randn(2, 5, 16)
            doors = (torch.compile(layer, backend="attn"), attn.compile(layer, (x,)).as_module(layer))
            for _ in range(3):
                for compiled in doors:
                    self.assertNear(compiled(x), layer(x))
                layer.qkv.weight.mul_(1.5)

    def test_memory(self):
        """The graphs of a model for other lengths, and its modules, share packed weights."""
        layer = Layer(128, 4).eval()
        weights = sum(tensor.numel() * tensor.element_size() for tensor in layer.parameters())
        compiled, before = torch.compile(layer, backend="attn"), packed_bytes()
        with torch.no_grad():
            for length in (5, 9, 13):
                x = torch.randn(1, length, 128)
                self.assertNear(compiled(x), layer(x))
            self.assertEqual(len(attn.dynamo.reports), 2)
            self.assertLess(packed_bytes() - before, 1.2 * weights)

    def test_tables(self):
        """A kernel has no copy of a table that it looks up, and sees each change of the table."""

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.places = torch.nn.Embedding(300, 32), torch.nn.Parameter(torch.randn(9, 32))
                self.register_buffer("order", torch.randperm(9))
                self.layer = Layer(32)

            def forward(self, ids):
                x = self.words(ids) + self.places[self.order][: ids.shape[1]]
                return self.layer(x) @ self.words.weight.T

        model = Model().eval()
        weights = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())
        compiled, before = torch.compile(model, backend="attn"), packed_bytes()
        with torch.no_grad():
            for length in (5, 9, 7):
                ids = torch.randint(300, (2, length))
                self.assertNear(compiled(ids), model(ids))
            self.assertLess(packed_bytes() - before, 1.2 * weights)
            model.words.weight.mul_(1.5)
            self.assertNear(compiled(ids), model(ids))
        self.assertIn("compiled as a whole", attn.dynamo.reports[-1])

    def test_tied(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
                self.second.weight = self.first.weight

            def forward(self, x):
                y = attend(self.first(x), x, x)
                return self.second(y)

        x = torch.randn(2, 5, 16)
        for as_module in (False, True):
            module = Tied().eval()
            compiled = attn.compile(module, (x,)).as_module(module) if as_module else torch.compile(module, backend="attn")
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertNear(compiled(x), module(x))
                module.first.weight.mul_(2)
                self.assertNear(compiled(x), module(x))
                module.second.weight = torch.nn.Parameter(torch.randn(16, 16))
                self.assertNear(compiled(x), module(x))
                module.first.weight.mul_(2)
                self.assertNear(compiled(x), module(x))
                module.first.weight = module.second.weight
                self.assertNear(compiled(x), module(x))


class Modules(Case):
    def setUp(self):
        super().setUp()
        self.layer, self.x = Layer().eval(), torch.randn(2, 5, 16)
        self.module = attn.compile(self.layer, (self.x,)).as_module(self.layer)

    def assertLeft(self, reason):
        with self.assertWarnsRegex(UserWarning, f"runs in PyTorch, because .*{reason}"):
            got = self.module(self.x)
        self.assertNear(got, self.layer(self.x))
        return got

    def test_autocast(self):
        with torch.no_grad(), torch.autocast("cpu"):
            self.assertEqual(self.assertLeft("autocast is on").dtype, torch.bfloat16)

    def test_training(self):
        self.layer.out.train()
        with torch.no_grad():
            self.assertLeft("training mode")

    def test_hooks(self):
        seen = []
        self.layer.out.register_forward_hook(lambda module, args, result: seen.append(result) or result * 2)
        with torch.no_grad():
            self.assertLeft("hooks were added")
        self.assertEqual(len(seen), 2)

    def test_dual_tensors(self):
        class Spelled(Layer):
            def forward(self, x):
                y = self.qkv(x)
                return torch.softmax(y @ y.transpose(-1, -2), -1) @ y

        self.layer = Spelled().eval()
        self.module = attn.compile(self.layer, (self.x,)).as_module(self.layer)
        with torch.no_grad(), torch.autograd.forward_ad.dual_level():
            self.x = torch.autograd.forward_ad.make_dual(self.x, torch.ones_like(self.x))
            got = self.assertLeft("differentiates")
            self.assertIsNotNone(torch.autograd.forward_ad.unpack_dual(got).tangent)
        self.x = self.x.detach().clone()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertNear(torch.func.vmap(self.module)(self.x[:, None]), torch.func.vmap(self.layer)(self.x[:, None]))

    def test_results(self):
        class Turned(Layer):
            def forward(self, x):
                y = super().forward(x)
                return (y.transpose(0, 1) + 1, {"sum": y + x}) if self.turns else (y, y.transpose(0, 1))

        for turns in (True, False):
            layer = Turned().eval()
            layer.turns = turns
            with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                got, expected = (torch.utils._pytree.tree_leaves(f(self.x)) for f in (attn.compile(layer, (self.x,)).as_module(layer), layer))
            for one, two in zip(got, expected, strict=True):
                self.assertNear(one, two)
            self.assertEqual(sharing(got), sharing(expected))
            self.assertEqual([str(warning.message).partition("because ")[2] for warning in caught],
                             [] if turns else ["its results share memory with its arguments, with its weights or with each other"])

    def test_shared_arguments(self):
        class Scaled(Layer):
            def forward(self, x, y):
                y.mul_(0.5)
                return super().forward(x) + y

        layer = Scaled().eval()
        module = attn.compile(layer, (self.x, self.x.clone())).as_module(layer)
        x, y = self.x.clone(), self.x.clone()
        with torch.no_grad(), self.assertWarnsRegex(UserWarning, "shared or not contiguous"):
            self.assertNear(module(x, x), layer(y, y))
            self.assertNear(x, y)
            x, y = (torch.ones(16, 5, 2).permute(2, 1, 0) for _ in range(2))
            self.assertNear(module(self.x, x), layer(self.x, y))
            self.assertNear(x, y)

    def test_enable_grad(self):
        class Enabled(Layer):
            @torch.enable_grad()
            def forward(self, x):
                return super().forward(x)

        layer = Enabled().eval()
        module = attn.compile(layer, (self.x,)).as_module(layer)
        with torch.no_grad(), self.assertWarnsRegex(UserWarning, "a gradient is required"):
            self.assertTrue(module(self.x).requires_grad)

    def test_other_kind(self):
        class Doubled(torch.nn.Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        self.layer.out = Doubled(16, 16).eval()
        with torch.no_grad():
            self.assertLeft("replaced by one of another kind")


if __name__ == "__main__":
    unittest.main()
