"""A decoder's attention with a cache of keys and values, and all that attn needs to compile it: the last line.

    python decoder.py NAME

writes NAME.pt2, a step for one token, and, to check what was compiled, tokens NAME.x.npy and in NAME.out.npy what
attention over all of them gives in float64. Needs torch and numpy.
"""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Decoder(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.qkv_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)
        self.register_buffer("k_cache", torch.zeros(1, heads, longest, width // heads))
        self.register_buffer("v_cache", torch.zeros(1, heads, longest, width // heads))

    def forward(self, x, position):
        """`x` is a token, `position` how many came before it."""
        n, p, c = x.shape
        q, k, v = self.qkv_proj(x).reshape(n, p, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        self.k_cache.index_copy_(2, position, k)
        self.v_cache.index_copy_(2, position, v)
        mask = torch.arange(self.k_cache.shape[2]) <= position[:, None]
        out = scaled_dot_product_attention(q, self.k_cache, self.v_cache, attn_mask=mask)
        return self.out_proj(out.transpose(1, 2).reshape(n, p, c))


if __name__ == "__main__":
    name = sys.argv[1]
    torch.manual_seed(0)
    tokens, width = 40, 32
    model = Decoder(width, heads=4, longest=64).eval()
    x = torch.randn(1, tokens, width)
    np.save(f"{name}.x.npy", x.numpy())
    torch.export.save(torch.export.export(model, (x[:, :1], torch.tensor([0]))), f"{name}.pt2")
    with torch.no_grad():
        np.save(f"{name}.out.npy", model.double()(x.double(), torch.arange(tokens)).float().numpy())
