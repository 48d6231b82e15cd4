"""Times whole models with every runtime that a user would try, side by side:

    models.py --out DIR [--models REGEX] [--peers REGEX] [--threads 1,2] [--seconds 3] [--attn-level LEVEL]

The models have their published sizes and random weights: the time of a call does not depend on the weights. Each model
is exported once to DIR, as .pt2 and as .onnx. Then each runtime runs the model in a separate process, pinned to as many
CPUs as it has threads. The result of a call before the timed calls is compared with float64. attn is timed before and
after each other runtime, because the speed of a shared machine drifts. The script prints one line per model, runtime
and number of threads: the median time of the calls, the compile time, and the largest error, relative to the largest
value. A second line gives the ratio of the runtime's time to attn's time.

Needs torch, transformers, timm, onnxruntime, onnxscript and openvino; a runtime that is not installed is skipped with a
message. $ATTN_BUILD is the build folder, build/release unless set.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np

BUILD = pathlib.Path(os.environ.get("ATTN_BUILD", pathlib.Path(__file__).parents[2] / "build/release"))


def hugging_face(kind, **sizes):
    """The model without a head, and its inputs: one sequence of 128 tokens."""

    def build():
        import torch
        import transformers

        class First(torch.nn.Module):
            """A model that returns its hidden states only."""

            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, tokens):
                return self.model(tokens, use_cache=False, return_dict=False)[0] if takes_cache else self.model(
                    tokens, return_dict=False)[0]

        config = transformers.AutoConfig.for_model(kind, **sizes)
        if kind == "t5":
            model, takes_cache = transformers.T5EncoderModel(config), False
        else:
            model, takes_cache = transformers.AutoModel.from_config(config), kind in ("gpt2", "llama")
        return First(model), (torch.randint(0, config.vocab_size, (1, 128)),)

    return build


def vit():
    import timm
    import torch

    return timm.create_model("vit_base_patch16_224", num_classes=0), (torch.randn(1, 3, 224, 224),)


LLAMA = dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8,
             vocab_size=32000)
MODELS = {
    "bert-base": hugging_face("bert"),
    "distilbert": hugging_face("distilbert"),
    "gpt2": hugging_face("gpt2"),
    "t5-small-encoder": hugging_face("t5", d_model=512, d_ff=2048, num_layers=6, num_heads=8),
    "llama-4-layers": hugging_face("llama", **LLAMA),
    "vit-base-16": vit,
}


def export(name, folder):
    """Writes model.pt2, model.onnx, the inputs and the result in float64."""
    import torch

    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    module.eval()
    with torch.no_grad():
        torch.export.save(torch.export.export(module, inputs), folder / "model.pt2")
        torch.onnx.export(module, inputs, folder / "model.onnx", dynamo=True, verbose=False)
        np.save(folder / "in.npy", inputs[0].numpy())
        wide = inputs[0].double() if inputs[0].is_floating_point() else inputs[0]
        module.double()
        np.save(folder / "expected.npy", module(wide).numpy())


def loaded(name):
    import torch

    torch.manual_seed(0)
    module, _ = MODELS[name]()
    return module.eval()


# Each peer takes (name, folder, threads) and returns a function without arguments that computes the result.


def torch_eager(name, folder, threads):
    import torch

    torch.set_num_threads(threads)
    module, x = loaded(name), torch.from_numpy(np.load(folder / "in.npy"))
    def run():
        with torch.inference_mode():
            return module(x).numpy()
    return run


def torch_compile(name, folder, threads):
    import torch

    torch.set_num_threads(threads)
    module, x = torch.compile(loaded(name)), torch.from_numpy(np.load(folder / "in.npy"))
    def run():
        with torch.inference_mode():
            return module(x).numpy()
    return run


def onnxruntime(name, folder, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: np.load(folder / "in.npy")}
    return lambda: session.run(None, feed)[0]


def openvino(name, folder, threads):
    import openvino as ov

    model = ov.Core().compile_model(str(folder / "model.onnx"), "CPU",
                                    {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                     "INFERENCE_PRECISION_HINT": "f32"})
    request, x = model.create_infer_request(), np.load(folder / "in.npy")
    return lambda: request.infer([x])[model.outputs[0]]


PEERS = {"torch": torch_eager, "torch.compile": torch_compile, "onnxruntime": onnxruntime, "openvino": openvino}


def error(got, expected):
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def time_peer(peer, name, folder, threads, seconds):
    """Runs in a separate process; prints one JSON object."""
    began = time.perf_counter()
    run = PEERS[peer](name, folder, threads)
    got = run()
    compiled = time.perf_counter() - began
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(json.dumps({"ms": 1e3 * statistics.median(times), "compile": compiled,
                      "error": error(got, np.load(folder / "expected.npy"))}))


# Prints the largest memory of a command. Linux counts the memory of the process that starts a command as the command's,
# so a small process starts it.
PEAK_MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def time_attn(folder, threads, seconds, level):
    """Compiles once with each build of attnc, and notes its time and memory; attn-run does the rest."""
    library, facts, attnc = folder / "model.so", folder / f"attn-{level}.json", BUILD / "bin/attnc"
    if not facts.exists() or facts.stat().st_mtime < attnc.stat().st_mtime:
        began = time.perf_counter()
        kilobytes = subprocess.run([sys.executable, "-c", PEAK_MEMORY, attnc, folder / "model.pt2", "-o", library,
                                    f"--target={level}"], check=True, stdout=subprocess.PIPE).stdout
        facts.write_text(json.dumps({"compile": time.perf_counter() - began, "GiB": int(kilobytes) / 2**20}))
    call = [BUILD / "bin/attn-run", library, "--input", folder / "in.npy", f"--threads={threads}"]
    subprocess.run([*call, f"--output-dir={folder}"], check=True, stdout=subprocess.DEVNULL)
    timed = subprocess.run([*call, f"--benchmark={seconds}", "--json"], check=True, stdout=subprocess.PIPE)
    return {"ms": json.loads(timed.stdout)["median_ms"], **json.loads(facts.read_text()),
            "error": error(np.load(folder / "0.npy"), np.load(folder / "expected.npy"))}


def measure(peer, name, folder, threads, options):
    if peer == "attn":
        return time_attn(folder, threads, options.seconds, options.attn_level)
    command = [sys.executable, __file__, "--one", peer, name, str(folder), str(threads), str(options.seconds)]
    result = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError((result.stderr.strip().splitlines() or ["no message"])[-1])
    return json.loads(result.stdout.splitlines()[-1])


def attempt(peer, name, folder, threads, options):
    """Prints and returns what was measured; returns None if the runtime fails."""
    try:
        found = measure(peer, name, folder, threads, options)
    except Exception as reason:
        print(f"{name:18} {threads} {peer:14} {reason}", flush=True)
        return None
    print(f"{name:18} {threads} {peer:14} {found['ms']:9.2f} ms   compiled in {found['compile']:6.1f} s"
          + (f", {found['GiB']:.1f} GiB" if "GiB" in found else "") + f"   error {found['error']:.1e}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--peers", default="")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--attn-level", default="native")
    options = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))
    for name in filter(lambda name: re.search(options.models, name), MODELS):
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "expected.npy").exists():
            export(name, folder)
        for threads in map(int, options.threads.split(",")):
            os.sched_setaffinity(0, allowed[:threads])
            before = attempt("attn", name, folder, threads, options)
            for peer in filter(lambda peer: re.search(options.peers, peer), PEERS):
                found = attempt(peer, name, folder, threads, options)
                after = attempt("attn", name, folder, threads, options)
                if before and found and after:
                    print(f"{name:18} {threads} {peer:14} {2 * found['ms'] / (before['ms'] + after['ms']):9.2f} times attn",
                          flush=True)
                before = after
            os.sched_setaffinity(0, allowed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        peer, name, folder, threads, seconds = sys.argv[2:]
        time_peer(peer, name, pathlib.Path(folder), int(threads), float(seconds))
    else:
        main()
