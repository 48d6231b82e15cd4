"""Writes a copy of a .pt2 file with one change, which usually breaks it: change.py CHANGE SOUND.pt2 CHANGED.pt2"""

import copy
import io
import json
import sys
import zipfile

MODEL = "model/models/model.json"
WEIGHTS = "model/data/weights/model_weights_config.json"


def node(model, target):
    nodes = model["graph_module"]["graph"]["nodes"]
    return next(n for n in nodes if n["target"] == f"torch.ops.aten.{target}")


def argument(node, name):
    return next(a for a in node["inputs"] if a["name"] == name)


def unknown_op(entries, model, weights):
    node(model, "softmax.int")["target"] = "torch.ops.aten.foo.default"


def unknown_argument(entries, model, weights):
    argument = {"name": "half_to_float", "arg": {"as_bool": True}, "kind": 1}
    node(model, "softmax.int")["inputs"].append(argument)


def wrong_argument(entries, model, weights):
    argument(node(model, "softmax.int"), "dim")["arg"] = {"as_string": "last"}


def dimension(entries, model, weights):
    argument(node(model, "softmax.int"), "dim")["arg"] = {"as_int": 9}


def training(entries, model, weights):
    argument(node(model, "dropout.default"), "train")["arg"] = {"as_bool": True}


def wrong_result(entries, model, weights):
    model["graph_module"]["graph"]["tensor_values"]["softmax"]["sizes"].reverse()


def view(entries, model, weights):
    # (n, p, heads * size) and (n, p, heads, size, 2) have the same number of elements only for some sizes.
    model["graph_module"]["graph"]["tensor_values"]["reshape"]["sizes"][2] = {"as_int": 2}
    argument(node(model, "reshape.default"), "shape")["arg"]["as_sym_ints"][2] = {"as_int": 2}


def too_large(entries, model, weights):
    """Adds an input that is larger than the memory of any machine."""
    graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
    sizes = [{"as_int": 1 << 45}, {"as_int": 3}]
    graph["tensor_values"]["large"] = {**graph["tensor_values"]["x"], "sizes": sizes, "strides": sizes[::-1]}
    signature["input_specs"].append({"user_input": {"arg": {"as_tensor": {"name": "large"}}}})


def order(entries, model, weights):
    model["graph_module"]["graph"]["nodes"].reverse()


def mutation(entries, model, weights):
    spec = {"user_input_mutation": {"arg": {"name": "linear"}, "user_input_name": "x"}}
    model["graph_module"]["signature"]["output_specs"].insert(0, spec)


def unknown_mutation(entries, model, weights):
    spec = {"buffer_mutation": {"arg": {"name": "linear"}, "buffer_name": "qkv_proj.weight"}}
    model["graph_module"]["signature"]["output_specs"].insert(0, spec)


def custom_object(entries, model, weights):
    spec = {"custom_obj": {"arg": {"name": "o"}, "custom_obj_name": "o"}}
    model["graph_module"]["signature"]["input_specs"][0] = spec


def same_name(entries, model, weights):
    specs = model["graph_module"]["signature"]["input_specs"]
    specs[0]["parameter"]["parameter_name"] = specs[1]["parameter"]["parameter_name"]


def unbacked(entries, model, weights):
    size = {"as_expr": {"expr_str": "Symbol('u0', integer=True)", "hint": None}}
    model["graph_module"]["graph"]["tensor_values"]["softmax"]["sizes"][0] = size


def guard(entries, model, weights):
    model["guards_code"].append("Eq(Mod(L['x'].size()[1], 8), 0)")


def implied_guards(entries, model, weights):
    model["guards_code"] += [
        "L['x'].size()[1] == L['x'].size()[1] and 2 <= L['x'].size()[0]",
        "L['x'].size()[2] == 16",
        "L['x'].size()[1] <= 4096",
    ]


def empty_range(entries, model, weights):
    for bounds in model["range_constraints"].values():
        bounds.update(min_val=9, max_val=8)


def schema(entries, model, weights):
    model["schema_version"]["major"] = 9


def missing_field(entries, model, weights):
    del model["graph_module"]["graph"]["tensor_values"]["softmax"]["sizes"]


def json_syntax(entries, model, weights):
    entries[MODEL] = entries[MODEL][:100]


def nesting(entries, model, weights):
    entries[MODEL] = b"[" * 100000


def no_model(entries, model, weights):
    entries["model/models/other.json"] = entries.pop(MODEL)


def big_endian(entries, model, weights):
    entries["model/byteorder"] = b"big"


def causal(entries, model, weights):
    inputs = node(model, "scaled_dot_product_attention.default")["inputs"]
    inputs.append({"name": "is_causal", "arg": {"as_bool": True}, "kind": 1})


def grouped_mask(entries, model, weights):
    graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
    sizes = [{"as_int": size} for size in (2, 6, 5, 7)]
    strides = [{"as_int": stride} for stride in (210, 35, 7, 1)]
    query = graph["tensor_values"]["q"]
    graph["tensor_values"]["mask"] = {**query, "dtype": 12, "sizes": sizes, "strides": strides}
    signature["input_specs"].append({"user_input": {"arg": {"as_tensor": {"name": "mask"}}}})
    inputs = node(model, "scaled_dot_product_attention.default")["inputs"]
    inputs.append({"name": "attn_mask", "arg": {"as_tensor": {"name": "mask"}}, "kind": 1})


def more_bytes(entries, model, weights):
    """Does not break the file: adds an input of uint8, which is also an output."""
    graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
    graph["tensor_values"]["bytes"] = {**graph["tensor_values"]["x"], "dtype": 1}
    signature["input_specs"].append({"user_input": {"arg": {"as_tensor": {"name": "bytes"}}}})
    output = copy.deepcopy(signature["output_specs"][0])
    output["user_output"]["arg"]["as_tensor"]["name"] = "bytes"
    signature["output_specs"].append(output)


def first_token(entries, model, weights):
    """Makes token 0 of the projection the result."""
    graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
    select = node(model, "select.int")
    argument(select, "dim")["arg"] = {"as_int": 3}
    del graph["nodes"][graph["nodes"].index(select) + 1 :]
    meta = graph["tensor_values"]["select"]
    meta["sizes"] = meta["sizes"][:2] + [{"as_int": 3}, {"as_int": 4}]
    signature["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = "select"


def buffer(entries, model, weights):
    """Does not break the file: makes the first weight a buffer outside of the state dict, so its data is a constant."""
    spec = model["graph_module"]["signature"]["input_specs"][0]
    spec["buffer"] = {**spec.pop("parameter"), "buffer_name": "table", "persistent": False}
    del spec["buffer"]["parameter_name"]
    config = {"config": {"table": {**first_weight(weights), "path_name": "tensor_0"}}}
    del weights["config"]["qkv_proj.weight"]
    entries["model/data/constants/model_constants_config.json"] = json.dumps(config).encode()
    entries["model/data/constants/tensor_0"] = entries.pop("model/data/weights/weight_0")
    entries[MODEL], entries[WEIGHTS] = json.dumps(model).encode(), json.dumps(weights).encode()


def first_weight(weights):
    return weights["config"]["qkv_proj.weight"]


def short_weight(entries, model, weights):
    entries["model/data/weights/weight_0"] = entries["model/data/weights/weight_0"][:-4]


def pickled_weight(entries, model, weights):
    first_weight(weights)["use_pickle"] = True


def strided_weight(entries, model, weights):
    first_weight(weights)["tensor_meta"]["strides"][0] = {"as_int": 17}


def retyped_weight(entries, model, weights):
    first_weight(weights)["tensor_meta"]["dtype"] = 6


def lost_weight(entries, model, weights):
    first_weight(weights)["path_name"] = "../weights/weight_9"


def unlisted_weight(entries, model, weights):
    del weights["config"]["qkv_proj.weight"]


def duplicate(entries, model, weights):
    entries["other/byteorder"] = b"little"


def truncated(data):
    return data[: len(data) // 2]


def flipped(data):
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


def lying_directory(data):
    """Sets the size of the first entry to almost 4 GiB, in its own header and in the directory."""
    data = bytearray(data)
    for header, offset in ((b"PK\3\4", 18), (b"PK\1\2", 20)):
        at = data.index(header) + offset
        data[at : at + 8] = b"\xf0\xff\xff\xff" * 2
    return bytes(data)


def main(change, source, target):
    with zipfile.ZipFile(source) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    kind, after = zipfile.ZIP_STORED, lambda data: data
    if change == "compressed":
        kind = zipfile.ZIP_DEFLATED
    elif change in ("truncated", "flipped", "lying-directory"):
        after = globals()[change.replace("-", "_")]
    else:
        model, weights, before = json.loads(entries[MODEL]), json.loads(entries[WEIGHTS]), dict(entries)
        globals()[change.replace("-", "_")](entries, model, weights)
        if entries == before:
            entries[MODEL], entries[WEIGHTS] = json.dumps(model).encode(), json.dumps(weights).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    with open(target, "wb") as file:
        file.write(after(stream.getvalue()))


main(*sys.argv[1:])
