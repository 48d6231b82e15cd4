"""The rows of the benchmark: attentions, layers and whole models, with random weights.

The time of a call does not depend on the weights. All floating-point values are float32.
"""

import dataclasses
import functools
import importlib.util
import pathlib

import models

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
WINDOW = 64  # the largest distance between a query and a key that it attends to


@dataclasses.dataclass(frozen=True)
class Attention:
    """softmax(Q K^T / sqrt(size) + mask) V, for inputs of shape (batch, heads, length, size)."""

    title: str
    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    key_heads: int
    mask: str = ""  # or causal, window, padding

    def inputs(self):
        """q, k, v and, with padding, the number of keys of each item of the batch."""
        import numpy as np

        random = np.random.default_rng(0)
        shapes = [(heads, length) for heads, length in ((self.heads, self.queries), *2 * [(self.key_heads, self.keys)])]
        arrays = [random.standard_normal((self.batch, *shape, self.size), dtype=np.float32) for shape in shapes]
        if self.mask == "padding":
            arrays.append(np.arange(1, self.batch + 1) * (self.keys // self.batch))
        return arrays

    def kept(self, lengths=None):
        """Booleans that broadcast to (batch, heads, queries, keys), true for kept pairs; None if all pairs are kept."""
        import numpy as np

        q, k = np.arange(self.queries)[:, None], np.arange(self.keys)
        return {"": lambda: None, "causal": lambda: k <= q, "window": lambda: abs(q - k) <= WINDOW,
                "padding": lambda: k < lengths[:, None, None, None]}[self.mask]()

    def build(self):
        """The module, in its fastest form for PyTorch, and its inputs. With padding, the fourth input is `kept`."""
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        class Module(torch.nn.Module):
            def __init__(self, mask, **options):
                super().__init__()
                self.register_buffer("mask", mask)
                self.options = options

            def forward(self, q, k, v, mask=None):
                mask = self.mask if mask is None else mask
                return scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options)

        q, k, v, *lengths = self.inputs()
        mask = torch.from_numpy(self.kept()) if self.mask == "window" else None
        module = Module(mask, is_causal=self.mask == "causal", enable_gqa=self.heads != self.key_heads)
        padding = [self.kept(*lengths)] if lengths else []
        return module, tuple(map(torch.from_numpy, (q, k, v, *padding)))


@dataclasses.dataclass(frozen=True)
class Model:
    """A layer or a whole model."""

    title: str
    make: object  # returns the module and its inputs

    def build(self):
        import torch

        torch.manual_seed(0)
        return self.make()


def example():
    import torch

    spec = importlib.util.spec_from_file_location("example", EXAMPLES / "multi_head_attention.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MultiHeadAttention(64, 8), (torch.randn(2, 14, 64),)


def bert_layer():
    import torch
    from transformers.models.bert.modeling_bert import BertConfig, BertLayer

    config = BertConfig()
    config._attn_implementation = "sdpa"
    return BertLayer(config), (torch.randn(1, 128, config.hidden_size),)


def vit_block():
    import torch
    from timm.models.vision_transformer import Block

    return Block(768, 12, qkv_bias=True), (torch.randn(1, 197, 768),)


ROWS = {
    "attention/dense": Attention("dense, 512 tokens (BERT-base)", 1, 12, 512, 512, 64, 12),
    "attention/causal": Attention("causal, 1024 tokens (GPT-2)", 1, 12, 1024, 1024, 64, 12, "causal"),
    "attention/window": Attention("window of 129, 2048 tokens (ModernBERT-base)", 1, 12, 2048, 2048, 64, 12, "window"),
    "attention/padding": Attention("padding, 8 x 512 tokens (BERT-base)", 8, 12, 512, 512, 64, 12, "padding"),
    "attention/decode": Attention("decode, 1 query, 4096 keys (Llama 3 8B)", 1, 32, 1, 4096, 128, 8),
    "layer/vit": Model("ViT-B/16 block, 197 tokens", vit_block),
    "layer/bert": Model("BERT-base layer, 128 tokens", bert_layer),
    "layer/example": Model("layer of README, 2 x 14 tokens", example),
    **{f"model/{name}": Model(name, make) for name, make in models.MODELS.items()},
}
