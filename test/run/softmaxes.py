"""softmaxes.py FOLDER: checks attentions whose softmax is spelled in other ways. Each must be fused."""
import pathlib
import sys

import torch
from torch import nn

from fused import check

LOG2_E = 1.4426950408889634
torch.manual_seed(1)


def exp2_of(scores):
    powers = torch.exp2(scores - scores.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def exp2_of_difference(scores):
    powers = torch.exp2((scores - scores.amax(-1, keepdim=True)) * LOG2_E)
    return powers / powers.sum(-1, keepdim=True)


SPELLINGS = {
    "logsumexp": lambda scores: torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)),
    "log_softmax": lambda scores: scores.log_softmax(-1).exp(),
    "exp2": lambda scores: exp2_of(scores * LOG2_E),
    "exp2_of_difference": exp2_of_difference,
}


class Attention(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.qkv = name, nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        scores = (q @ k.mT * 8 ** -0.5).masked_fill(torch.ones(9, 9).triu(1) > 0, -torch.inf)
        return SPELLINGS[self.name](scores) @ v


def main():
    for name in SPELLINGS:
        check(pathlib.Path(sys.argv[1]), name, Attention(name), (torch.randn(2, 9, 32) * 3,))


if __name__ == "__main__":
    main()
