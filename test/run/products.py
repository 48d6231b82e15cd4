"""products.py FOLDER: checks softmaxes whose probabilities several products read.

Each must be one fused attention, and its results are compared with torch's.
"""
import pathlib
import sys

import torch
from torch import nn

from fused import check

torch.manual_seed(1)
PRODUCTS = {
    "values_twice": lambda p, v, points: torch.cat([p @ v, p @ (v * v)], -1),
    "points_of_all_heads": lambda p, v, points: (p @ v, p @ points[:, None]),
    "three": lambda p, v, points: (p @ v, p @ points[:, None], p @ v.exp()),
    "by_einsum": lambda p, v, points: (torch.einsum("bhqk,bhke->bqhe", p, v), torch.einsum("bhqk,bkc->bhqc", p, points)),
    "after_nan_to_num": lambda p, v, points: (torch.nan_to_num(p) @ v, torch.nan_to_num(p) @ points[:, None]),
    "of_one_column": lambda p, v, points: (p @ v, (p @ points[:, None, :, :1]).squeeze(-1)),
}


class Attention(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.qkv = name, nn.Linear(32, 96)

    def forward(self, x, points):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return PRODUCTS[self.name](((q @ k.mT) * 8 ** -0.5).softmax(-1), v, points)


def main():
    for name in PRODUCTS:
        sizes = [(2, 9), (1, 1), (3, 70)]
        first, *others = [(torch.randn(b, n, 32), torch.randn(b, n, 3)) for b, n in sizes]
        check(pathlib.Path(sys.argv[1]), name, Attention(name), first, targets=("x86-64", "x86-64-v3"))
        dynamic = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        check(pathlib.Path(sys.argv[1]), name, Attention(name), first, decompose=False, others=others,
              dynamic_shapes=(dynamic, dynamic))


if __name__ == "__main__":
    main()
