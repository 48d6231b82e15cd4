"""tensors.py: tests which of PyTorch's tensors kernels take, and which masks attn.transformers takes."""
import tempfile
import unittest
import warnings

import attn
import attn.dynamo
import attn.transformers
import torch
import transformers
from torch.autograd import forward_ad
from transformers.integrations.sdpa_attention import sdpa_attention_forward

negative = torch._neg_view


def conjugate(z):
    return z.clone().conj()


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)

    def assertNear(self, got, expected, tolerance=2e-6):
        self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype))
        if got.numel():
            error = (got - expected).abs().max().item()
            self.assertLessEqual(error, tolerance * max(1, expected.abs().max().item()))

    def assertError(self, pattern):
        return self.assertRaisesRegex(attn.Error, pattern)


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x) @ self.weight


class Turned(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("turn", torch.tensor(1 + 2j))

    def forward(self, z):
        return z * self.turn


class Cached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 8))

    def forward(self, x):
        self.cache.add_(x)
        return self.cache * 2


class Function(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Bits(Case):
    """Tensors with the conjugate or the negative bit, whose elements differ from those in their memory."""

    def setUp(self):
        super().setUp()
        self.module, self.x = Weighted().eval(), torch.randn(1, 4, 8)
        self.kernel = attn.compile(self.module, (self.x,))
        self.z = torch.randn(3, 4, dtype=torch.complex64)
        self.turned = Turned()
        self.of_complex = attn.compile(self.turned.eval(), (self.z,))

    def test_inputs(self):
        x, expected = self.x, self.module(-self.x)
        for given in (negative(x), negative(negative(negative(x))), torch.complex(x, x).conj().imag,
                      negative(x).as_subclass(Function), torch.nn.Parameter(negative(x))):
            for got in (self.kernel(given), self.kernel(x=given), self.kernel(given, copy=True),
                        self.kernel.run((given,))[0]):
                self.assertNear(got, expected)
        for given in (negative(x.double()), negative(x.mT.contiguous()).mT):
            self.assertNear(self.kernel(given, copy=True), expected)
            with self.assertError("argument 'x' expected (stride|float32)"):
                self.kernel(given)
        with torch.inference_mode():
            self.assertNear(self.kernel(negative(x.clone())), expected)

    def test_complex_inputs(self):
        for given in (self.z, self.z.conj(), self.z.conj().conj(), negative(self.z), negative(self.z.conj())):
            self.assertNear(self.of_complex(given), self.turned(given))
        with self.assertError("argument 'z' expected stride"):
            self.of_complex(self.z.T.contiguous().mH)

    def test_other_types(self):
        class Double(torch.nn.Module):
            def forward(self, x):
                return x + x

        for x in (torch.arange(3), torch.arange(3, dtype=torch.int32), torch.tensor(2.0),
                  torch.ones(2, dtype=torch.float64)):
            self.assertNear(attn.compile(Double().eval(), (x,))(negative(x)), -2 * x)

    def test_outputs(self):
        for out in (negative(torch.zeros(1, 4, 8)), negative(torch.full((1, 4, 8), float("nan"))),
                    negative(self.x.clone()).as_subclass(Function)):
            self.assertIs(self.kernel(self.x, out=out), out)
            self.assertNear(out.as_subclass(torch.Tensor), self.module(self.x))
        memory = torch.zeros(1, 4, 8)
        self.kernel(self.x, out=negative(memory))
        self.assertNear(memory, -self.module(self.x))
        for make in (conjugate, lambda z: negative(z.clone()), lambda z: negative(conjugate(z))):
            out = make(self.z)
            self.of_complex(self.z.conj(), out=out)
            self.assertNear(out, self.turned(self.z.conj()))
        with torch.inference_mode():
            out = negative(torch.zeros(1, 4, 8))
            self.kernel(self.x, out=out)
            self.assertNear(out, self.module(self.x))

    def test_shared_memory(self):
        x = self.x.clone()
        with self.assertError("argument 'out' expected memory of its own, got memory of 'x'"):
            self.kernel(x, out=negative(x))
        self.assertTrue(torch.equal(x, self.x))
        self.assertNear(self.kernel(negative(x), out=x), self.module(-self.x))  # the input is a copy

    def test_weights(self):
        expected = self.module(self.x)
        weight = self.module.weight
        for given in (negative(-weight), torch.complex(weight, -weight).conj().imag.contiguous(),
                      torch.nn.Parameter(negative(-weight)), negative(-weight.T.contiguous()).T):
            self.kernel.load_state_dict({"weight": -weight})
            self.kernel.load_state_dict({"weight": given})
            self.assertNear(self.kernel(self.x), expected)
        module = Weighted().eval()
        module.weight = torch.nn.Parameter(negative(-weight))
        self.assertNear(attn.compile(module, (self.x,))(self.x), expected)
        self.assertNear(attn.compile(module, (self.x,)).as_module(module)(self.x), expected)

    def test_copies(self):
        x, z = self.x, self.z
        self.assertLess(self.kernel.check(negative(x)), 1e-5)
        for given in (z, z.conj(), z.T.contiguous().mH, z.to(torch.complex128), negative(z)):
            self.assertNear(self.of_complex(given, copy=True), self.turned(given.to(z.dtype)))

    def test_files(self):
        """The files of saved models and weights contain the elements, not the memory."""
        class Masked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("keep", negative(-torch.ones(4, 4).tril()))

            def forward(self, x):
                return torch.softmax((x @ x.mT).masked_fill(self.keep == 0, float("-inf")), -1) @ x

        weighted = Weighted().eval()
        weighted.weight = torch.nn.Parameter(negative(weighted.weight.detach()))
        for module in (weighted, Masked().eval()):
            kernel, expected = attn.compile(module, (self.x,)), module(self.x)
            self.assertNear(kernel(self.x), expected)
            self.assertLess(kernel.check(self.x), 1e-5)
            with tempfile.TemporaryDirectory() as folder:
                kernel.save(f"{folder}/layer.so")
                self.assertNear(attn.load(f"{folder}/layer.so")(self.x), expected)
            kernel.load_state_dict(module.state_dict())
            self.assertNear(kernel(self.x), expected)

    def test_replaced_parameters(self):
        """A parameter is replaced by another view of the same memory."""
        for view in (negative, lambda weight: weight.T, lambda weight: negative(weight).T):
            module = Weighted().eval()
            compiled = attn.compile(module, (self.x,)).as_module(module)
            compiled(self.x)
            module.weight = torch.nn.Parameter(view(module.weight.detach()))
            self.assertNear(compiled(self.x), module(self.x))

    def test_inputs_that_calls_change(self):
        """Such an input, and the others that may share memory with it, must not have these bits."""
        class Added(torch.nn.Module):
            def forward(self, x, cache):
                cache.add_(x)
                return cache * 2

        x, cache = torch.randn(4, 8), torch.zeros(4, 8)
        kernel = attn.compile(Added().eval(), (x, cache))
        for args, name in (((x, negative(cache)), "cache"), ((negative(x), cache), "x")):
            with self.assertError(f"argument '{name}' expected a tensor without the negative bit, .*; pass x"):
                kernel(*args)
        self.assertFalse(cache.any())
        kernel(x, cache)
        self.assertNear(cache, x)
        module = Cached().eval()
        kernel = attn.compile(module, (x,))
        kernel.buffers["cache"] = negative(torch.ones(4, 8))
        with self.assertError("argument 'cache' expected a tensor without the negative bit"):
            kernel(x)
        kernel.buffers["cache"] = torch.ones(4, 8)
        self.assertNear(kernel(x), 2 * (1 + x))


class Derivatives(Case):
    """attn computes no derivatives, so it refuses tensors for which PyTorch expects some."""

    def setUp(self):
        super().setUp()
        torch.set_grad_enabled(True)
        self.x = torch.randn(1, 4, 8)
        self.kernel = attn.compile(Weighted().requires_grad_(False).eval(), (self.x,))
        self.expected = self.kernel(self.x)

    def test_tangents(self):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(self.x, torch.ones_like(self.x))
            for call in (lambda: self.kernel(dual), lambda: self.kernel(dual, copy=True),
                         torch.no_grad()(lambda: self.kernel(dual))):
                with self.assertError("argument 'x' expected a tensor without a tangent, .* pass unpack_dual"):
                    call()
            with self.assertError("argument 'out' expected a tensor without a tangent"):
                self.kernel(self.x, out=dual)
            for given in (self.x, dual.detach(), forward_ad.unpack_dual(dual).primal):
                self.assertTrue(torch.equal(self.kernel(given), self.expected))
            self.assertNear(self.kernel(negative(self.x)), self.kernel(-self.x))
            with torch.inference_mode():
                self.assertTrue(torch.equal(self.kernel(self.x.clone()), self.expected))
        self.assertTrue(torch.equal(self.kernel(self.x), self.expected))

    def test_transforms(self):
        x, kernel = self.x, self.kernel
        for transformed in (lambda: torch.func.vmap(kernel)(x[None]),
                            lambda: torch.func.vmap(lambda out: kernel(x, out=out))(x[None]),
                            lambda: torch.func.grad(lambda x: kernel(x).sum())(x),
                            lambda: torch.func.grad(lambda y: (kernel(x) * y).sum())(x),
                            lambda: torch.func.jvp(kernel, (x,), (x,)),
                            lambda: torch.func.jvp(lambda y: y + kernel(x), (x,), (x,)),
                            lambda: torch.func.vjp(kernel, x), lambda: torch.func.jacrev(kernel)(x),
                            lambda: torch.func.jacfwd(kernel)(x)):
            with self.assertError("expected a (tensor|call) outside of the transforms of torch.func, .* inside"):
                transformed()
        with self.assertError("expected a tensor without a tangent"):
            torch.func.linearize(self.kernel, x)
        got = torch.func.vmap(lambda number: self.kernel(x) * number)(torch.arange(2.0))
        self.assertNear(got, torch.stack([0 * self.expected, self.expected]))

    def test_outputs(self):
        out = torch.zeros_like(self.x).requires_grad_()
        for wrong in (out, 2 * out):
            with self.assertError("expected outputs without gradients, .* or pass out.detach"):
                self.kernel(self.x, out=wrong)
        with torch.no_grad():
            self.assertNear(self.kernel(self.x, out=out), self.expected)
        self.assertNear(self.kernel(self.x, out=out.detach()), self.expected)

    def test_saved_tensors(self):
        """Autograd notices that a call has written to a tensor that it saved."""
        x, saved = torch.randn(1, 4, 8, requires_grad=True), torch.ones(1, 4, 8)
        product = (x * saved).sum()
        self.kernel(self.x, out=saved)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            product.backward()
        kernel, cache = attn.compile(Cached().eval(), (torch.ones(4, 8),)), torch.ones(4, 8)
        kernel.buffers["cache"] = cache
        before = cache._version
        kernel(torch.ones(4, 8))
        self.assertGreater(cache._version, before)
        with torch.inference_mode():  # such tensors have no version
            self.kernel(self.x, out=torch.zeros(1, 4, 8))


class Outputs(Case):
    def test_layouts(self):
        x = torch.randn(1, 4, 8)
        module = Weighted().eval()
        kernel, expected = attn.compile(module, (x,)), module(x)
        unread = "expected an array of numbers in memory, got one that cannot be read: [^\n]*$"
        for out, pattern in ((torch.zeros(1, 8, 4).mT, "expected stride 1"),
                             (torch.zeros(1, 4, 16)[..., :8], "expected stride 8"),
                             (torch.zeros(1, 4, 1).expand(1, 4, 8), "got 0"),
                             (torch.zeros(1, 4, 8, dtype=torch.complex64).imag, "got 2"),
                             (x.double(), "got float64"), (x.bfloat16(), "got bfloat16"), (x[:, :3], "got 3"),
                             (x.to("meta"), unread), (x.to_sparse(), unread), ("text", "expected an array"),
                             (x, "memory of 'x'")):
            with self.subTest(pattern), self.assertError(f"forward: argument 'out' .*{pattern}"):
                kernel(x, out=out)
        for out in (torch.zeros(4, 1, 8).transpose(0, 1), torch.zeros(4, 8).expand(1, 4, 8),
                    torch.nn.Parameter(torch.zeros(1, 4, 8)), torch.zeros(1, 4, 8).as_subclass(Function)):
            self.assertIs(kernel(x, out=out), out)
            self.assertNear(out.as_subclass(torch.Tensor), expected)


class Layer(torch.nn.Module):
    """What an attention function of transformers reads of the layer that calls it."""

    def __init__(self, groups=1, is_causal=True):
        super().__init__()
        self.num_key_value_groups, self.is_causal = groups, is_causal


def kept(*sizes):
    keep = torch.rand(sizes) < 0.6
    keep[..., 0] = True
    return keep


class Masks(Case):
    """attn.transformers computes what transformers' own function for scaled_dot_product_attention computes."""

    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)
        attn.transformers._warned.clear()

    def check(self, mask, queries=5, keys=7, heads=4, key_heads=4, batch=(2, 2), dtype=torch.float32, swapped=False,
              **options):
        def tensor(batch, heads, length):
            if swapped:
                return torch.randn(batch, length, heads, 16).transpose(1, 2).to(dtype)
            return torch.randn(batch, heads, length, 16).to(dtype)

        q, k, v = tensor(batch[0], heads, queries), tensor(batch[1], key_heads, keys), tensor(batch[1], key_heads, keys)
        layer = Layer(heads // key_heads)
        cut = None if mask is None else mask[..., :keys]
        floats = [x.float() for x in (q, k, v)] + [cut.float() if cut is not None and cut.is_floating_point() else cut]
        expected = sdpa_attention_forward(layer, *floats, **options)[0].to(dtype)
        got = attn.transformers.attention(layer, q, k, v, mask, **options)[0]
        self.assertTrue(got.is_contiguous())
        self.assertNear(got, expected, {torch.float32: 3e-6, torch.float16: 3e-3, torch.bfloat16: 3e-2}[dtype])

    def test_shapes(self):
        for queries in (1, 5, 40):
            for keys, more in ((7, 0), (7, 4), (130, 0), (130, 1)):
                for sizes in ((2, 1, 1, keys + more), (1, 1, 1, keys + more), (2, 1, queries, keys + more),
                              (1, 1, queries, keys + more), (2, 1, queries, 1), (1, 1, 1, 1)):
                    for swapped in (False, True):
                        with self.subTest(queries=queries, keys=keys, sizes=sizes, swapped=swapped):
                            self.check(kept(*sizes), queries, keys, swapped=swapped)
        self.assertEqual(attn.transformers._warned, set())

    def test_types_and_heads(self):
        for sizes in ((2, 1, 1, 7), (1, 1, 1, 9), (2, 1, 5, 9), (1, 1, 5, 7)):
            for dtype in (torch.float16, torch.bfloat16):
                self.check(kept(*sizes), dtype=dtype)
            for key_heads in (2, 1):
                self.check(kept(*sizes), key_heads=key_heads)
                self.check(kept(*sizes[:2], 1, sizes[3]), queries=1, key_heads=key_heads)
        for scaling in (1.0, -0.3, 0.0, 0.123456789, 3.7):
            self.check(kept(2, 1, 1, 7), scaling=scaling)
        self.assertEqual(attn.transformers._warned, set())

    def test_left_to_torch(self):
        """Masks of floats and masks of each head."""
        for mask in (torch.randn(2, 1, 5, 9), torch.randn(2, 1, 1, 7), kept(2, 4, 5, 7), kept(1, 4, 1, 9), kept(5, 7)):
            attn.transformers._warned.clear()
            self.check(mask)
            self.assertIn("the mask is", "".join(attn.transformers._warned))

    def test_hidden(self):
        """A query without a key gives zeros."""
        self.check(torch.zeros(2, 1, 1, 7, dtype=torch.bool))
        self.check(torch.tensor([True, False])[:, None, None, None])
        self.check(torch.tensor([True, False, True, False, True])[None, None, :, None])

    def test_strides(self):
        for mask in (kept(2, 1, 1, 7).expand(2, 1, 5, 7), kept(1, 1, 5, 7).expand(2, 1, 5, 7),
                     kept(2, 1, 5, 14)[..., ::2], kept(2, 1, 7, 5).mT, kept(2, 1, 1, 14)[..., ::2]):
            self.check(mask)

    def test_causal(self):
        for is_causal in (None, True, False):
            for queries, keys in ((5, 7), (9, 4), (1, 7)):
                self.check(None, queries, keys, is_causal=is_causal)
                self.check(kept(2, 1, 1, keys), queries, keys, is_causal=is_causal)

    def test_batch_of_one(self):
        """Queries, or keys and values, may be the same for all sequences."""
        for batch in ((1, 2), (2, 1)):
            for mask in (None, kept(2, 1, 1, 7), kept(1, 1, 5, 7), kept(2, 1, 5, 9)):
                self.check(mask, batch=batch)
                self.check(mask, batch=batch, key_heads=2)

    def test_wrong_sizes(self):
        for mask in (kept(2, 1, 1, 5), kept(2, 1, 5, 5), kept(3, 1, 1, 7), kept(2, 1, 3, 7), kept(2, 3, 5, 7)):
            q, k = torch.randn(2, 4, 5, 16), torch.randn(2, 4, 7, 16)
            with self.assertRaises(RuntimeError):
                attn.transformers.attention(Layer(), q, k, k, mask)

    def test_softcap(self):
        q, k, v = torch.randn(2, 4, 5, 16), torch.randn(2, 2, 7, 16), torch.randn(2, 2, 7, 16)
        for mask in (kept(2, 1, 1, 7), kept(1, 1, 5, 9), kept(2, 1, 1, 9), kept(2, 4, 5, 9), torch.randn(2, 1, 5, 9)):
            got = attn.transformers.attention(Layer(2), q, k, v, mask, scaling=0.7, softcap=2.0)[0]
            scores = 2 * torch.tanh(q @ k.repeat_interleave(2, 1).mT * 0.7 / 2)
            cut = mask[..., :7]
            scores = scores.masked_fill(~cut, float("-inf")) if mask.dtype == torch.bool else scores + cut
            self.assertNear(got, (torch.softmax(scores, -1) @ v.repeat_interleave(2, 1)).transpose(1, 2))

    def test_skipped_tiles(self):
        """A mask of keys is not copied for each query, and the tiles after the last key are skipped."""
        q = torch.randn(2, 4, 300, 16)
        mask = (torch.arange(300) < torch.tensor([[20], [300]]))[:, None, None]
        kind, arrays = attn.transformers._masked(mask, 2, 300, 300)
        self.assertEqual((kind, [array.shape for array in arrays]), ("keys", [(2, 300), (2,)]))
        kernel = attn.transformers._kernel(kind, "cpu", 4, 16, 4, 16, 0.25, "float32", "bhsd", "bhsd", None)
        statistics = {}
        kernel.run((q, q, q, *arrays), None, statistics)
        self.assertGreater(statistics["tiles_skipped"], 0)

    def test_transforms(self):
        """PyTorch computes the attention inside the transforms of torch.func, and of tensors with tangents."""
        q, k, mask = torch.randn(3, 2, 4, 5, 16), torch.randn(2, 4, 7, 16), kept(2, 1, 1, 7)

        def attention(q):
            return attn.transformers.attention(Layer(), q, k, k, mask)[0]

        self.assertNear(torch.func.vmap(attention)(q), torch.stack([attention(one) for one in q]))
        self.assertEqual(attn.transformers._warned, {"torch.func or forward-mode differentiation transforms it"})
        with torch.enable_grad():
            got = torch.func.grad(lambda q: attention(q).sum())(q[0])
            sdpa = torch.nn.functional.scaled_dot_product_attention
            expected = torch.func.grad(lambda q: sdpa(q, k, k, mask).sum())(q[0])
        self.assertNear(got, expected)
        with forward_ad.dual_level(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            dual = forward_ad.make_dual(q[0], q[1])
            results = attention(dual), sdpa(dual, k, k, mask).transpose(1, 2)
            self.assertNear(*(forward_ad.unpack_dual(result).tangent for result in results))

    def test_models(self):
        """In a model, and in a graph of torch.compile that attn compiles as a whole."""
        attn.transformers.register()
        sizes = dict(num_hidden_layers=1, num_attention_heads=4, hidden_size=64, intermediate_size=64, vocab_size=100)
        llama = transformers.LlamaModel(transformers.LlamaConfig(num_key_value_heads=2, **sizes))
        bert = transformers.BertModel(transformers.BertConfig(**sizes))
        for model, options in ((bert, {}), (llama, {"use_cache": False})):
            model.eval()
            ids = torch.randint(3, 90, (2, 11))
            for mask in (kept(2, 1, 1, 11), kept(1, 1, 1, 11), kept(2, 1, 11, 15), kept(2, 1, 1, 15)):
                with self.subTest(type(model).__name__, mask=mask.shape), torch.inference_mode():
                    model.set_attn_implementation("sdpa")
                    expected = model(ids, attention_mask=mask[..., :11], **options)[0]
                    model.set_attn_implementation("attn")
                    self.assertNear(model(ids, attention_mask=mask, **options)[0], expected, 5e-6)
                    torch._dynamo.reset()
                    compiled = torch.compile(model, backend="attn")
                    self.assertNear(compiled(ids, attention_mask=mask, **options)[0], expected, 5e-6)
                    self.assertIn("compiled as a whole", attn.dynamo.reports[-1])


if __name__ == "__main__":
    unittest.main()
