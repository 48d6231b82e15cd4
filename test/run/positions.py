"""positions.py FOLDER: checks attentions with biases of positions, exported as they are and after run_decompositions().

Each must be fused, and its results are compared with torch's.
"""
import pathlib
import sys

import torch
from torch import nn

from fused import check

torch.manual_seed(1)
SIDE, HEADS, SIZE = 4, 4, 8


class Grid(nn.Module):
    """The scores are seen as (rows, columns, rows, columns) of a picture while a bias along each axis is added."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.down, self.across = nn.Parameter(torch.randn(SIDE, SIDE, SIZE)), nn.Parameter(torch.randn(SIDE, SIDE, SIZE))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, SIZE)).permute(2, 0, 3, 1, 4)
        b, h, n, d = q.shape
        grid = q.reshape(b, h, SIDE, SIDE, d)
        scores = (q @ k.mT * SIZE ** -0.5).view(b, h, *(SIDE,) * 4)
        scores = scores + torch.einsum("bhxyd,xkd->bhxyk", grid, self.down)[..., None]
        scores = scores + torch.einsum("bhxyd,ykd->bhxyk", grid, self.across)[..., None, :]
        return scores.view(b, h, n, n).softmax(-1) @ v


class RelativeKeys(nn.Module):
    """Scores plus a product of each query with an embedding of the distance to each key."""

    def __init__(self, length=16):
        super().__init__()
        self.qkv, self.distance = nn.Linear(32, 96), nn.Embedding(2 * length - 1, SIZE)
        place = torch.arange(length)
        self.register_buffer("places", place[None] - place[:, None] + length - 1)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, SIZE)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT + torch.einsum("bhid,ijd->bhij", q, self.distance(self.places))
        return (scores * SIZE ** -0.5).softmax(-1) @ v


class Distances(nn.Module):
    """A bias from the positions of a call of any length; the reference computes the sizes too."""

    def __init__(self):
        super().__init__()
        self.qkv, self.slope = nn.Linear(32, 96), nn.Parameter(torch.rand(HEADS, 1, 1))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, SIZE)).permute(2, 0, 3, 1, 4)
        n = x.shape[1]
        bias = self.slope * torch.full((n,), n).sub(torch.arange(n)).float() / n
        return (q @ k.mT * SIZE ** -0.5 + bias).softmax(-1) @ v


def main():
    for model in (Grid, RelativeKeys, Distances):
        sizes = ({1: torch.export.Dim("n", min=2, max=64)},) if model is Distances else None
        check(pathlib.Path(sys.argv[1]), model.__name__, model(), (torch.randn(2, SIDE * SIDE, 32),), dynamic_shapes=sizes,
              reference=True)


if __name__ == "__main__":
    main()
