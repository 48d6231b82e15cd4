"""A typical causal attention layer for up to 4096 tokens. Each token attends to itself and to the tokens before it.

    python causal_attention.py NAME

writes NAME.pt2. Needs torch.
"""
import sys

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        n, p, c = x.shape
        q, k, v = self.qkv_proj(x).view(n, p, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(out.transpose(1, 2).reshape(n, p, c))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = CausalSelfAttention(dim=128, num_heads=2).eval()
    tokens = torch.export.Dim("tokens", max=4096)
    exported = torch.export.export(model, (torch.randn(1, 16, 128),), dynamic_shapes=({1: tokens},))
    torch.export.save(exported, f"{sys.argv[1]}.pt2")
