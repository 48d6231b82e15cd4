"""A model with every mistake in docs/lint.md, and the same model without mistakes. This script wrote
twins-mistaken.pt2 and twins-corrected.pt2. Names, sizes and spelling differ from the models of test/producers/cases."""

import io
import json
import re
import zipfile

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads, mistaken):
        super().__init__()
        self.width, self.heads, self.mistaken = width, heads, mistaken
        self.packed = nn.Linear(width, 3 * width)

    def split(self, tokens):
        batch, length, width = tokens.shape
        parts = self.packed(tokens).split(width, dim=-1)
        return (t.reshape(batch, length, self.heads, -1).transpose(1, 2) for t in parts)

    def merge(self, heads):
        batch, _, length, _ = heads.shape
        return heads.transpose(1, 2).reshape(batch, length, self.width)


class DroppedMask(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        logits = a @ b.transpose(2, 3) * (self.width // self.heads) ** -0.5
        if self.mistaken:
            logits.masked_fill(padding, -1e9)  # a new tensor, which is never used
        else:
            logits = logits.masked_fill(padding, -1e9)
        return self.merge(logits.softmax(-1) @ c)


class Multiplied(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        root = (self.width // self.heads) ** 0.5
        a = a * root if self.mistaken else a / root
        logits = a @ b.transpose(2, 3)
        return self.merge(logits.softmax(-1) @ c)


class ModelWidth(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        size = self.width if self.mistaken else self.width // self.heads
        logits = a @ (b / size**0.5).transpose(2, 3)
        return self.merge(logits.softmax(-1) @ c)


class OneHead(nn.Module):
    """One of several heads, each of which has projections of its own."""

    def __init__(self, width, size, mistaken):
        super().__init__()
        self.scale = (width if mistaken else size) ** -0.5
        self.a, self.b, self.c = (nn.Linear(width, size, bias=False) for _ in range(3))

    def forward(self, tokens):
        logits = self.a(tokens) @ self.b(tokens).transpose(1, 2)
        logits = logits * self.scale
        return logits.softmax(-1) @ self.c(tokens)


class ListOfHeads(nn.Module):
    def __init__(self, width, heads, mistaken):
        super().__init__()
        self.each = nn.ModuleList(OneHead(width, width // heads, mistaken) for _ in range(heads))

    def forward(self, tokens, padding):
        return torch.cat([head(tokens) for head in self.each], -1)


class EmptyRows(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        logits = a @ b.transpose(2, 3) * (self.width // self.heads) ** -0.5
        ones = torch.ones(tokens.shape[1], tokens.shape[1])
        past = ones.tril(-1 if self.mistaken else 0)
        logits = logits.masked_fill(past == 0, -torch.inf)
        return self.merge(logits.softmax(-1) @ c)


class WrongAxis(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        logits = a @ b.transpose(2, 3) * (self.width // self.heads) ** -0.5
        return self.merge(F.softmax(logits, 2 if self.mistaken else 3) @ c)


class UnusedProbabilities(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        logits = a @ b.transpose(2, 3) * (self.width // self.heads) ** -0.5
        weights = logits.softmax(-1)
        return self.merge((logits if self.mistaken else weights) @ c), weights


class IgnoredAverage(Block):
    def forward(self, tokens, padding):
        a, b, c = self.split(tokens)
        logits = a @ b.transpose(2, 3) * (self.width // self.heads) ** -0.5
        weights = logits.softmax(-1)
        if self.mistaken:
            average = (weights.select(1, 0) + weights.select(1, 1)) / 2
        return self.merge(weights @ c)


class Twins(nn.Module):
    def __init__(self, mistaken):
        super().__init__()
        kinds = (DroppedMask, Multiplied, ModelWidth, ListOfHeads, EmptyRows, WrongAxis, IgnoredAverage)
        self.blocks = nn.ModuleList(kind(12, 2, mistaken) for kind in (*kinds, UnusedProbabilities))

    def forward(self, tokens, padding):
        *most, last = self.blocks
        for block in most:
            tokens = tokens + block(tokens, padding)
        return last(tokens, padding)


def save(program, path):
    """Saves without sample inputs. Of the metadata of a node, the file keeps only the line in this file."""
    stream = io.BytesIO()
    torch.export.save(program, stream)
    with zipfile.ZipFile(stream) as whole, zipfile.ZipFile(path, "w") as part:
        for name in whole.namelist():
            data = whole.read(name)
            if name.endswith("models/model.json"):
                model = json.loads(data)
                for node in model["graph_module"]["graph"]["nodes"]:
                    lines = re.findall(r'twins.py", line \d+', node["metadata"].get("stack_trace", ""))
                    node["metadata"] = {"stack_trace": 'File "' + lines[-1]} if lines else {}
                data = json.dumps(model, separators=(",", ":"))
            if "sample_inputs" not in name:
                part.writestr(name, data)


if __name__ == "__main__":
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    sizes = {"tokens": {0: batch, 1: length}, "padding": {0: batch, 3: length}}
    inputs = (torch.randn(2, 6, 12), torch.zeros(2, 1, 1, 6, dtype=torch.bool))
    for name in ("mistaken", "corrected"):
        model = Twins(name == "mistaken").eval()
        save(torch.export.export(model, inputs, dynamic_shapes=sizes), f"twins-{name}.pt2")
