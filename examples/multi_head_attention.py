"""A typical multi-head attention layer. The last line saves it for attn; the code needs no other change.

    python multi_head_attention.py NAME [BATCH LENGTH WIDTH HEADS]

writes NAME.pt2 and, to check the compiled code, an input, NAME.x.npy, and the output that the module
computes for this input in float64, NAME.out.npy. Needs torch and numpy.
"""
import sys

import numpy as np
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.scaling = (dim // num_heads) ** -0.5
        self.qkv_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n, p, c = x.shape
        qkv = self.qkv_proj(x).reshape(n, p, 3, self.num_heads, -1)
        qkv = qkv.transpose(1, 3).contiguous()
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores = torch.matmul(q * self.scaling, k.transpose(-1, -2))
        weights = self.dropout(self.softmax(scores))
        out = torch.matmul(weights, v).transpose(1, 2).reshape(n, p, c)
        return self.out_proj(out)


if __name__ == "__main__":
    name = sys.argv[1]
    batch, length, width, heads = map(int, sys.argv[2:] or (2, 14, 64, 8))
    torch.manual_seed(0)
    model = MultiHeadAttention(width, heads).eval()
    x = torch.randn(batch, length, width)
    np.save(f"{name}.x.npy", x.numpy())
    with torch.no_grad():
        np.save(f"{name}.out.npy", model.double()(x.double()).float().numpy())

    torch.export.save(torch.export.export(model.float(), (x,)), f"{name}.pt2")
