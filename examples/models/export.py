"""Exports small models of transformers and timm with random weights, as a user of these packages would.

    python export.py FOLDER

writes FOLDER/NAME.pt2 for each model below and, except for llama-step, an input, NAME.x.npy, and NAME.out.npy, the
output computed in float64. docs/models.md says what each model shows. Needs torch, transformers, timm and numpy.
"""
import re
import sys
from pathlib import Path

import numpy as np
import torch
from timm.models.swin_transformer import SwinTransformerBlock
from timm.models.vision_transformer import Block
from torch import nn
from transformers import GPT2Config, LlamaConfig, T5Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRMSNorm, LlamaRotaryEmbedding
from transformers.models.t5.modeling_t5 import T5Block

WIDTH, VOCABULARY, LONGEST = 16, 32, 40


class Llama(nn.Module):
    """A Llama of one layer, from tokens to scores of the next token. 4 query heads share 2 heads of keys and values."""

    def __init__(self):
        super().__init__()
        config = LlamaConfig(hidden_size=WIDTH, intermediate_size=32, num_attention_heads=4, num_key_value_heads=2,
                             head_dim=8, attn_implementation="sdpa")
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.rotary = LlamaRotaryEmbedding(config)
        self.layer = LlamaDecoderLayer(config, layer_idx=0)
        self.norm = LlamaRMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.run(tokens, torch.arange(tokens.shape[1]))

    def run(self, tokens, positions, **options):
        x = self.embed(tokens)
        x = self.layer(x, position_embeddings=self.rotary(x, positions[None]), **options)
        return self.head(self.norm(x))


class LlamaStep(Llama):
    """The same model for one token. Its buffers hold the keys and values of this token and of the tokens before it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, LONGEST, 8), persistent=False)
        self.register_buffer("values", torch.zeros(1, 2, LONGEST, 8), persistent=False)

    def forward(self, token, position):
        self.position = position
        mask = torch.arange(LONGEST) <= position
        return self.run(token, position, attention_mask=mask[None, None, None], past_key_values=self)

    def update(self, key, value, layer_idx, **kwargs):
        """The layer calls this method with the key and value of the token. Returns the keys and values to attend to."""
        self.keys.index_copy_(2, self.position, key)
        self.values.index_copy_(2, self.position, value)
        return self.keys, self.values


class T5Layer(nn.Module):
    """The first layer of an encoder, which computes the relative position bias. The bias is not a result."""

    def __init__(self):
        super().__init__()
        config = T5Config(d_model=WIDTH, d_kv=8, d_ff=32, num_heads=2, relative_attention_num_buckets=8,
                          relative_attention_max_distance=16, attn_implementation="sdpa")
        self.block = T5Block(config, has_relative_attention_bias=True)

    def forward(self, hidden_states):
        return self.block(hidden_states)[0]


def gpt2():
    return GPT2Block(GPT2Config(n_embd=WIDTH, n_head=2, n_inner=32, attn_implementation="sdpa"), layer_idx=0)


def vit():
    return Block(WIDTH, num_heads=2, mlp_ratio=2, qkv_bias=True)


def swin():
    """Makes a block whose windows of 4 x 4 patches are shifted by 2 x 2."""
    return SwinTransformerBlock(WIDTH, input_resolution=(8, 8), num_heads=2, window_size=4, shift_size=2, mlp_ratio=2)


torch.manual_seed(0)
words = torch.randint(VOCABULARY, (1, 70))
states = torch.randn(1, 70, WIDTH)
length = torch.export.Dim("length", max=512)
MODELS = {  # a function that makes the module, example arguments, and the sizes that may differ between calls
    "gpt2": (gpt2, (states,), {"hidden_states": {1: length}}),
    "llama": (Llama, (words,), {"tokens": {1: length}}),
    "llama-step": (LlamaStep, (words[:, :1], torch.tensor([0])), None),
    "t5": (T5Layer, (states[:, :24],), None),
    "vit": (vit, (states[:, :17],), None),
    "swin": (swin, (torch.randn(1, 8, 8, WIDTH),), None),
}


def build(make):
    """Makes the module. Large weights make the probabilities of a query differ. No gain is 1 and no bias is 0, so that
    an error in any of them changes the result.
    """
    torch.manual_seed(1)
    module = make().eval().requires_grad_(False)
    for parameter in module.parameters():
        if parameter.ndim > 1:
            parameter.normal_(0, 2 * parameter[0].numel() ** -0.5)
        else:
            parameter.add_(0.2 * torch.randn_like(parameter))
    return module


def keep_source_lines(program):
    """Reduces the stack trace of each op to its file and line in the model, without the names of folders."""
    for graph in program.graph_module.modules():
        for node in graph.graph.nodes:
            frames = re.findall(r'File ".*', node.meta.pop("stack_trace", ""))
            outside = [frame for frame in frames if "/torch/" not in frame]
            if frames:
                node.meta["stack_trace"] = re.sub('"/.*/', '"', (outside or frames)[-1])
            for note in ("nn_module_stack", "torch_fn"):
                node.meta.pop(note, None)
    program.example_inputs = None


def save_program(path, module, inputs, sizes):
    # Dynamic sizes are smaller here than in save_results, so that tests use a size other than the exported one.
    example = tuple(x[:, :16] for x in inputs) if sizes else inputs
    with torch.no_grad():
        program = torch.export.export(module, example, dynamic_shapes=sizes)
    keep_source_lines(program)
    torch.export.save(program, f"{path}.pt2")


def save_results(path, module, x):
    np.save(f"{path}.x.npy", x.numpy())
    np.save(f"{path}.out.npy", module.double()(x.double() if x.is_floating_point() else x).float().numpy())


if __name__ == "__main__":
    for name, (make, inputs, sizes) in MODELS.items():
        path, module = Path(sys.argv[1], name), build(make)
        save_program(path, module, inputs, sizes)
        if name != "llama-step":  # tests compare its results with those of llama
            save_results(path, module, inputs[0])
