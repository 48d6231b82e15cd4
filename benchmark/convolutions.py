"""convolutions.py [--threads N] [--only NAME] [--out FILE.json]: times convolutions beside PyTorch's eager mode, in turns.

The rows are single convolutions beside an attention or alone, and four models whose time is mostly spent in convolutions:
a U-Net and a decoder of images as diffusion models have them, a block of FastSpeech 2, and the first layers of Whisper.
All have random weights. The script prints attn's time relative to PyTorch's for each row.
It needs the environment of benchmark/peers/setup, or any other with PyTorch, and attn's Python package on PYTHONPATH.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

from lengths import find_cpu
from sweep import compare, compile, time_of


def attend(x, qkv, heads):
    """Self-attention over the pixels of an image or the steps of a sequence, of shape (batch, channels, ...)."""
    q, k, v = qkv(x.flatten(2).mT).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2).mT.reshape(x.shape)


class Mixer(nn.Module):
    """A convolution, and an attention over its pixels."""

    def __init__(self, channels=64):
        super().__init__()
        self.conv, self.qkv = nn.Conv2d(channels, channels, 3, padding=1), nn.Linear(channels, 3 * channels)

    def forward(self, x):
        return attend(self.conv(x), self.qkv, 4)


class Residual(nn.Module):
    """The block of diffusion models: twice a norm, SiLU and a convolution, with the embedding of time added between."""

    def __init__(self, channels, out, embedding=None):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, channels), nn.Conv2d(channels, out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, out), nn.Conv2d(out, out, 3, padding=1)
        self.embedding = nn.Linear(embedding, out) if embedding else None
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, time=None):
        h = self.conv1(functional.silu(self.norm1(x)))
        if self.embedding:
            h = h + self.embedding(functional.silu(time))[..., None, None]
        return self.conv2(functional.silu(self.norm2(h))) + self.skip(x)


class Attention(nn.Module):
    def __init__(self, channels, heads=4):
        super().__init__()
        self.norm, self.qkv, self.out, self.heads = nn.GroupNorm(8, channels), nn.Linear(channels, 3 * channels), nn.Conv2d(channels, channels, 1), heads

    def forward(self, x):
        return x + self.out(attend(self.norm(x), self.qkv, self.heads))


class UNet(nn.Module):
    """Three sizes of image: residual blocks at each, attention at the two smaller ones, and skips from down to up."""

    def __init__(self, width=32, embedding=128):
        super().__init__()
        sizes = (width, 2 * width, 4 * width)
        self.start = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(Residual(c, c, embedding) for c in sizes)
        self.down_attention = nn.ModuleList((nn.Identity(), Attention(sizes[1]), Attention(sizes[2])))
        self.smaller = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.middle = Residual(sizes[2], sizes[2], embedding)
        self.up = nn.ModuleList(Residual(2 * c, c, embedding) for c in reversed(sizes))
        self.up_attention = nn.ModuleList((Attention(sizes[2]), Attention(sizes[1]), nn.Identity()))
        self.larger = nn.ModuleList(nn.Conv2d(b, a, 3, padding=1) for a, b in reversed(list(zip(sizes, sizes[1:]))))
        self.norm, self.end = nn.GroupNorm(8, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, time):
        x, skips = self.start(x), []
        for level, (block, attention) in enumerate(zip(self.down, self.down_attention)):
            x = attention(block(x, time))
            skips.append(x)
            if level < 2:
                x = self.smaller[level](x)
        x = self.middle(x, time)
        for level, (block, attention) in enumerate(zip(self.up, self.up_attention)):
            x = attention(block(torch.cat((x, skips.pop()), 1), time))
            if level < 2:
                x = self.larger[level](functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.end(functional.silu(self.norm(x)))


class Decoder(nn.Module):
    """The decoder of an autoencoder of images: from (4, 16, 16) to (3, 128, 128)."""

    def __init__(self, width=128):
        super().__init__()
        self.start = nn.Conv2d(4, width, 3, padding=1)
        self.middle = nn.Sequential(Residual(width, width), Attention(width, 1), Residual(width, width))
        blocks = []
        for channels in (width, width // 2, width // 4):
            blocks += [Residual(channels, channels // 2), nn.Upsample(scale_factor=2.0), nn.Conv2d(channels // 2, channels // 2, 3, padding=1)]
        self.blocks = nn.Sequential(*blocks)
        self.end = nn.Sequential(nn.GroupNorm(8, width // 8), nn.SiLU(), nn.Conv2d(width // 8, 3, 3, padding=1))

    def forward(self, x):
        return self.end(self.blocks(self.middle(self.start(x))))


class SpeechBlock(nn.Module):
    """A block of FastSpeech 2: attention, then convolutions of 9 and of 1 step with 1024 channels between."""

    def __init__(self, width=256, inner=1024):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.conv1, self.conv2 = nn.Conv1d(width, inner, 9, padding=4), nn.Conv1d(inner, width, 1)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.conv2(functional.relu(self.conv1(x.mT))).mT)


def whisper_stem():
    return nn.Sequential(nn.Conv1d(80, 384, 3, padding=1), nn.GELU(), nn.Conv1d(384, 384, 3, stride=2, padding=1), nn.GELU())


def row(make, *shapes):
    return lambda: (make(), tuple(torch.randn(shape) for shape in shapes))


ROWS = {
    "3x3, 64 channels, 16x16, then attention": row(Mixer, (1, 64, 16, 16)),
    "3x3, 64 channels, 32x32": row(lambda: nn.Conv2d(64, 64, 3, padding=1), (1, 64, 32, 32)),
    "3x3, 64 channels, 32x32, stride 2": row(lambda: nn.Conv2d(64, 64, 3, 2, 1), (1, 64, 32, 32)),
    "3x3, 64 channels, 32x32, dilation 2": row(lambda: nn.Conv2d(64, 64, 3, padding=2, dilation=2), (1, 64, 32, 32)),
    "3x3, 256 channels, 16x16": row(lambda: nn.Conv2d(256, 256, 3, padding=1), (1, 256, 16, 16)),
    "7x7, 3 to 64 channels, 64x64, stride 2": row(lambda: nn.Conv2d(3, 64, 7, 2, 3), (1, 3, 64, 64)),
    "5, 256 channels, 200 steps": row(lambda: nn.Conv1d(256, 256, 5, padding=2), (1, 256, 200)),
    "3, 256 channels, 400 steps, stride 2": row(lambda: nn.Conv1d(256, 256, 3, 2, 1), (1, 256, 400)),
    "3x3x3, 32 channels, 8x16x16": row(lambda: nn.Conv3d(32, 32, 3, padding=1), (1, 32, 8, 16, 16)),
    "3x3, depthwise, 128 channels, 32x32": row(lambda: nn.Conv2d(128, 128, 3, padding=1, groups=128), (1, 128, 32, 32)),
    "15, depthwise, 256 channels, 200 steps": row(lambda: nn.Conv1d(256, 256, 15, padding=7, groups=256), (1, 256, 200)),
    "3x3, 4 groups, 64 channels, 32x32": row(lambda: nn.Conv2d(64, 64, 3, padding=1, groups=4), (1, 64, 32, 32)),
    "transposed, 2x2, stride 2, 64 channels, 16x16": row(lambda: nn.ConvTranspose2d(64, 64, 2, 2), (1, 64, 16, 16)),
    "transposed, 3x3, stride 2, 64 channels, 16x16": row(lambda: nn.ConvTranspose2d(64, 64, 3, 2, 1, 1), (1, 64, 16, 16)),
    "U-Net": row(UNet, (1, 3, 64, 64), (1, 128)),
    "decoder of images": row(Decoder, (1, 4, 16, 16)),
    "block of FastSpeech 2": row(SpeechBlock, (1, 200, 256)),
    "first layers of Whisper": row(whisper_stem, (1, 80, 3000)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="only rows whose name has this text")
    parser.add_argument("--out", help="writes the results to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    rows = []
    for name, make in ROWS.items():
        if options.only not in name:
            continue
        module, inputs, kernel = compile(make, options.threads)
        expected, result = module(*inputs), torch.as_tensor(kernel(*inputs))
        error = float((result - expected).abs().max() / expected.abs().max())
        if not error < 1e-4:
            raise SystemExit(f"convolutions.py: {name}: expected an error of at most 1e-4, got {error:.1e}")
        call, eager = lambda: kernel(*inputs), lambda: module(*inputs)
        rows.append({"name": name, "eager": compare(call, eager), "ms": 1e3 * time_of(call)})
        print(f"{name}: {rows[-1]['ms']:.3f} ms, {rows[-1]['eager']:.2f} of eager", flush=True)
    if rows:
        print(f"{len(rows)} rows, geometric mean {statistics.geometric_mean(row['eager'] for row in rows):.2f} of eager")
    if options.out:
        with open(options.out, "w") as file:
            json.dump({"cpu": find_cpu(), "date": time.strftime("%Y-%m-%d"), "threads": options.threads, "rows": rows}, file, indent=0)


if __name__ == "__main__":
    main()
