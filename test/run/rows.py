"""rows.py FOLDER: checks attentions whose probabilities pass an op that changes whole rows.

Each must be fused, and its results are compared with torch's. In some rows, the mask hides every key.
"""
import pathlib
import sys

import torch
from torch import nn

from fused import check

torch.manual_seed(1)
KEEP = torch.rand(2, 1, 9, 9) > 0.5
KEEP[0, 0, 3] = KEEP[1, 0, 0] = False
ROWS = {
    "nan_to_num": lambda p, keep: torch.nan_to_num(p),
    "nan_to_num_of_0": lambda p, keep: torch.nan_to_num(p, nan=0.0, posinf=1.0, neginf=0.0),
    "isnan": lambda p, keep: p.masked_fill(p.isnan(), 0.0),
    "differs_from_itself": lambda p, keep: torch.where(p != p, 0.0, p),
    "any": lambda p, keep: torch.where(keep.any(-1, keepdim=True), p, 0.0),
    "all": lambda p, keep: p.masked_fill((~keep).all(-1, keepdim=True), 0.0),
    "factor": lambda p, keep: torch.nan_to_num(p) * keep.sum(-1, keepdim=True),
    "divisor_then_select": lambda p, keep: torch.where(keep.any(-1, keepdim=True), p / (2 + torch.arange(9.0))[:, None], 0.0),
}


class Attention(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.qkv = name, nn.Linear(32, 96)

    def forward(self, x, keep):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        p = (q @ k.mT * 8 ** -0.5).masked_fill(~keep, -torch.inf).softmax(-1)
        return ROWS[self.name](p, keep) @ v


def main():
    for name in ROWS:
        check(pathlib.Path(sys.argv[1]), name, Attention(name), (torch.randn(2, 9, 32), KEEP), targets=("x86-64", "x86-64-v3"))


if __name__ == "__main__":
    main()
