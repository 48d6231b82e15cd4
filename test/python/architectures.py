"""architectures.py [--only=REGEX] [--table=FILE] [--write] [-v]: compares public architectures in torch.compile(backend="attn") with
eager PyTorch.

Small models of 36 architectures of transformers and timm have random weights. Each is compiled, and called three
times, with other sizes. Texts have a mask in all calls, or only in the second one; it hides padding on the right in the
second call, and on the left in the third. Calls are made in torch.inference_mode() or in torch.no_grad().
All tensors that a call returns, such as logits, hidden states and caches, must have the types, shapes and strides of
eager PyTorch's. Integers and booleans must be equal; `unequal` says how much floats may differ.

The script counts the graphs of torch.compile and the attentions that attn fused, and compares the counts with the file
architectures.txt, or FILE. --write writes this file. A graph that attn leaves to PyTorch is compared in the same way.
"""
import argparse
import copy
import logging
import os
import pathlib
import re
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import timm
import torch
import transformers

import attn.dynamo

# What generate.py uses too.

#: The error that a float may have beyond four times eager's error against float64, relative to the largest element of
#: the tensor, or to 1 if all are smaller. It is 16 roundings of float32. Eager's error may be accidentally 0.
FLOOR = 16 * 2.0**-23


def set_up():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")


def backend_options():
    """The options of torch.compile. PyTorch runs what attn leaves op by op, because inductor takes much longer."""
    if "fallback" in attn.dynamo.OPTIONS:
        return {"fallback": "aot_eager"}
    attn.dynamo._default = attn.dynamo.__dict__.get("_aot_eager") or torch._dynamo.lookup_backend("aot_eager")
    return None


def unequal(got, expected, exact):
    """Says how a tensor differs from eager's too much, or returns None. `exact` was computed in float64.

    The error of a float is measured against `exact`. It may be four times the largest error in the tensor of eager, and
    FLOOR. If an element of eager and of `exact` differ much, the model computes something else in float64, for example
    where a mask hides all keys of a query. The error of such an element is measured against eager.
    """
    for name in ("dtype", "shape"):
        if getattr(got, name) != getattr(expected, name):
            return f"{getattr(got, name)} in place of {getattr(expected, name)}"
    # The stride of a dimension of size 1 has no meaning.
    strides = [[stride for stride, size in zip(tensor.stride(), tensor.shape) if size > 1] for tensor in (got, expected)]
    if got.numel() and strides[0] != strides[1]:
        return f"strides {tuple(got.stride())} in place of {tuple(expected.stride())}, shape {tuple(got.shape)}"
    if torch.equal(got, expected):
        return None
    if not got.is_floating_point():
        return f"{(got != expected).sum().item()} of {got.numel()} elements differ"
    finite = expected.isfinite()
    if not torch.equal(got[~finite].nan_to_num(), expected[~finite].nan_to_num()) or not torch.equal(got.isfinite(), finite):
        return "NaN or infinities at other places"
    got, expected, exact = (tensor[finite].double() for tensor in (got, expected, exact))
    scale = max(1, expected.abs().max().item())
    exact = exact.where((exact - expected).abs() < 1e-3 * scale, expected)
    error, of_eager = ((tensor - exact).abs().max().item() for tensor in (got, expected))
    allowed = 4 * of_eager + FLOOR * scale
    return f"error {error:.2g}, allowed {allowed:.2g}, largest {scale:.2g}" if error > allowed else None


def tensors_of(value, path=""):
    """Yields the paths and the tensors of a result."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (dict, list, tuple)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors_of(part, f"{path}.{key}")
    elif isinstance(value, transformers.EncoderDecoderCache):
        yield from tensors_of({"self": value.self_attention_cache, "cross": value.cross_attention_cache}, path)
    elif isinstance(value, transformers.Cache):
        yield from tensors_of([[layer.keys, layer.values] for layer in value.layers], path)
    elif value is not None and not isinstance(value, (int, float, str)):
        raise TypeError(f"expected tensors at {path}, got {type(value)}")


def count(reports):
    """Returns the counts of a line of a table, and the reasons for which attn left graphs, or parts of them, to PyTorch."""
    counts, reasons = dict.fromkeys(COUNTS, 0), []
    for report in reports:
        if not report.startswith("graph of "):
            reasons.append(report)
            continue
        counts["graphs"] += 1
        match = re.search(r"compiled (as a whole|in \d+ parts?): ([^;]*)", report)
        counts["left" if not match else "whole" if match[1] == "as a whole" else "divided"] += 1
        if match:
            counts["attentions"] += sum(not each.endswith(" unfused") for each in match[2].split(", "))
        if "because " in report:
            reasons.append(report.split("because ", 1)[1])
    # Names of sizes depend on the order in which PyTorch sees them, and folders of files on the machine.
    reasons = [re.sub(r"/\S*/", "", re.sub(r"\b(sym_size_int|s)_?\d+\b", r"\1", reason))[:160] for reason in reasons]
    return counts, list(dict.fromkeys(reasons))


COUNTS = ("graphs", "whole", "divided", "left", "attentions")


class Table:
    """A file with a line of counts for each case, and below it the reasons for which attn left something to PyTorch."""

    def __init__(self, file, width):
        self.path = pathlib.Path(__file__).parent / file
        self.width, self.entries = width, {}

    def add(self, name, counts, reasons):
        numbers = "".join(f"{counts[key]:>{len(key) + 2}}" for key in COUNTS)
        self.entries[name] = "".join(f"{line}\n" for line in [f"{name:{self.width}}{numbers}", *(f"    {why}" for why in reasons)])

    def _read(self):
        found = {}
        for line in self.path.read_text().splitlines(True)[1:]:
            if not line.startswith(" "):
                name = line[:self.width].rstrip()
            found[name] = found.get(name, "") + line
        return found

    def write(self):
        head = f"{'':{self.width}}" + "".join(f"{key:>{len(key) + 2}}" for key in COUNTS)
        self.path.write_text("".join([f"{head}\n", *self.entries.values()]))

    def compare(self):
        """Prints each difference from the file, and returns their number. The file may have further cases."""
        expected = self._read()
        wrong = [name for name in self.entries if self.entries[name] != expected.get(name)]
        for name in wrong:
            print(f"{self.path.name}: expected\n{expected.get(name, '')}got\n{self.entries[name]}", end="")
        return len(wrong)


# The architectures.

COMMON = dict(vocab_size=100, pad_token_id=0, bos_token_id=1, eos_token_id=2)
USUAL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
GROUPED = dict(USUAL, num_key_value_heads=2, head_dim=8)
GPT = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)
BART = dict(d_model=32, encoder_layers=1, encoder_attention_heads=4, encoder_ffn_dim=64, decoder_layers=2,
            decoder_attention_heads=4, decoder_ffn_dim=64, max_position_embeddings=64, decoder_start_token_id=2)
PICTURE = dict(USUAL, image_size=32, patch_size=8)
SIZES = ((2, 16), (3, 21), (2, 13))  # the batch and the length of each call
MODELS = {}  # for each name, a function that makes the model, and a function that makes the arguments of a call


def words(batch, length):
    return torch.randint(3, 100, (batch, length))


def padding(call, batch, length):
    """A mask. In the second and third call, it hides the end, or the start, of the first text."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, (slice(0, 0), slice(length - 5, length), slice(0, 4))[call]] = 0
    return {"attention_mask": mask}


def text(call, batch, length):
    return {"input_ids": words(batch, length), **padding(call, batch, length)}


def two_texts(call, batch, length):
    return {**text(call, batch, length), "decoder_input_ids": words(batch, length - 4)}


def picture(call, batch, length, size=32):
    return {"pixel_values": torch.randn(batch + call, 3, size, size)}


def sound(call, batch, length):
    return {"input_values": torch.randn(batch, 400 + 10 * length), **padding(call, batch, 400 + 10 * length)}


def spectrum(call, batch, length):
    return {"input_features": torch.randn(batch, 16, 40), "decoder_input_ids": words(batch, length)}


def text_and_picture(call, batch, length):
    return {**text(call, batch, length), **picture(call, batch, length)}


def points(call, batch, length):
    return {**picture(0, batch, length, 64), "input_points": torch.rand(batch, 1, call + 1, 2) * 64}


def add(name, cls, config, sizes, arguments, **options):
    """Adds a model of transformers."""
    def build():
        made = getattr(transformers, config)(**{**sizes, **options})
        return getattr(transformers, cls)(made)

    MODELS[name] = build, arguments


for name, cls, config, sizes in [
    ("bert", "BertForMaskedLM", "BertConfig", USUAL),
    ("roberta", "RobertaForSequenceClassification", "RobertaConfig", dict(USUAL, pad_token_id=1)),
    ("albert", "AlbertModel", "AlbertConfig", dict(USUAL, embedding_size=16)),
    ("distilbert", "DistilBertForQuestionAnswering", "DistilBertConfig", dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
    ("electra", "ElectraForPreTraining", "ElectraConfig", dict(USUAL, embedding_size=16)),
    ("deberta-v2", "DebertaV2Model", "DebertaV2Config",
     dict(USUAL, relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16, position_buckets=8,
          share_att_key=True)),
    ("mpnet", "MPNetModel", "MPNetConfig", USUAL),
    ("xlm", "XLMModel", "XLMConfig", dict(emb_dim=32, n_layers=2, n_heads=4)),
    ("modernbert", "ModernBertForMaskedLM", "ModernBertConfig",
     dict(USUAL, global_attn_every_n_layers=2, local_attention=8, cls_token_id=1, sep_token_id=2)),
    ("longformer", "LongformerModel", "LongformerConfig", dict(USUAL, attention_window=8, max_position_embeddings=66)),
    ("gpt2", "GPT2LMHeadModel", "GPT2Config", GPT),
    ("gpt-neo", "GPTNeoForCausalLM", "GPTNeoConfig",
     dict(hidden_size=32, num_layers=2, num_heads=4, window_size=5, attention_types=[[["global", "local"], 1]])),
    ("gpt-neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", dict(USUAL, rotary_pct=0.5)),
    ("gpt-j", "GPTJForCausalLM", "GPTJConfig", dict(GPT, rotary_dim=4)),
    ("opt", "OPTForCausalLM", "OPTConfig", dict(USUAL, ffn_dim=64, word_embed_proj_dim=32)),
    ("bloom", "BloomForCausalLM", "BloomConfig", dict(hidden_size=32, n_layer=2, n_head=4)),
    ("falcon", "FalconForCausalLM", "FalconConfig", dict(USUAL, new_decoder_architecture=True, num_kv_heads=2)),
    ("llama", "LlamaForCausalLM", "LlamaConfig", GROUPED),
    ("mixtral", "MixtralForCausalLM", "MixtralConfig", dict(GROUPED, num_local_experts=4)),
    ("qwen3", "Qwen3ForCausalLM", "Qwen3Config", GROUPED),
    ("gemma2", "Gemma2ForCausalLM", "Gemma2Config", dict(GROUPED, sliding_window=5, query_pre_attn_scalar=8)),
    ("gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig",
     dict(GROUPED, sliding_window=5, layer_types=["sliding_attention", "full_attention"])),
    ("phi3", "Phi3ForCausalLM", "Phi3Config", GROUPED),
]:
    add(name, cls, config, {**COMMON, **sizes}, text)
T5 = dict(d_model=32, d_kv=8, d_ff=64, num_layers=1, num_decoder_layers=2, num_heads=4,
          relative_attention_num_buckets=8, relative_attention_max_distance=16)
add("t5", "T5ForConditionalGeneration", "T5Config", {**COMMON, **T5}, two_texts)
add("bart", "BartForConditionalGeneration", "BartConfig", {**COMMON, **BART}, two_texts)
add("whisper", "WhisperForConditionalGeneration", "WhisperConfig",
    dict(COMMON, **BART, num_mel_bins=16, max_source_positions=20, max_target_positions=32), spectrum)
add("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config",
    dict(COMMON, **USUAL, conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2,
         num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4), sound)
add("vit", "ViTForImageClassification", "ViTConfig", PICTURE, picture)
add("swin", "SwinModel", "SwinConfig",
    dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4), picture)
add("detr", "DetrForObjectDetection", "DetrConfig", BART, lambda *sizes: picture(*sizes, 64), num_queries=5,
    backbone_config=transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]))
add("sam", "SamModel", "SamConfig", {}, points,
    vision_config=dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, mlp_dim=64,
                       window_size=4, global_attn_indexes=[1], output_channels=16, num_pos_feats=8),
    prompt_encoder_config=dict(hidden_size=16, image_size=64, patch_size=8, mask_input_channels=4),
    mask_decoder_config=dict(hidden_size=16, mlp_dim=32, num_attention_heads=2, iou_head_hidden_dim=16))
add("clip", "CLIPModel", "CLIPConfig", {}, text_and_picture, projection_dim=16, text_config=dict(COMMON, **USUAL), vision_config=PICTURE)


def add_timm(name, architecture, size=32, **sizes):
    """Adds a model of timm."""
    MODELS[name] = (lambda: timm.create_model(architecture, num_classes=5, img_size=size, **sizes),
                    lambda *sizes: {"x": picture(*sizes, size)["pixel_values"]})


VIT = dict(patch_size=8, embed_dim=32, depth=2, num_heads=4)
add_timm("timm-vit", "vit_tiny_patch16_224", **VIT)
add_timm("timm-eva", "eva02_tiny_patch14_224", **VIT)
add_timm("timm-cait", "cait_xxs24_224", **VIT)
add_timm("timm-maxvit", "maxvit_rmlp_pico_rw_256", 64)


def build(name):
    """Makes the model, with weights that are neither 0 nor 1, so that ignoring one changes the results."""
    torch.manual_seed(0)
    model = MODELS[name][0]().eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1 and parameter.numel():
            parameter.normal_(0, parameter[0].numel() ** -0.5)
        else:
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def is_odd(name):
    """Every second architecture has masks in all calls; the others return hidden states too."""
    return list(MODELS).index(name) % 2 == 1


def arguments(name, call):
    torch.manual_seed(call)
    found = MODELS[name][1](call, *SIZES[call])
    if is_odd(name):
        if call != 1:
            found.pop("attention_mask", None)
        if not name.startswith("timm"):
            found["output_hidden_states"] = True
    return found


def call(model, arguments, mode, double=False):
    """Returns the tensors of a call by their paths."""
    if double:
        arguments = {key: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
                     for key, value in arguments.items()}
    with mode():
        return {path: tensor.clone() for path, tensor in tensors_of(model(**arguments))}


def exact(model, arguments, mode):
    torch.set_default_dtype(torch.float64)
    model = copy.deepcopy(model).double()
    if getattr(getattr(model, "config", None), "num_local_experts", None):
        model.set_experts_implementation("eager")  # others do not support float64
    try:
        return call(model, arguments, mode, True)
    finally:
        torch.set_default_dtype(torch.float32)


def check(name):
    """Returns the differences, and the counts."""
    model = build(name)
    mode = (torch.inference_mode, torch.no_grad)[list(MODELS).index(name) // 2 % 2]
    torch._dynamo.reset()
    attn.dynamo.reports.clear()
    compiled = torch.compile(model, backend="attn", options=backend_options())
    found = []
    for number in range(len(SIZES)):
        inputs = arguments(name, number)
        expected, reference = call(model, inputs, mode), exact(model, inputs, mode)
        try:
            got = call(compiled, inputs, mode)
        except Exception as reason:
            found.append(f"call {number}: raised {type(reason).__name__}: {reason}")
            continue
        if list(got) != list(expected):
            found.append(f"call {number}: results {list(got)} in place of {list(expected)}")
            continue
        found += [f"call {number}, {path}: {why}" for path in expected
                  if (why := unequal(got[path], expected[path], reference[path]))]
    return found, *count(attn.dynamo.reports)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--table", default="architectures.txt")
    for flag in ("--write", "-v"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    set_up()
    table, wrong = Table(options.table, 12), 0
    for name in MODELS:
        if not re.search(options.only, name):
            continue
        start = time.process_time()
        found, counts, reasons = check(name)
        table.add(name, counts, reasons)
        if options.v:
            print(f"{table.entries[name]}    {time.process_time() - start:.0f} s", flush=True)
        for difference in found:
            print(f"{name}: {difference}", flush=True)
        wrong += len(found)
    if options.write:
        table.write()
    else:
        wrong += table.compare()
    print(f"{len(table.entries)} architectures, {wrong} differences")
    return int(wrong > 0 or not table.entries)


if __name__ == "__main__":
    sys.exit(main())
