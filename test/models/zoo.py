"""A zoo of attention models: exports each model, compiles it with attnc, and compares its results with float64.

    zoo.py --bin DIR --out DIR [--only REGEX] [--batch N] [--decompose] [--dynamic] [--report-only] [--table FILE [--write]]
    zoo.py --bin DIR --out DIR --gpu [--only REGEX] [--table FILE [--write]]
    zoo.py --list
    zoo.py --ops --out DIR

Models come from transformers, timm, torch.nn and handwritten.py. They are small and have random weights. The script
prints a line for each model: whether torch.export accepted it, whether attnc compiled it, how many attentions were
fused, the error of attn against float64, the error of torch in float32, and the first line of an error message.

--decompose exports core aten ops. --dynamic makes dynamic every size that a model's inputs allow, and calls the
library with two sets of sizes. The script writes to OUT the files NAME.pt2, NAME.so, NAME.report.txt, inputs as
NAME.in0.npy, float64 results as NAME.expected0.npy, and results of attn as NAME.got/0.npy; files of the second set of
sizes are NAME.other.in0.npy and so on. --ops counts the ops of the exported files in OUT.

With --gpu, the script compiles each model for sm_80 and for sm_90a, and runs nothing.

The script exits with 1 if an exported model does not compile or gives wrong results, except with --report-only. It also
exits with 1 if the number of fused attentions of a model differs from the number in FILE; --write writes FILE instead.
For each model that torch cannot export, the script prints a line that test/summary.py counts.

Needs torch, transformers, timm, einops and numpy.
"""
import argparse
import collections
import copy
import dataclasses
import functools
import importlib
import inspect
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np
import timm
import torch
import torch.nn.functional as F
import transformers
from timm.models import cait, swin_transformer, vision_transformer
from torch import nn
from torch.utils import _pytree as pytree

sys.path.append(str(Path(__file__).resolve().parent.parent))
import handwritten
import table
from handwritten import padding, tokens

# ---------------------------------------------------------------------------------------------------
# The models
# ---------------------------------------------------------------------------------------------------

# Maps the name of a model to two functions. The first makes the module. The second returns the inputs for a batch and a
# length: positional arguments and keyword arguments.
MODELS = {}


def add(name, build, inputs):
    assert name not in MODELS, name
    MODELS[name] = build, inputs


def given(*args, **kwargs):
    """Returns the arguments of a call."""
    return args, kwargs


for name, build, inputs in handwritten.EXAMPLES:
    add(f"hand-{name}", build, lambda b, t, inputs=inputs: given(*inputs(b, t)))

# --- torch.nn --------------------------------------------------------------------------------------


def triangle(t):
    return nn.Transformer.generate_square_subsequent_mask(t)


def one(b, t):
    return given(tokens(b, t))


class Sdpa(nn.Module):
    """scaled_dot_product_attention itself, after projections to heads."""

    def __init__(self, kv_heads=4, **options):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(32, 32), nn.Linear(32, 8 * kv_heads), nn.Linear(32, 8 * kv_heads)
        self.kv_heads, self.options = kv_heads, options

    def forward(self, x, mask=None):
        q = handwritten.split(self.q(x), 4)
        k, v = (handwritten.split(layer(x), self.kv_heads) for layer in (self.k, self.v))
        return handwritten.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options))


class SelfAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention of one input, with constants as the other arguments of the call."""

    def __init__(self, need_weights=False, average_attn_weights=True, **options):
        super().__init__(32, 4, batch_first=True, **options)
        self.how = dict(need_weights=need_weights, average_attn_weights=average_attn_weights)

    def forward(self, x, key_padding_mask=None, attn_mask=None):
        out, weights = super().forward(x, x, x, key_padding_mask, attn_mask=attn_mask, **self.how)
        return (out, weights) if self.how["need_weights"] else out


class CausalTransformer(nn.Transformer):
    """Passes is_causal, because nn.Transformer otherwise reads the elements of a mask to find out if it is causal."""

    def forward(self, src, tgt, tgt_mask, memory_key_padding_mask):
        return super().forward(src, tgt, tgt_mask=tgt_mask, memory_key_padding_mask=memory_key_padding_mask,
                               tgt_is_causal=True)


def hidden(b, t):
    """Returns a mask that is True for padding."""
    return padding(b, t) == 0


def with_memory(b, t):
    """Returns the masks of a decoder with a memory."""
    return dict(tgt_mask=triangle(t), memory_key_padding_mask=hidden(b, t + 4))


LAYER = dict(d_model=32, nhead=4, dim_feedforward=64, batch_first=True)
for suffix, masks in {
    "": lambda b, t: {},
    "-padding": lambda b, t: dict(key_padding_mask=hidden(b, t)),
    "-mask": lambda b, t: dict(attn_mask=triangle(t)),
    "-both": lambda b, t: dict(attn_mask=triangle(t) != 0, key_padding_mask=hidden(b, t)),
}.items():
    inputs = lambda b, t, masks=masks: given(tokens(b, t), **masks(b, t))
    add(f"nn-mha{suffix}", SelfAttention, inputs)
    add(f"nn-mha-weights{suffix}", lambda: SelfAttention(need_weights=True), inputs)

for name, build, inputs in [
    ("mha-each-head", lambda: SelfAttention(need_weights=True, average_attn_weights=False), one),
    ("mha-bias-kv-zero", lambda: SelfAttention(add_bias_kv=True, add_zero_attn=True), one),
    ("mha-cross", lambda: nn.MultiheadAttention(32, 4, kdim=24, vdim=20),
     lambda b, t: given(tokens(t, b), tokens(t + 4, b, 24), tokens(t + 4, b, 20))),
    ("encoder-layer-post-relu", lambda: nn.TransformerEncoderLayer(**LAYER),
     lambda b, t: given(tokens(b, t), src_key_padding_mask=hidden(b, t))),
    ("encoder-layer-pre-gelu",
     lambda: nn.TransformerEncoderLayer(**LAYER, norm_first=True, activation="gelu"), one),
    ("encoder-layer-causal", lambda: nn.TransformerEncoderLayer(**LAYER),
     lambda b, t: given(tokens(b, t), src_mask=triangle(t))),
    ("encoder-layer-length-first", lambda: nn.TransformerEncoderLayer(32, 4, 64),
     lambda b, t: given(tokens(t, b))),
    ("encoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER), 2),
     lambda b, t: given(tokens(b, t), src_key_padding_mask=hidden(b, t))),
    ("decoder-layer", lambda: nn.TransformerDecoderLayer(**LAYER),
     lambda b, t: given(tokens(b, t), tokens(b, t + 4), **with_memory(b, t))),
    ("transformer", lambda: CausalTransformer(32, 4, 2, 2, 64, batch_first=True),
     lambda b, t: given(tokens(b, t + 4), tokens(b, t), **with_memory(b, t))),
    ("sdpa", Sdpa, one),
    ("sdpa-scale", lambda: Sdpa(scale=0.2), one),
    ("sdpa-causal", lambda: Sdpa(is_causal=True), one),
    ("sdpa-bool-mask", Sdpa, lambda b, t: given(tokens(b, t), torch.rand(b, 1, t, t) > 0.3)),
    ("sdpa-float-mask", Sdpa, lambda b, t: given(tokens(b, t), torch.randn(4, t, t))),
    ("sdpa-gqa", lambda: Sdpa(kv_heads=2, enable_gqa=True), one),
    ("sdpa-gqa-causal", lambda: Sdpa(kv_heads=1, enable_gqa=True, is_causal=True), one),
]:
    add(f"nn-{name}", build, inputs)

# --- transformers ----------------------------------------------------------------------------------

# Configurations of models have different names for the same sizes.
COMMON = dict(vocab_size=100, pad_token_id=0, bos_token_id=1, eos_token_id=2, use_cache=False)
USUAL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
GROUPED = dict(USUAL, num_key_value_heads=2, head_dim=8)
WINDOWED = dict(GROUPED, sliding_window=5)
GPT = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)
T5 = dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, relative_attention_num_buckets=8,
          relative_attention_max_distance=16)
BART = dict(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, decoder_layers=2,
            decoder_attention_heads=4, decoder_ffn_dim=64, max_position_embeddings=64, decoder_start_token_id=2)
WHISPER = dict(BART, num_mel_bins=16, max_source_positions=20, max_target_positions=32)
DEBERTA = dict(USUAL, relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16,
               position_buckets=8)
DEEPSEEK = dict(USUAL, num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8,
                qk_nope_head_dim=8, v_head_dim=8, first_k_dense_replace=2)
GPT_NEO = dict(hidden_size=32, num_layers=2, num_heads=4, window_size=5,
               attention_types=[[["global", "local"], 1]])
XLNET = dict(d_model=32, n_layer=2, n_head=4, d_inner=64)
FUNNEL = dict(block_sizes=[1, 1], block_repeats=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64)
PICTURE = dict(USUAL, image_size=32, patch_size=8)
SWIN = dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
STAGES = dict(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32], patch_sizes=[7, 3],
              strides=[4, 2], num_attention_heads=[2, 4], mlp_ratios=[2, 2], decoder_hidden_size=16)
PERCEIVER = dict(d_model=32, num_latents=6, d_latents=32, num_self_attends_per_block=1,
                 num_self_attention_heads=4, num_cross_attention_heads=4)
SPEECH = dict(USUAL, conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2,
              num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)


def configuration(kind, sizes, how):
    config = transformers.AutoConfig.for_model(kind, **{**COMMON, **sizes})
    config._attn_implementation = how
    return config


EAGER, BOTH = ("eager",), ("eager", "sdpa")  # implementations of attention in transformers


def hf(name, kind, sizes, inputs, hows=BOTH, cls=None):
    """Adds a whole model without a head."""

    def build(how):
        config = configuration(kind, sizes, how)
        return getattr(transformers, cls)(config) if cls else transformers.AutoModel.from_config(config)

    for how in hows:
        add(f"hf-{name}-{how}", functools.partial(build, how), inputs)


def hf_layer(name, kind, sizes, cls, inputs, hows=BOTH, **options):
    """Adds one layer of a model, given by its class. The caller makes the mask."""

    def build(how):
        module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
        return getattr(module, cls)(configuration(kind, sizes, how), **options)

    for how in hows:
        add(f"hf-{name}-layer-{how}", functools.partial(build, how), inputs)


def words(b, t):
    return torch.randint(3, 100, (b, t))


def text(b, t):
    return given(input_ids=words(b, t), attention_mask=padding(b, t))


def unpadded(b, t):
    return given(input_ids=words(b, t))


def two_texts(b, t):
    return given(input_ids=words(b, t), attention_mask=padding(b, t), decoder_input_ids=words(b, t - 4))


def picture(b, t):
    return given(pixel_values=torch.randn(b, 3, 32, 32))


# Encoders of text.
for kind, sizes in {
    "bert": USUAL,
    "roberta": dict(USUAL, pad_token_id=1),
    "electra": dict(USUAL, embedding_size=16),
    "albert": dict(USUAL, embedding_size=16),
    "distilbert": dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "modernbert": dict(USUAL, global_attn_every_n_layers=2, local_attention=8, cls_token_id=1, sep_token_id=2),
    "esm": dict(USUAL, position_embedding_type="rotary", mask_token_id=3, emb_layer_norm_before=True),
    "eurobert": GROUPED,
}.items():
    hf(kind, kind, sizes, text)
# With a dynamic length, slices in DeBERTa would have sizes that depend on an element, which attn does not support.
hf("deberta", "deberta", DEBERTA, lambda b, t: text(b, 13), EAGER)
for kind, sizes in {
    "deberta-v2": dict(DEBERTA, share_att_key=True),
    "mpnet": USUAL,
    "roformer": USUAL,
    "squeezebert": dict(USUAL, embedding_size=32),
    "convbert": dict(USUAL, embedding_size=32),
    "mobilebert": dict(USUAL, embedding_size=16, intra_bottleneck_size=16, num_feedforward_networks=2),
    "xlm": dict(emb_dim=32, n_layers=2, n_heads=4),
}.items():
    hf(kind, kind, sizes, text, EAGER)
# torch.export cannot make the length of these models dynamic.
hf("xlnet", "xlnet", XLNET, lambda b, t: text(b, 13), EAGER)
hf("funnel", "funnel", FUNNEL, lambda b, t: text(b, 13), EAGER, "FunnelModel")

# Decoders of text. Some inputs have no padding, so that these models need not make a mask.
for kind, sizes in {
    "gpt2": GPT,
    "gpt_neox": dict(USUAL, rotary_pct=0.5),
    "gpt_bigcode": dict(GPT, multi_query=True),
    "opt": dict(USUAL, ffn_dim=64, word_embed_proj_dim=32),
    "falcon": dict(USUAL, new_decoder_architecture=True, num_kv_heads=2),
    "llama": GROUPED,
    "mistral": WINDOWED,
    "qwen2": GROUPED,
    "qwen3": GROUPED,
    "gemma": GROUPED,
    "gemma3_text": dict(WINDOWED, layer_types=["sliding_attention", "full_attention"]),
    "phi": dict(USUAL, partial_rotary_factor=0.5),
    "phi3": GROUPED,
    "cohere": dict(GROUPED, use_qk_norm=True),
    "stablelm": dict(USUAL, num_key_value_heads=4, use_qkv_bias=True),
    "olmo2": GROUPED,
    "smollm3": GROUPED,
    "glm": dict(GROUPED, partial_rotary_factor=0.5),
    "deepseek_v3": DEEPSEEK,
    "mixtral": dict(GROUPED, num_local_experts=4),
}.items():
    hf(kind, kind, sizes, text)
    if kind in ("gpt2", "opt", "llama", "gemma3_text"):
        hf(f"{kind}-unpadded", kind, sizes, unpadded)
hf("falcon-alibi", "falcon", dict(USUAL, alibi=True, new_decoder_architecture=False, multi_query=True), text)
for kind, sizes, inputs in [
    ("gptj", dict(GPT, rotary_dim=4), text),
    ("gpt_neo", GPT_NEO, text),
    ("bloom", dict(hidden_size=32, n_layer=2, n_head=4), text),
    ("mpt", dict(d_model=32, n_layers=2, n_heads=4, max_seq_len=64), text),
    ("gemma2", dict(WINDOWED, query_pre_attn_scalar=8), text),
    ("openai-gpt", GPT, unpadded),
    ("ctrl", dict(GPT, dff=64), unpadded),
]:
    hf(kind, kind, sizes, inputs, EAGER)

# Encoders with decoders.
hf("t5", "t5", T5, two_texts, EAGER)
hf("t5-encoder", "t5", T5, text, EAGER, "T5EncoderModel")
for kind in ("bart", "marian", "pegasus"):
    hf(kind, kind, BART, two_texts)
hf("whisper", "whisper", WHISPER,
   lambda b, t: given(input_features=torch.randn(b, 16, 40), decoder_input_ids=words(b, t)))

# Pictures, sound and other inputs.
for kind in ("vit", "deit", "dinov2", "dinov2_with_registers", "dinov3_vit", "ijepa"):
    hf(kind, kind, PICTURE, picture)
hf("beit", "beit", dict(PICTURE, use_relative_position_bias=True), picture)
hf("swin", "swin", SWIN, picture)
hf("swinv2", "swinv2", SWIN, picture, EAGER)
hf("segformer", "segformer", STAGES, picture)
hf("pvt_v2", "pvt_v2", STAGES, picture, EAGER)
hf("clip-text", "clip_text_model", USUAL, text, cls="CLIPTextModel")
hf("clip-vision", "clip_vision_model", PICTURE, picture, cls="CLIPVisionModel")
hf("siglip-vision", "siglip_vision_model", PICTURE, picture, cls="SiglipVisionModel")
hf("perceiver", "perceiver", PERCEIVER,
   lambda b, t: given(inputs=tokens(b, t), attention_mask=padding(b, t)), EAGER)
hf("wav2vec2", "wav2vec2", SPEECH, lambda b, t: given(input_values=torch.randn(b, 400)))
hf("wav2vec2-conformer", "wav2vec2-conformer", dict(SPEECH, position_embeddings_type="relative"),
   lambda b, t: given(input_values=torch.randn(b, 400)), EAGER)

# Single layers.
LOWEST = torch.finfo(torch.float32).min


def padded_mask(b, t):
    return torch.where(hidden(b, t), LOWEST, 0.0)[:, None, None].repeat(1, 1, t, 1)


def causal_mask(b, t):
    return torch.minimum(padded_mask(b, t), torch.full((t, t), LOWEST).triu(1))


def padded(b, t):
    return given(tokens(b, t), attention_mask=padded_mask(b, t))


def causal(b, t):
    return given(tokens(b, t), attention_mask=causal_mask(b, t))


def crossed(b, t):
    return given(tokens(b, t), attention_mask=causal_mask(b, t), encoder_hidden_states=tokens(b, t + 4))


def rotated(b, t):
    table = handwritten.angles(t, 8).repeat(b, 1, 2)
    return given(tokens(b, t), attention_mask=causal_mask(b, t), position_embeddings=(table.cos(), table.sin()))


hf_layer("bert", "bert", USUAL, "BertLayer", padded)
hf_layer("vit", "vit", PICTURE, "ViTLayer", one)
hf_layer("bart", "bart", BART, "BartEncoderLayer", padded)
hf_layer("wav2vec2", "wav2vec2", SPEECH, "Wav2Vec2EncoderLayer", padded)
hf_layer("gpt2", "gpt2", GPT, "GPT2Block", causal)
hf_layer("llama", "llama", GROUPED, "LlamaDecoderLayer", rotated, layer_idx=0)
hf_layer("mistral", "mistral", GROUPED, "MistralDecoderLayer", rotated, layer_idx=0)
hf_layer("whisper-decoder", "whisper", WHISPER, "WhisperDecoderLayer", crossed, layer_idx=0)
hf_layer("t5-decoder", "t5", dict(T5, is_decoder=True), "T5Block", crossed, EAGER,
         has_relative_attention_bias=True, layer_idx=0)

# --- timm ------------------------------------------------------------------------------------------

VIT = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)
WINDOWS = dict(img_size=32, patch_size=2, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4)
for name, architecture, sizes in [
    ("vit", "vit_tiny_patch16_224", VIT),
    ("vit-qk-norm", "vit_tiny_patch16_224", dict(VIT, qk_norm=True, init_values=0.1)),
    ("vit-attention-pool", "vit_tiny_patch16_224", dict(VIT, global_pool="map", class_token=False)),
    ("deit", "deit_tiny_distilled_patch16_224", VIT),
    ("beit", "beit_base_patch16_224", VIT),
    ("eva", "eva02_tiny_patch14_224", VIT),
    ("cait", "cait_xxs24_224", VIT),
    ("xcit", "xcit_nano_12_p16_224", dict(VIT, patch_size=16)),
    ("swin", "swin_tiny_patch4_window7_224", WINDOWS),
    ("swinv2", "swinv2_tiny_window8_256", WINDOWS),
    ("levit", "levit_128s", dict(img_size=64, embed_dim=(16, 32), depth=(1, 1), num_heads=(2, 4), key_dim=8)),
    ("maxvit", "maxvit_rmlp_pico_rw_256", dict(img_size=64)),
    ("coat", "coat_tiny", dict(img_size=32, embed_dims=[16] * 4, serial_depths=[1] * 4, parallel_depth=1,
                               num_heads=2, crpe_window={3: 2})),
]:
    add(f"timm-{name}", functools.partial(timm.create_model, architecture, num_classes=5, **sizes),
        lambda b, t, side=sizes["img_size"]: given(torch.randn(b, 3, side, side)))


def unfused_block():
    block = vision_transformer.Block(32, 4, qkv_bias=True)
    block.attn.fused_attn = False
    return block


def map_of_16(b, t):
    return given(torch.randn(b, 32, 4, 4))


add("timm-vit-block", lambda: vision_transformer.Block(32, 4, qkv_bias=True), one)
add("timm-vit-block-unfused", unfused_block, one)
add("timm-swin-block",
    lambda: swin_transformer.SwinTransformerBlock(32, (8, 8), 4, window_size=4, shift_size=2),
    lambda b, t: given(torch.randn(b, 8, 8, 32)))
add("timm-class-attention", lambda: cait.ClassAttn(32, 4), one)
add("timm-attention-pool", lambda: timm.layers.AttentionPool2d(32, feat_size=4, num_heads=4), map_of_16)
add("timm-rotary-attention-pool",
    lambda: timm.layers.RotAttentionPool2d(32, ref_feat_size=4, num_heads=4), map_of_16)


# ---------------------------------------------------------------------------------------------------
# Files of a model
# ---------------------------------------------------------------------------------------------------

SMALL, OTHER = (2, 13), (3, 18)  # batch and length


def make(name):
    """Makes the module. Its weights are random, and none is 0 or 1, so that ignoring a weight changes the result."""
    torch.manual_seed(0)
    module = MODELS[name][0]().eval().requires_grad_(False)
    for parameter in module.parameters():
        if parameter.ndim > 1 and parameter.numel():
            parameter.normal_(0, parameter[0].numel() ** -0.5)
        else:
            parameter.add_(0.2 * torch.randn_like(parameter))
    return module


def example(name, size):
    torch.manual_seed(size[0])
    return MODELS[name][1](*size)


def open_sizes(module, one, other, **bounds):
    """Returns dynamic shapes for the dimensions in which two calls differ, or None if there are none."""

    def dim(size, other_size):
        if (size, other_size) == (SMALL[0], OTHER[0]):
            return torch.export.Dim("batch")
        return torch.export.Dim("length" if size == SMALL[1] else f"length_{size}", **bounds)

    def axes(x, y):
        return {i: dim(m, n) for i, (m, n) in enumerate(zip(x.shape, y.shape)) if m != n}

    bind = inspect.signature(module.forward).bind
    shapes = pytree.tree_map(axes, *(dict(bind(*args, **kwargs).arguments) for args, kwargs in (one, other)))
    return shapes if pytree.tree_leaves(shapes) else None


def export(module, calls, decompose):
    """Returns the exported program for one call, or with dynamic sizes for two calls; None if their sizes are equal."""
    shapes = open_sizes(module, *calls) if len(calls) == 2 else None
    if len(calls) == 2 and not shapes:
        return None
    args, kwargs = calls[0]
    try:
        program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes)
    except torch._dynamo.exc.UserError:  # a module with a table needs a bound, which the error message names
        shapes = open_sizes(module, *calls, min=4, max=48)
        program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes)
    return program.run_decompositions() if decompose else program


def results(module, args, kwargs, signature):
    """Returns the outputs of a call in the order of the exported file: buffers to which it writes, then its results."""
    module = copy.deepcopy(module)
    out = [x for x in pytree.tree_leaves(module(*args, **kwargs)) if isinstance(x, torch.Tensor)]
    state = dict(module.named_buffers())
    return [state[target] for target in signature.buffers_to_mutate.values()] + out


def in_double(module, args, kwargs):
    wide = lambda x: x.double() if x.is_floating_point() else x
    return copy.deepcopy(module).double(), *pytree.tree_map(wide, (args, kwargs))


def error(got, expected):
    """Returns the largest difference relative to the largest value. NaN and infinities must be at the same places."""
    if len(got) != len(expected):
        return float("inf")
    worst = 0.0
    for x, y in zip(got, expected):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if x.shape != y.shape:
            return float("inf")
        finite = np.isfinite(y)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
            return float("inf")
        if finite.any():
            scale = np.abs(y[finite]).max() or 1.0
            worst = max(worst, float(np.abs(x[finite] - y[finite]).max() / scale))
    return worst


def save(prefix, tensors):
    """Writes numbered .npy files, in C order."""
    files = [f"{prefix}{i}.npy" for i in range(len(tensors))]
    for file, x in zip(files, tensors):
        np.save(file, np.array(x, order="C"))
    return files


def call(*command):
    """Runs a command. Returns None, or the first line of the error."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name}: more than 120 s"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    text = next((line for line in lines if "expected" in line or "error" in line), (lines or ["no message"])[0])
    text = re.sub(r"(/[^/\s:]+)+/", "", text)  # removes the folders of files
    text = re.sub(r"^\S+: \S+\.(pt2|so): ", "", text)[:160]
    if done.returncode < 0:
        return f"CRASH of {Path(command[0]).name}, {signal.Signals(-done.returncode).name}: {text}"
    return text


@dataclasses.dataclass
class Outcome:
    name: str
    exported: bool = False
    compiled: bool = False
    fused: int = 0
    unfused: int = 0
    error: float | None = None  # of attn, against float64
    eager: float | None = None  # of torch in float32, against float64
    message: str = ""

    @property
    def right(self):
        return self.error is not None and self.error <= 4 * self.eager + 1e-6

    def attentions(self):
        if not self.exported:
            return "is not exported by torch"
        return f"{self.fused} fused, {self.unfused} not" if self.compiled else f"is refused: {self.message.strip()}"

    def line(self):
        verdict = "right" if self.right else "" if self.error is None else "WRONG"
        number = lambda x: "-" if x is None else f"{x:.1e}"
        counts = f"{self.fused}/{self.unfused}" if self.compiled else "-"
        exported, compiled = "exported" if self.exported else "NO EXPORT", "compiled" if self.compiled else "-"
        return (f"{self.name:38} {exported:9} {compiled:8} {counts:>6} {number(self.error):>8} "
                f"{number(self.eager):>8}  {verdict}{self.message}")


def reference(module, args, kwargs, signature):
    """Returns the results of torch in float32, and the reference results."""
    narrow = [x.numpy() for x in results(module, args, kwargs, signature)]
    try:
        wide = [x.numpy() for x in results(*in_double(module, args, kwargs), signature)]
    except Exception:  # a module that was written for float32 may raise any exception
        return narrow, narrow
    # If the results in float64 and float32 differ too much, the module computes something else in float64. The results
    # in float32 are then the reference.
    return narrow, wide if error(narrow, wide) < 1e-3 else narrow


def run(options, base, prefix, inputs, buffers):
    """Returns the results of the library, first the buffers to which it writes, as in torch, or an error message."""
    folder = Path(f"{prefix}.got")
    folder.mkdir()
    signature = subprocess.run([options.bin / "attn-run", f"{base}.so", "--describe"], capture_output=True, text=True).stdout
    written = re.findall(r"in-out (\w+):", signature)
    inputs = inputs + save(f"{prefix}.buffer", [buffers[name] for name in written])
    files = [f"--input={file}" for file in inputs]
    failure = call(options.bin / "attn-run", f"{base}.so", *files, f"--output-dir={folder}", "--threads=1")
    if failure:
        return failure
    got = [np.load(folder / f"{i}.npy") for i in range(len(list(folder.iterdir())))]
    first = len(got) - len(written)
    return got[first:] + got[:first]


def study(name, options):
    """Exports, compiles and runs one model. Returns None if --dynamic can make no size of the model dynamic."""
    outcome = Outcome(name)
    base = options.out / name
    for old in options.out.glob(f"{name}.*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    try:
        module, calls = make(name), [example(name, (options.batch, SMALL[1]))]
        if options.dynamic:
            calls.append(example(name, OTHER))
        program = export(module, calls, options.decompose)
        if not program:
            return None
        torch.export.save(program, f"{base}.pt2")
        stored = {**program.constants, **program.state_dict}
        buffers = {name.replace(".", "_"): stored[name].clone() for name in program.graph_signature.buffers}
        references = [reference(module, *inputs, program.graph_signature) for inputs in calls]
        prefixes = [str(base), f"{base}.other"][: len(calls)]
        inputs = [save(f"{prefix}.in", pytree.tree_leaves(given)) for prefix, given in zip(prefixes, calls)]
        for prefix, (_, expected) in zip(prefixes, references):
            save(f"{prefix}.expected", expected)
    except Exception as failure:  # torch may raise any exception
        outcome.message = f"{type(failure).__name__}: {' '.join(str(failure).split())}"[:160]
        return outcome
    outcome.exported = True
    outcome.eager = max(error(*pair) for pair in references)

    report = Path(f"{base}.report.txt")
    target = "sm_80,sm_90a" if options.gpu else "native"
    if failure := call(options.bin / "attnc", f"{base}.pt2", "-o", f"{base}.so", f"--target={target}", f"--opt-report={report}"):
        outcome.message = failure
        return outcome
    outcome.compiled = True
    lines = report.read_text().splitlines()
    outcome.fused = sum("attention fused" in line for line in lines)
    outcome.unfused = sum("attention left unfused" in line for line in lines)
    if options.gpu:
        return outcome

    outcome.error = 0.0
    for prefix, files, (_, expected) in zip(prefixes, inputs, references):
        got = run(options, base, prefix, files, buffers)
        if isinstance(got, str):
            outcome.error, outcome.message = float("inf"), f" {got}"
            break
        # A library, and a file that is not decomposed, may lack results for buffers to which a call writes.
        count = min(len(got), len(expected)) if buffers else len(expected)
        outcome.error = max(outcome.error, error(got[-count:], expected[-count:]))
    return outcome


def count_ops(folder):
    counts = collections.Counter()
    for path in sorted(folder.glob("*.pt2")):
        with zipfile.ZipFile(path) as archive:
            member = next(name for name in archive.namelist() if name.endswith("models/model.json"))
            nodes = json.loads(archive.read(member))["graph_module"]["graph"]["nodes"]
        counts.update({node["target"] for node in nodes})
    for target, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:5} {target}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="the folder of attnc and attn-run")
    parser.add_argument("--out", type=Path, help="the folder for the exported files and the results")
    parser.add_argument("--batch", type=int, default=2, help="the number of sequences or pictures in the inputs")
    parser.add_argument("--only", default="", help="a regular expression that names must match somewhere")
    parser.add_argument("--table", type=Path, help="the file with the attentions of each model")
    for flag in ("decompose", "dynamic", "gpu", "list", "ops", "report-only", "write"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args()
    names = [name for name in MODELS if re.search(options.only, name)]
    if options.list:
        print("\n".join(names))
        return 0
    if not options.out or not (options.ops or options.bin):
        parser.error("expected --out, and --bin unless with --ops")
    if options.ops:
        count_ops(options.out)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # it treats padding differently from the exported graph
    transformers.logging.set_verbosity_error()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")

    print(f"{'':38} {'export':9} {'attnc':8} fused/unfused attentions, errors of attn and of torch")
    outcomes = []
    for name in names:
        if (outcome := study(name, options)) is None:
            continue
        outcomes.append(outcome)
        print(outcome.line(), flush=True)
        if not outcome.exported:
            print(f"skipped: no export by torch: {name}")
    total = {what: sum(bool(getattr(o, what)) for o in outcomes) for what in ("exported", "compiled", "right")}
    whole = sum(o.fused > 0 and o.unfused == 0 for o in outcomes)
    print(f"{len(outcomes)} models: {total['exported']} exported, {total['compiled']} compiled, "
          f"{total['right']} right, {whole} with every attention fused; "
          f"{sum(o.fused for o in outcomes)} attentions fused, {sum(o.unfused for o in outcomes)} not")
    found = {o.name: o.attentions() for o in outcomes}
    differs = options.table and table.compare(options.table, found, lambda name: re.search(options.only, name), options.write)
    wrong = not (options.report_only or options.gpu) and any(o.exported and not o.right for o in outcomes)
    return int(bool(differs or wrong))


if __name__ == "__main__":
    sys.exit(main())
