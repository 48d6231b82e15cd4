"""Attention as people write it by hand: one class for each way of writing it.

The classes differ in how heads are split, how the mask is made, and which terms are added to the scores. EXAMPLES, at
the end of this file, has the names, the arguments of constructors, and the inputs.
"""
import math

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import nn


def split(x, heads):
    """Reshapes (batch, length, width) to (batch, heads, length, width of a head)."""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merge(x):
    """The inverse of split()."""
    return x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[2], -1)


class Projections(nn.Module):
    """The base of most classes: three linear layers before attention, one after it. Subclasses compute the attention
    weights."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.scale = self.head_dim**-0.5
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def project(self, x):
        return (split(layer(x), self.heads) for layer in (self.query, self.key, self.value))

    def finish(self, weights, v):
        return self.out(merge(weights @ v))


# ---------------------------------------------------------------------------------------------------
# Ways to split heads
# ---------------------------------------------------------------------------------------------------


class EinsumAttention(Projections):
    def forward(self, x):
        q, k, v = self.project(x)
        weights = (torch.einsum("bhid,bhjd->bhij", q, k) * self.scale).softmax(dim=-1)
        return self.out(merge(torch.einsum("bhij,bhjd->bhid", weights, v)))


class EinsumNoTranspose(Projections):
    """The heads stay the third axis, because einsum reorders the dimensions."""

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (layer(x).reshape(n, t, self.heads, -1) for layer in (self.query, self.key, self.value))
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        weights = torch.softmax(energy / (c**0.5), dim=3)
        return self.out(torch.einsum("nhql,nlhd->nqhd", [weights, v]).reshape(n, t, c))


class EinopsAttention(nn.Module):
    """The style of lucidrains: einops, a norm before the projection, and no bias in the projection."""

    def __init__(self, dim=32, heads=4, dim_head=16):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(0.1))

    def forward(self, x):
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in qkv)
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        out = torch.matmul(dots.softmax(dim=-1), v)
        return x + self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class Head(nn.Module):
    def __init__(self, dim, size, block=64):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(dim, size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(block, block)))
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        t = x.shape[1]
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        return self.dropout(F.softmax(wei, dim=-1)) @ self.value(x)


class HeadList(nn.Module):
    """Each head is a module, and the outputs of the heads are concatenated."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = nn.ModuleList(Head(dim, dim // heads) for _ in range(heads))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class UnbindAttention(nn.Module):
    """One projection gives queries, keys and values, as in ViT."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        return self.proj((attn.softmax(-1) @ v).transpose(1, 2).reshape(b, s, c))


class LoopAttention(Projections):
    """A Python loop over slices of the width."""

    def forward(self, x):
        q, k, v, outs = self.query(x), self.key(x), self.value(x), []
        for h in range(self.heads):
            part = slice(h * self.head_dim, (h + 1) * self.head_dim)
            scores = torch.bmm(q[..., part], k[..., part].transpose(1, 2)) * self.scale
            outs.append(torch.bmm(scores.softmax(dim=-1), v[..., part]))
        return self.out(torch.cat(outs, dim=2))


class BatchedHeads(Projections):
    """The style of diffusers: heads are merged with the batch, and baddbmm computes scores. `context` has the keys."""

    def fold(self, x):
        b, t, c = x.shape
        x = x.reshape(b, t, self.heads, c // self.heads).permute(0, 2, 1, 3)
        return x.reshape(b * self.heads, t, c // self.heads)

    def forward(self, x, context):
        q, k, v = self.fold(self.query(x)), self.fold(self.key(context)), self.fold(self.value(context))
        nothing = torch.empty(q.shape[0], q.shape[1], k.shape[1], dtype=q.dtype, device=q.device)
        scores = torch.baddbmm(nothing, q, k.transpose(-1, -2), beta=0, alpha=self.scale)
        out = torch.bmm(scores.softmax(dim=-1), v)
        out = out.reshape(-1, self.heads, x.shape[1], self.head_dim).permute(0, 2, 1, 3)
        return self.out(out.reshape(x.shape))


class ListOfLinears(nn.Module):
    """The style of the Annotated Transformer: four copies of a layer in a list, and a mask that all heads share."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.h, self.d_k = heads, dim // heads
        self.linears = nn.ModuleList(nn.Linear(dim, dim) for _ in range(4))
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key, value, mask):
        n = query.size(0)
        query, key, value = [
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        p_attn = self.dropout(scores.masked_fill(mask.unsqueeze(1) == 0, -1e9).softmax(dim=-1))
        x = torch.matmul(p_attn, value).transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k)
        return self.linears[-1](x), p_attn


# ---------------------------------------------------------------------------------------------------
# Masks
# ---------------------------------------------------------------------------------------------------


class TrilAttention(Projections):
    """The mask is a slice of a triangular buffer, as long as the input."""

    def __init__(self, dim=32, heads=4, block=64):
        super().__init__(dim, heads)
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        t = x.size(1)
        q, k, v = self.project(x)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        return self.finish(F.softmax(att, dim=-1), v)


class TriuAttention(Projections):
    """Each call makes a triangle of -inf, which is added to the scores."""

    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.project(x)
        mask = torch.triu(torch.full((t, t), float("-inf"), dtype=x.dtype), diagonal=1)
        return self.finish(torch.softmax(q @ k.mT * self.scale + mask, dim=-1), v)


class SubtractedMask(TrilAttention):
    """GPT-1: w * b - 1e4 * (1 - b)."""

    def forward(self, x):
        q, k, v = self.project(x)
        w = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(v.size(-1))
        b = self.bias[:, :, : w.size(-2), : w.size(-1)]
        return self.finish(nn.Softmax(dim=-1)(w * b + -1e4 * (1 - b)), v)


class PaddedAttention(Projections):
    """The mask is 1 for tokens and 0 for padding."""

    def forward(self, x, mask):
        q, k, v = self.project(x)
        mask = (mask == 0).unsqueeze(1).unsqueeze(2)
        scores = (q @ k.transpose(2, 3)).div(math.sqrt(self.head_dim)).masked_fill(mask, float("-inf"))
        return self.finish(scores.softmax(-1), v)


class ExtendedMask(Projections):
    """BERT: (1 - mask) * the least float32 is added to the scores."""

    def forward(self, x, mask):
        q, k, v = self.project(x)
        extended = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(torch.float32).min
        return self.finish(F.softmax(q @ k.transpose(-1, -2) * self.scale + extended, dim=-1), v)


class SlidingWindow(Projections):
    """A query attends to the last `window` tokens and to the first `sinks` tokens, as in StreamingLLM."""

    def __init__(self, dim=32, heads=4, window=5, sinks=0):
        super().__init__(dim, heads)
        self.window, self.sinks = window, sinks

    def forward(self, x):
        q, k, v = self.project(x)
        i = torch.arange(x.shape[1], device=x.device)[:, None]
        j = torch.arange(x.shape[1], device=x.device)[None, :]
        visible = (j <= i) & ((i - j < self.window) | (j < self.sinks))
        scores = torch.where(visible, q @ k.transpose(-1, -2) * self.scale, float("-inf"))
        return self.finish(scores.softmax(-1), v)


class GraphAttention(nn.Module):
    """GAT: a score is the sum of two numbers, or -9e15 if the graph has no edge between the nodes."""

    def __init__(self, dim=32, size=16):
        super().__init__()
        self.W = nn.Linear(dim, size, bias=False)
        self.a1, self.a2 = nn.Linear(size, 1, bias=False), nn.Linear(size, 1, bias=False)

    def forward(self, x, adjacency):
        h = self.W(x)
        e = F.leaky_relu(self.a1(h) + self.a2(h).transpose(1, 2), 0.2)
        attention = torch.where(adjacency > 0, e, -9e15 * torch.ones_like(e))
        return F.elu(torch.matmul(F.softmax(attention, dim=2), h))


# ---------------------------------------------------------------------------------------------------
# Whole blocks
# ---------------------------------------------------------------------------------------------------


class NanoGPTBlock(nn.Module):
    """Norm, attention of a split projection, norm and MLP. `flash` selects the fused op instead of a mask."""

    def __init__(self, dim=32, heads=4, flash=True):
        super().__init__()
        self.heads, self.flash = heads, flash
        self.ln_1, self.ln_2 = nn.LayerNorm(dim, bias=False), nn.LayerNorm(dim, bias=False)
        self.c_attn, self.c_proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.Dropout(0.1))
        self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))

    def attend(self, x):
        t, c = x.shape[1:]
        q, k, v = (split(part, self.heads) for part in self.c_attn(x).split(c, dim=2))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            y = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf")).softmax(dim=-1) @ v
        return self.c_proj(merge(y))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class MinGPTBlock(nn.Module):
    """Like NanoGPTBlock, but with a GELU of elementary ops, and with the MLP in a dictionary of modules."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.attn = TrilAttention(dim, heads)
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(dim, 4 * dim), "c_proj": nn.Linear(4 * dim, dim)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        h = self.mlp.c_fc(self.ln_2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        return x + self.mlp.c_proj(h)


class AxialAttention(nn.Module):
    """Attention along rows, then along columns."""

    def __init__(self, dim=16):
        super().__init__()
        self.rows, self.columns = UnbindAttention(dim, 2), UnbindAttention(dim, 2)

    def forward(self, x):
        b, c, h, w = x.shape
        across = self.rows(x.permute(0, 2, 3, 1).reshape(b * h, w, c)).reshape(b, h, w, c)
        down = self.columns(across.permute(0, 2, 1, 3).reshape(b * w, h, c)).reshape(b, w, h, c)
        return down.permute(0, 3, 2, 1)


class PixelAttention(nn.Module):
    """SAGAN and diffusion models: attention of pixels, with 1 x 1 convolutions as projections."""

    def __init__(self, dim=16):
        super().__init__()
        self.norm = nn.GroupNorm(4, dim)
        self.q, self.k, self.v, self.out = (nn.Conv2d(dim, dim, 1) for _ in range(4))
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x)
        q, k = self.q(y).view(b, -1, h * w).permute(0, 2, 1), self.k(y).view(b, -1, h * w)
        attention = torch.softmax(torch.bmm(q, k) * c**-0.5, dim=-1)
        out = torch.bmm(self.v(y).view(b, -1, h * w), attention.permute(0, 2, 1)).view(b, c, h, w)
        return self.gamma * self.out(out) + x


# ---------------------------------------------------------------------------------------------------
# Positions
# ---------------------------------------------------------------------------------------------------


def angles(length, dim):
    return torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, dim, 2).float() / dim))


class ComplexRotary(Projections):
    """As in Llama's code, pairs of elements are complex numbers, and the table of rotations is an argument."""

    def forward(self, x, cos_sin):
        n, t, _ = x.shape
        freqs = torch.view_as_complex(cos_sin).view(1, t, 1, -1)
        q, k, v = (layer(x).view(n, t, self.heads, -1) for layer in (self.query, self.key, self.value))

        def rotate(y):
            pairs = torch.view_as_complex(y.reshape(n, t, self.heads, -1, 2))
            return torch.view_as_real(pairs * freqs).flatten(3)

        q, k, v = rotate(q).transpose(1, 2), rotate(k).transpose(1, 2), v.transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        return self.finish(F.softmax(scores, dim=-1), v)


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Rotary(Projections):
    """Rotates halves. Only `part` of the width of a head is rotated, as in GPT-NeoX. The tables are buffers."""

    def __init__(self, dim=32, heads=4, part=1.0):
        super().__init__(dim, heads)
        self.rotated = int(self.head_dim * part)
        table = angles(64, self.rotated).repeat(1, 2)
        self.register_buffer("cos", table.cos(), persistent=False)
        self.register_buffer("sin", table.sin(), persistent=False)

    def rotate(self, x):
        cos, sin = self.cos[: x.shape[2]], self.sin[: x.shape[2]]
        turned, rest = x[..., : self.rotated], x[..., self.rotated :]
        return torch.cat([turned * cos + rotate_half(turned) * sin, rest], dim=-1)

    def forward(self, x):
        q, k, v = self.project(x)
        return self.out(merge(F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)))


class InterleavedRotary(Rotary):
    """GPT-J: an even element and the odd element after it are a pair. Each call computes the sines and cosines."""

    def rotate(self, x):
        table = angles(x.shape[2], self.head_dim).to(x.dtype).repeat_interleave(2, dim=-1)
        swapped = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * table.cos() + swapped * table.sin()


class Alibi(Projections):
    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.project(x)
        slopes = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1, device=x.device) / self.heads)
        positions = torch.arange(t, device=x.device)
        distance = (positions[None, :] - positions[:, None]).clamp(max=0)
        scores = q @ k.transpose(-1, -2) * self.scale + slopes.to(x.dtype).view(-1, 1, 1) * distance
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        return self.finish(scores.masked_fill(hidden, torch.finfo(torch.float32).min).softmax(-1), v)


class BucketBias(Projections):
    """T5: a learned number for each head and bucket of distances is added to scores, which have no scale."""

    def __init__(self, dim=32, heads=4, buckets=16, farthest=32):
        super().__init__(dim, heads)
        self.buckets, self.farthest = buckets, farthest
        self.bias = nn.Embedding(buckets, heads)

    def bucket(self, distance):
        half = self.buckets // 2
        exact = half // 2
        size = distance.abs()
        far = exact + (
            torch.log(size.float() / exact) / math.log(self.farthest / exact) * (half - exact)
        ).to(torch.long)
        far = torch.min(far, torch.full_like(far, half - 1))
        return (distance > 0).to(torch.long) * half + torch.where(size < exact, size, far)

    def forward(self, x):
        q, k, v = self.project(x)
        at = torch.arange(x.shape[1], dtype=torch.long)
        bias = self.bias(self.bucket(at[None, :] - at[:, None])).permute(2, 0, 1).unsqueeze(0)
        scores = torch.matmul(q, k.transpose(3, 2)) + bias
        return self.finish(F.softmax(scores.float(), dim=-1).type_as(scores), v)


class RelativeShift(Projections):
    """Transformer-XL: a pad and a view shift the scores of the relative positions."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.position = nn.Linear(dim, dim, bias=False)
        self.of_content, self.of_place = (nn.Parameter(torch.zeros(heads, 1, dim // heads)) for _ in range(2))

    def forward(self, x, positions):
        q, k, v = self.project(x)
        content = (q + self.of_content) @ k.transpose(-1, -2)
        place = (q + self.of_place) @ split(self.position(positions), self.heads).transpose(-1, -2)
        b, h, t, length = place.shape
        place = F.pad(place, (1, 0)).view(b, h, length + 1, t)[:, :, 1:].view(b, h, t, length)
        return self.finish(torch.softmax((content + place) * self.scale, dim=-1), v)


# ---------------------------------------------------------------------------------------------------
# Caches, and fewer keys than queries
# ---------------------------------------------------------------------------------------------------


class GrowingCache(Projections):
    """Keys and values of new tokens are appended to a cache, and the longer cache is returned."""

    def forward(self, x, past_key, past_value):
        q, k, v = self.project(x)
        k, v = torch.cat([past_key, k], dim=-2), torch.cat([past_value, v], dim=-2)
        allowed = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril(k.size(-2) - q.size(-2))
        scores = (q @ k.transpose(-1, -2) * self.scale).masked_fill(~allowed, float("-inf"))
        return self.finish(scores.softmax(-1), v), k, v


class FixedCache(Projections):
    """A cache of fixed length is in buffers, to which keys and values of new tokens are written at their positions."""

    def __init__(self, dim=32, heads=4, length=24, batch=2, slices=False):
        super().__init__(dim, heads)
        self.slices = slices
        for name in ("cache_k", "cache_v"):
            self.register_buffer(name, torch.zeros(batch, heads, length, dim // heads))

    def forward(self, x, position):
        q, k, v = self.project(x)
        if self.slices:
            self.cache_k[:, :, position] = k
            self.cache_v[:, :, position] = v
        else:
            self.cache_k.index_copy_(2, position, k)
            self.cache_v.index_copy_(2, position, v)
        visible = torch.arange(self.cache_k.shape[2])[None, :] <= position[:, None]
        return self.out(merge(F.scaled_dot_product_attention(q, self.cache_k, self.cache_v, attn_mask=visible)))


class GroupedQueries(nn.Module):
    """There are fewer heads of keys than of queries. expand() or repeat_interleave() repeats the heads of keys."""

    def __init__(self, dim=32, heads=4, kv_heads=2, expand=False):
        super().__init__()
        self.heads, self.kv_heads, self.expand = heads, kv_heads, expand
        self.q = nn.Linear(dim, dim, bias=False)
        self.k, self.v = (nn.Linear(dim, dim // heads * kv_heads, bias=False) for _ in range(2))
        self.o = nn.Linear(dim, dim, bias=False)

    def repeat(self, x):
        b, h, t, d = x.shape
        times = self.heads // self.kv_heads
        if self.expand:
            return x[:, :, None, :, :].expand(b, h, times, t, d).reshape(b, h * times, t, d)
        return x.repeat_interleave(times, dim=1)

    def forward(self, x):
        q, k, v = split(self.q(x), self.heads), split(self.k(x), self.kv_heads), split(self.v(x), self.kv_heads)
        scores = q @ self.repeat(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores + torch.full_like(scores, float("-inf")).triu(1)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o(merge(weights @ self.repeat(v)))


class LatentAttention(nn.Module):
    """DeepSeek: keys and values are projections of a narrow latent; all heads share a rotated part of each key."""

    def __init__(self, dim=32, heads=4, latent=16, nope=8, rope=8):
        super().__init__()
        self.heads, self.latent, self.nope, self.rope = heads, latent, nope, rope
        self.q = nn.Linear(dim, heads * (nope + rope), bias=False)
        self.down = nn.Linear(dim, latent + rope, bias=False)
        self.norm = nn.RMSNorm(latent)
        self.up = nn.Linear(latent, heads * 2 * nope, bias=False)
        self.out = nn.Linear(heads * nope, dim, bias=False)
        self.register_buffer("table", angles(64, rope).repeat(1, 2))

    def rotate(self, x):
        table = self.table[: x.shape[-2]]
        return x * table.cos() + rotate_half(x) * table.sin()

    def forward(self, x):
        q_nope, q_rope = split(self.q(x), self.heads).split([self.nope, self.rope], dim=-1)
        latent, k_rope = torch.split(self.down(x), [self.latent, self.rope], dim=-1)
        k_nope, v = split(self.up(self.norm(latent)), self.heads).chunk(2, dim=-1)
        k_rope = self.rotate(k_rope.unsqueeze(1)).expand(-1, self.heads, -1, -1)
        q, k = torch.cat([q_nope, self.rotate(q_rope)], dim=-1), torch.cat([k_nope, k_rope], dim=-1)
        return self.out(merge(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class LearnedQueries(nn.Module):
    """Perceiver: a few learned queries attend to the input."""

    def __init__(self, dim=32, heads=4, latents=6):
        super().__init__()
        self.heads = heads
        self.latents = nn.Parameter(torch.randn(latents, dim))
        self.norm, self.norm_context = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_q, self.to_kv = nn.Linear(dim, dim, bias=False), nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, context):
        x = repeat(self.latents, "n d -> b n d", b=context.shape[0])
        k, v = self.to_kv(self.norm_context(context)).chunk(2, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> (b h) n d", h=self.heads) for t in (self.to_q(self.norm(x)), k, v))
        attn = torch.einsum("b i d, b j d -> b i j", q, k).mul(q.shape[-1] ** -0.5).softmax(dim=-1)
        out = torch.einsum("b i j, b j d -> b i d", attn, v)
        return x + self.to_out(rearrange(out, "(b h) n d -> b n (h d)", h=self.heads))


# ---------------------------------------------------------------------------------------------------
# Unusual scores, weights and outputs
# ---------------------------------------------------------------------------------------------------


class Softcap(Projections):
    """Gemma 2: scores are limited to [-cap, cap]."""

    def forward(self, x):
        q, k, v = self.project(x)
        scores = torch.tanh(q @ k.transpose(-1, -2) * self.scale / 5.0) * 5.0
        return self.finish(scores.softmax(-1), v)


class SinkLogit(Projections):
    """gpt-oss: each head has an additional score, whose probability is dropped."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.sinks = nn.Parameter(torch.zeros(heads))

    def forward(self, x):
        q, k, v = self.project(x)
        scores = q @ k.transpose(-1, -2) * self.scale
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(q.shape[0], -1, q.shape[-2], -1)
        return self.finish(F.softmax(torch.cat([scores, sinks], dim=-1), dim=-1)[..., :-1], v)


class CosineAttention(Projections):
    """Swin v2: queries and keys are normalised to norm 1, and the scale is learned and bounded."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones(heads, 1, 1)))

    def forward(self, x):
        q, k, v = self.project(x)
        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        return self.finish((attn * torch.clamp(self.logit_scale, max=math.log(100.0)).exp()).softmax(-1), v)


class GatedAttention(Projections):
    """AlphaFold: a bias is added for each pair, and a sigmoid gate multiplies the outputs of heads."""

    def __init__(self, dim=32, heads=4, pair=8):
        super().__init__(dim, heads)
        self.gate, self.pair_bias = nn.Linear(dim, dim), nn.Linear(pair, heads, bias=False)

    def forward(self, x, pair):
        q, k, v = self.project(x)
        scores = torch.einsum("bhqc,bhkc->bhqk", q * self.scale, k) + self.pair_bias(pair).permute(0, 3, 1, 2)
        return self.out(merge(scores.softmax(-1) @ v) * torch.sigmoid(self.gate(x)))


class TalkingHeads(Projections):
    """CaiT: linear layers mix the heads before and after the softmax."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.before, self.after = nn.Linear(heads, heads), nn.Linear(heads, heads)

    def forward(self, x):
        q, k, v = self.project(x)
        attn = self.before((q * self.scale @ k.transpose(-2, -1)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.finish(self.after(attn.softmax(dim=-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2), v)


class ManualSoftmax(Projections):
    """The softmax is exp / sum, with or without subtracting the largest score."""

    def __init__(self, dim=32, heads=4, shifted=True):
        super().__init__(dim, heads)
        self.shifted = shifted

    def forward(self, x):
        q, k, v = self.project(x)
        scores = q @ k.transpose(-1, -2) * self.scale
        if self.shifted:
            scores = scores - scores.max(dim=-1, keepdim=True).values
        e = torch.exp(scores)
        return self.finish(e / e.sum(dim=-1, keepdim=True), v)


class ChannelAttention(Projections):
    """XCiT: attention of channels to channels."""

    def __init__(self, dim=32, heads=4):
        super().__init__(dim, heads)
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x):
        q, k, v = (t.transpose(-2, -1) for t in self.project(x))
        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.temperature
        return self.out((attn.softmax(dim=-1) @ v).permute(0, 3, 1, 2).reshape(x.shape))


class LinearAttention(Projections):
    """There is no softmax: elu(q) + 1 is multiplied by a sum over keys."""

    def forward(self, x):
        q, k, v = self.project(x)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        context = torch.einsum("bhnd,bhne->bhde", k, v)
        normalizer = 1 / (torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=2)) + 1e-6)
        return self.out(merge(torch.einsum("bhnd,bhde,bhn->bhne", q, context, normalizer)))


class AdditiveAttention(nn.Module):
    """Bahdanau: scores are computed from tanh of a sum, for one query."""

    def __init__(self, dim=32):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class WeightsToo(Projections):
    """The weights are results too, for each head and as the mean over heads. eval() turns the dropout off."""

    def forward(self, x):
        q, k, v = self.project(x)
        weights = F.dropout((q @ k.transpose(-1, -2) * self.scale).softmax(-1), 0.1, self.training)
        return self.finish(weights, v), weights, weights.mean(dim=1)


def tokens(batch, length, dim=32):
    return torch.randn(batch, length, dim)


def padding(batch, length):
    """Returns 1 for tokens and 0 after the last token. Each row has three tokens fewer than the previous row."""
    return (torch.arange(length) < length - 3 * torch.arange(batch)[:, None]).long()


def one(b, t):
    return (tokens(b, t),)


# Each example has a name, the module, and a function of a batch and a length that returns the inputs.
EXAMPLES = [
    ("einsum", EinsumAttention, one),
    ("einsum-no-transpose", EinsumNoTranspose, one),
    ("einops-chunk", EinopsAttention, one),
    ("list-of-heads", HeadList, one),
    ("qkv-unbind", UnbindAttention, one),
    ("loop-of-heads", LoopAttention, one),
    ("baddbmm-cross", BatchedHeads, lambda b, t: (tokens(b, t), tokens(b, t + 4))),
    ("list-of-linears", ListOfLinears, lambda b, t: (*[tokens(b, t) for _ in range(3)], padding(b, t)[:, None])),
    ("tril-buffer", TrilAttention, one),
    ("triu-inf", TriuAttention, one),
    ("gpt1-mask", SubtractedMask, one),
    ("padding-eq-0", PaddedAttention, lambda b, t: (tokens(b, t), padding(b, t))),
    ("padding-extended", ExtendedMask, lambda b, t: (tokens(b, t), padding(b, t))),
    ("sliding-window", SlidingWindow, one),
    ("sliding-window-sinks", lambda: SlidingWindow(sinks=2), one),
    ("graph", GraphAttention, lambda b, t: (tokens(b, t), (torch.rand(b, t, t) > 0.5).float() + torch.eye(t))),
    ("nanogpt-block", NanoGPTBlock, one),
    ("nanogpt-block-slow", lambda: NanoGPTBlock(flash=False), one),
    ("mingpt-block", MinGPTBlock, one),
    ("axial", AxialAttention, lambda b, t: (torch.randn(b, 16, 5, t),)),
    ("pixels", PixelAttention, lambda b, t: (torch.randn(b, 16, 5, t),)),
    ("rotary-complex", ComplexRotary, lambda b, t: (tokens(b, t), torch.view_as_real((1j * angles(t, 8)).exp()))),
    ("rotary-half", Rotary, one),
    ("rotary-part", lambda: Rotary(heads=2, part=0.5), one),
    ("rotary-pairs", InterleavedRotary, one),
    ("alibi", Alibi, one),
    ("t5-buckets", BucketBias, one),
    ("relative-shift", RelativeShift, lambda b, t: (tokens(b, t), tokens(1, t))),
    ("cache-cat", GrowingCache, lambda b, t: (tokens(b, 3), torch.randn(b, 4, t, 8), torch.randn(b, 4, t, 8))),
    ("cache-index-copy", FixedCache, lambda b, t: (tokens(2, t), torch.arange(t))),
    ("cache-slice", lambda: FixedCache(slices=True), lambda b, t: (tokens(2, t), torch.arange(t))),
    ("gqa-repeat-interleave", GroupedQueries, one),
    ("gqa-expand", lambda: GroupedQueries(expand=True), one),
    ("mla", LatentAttention, one),
    ("learned-queries", LearnedQueries, one),
    ("softcap", Softcap, one),
    ("sink-logit", SinkLogit, one),
    ("cosine", CosineAttention, one),
    ("gated-pair-bias", GatedAttention, lambda b, t: (tokens(b, t), torch.randn(b, t, t, 8))),
    ("talking-heads", TalkingHeads, one),
    ("softmax-by-hand", ManualSoftmax, one),
    ("softmax-unshifted", lambda: ManualSoftmax(shifted=False), one),
    ("channels", ChannelAttention, one),
    ("linear", LinearAttention, one),
    ("additive", AdditiveAttention, lambda b, t: (tokens(b, 1), tokens(b, t))),
    ("weights-too", WeightsToo, one),
]
