"""generate.py [--full] [--only=REGEX] [--table=FILE] [--write] [-v]: compares generate() with attn with generate() in
eager PyTorch.

Small models with random weights generate text with each kind of cache, from a batch of two prompts, of which one is
padded on the left. attn takes part in one of three ways:

    forward    model.forward = torch.compile(model.forward, backend="attn"), and the same for an encoder
    config     generate() compiles the steps after the first, because a CompileConfig with backend="attn" says so
    attention  model.set_attn_implementation("attn")

A session is one model that generates a few times in a row. It runs three times: in eager PyTorch, in eager PyTorch with
float64, and with attn. The second and third run follow the first one: at each step they compute logits, and then go on
with the scores of the first run, so that all runs are fed the same tokens. The logits of all steps, and the caches at
the end of each call, may differ as much as `unequal` allows. The best token must be the same at each step in which the
two best logits differ by more than 1e-3.

The script also counts the graphs of torch.compile and the attentions that attn fused, and compares the counts with the
file generate.txt, or FILE. --write writes this file. Without --full, the script omits sessions that resemble others.
"""
import argparse
import itertools
import re
import sys
import time
import warnings

import torch
import transformers

import attn.dynamo
import attn.transformers
from architectures import Table, backend_options, count, set_up, tensors_of, unequal

STEPS = 6  # new tokens of a call

# The models.

SIZES = dict(vocab_size=100, pad_token_id=0, bos_token_id=1, eos_token_id=2)
USUAL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64)
MODELS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", USUAL),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(USUAL, sliding_window=6)),
    "t5": ("T5ForConditionalGeneration", "T5Config",
           dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=3,
                relative_attention_num_buckets=8, relative_attention_max_distance=16)),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig",
                dict(d_model=32, encoder_layers=1, encoder_attention_heads=4, encoder_ffn_dim=64, decoder_layers=2,
                     decoder_attention_heads=4, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=20,
                     max_target_positions=48, suppress_tokens=None, begin_suppress_tokens=None, decoder_start_token_id=3)),
}


def build(name):
    """Makes a model whose choice of tokens depends on its input."""
    cls, config, sizes = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, cls)(getattr(transformers, config)(**SIZES, **sizes)).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 2 * parameter[0].numel() ** -0.5)
    model.generation_config.eos_token_id = None  # so that each text has STEPS tokens
    return model


def prompt(model, length, seed):
    """The arguments of generate() for two prompts. The second one is shorter: it has padding on the left."""
    generator = torch.Generator().manual_seed(seed)
    if model.main_input_name == "input_features":
        return {"input_features": torch.randn(2, 16, 40, generator=generator).to(model.dtype)}
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, :length // 3] = 0
    return {"input_ids": torch.randint(4, 100, (2, length), generator=generator).where(mask == 1, 0), "attention_mask": mask}


def more(model, inputs, result, count):
    """The arguments of a call that goes on where the call with `inputs` ended, with `count` further tokens."""
    ids = torch.cat([result.sequences, torch.arange(7, 7 + count).expand(2, count)], 1)
    if model.config.is_encoder_decoder:
        return {**inputs, "decoder_input_ids": ids}
    mask = torch.nn.functional.pad(inputs["attention_mask"], (0, ids.shape[1] - inputs["attention_mask"].shape[1]), value=1)
    return {"input_ids": ids, "attention_mask": mask}


# The kinds of cache. For each one, a function that makes the calls of a session, and options of generate().

def two_prompts(run):
    """Two calls with prompts of different lengths."""
    run.call(prompt(run.model, 7, 1))
    run.call(prompt(run.model, 12, 2))


def going_on(run):
    """Two calls with prompts, and a third one that goes on with the cache that the second one returned."""
    run.call(prompt(run.model, 7, 1))
    inputs = prompt(run.model, 12, 2)
    result = run.call(inputs)
    # Whisper returns fewer rows of this cache than it needs for beams.
    if not (run.model.main_input_name == "input_features" and run.options["num_beams"] > 1):
        run.call(more(run.model, inputs, result, 3), cache=result.cache)


def one_static_cache(run):
    """All calls have the same cache: one with a prompt; one after a reset, with another prompt; and one that goes on."""
    def static(length):
        return transformers.StaticCache(config=run.model.config, max_cache_len=length)

    is_decoder = not run.model.config.is_encoder_decoder
    cache = static(40)
    if not is_decoder:
        cache = transformers.EncoderDecoderCache(cache, static(20 if run.model.main_input_name == "input_features" else 12))
    run.call(prompt(run.model, 12, 1), cache=cache)
    cache.reset()
    inputs = prompt(run.model, 5 if is_decoder else 12, 2)
    result = run.call(inputs, cache=cache)
    run.call(more(run.model, inputs, result, 2), cache=cache)


CACHES = {
    "dynamic": (going_on, {}),
    "none": (two_prompts, {"use_cache": False}),
    "static": (two_prompts, {"cache_implementation": "static"}),
    "one static": (one_static_cache, {}),
    "fp8": (two_prompts, {"cache_implementation": "quantized", "cache_config": {"backend": "fp8"}}),
}
WAYS = ("forward", "config", "attention")
SEARCHES = ("greedy", "beams")


def sessions(full):
    """Yields the sessions. attn computes something in each of them."""
    for name, cache, way, search in itertools.product(MODELS, CACHES, WAYS, SEARCHES):
        if cache == "fp8" and name not in ("gpt2", "llama"):
            continue  # not supported by transformers
        if way == "config" and ("static" not in cache or search == "beams"):
            continue  # not compiled by transformers
        is_main = cache in ("dynamic", "one static") and search == "greedy"
        if not full and way == "forward" and not is_main and (name, cache) not in (("gpt2", "dynamic"), ("gpt2", "none")):
            if (name, cache, search) != ("gpt2", "fp8", "greedy"):
                continue
        yield name, cache, way, search


# The runs.

class Follow(transformers.LogitsProcessor):
    """Keeps the scores of each step of the first run. In other runs, replaces scores by those of the first run."""

    def __init__(self, first=None):
        self.first, self.scores = first, []

    def __call__(self, tokens, scores):
        self.scores.append(scores.clone())
        return scores if self.first is None else self.first.scores[len(self.scores) - 1].to(scores.dtype)


class Run:
    """A run of a session. `records` has the tensors that each call returned, by name."""

    def __init__(self, model, cache, search, first=None):
        self.model, self.first = model, first
        function, options = CACHES[cache]
        self.options = dict(options, num_beams=2 if search == "beams" else 1)
        self.records, self.follows = [], []
        # A cache that is made in inference mode does not count its changes.
        with torch.inference_mode(search == "beams"):
            function(self)

    def call(self, inputs, **options):
        follow = Follow(self.first and self.first.follows[len(self.follows)])
        self.follows.append(follow)
        result = self.model.generate(
            **inputs, **self.options, **options, max_new_tokens=STEPS, do_sample=False, output_logits=True,
            return_dict_in_generate=True, logits_processor=transformers.LogitsProcessorList([follow]))
        named = {"logits": result.logits, "tokens": result.sequences, "cache": result.cache}
        self.records.append({path: tensor.clone() for path, tensor in tensors_of(named)})
        return result


def with_attn(model, way):
    """Makes a model use attn."""
    if way == "attention":
        model.set_attn_implementation("attn")
    elif way == "config":
        config = transformers.CompileConfig(backend="attn", mode=None, fullgraph=False, options=backend_options())
        config._compile_all_devices = True  # also on a CPU
        model.generation_config.compile_config = config
    else:
        for part in [model, model.get_encoder()] if model.config.is_encoder_decoder else [model]:
            part.forward = torch.compile(part.forward, backend="attn", options=backend_options())
    return model


def differences(got, expected, exact):
    """Yields what differs between two runs."""
    for number, (mine, theirs, reference) in enumerate(zip(got.records, expected.records, exact.records, strict=True)):
        if list(mine) != list(theirs):
            yield f"call {number}: results {list(mine)} in place of {list(theirs)}"
            continue
        for path, tensor in theirs.items():
            if why := unequal(mine[path], tensor, reference[path]):
                yield f"call {number}, {path}: {why}"
            if path.startswith(".logits"):
                best = tensor.topk(2, -1)
                tokens, wanted = mine[path].argmax(-1), best.indices[:, 0]
                if (tokens != wanted)[best.values[:, 0] - best.values[:, 1] > 1e-3].any():
                    yield f"call {number}, {path}: best tokens {tokens.tolist()} in place of {wanted.tolist()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--table", default="generate.txt")
    for flag in ("--full", "--write", "-v"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    set_up()
    attn.transformers.register()
    print("skipped: an offloaded cache needs streams, which CPUs lack")
    print("skipped: quantized caches other than fp8 need further packages")
    table, runs, wrong, done, steps = Table(options.table, 36), {}, 0, 0, 0
    for name, cache, way, search in sessions(options.full):
        title = f"{name:7} {cache:10} {way:9} {search:6}".rstrip()
        if not re.search(options.only, title):
            continue
        start = time.process_time()
        if (name, cache, search) not in runs:
            first = Run(build(name), cache, search)
            runs[name, cache, search] = first, Run(build(name).double(), cache, search, first)
        first, exact = runs[name, cache, search]
        torch._dynamo.reset()
        attn.dynamo.reports.clear()
        attn.transformers._warned.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                mine = Run(with_attn(build(name), way), cache, search, first)
                found = list(differences(mine, first, exact))
            except Exception as reason:
                found = [f"raised {type(reason).__name__}: {reason}"]
        counts, reasons = count(attn.dynamo.reports)
        reasons += [text for warning in warned if (text := str(warning.message)).startswith("attn: ")]
        if way != "attention" or reasons:
            table.add(title, counts, reasons)
        done += 1
        steps += sum(len(follow.scores) for follow in first.follows)
        if options.v:
            print(f"{table.entries.get(title, title)}    {time.process_time() - start:.1f} s", flush=True)
        for difference in found:
            print(f"{title}: {difference}", flush=True)
        wrong += len(found)
    if options.write:
        table.write()
    else:
        wrong += table.compare()
    print(f"{done} sessions, {steps} steps, {wrong} differences")
    return int(wrong > 0 or not done)


if __name__ == "__main__":
    sys.exit(main())
