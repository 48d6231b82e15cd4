"""Writes the files from which the fuzz targets start: seeds.py FOLDER makes FOLDER/TARGET/NAME for each target.

The files come from other tests, so that every op and every form of a module that has a test is fuzzed too.
"""

import io
import json
import pathlib
import re
import struct
import sys
import tempfile
import zipfile

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "frontend" / "pt2"))
import ops  # noqa: E402
from calls import CASES, GRAPHS, File  # noqa: E402
from program import Program  # noqa: E402

# Larger files are left out, because each mutation of them takes more time.
MAX_BYTES = 65536
# Entries that the importer does not read. Mutations of these entries would test nothing.
UNREAD = {"device", "hint", "is_hop_single_tensor_return", "is_param", "kind", "metadata", "module_call_graph", "opset_version",
          "requires_grad", "torch_version", "treespec_namedtuple_fields", "verifiers"}


def programs(folder):
    """Yields the cases of ops/, one for each file, and graphs that torch exported."""
    ops.load(ops.GROUPS)
    for i, case in enumerate(CASES):
        File(f"{folder}/{i:03}-{case.op}", [case], [])
    for function in GRAPHS:
        File(f"{folder}/{function.__name__}", [], [function])
    yield from sorted(folder.glob("*.pt2"))
    yield from sorted((TESTS / "frontend" / "pt2" / "Inputs").glob("*.pt2"))


def read_part(value):
    """Returns JSON without the entries that the importer does not read; the metadata of nodes becomes empty."""
    if isinstance(value, list):
        return [read_part(element) for element in value]
    if not isinstance(value, dict):
        return value
    kept = {key: read_part(element) for key, element in value.items() if key not in UNREAD}
    return {**kept, "metadata": {}} if "target" in value else kept


def entries(path):
    """Returns an input of Graph.cpp. Zero bytes separate the entries, so all bytes of weights become 1."""
    with zipfile.ZipFile(path) as archive:
        names = [name.split("/", 1)[1] for name in archive.namelist()]
        held = {name: archive.read(full) for name, full in zip(names, archive.namelist())}
    weights = sorted((name for name in held if re.fullmatch(r"data/weights/weight_\d+", name)),
                     key=lambda name: int(name.rsplit("_", 1)[1]))
    parts = [json.dumps(read_part(json.loads(held[name])), separators=(",", ":")).encode()
             for name in ("models/model.json", "data/weights/model_weights_config.json")]
    return b"\0".join(parts + [b"\1" * len(held[name]) for name in weights])


def graphs():
    with tempfile.TemporaryDirectory() as folder:
        for path in programs(pathlib.Path(folder)):
            yield path.stem, entries(path)


def archives():
    """Yields small files, so that most bytes that a mutation changes belong to the structure of the zip file."""
    program = Program()
    x = program.input("x", np.zeros((2, 3), "float32"))
    weight = program.weight("w", np.ones((2, 3), "float32"))
    program.output(program.node("aten.add.Tensor", np.zeros((2, 3), "float32"), self=x, other=weight))
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
        program.save(file.name)
        yield "add", pathlib.Path(file.name).read_bytes()


def modules():
    """Yields the modules of other tests, without their comments."""
    for path in sorted(TESTS.rglob("*.mlir")):
        if path.parent.name == "upstream":  # crashes of MLIR itself
            continue
        for i, part in enumerate(path.read_text().split("// -----")):
            text = "\n".join(line for line in part.splitlines() if not line.lstrip().startswith("//")).strip()
            if text:
                yield f"{path.relative_to(TESTS).with_suffix('')}-{i}".replace("/", "-"), text.encode()


def manifests():
    def tensor(name, shape, **more):
        return {"name": name, "dtype": "f32", "shape": shape, **more}

    function = {"name": "forward", "inputs": [tensor("x", ["n", 4]), {**tensor("lengths", [2], bound="n"), "dtype": "i32"}],
                "outputs": [tensor("out", ["n", 4])], "weights": [tensor("w.weight", [4, 4])],
                "symbols": [{"name": "n", "min": 0, "max": 512}],
                "levels": [{"level": level, "features": [], "workspace": "per call 64, per worker 0", "packed_bytes": 64,
                            "packed_hash": "00000000deadbeef", "report": "a.py:1: attention fused", "schedules": "per-head"}
                           for level in ("x86-64-v3", "x86-64")]}
    yield "library", json.dumps({"library": "mha", "compiler": "attn 1.2.3", "abi": 1, "functions": [function]}).encode()


def weights():
    """Yields the weights of `forward` in test/runtime/kernel.c, with and without the length before the header."""
    def tensor(begin, end, dtype="F32"):
        return {"dtype": dtype, "shape": [4], "data_offsets": [begin, end]}

    data = struct.pack("<8f", *range(1, 9))
    for name, header in {"both": {"scale": tensor(0, 16), "bias": tensor(16, 32)},
                         "metadata": {"__metadata__": {"format": "\u00e9\n"}, "bias": tensor(0, 16), "scale": tensor(16, 32)},
                         "types": {"scale": tensor(0, 16), "bias": tensor(16, 32), "more": tensor(24, 32, "BF16")}}.items():
        text = json.dumps(header).encode()
        yield name, struct.pack("<Q", len(text)) + text + data
        yield name + "-header", text + b"\0" + data[1:]


def arrays():
    for array in (np.zeros((2, 3), "float32"), np.ones((), "float64"), np.zeros((0, 4), "int64"), np.ones(5, "bool"),
                  np.ones((1, 2), "float16"), np.ones(3, "uint8")):
        file = io.BytesIO()
        np.save(file, array)
        yield array.dtype.name, file.getvalue()


def packed():
    """Yields the file that attn_weights_save writes for `forward` in test/runtime/kernel.c."""
    abi = int(re.search(r"#define ATTN_ABI_VERSION (\d+)", (TESTS.parent / "runtime" / "attn_kernel.h").read_text())[1])
    yield "forward", struct.pack("<8sIIQQQ24s8f", b"ATTNPACK", abi, 0, 1, 32, 99, b"x86-64-v4", *range(8))


def options():
    yield "levels", b"x86-64,x86-64-v3\nx.0=3\nx.1=5"
    yield "all", b"all:x86_64\nx.0=7"
    yield "native", b"native\n"


TARGETS = {"pt2": archives, "graph": graphs, "mlir": modules, "manifest": manifests, "safetensors": weights, "npy": arrays,
           "packed": packed, "options": options}


def main(folder, *names):
    for name in names or TARGETS:
        target = pathlib.Path(folder) / name
        target.mkdir(parents=True, exist_ok=True)
        for seed, data in TARGETS[name]():
            if len(data) <= MAX_BYTES:
                (target / seed).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
