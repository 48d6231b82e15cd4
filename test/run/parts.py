"""parts.py FOLDER: checks attentions of parts of a sequence whose length is known only at the call.

Each must be fused, and its results are compared with torch's, for several lengths.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

from fused import check

torch.manual_seed(1)


def windows(x, width):
    """Windows of a sequence that is padded to a multiple of the width."""
    padded = F.pad(x, (0, 0, 0, (width - x.shape[1] % width) % width))
    return padded.view(-1, width, x.shape[2]), padded.shape


PARTS = {
    "chunks": lambda x, attend: attend(*x.chunk(2, dim=1)),
    "halves": lambda x, attend: attend(x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]),
    "thirds": lambda x, attend: attend(x[:, x.shape[1] // 3 : 2 * (x.shape[1] // 3) + 1], x),
    "padded_windows": lambda x, attend: attend(*[windows(x, 8)[0]] * 2).view(windows(x, 8)[1])[:, : x.shape[1]],
}


class Attention(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.q, self.kv = name, nn.Linear(32, 32), nn.Linear(32, 64)

    def attend(self, x, context):
        q = self.q(x).unflatten(-1, (4, 8)).transpose(1, 2)
        k, v = self.kv(context).unflatten(-1, (2, 4, 8)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def forward(self, x):
        return PARTS[self.name](x, self.attend)


def main():
    for name in PARTS:
        first, *others = [(torch.randn(2, n, 32),) for n in (20, 9, 23, 101)]
        check(pathlib.Path(sys.argv[1]), name, Attention(name), first, others=others, decompose=False,
              dynamic_shapes=({1: torch.export.Dim.DYNAMIC},))


if __name__ == "__main__":
    main()
