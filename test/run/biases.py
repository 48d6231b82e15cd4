"""biases.py FOLDER: compiles attentions whose scores have a bias that products compute, spelled by hand and given to
scaled_dot_product_attention. Both must give the results of torch in float64, and have equal products, slow loops and
extra work in their reports; the one that is spelled by hand may not need a tenth more workspace.
"""
import copy
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS = 32, 4


def attend(q, k, v, bias, is_spelled):
    scale = q.shape[-1] ** -0.5
    if is_spelled:
        return (q @ k.mT * scale + bias).softmax(-1) @ v
    return F.scaled_dot_product_attention(q, k, v, bias, scale=scale)


class Pair(nn.Module):
    """Each row of a pair tensor attends along the row, with a bias that all rows share."""

    def __init__(self, is_spelled, bias):
        super().__init__()
        self.is_spelled, self.qkv, self.bias = is_spelled, nn.Linear(WIDTH, 3 * WIDTH), bias

    def forward(self, pair):
        q, k, v = self.qkv(pair).unflatten(-1, (3, HEADS, -1)).permute(3, 0, 1, 4, 2, 5)
        return attend(q, k, v, self.bias(pair).permute(0, 3, 1, 2)[:, None], self.is_spelled)


class Gated(nn.Module):
    """A bias whose gate is computed from the same features."""

    def __init__(self):
        super().__init__()
        self.bias, self.gate = nn.Linear(WIDTH, HEADS), nn.Linear(WIDTH, HEADS)

    def forward(self, pair):
        return self.bias(pair) * torch.sigmoid(self.gate(pair))


class Triangle(nn.Module):
    """Triangle attention of a protein model, with a norm before it and a gate after it."""

    def __init__(self, is_spelled):
        super().__init__()
        self.is_spelled, self.norm = is_spelled, nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.bias = (nn.Linear(WIDTH, n, bias=False) for n in (WIDTH, WIDTH, WIDTH, HEADS))
        self.gate, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, pair):
        x = self.norm(pair)
        q, k, v = (layer(x).unflatten(-1, (HEADS, -1)).transpose(-2, -3) for layer in (self.q, self.k, self.v))
        out = attend(q, k, v, self.bias(x).permute(0, 3, 1, 2).unsqueeze(1), self.is_spelled)
        return pair + self.out(out.transpose(-2, -3).flatten(-2) * torch.sigmoid(self.gate(x)))


class Relative(nn.Module):
    """Scores with embeddings of distances: a row for each distance, or for each up to `limit`."""

    def __init__(self, is_spelled, length=48, limit=None, form="einsum"):
        super().__init__()
        self.is_spelled, self.form, self.qkv = is_spelled, form, nn.Linear(WIDTH, 3 * WIDTH)
        place = torch.arange(length)
        limit = limit or length - 1
        self.distance = nn.Embedding(2 * limit + 1, WIDTH // HEADS)
        self.register_buffer("places", (place[None] - place[:, None]).clamp(-limit, limit) + limit)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        rows = self.distance(self.places)
        if self.form == "matmul":
            bias = (q.permute(2, 0, 1, 3).flatten(1, 2) @ rows.mT).unflatten(1, q.shape[:2]).permute(1, 2, 0, 3)
        else:
            bias = torch.einsum("bhid,ijd->bhij", q, rows)
        if self.form == "keys":
            bias = bias + torch.einsum("bhjd,ijd->bhij", k, rows)
        return attend(q, k, v, bias * q.shape[-1] ** -0.5, self.is_spelled)


class SecondScores(nn.Module):
    """A second product of queries and keys, of positions apart from contents."""

    def __init__(self, is_spelled):
        super().__init__()
        self.is_spelled, self.qkv = is_spelled, nn.Linear(WIDTH, 3 * WIDTH)
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        p, r = (layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for layer in (self.q, self.k))
        return attend(q, k, v, p @ r.mT, self.is_spelled)


PAIRS, TOKENS = (1, 20, 20, WIDTH), (1, 48, WIDTH)
MODULES = {
    "pair": (lambda is_spelled: Pair(is_spelled, nn.Linear(WIDTH, HEADS)), PAIRS),
    "pair_mlp": (lambda is_spelled: Pair(is_spelled, nn.Sequential(
        nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, HEADS))), PAIRS),
    "pair_sigmoid": (lambda is_spelled: Pair(is_spelled, nn.Sequential(nn.Linear(WIDTH, HEADS), nn.Sigmoid())), PAIRS),
    "pair_gated": (lambda is_spelled: Pair(is_spelled, Gated()), PAIRS),
    "triangle": (Triangle, PAIRS),
    "relative": (Relative, TOKENS),
    "relative_clipped": (lambda is_spelled: Relative(is_spelled, limit=4), TOKENS),
    "relative_matmul": (lambda is_spelled: Relative(is_spelled, form="matmul"), TOKENS),
    "relative_of_keys": (lambda is_spelled: Relative(is_spelled, form="keys"), TOKENS),
    "second_scores": (SecondScores, TOKENS),
}


def measure(folder, name, is_spelled):
    """Compares with torch. Returns the numbers of products and slow loops, the extra work and the bytes of workspace."""
    make, shape = MODULES[name]
    torch.manual_seed(0)
    module, x = make(is_spelled).eval().requires_grad_(False), torch.randn(shape)
    path = folder / f"{name}_{'spelled' if is_spelled else 'sdpa'}"
    torch.export.save(torch.export.export(module, (x,), strict=False), path.with_suffix(".pt2"))
    np.save(path.with_suffix(".in.npy"), x.numpy())
    np.save(path.with_suffix(".npy"), copy.deepcopy(module).double()(x.double()).float().numpy())
    subprocess.run(["attnc", path.with_suffix(".pt2"), "-o", path.with_suffix(".so"), "--target=native",
                    "--require-fused", f"--opt-report={path.with_suffix('.report.json')}"], check=True)
    done = subprocess.run(["attn-run", path.with_suffix(".so"), f"--input={path.with_suffix('.in.npy')}", "--json",
                           f"--expect={path.with_suffix('.npy')}", "--tolerance=1e-5"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path.name}: {done.stderr}")
    report = json.loads(path.with_suffix(".report.json").read_text())
    if report["fused"] != 1:
        sys.exit(f"{path.name}: expected one fused attention, got {report['fused']}")
    products = report["levels"][0]["functions"][0]["products"]
    return (len(products), len(report["slow_loops"]), report["extra_work"]), json.loads(done.stdout)["workspace_bytes"]


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in MODULES:
        given, workspace = measure(folder, name, is_spelled=False)
        spelled, own = measure(folder, name, is_spelled=True)
        if spelled != given or own > 1.1 * workspace:
            sys.exit(f"{name}: expected {given} and about {workspace} bytes, got {spelled} and {own} bytes")
        print(f"{name}: right, {given[0]} products, {given[1]} slow loops")


if __name__ == "__main__":
    main()
