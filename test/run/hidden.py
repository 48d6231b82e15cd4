"""hidden.py FOLDER: checks attentions that hide pairs with a finite number, and set their probabilities to 0 again.

Each must be fused, and its results are compared with torch's. The number may be small enough to count beside the other
scores of a row: then the hidden pairs take their share of the sum. In some rows, the mask hides every key.
"""
import pathlib
import sys

import torch
from torch import nn

from fused import check

torch.manual_seed(1)
PAIRS = torch.rand(2, 1, 9, 9) > 0.5
PAIRS[0, 0, 3] = PAIRS[1, 0, 0] = False
KEYS = torch.rand(2, 1, 1, 9) > 0.5
KEYS[0] = False
HIDDEN = {
    "again_by_product": (lambda s, m, c: s.masked_fill(~m, c), lambda p, m: p * m),
    "again_by_float": (lambda s, m, c: s.masked_fill(m.float() == 0, c), lambda p, m: p * m.float()),
    "again_by_fill": (lambda s, m, c: s.masked_fill(~m, c), lambda p, m: p.masked_fill(~m, 0.0)),
    "again_by_where": (lambda s, m, c: torch.where(m, s, c), lambda p, m: torch.where(m, p, 0.0)),
}


class Attention(nn.Module):
    def __init__(self, name, fill):
        super().__init__()
        self.name, self.fill, self.qkv = name, fill, nn.Linear(32, 96)

    def forward(self, x, keep):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        hide, again = HIDDEN[self.name]
        return again(hide(q @ k.mT * 8 ** -0.5, keep, self.fill).softmax(-1), keep) @ v


def main():
    for name in HIDDEN:
        for fill, keep in (-1e9, PAIRS), (-1e4, KEYS), (-3.0, PAIRS), (2.0, KEYS):
            check(pathlib.Path(sys.argv[1]), f"{name}{fill}", Attention(name, fill), (torch.randn(2, 9, 32) * 3, keep),
                  targets=("x86-64-v3",), decompose=fill == -1e9)


if __name__ == "__main__":
    main()
