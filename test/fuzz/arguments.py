"""Writes inputs of the fuzz target `graph` with one argument of a kind that the op does not accept: arguments.py FOLDER

Each argument of each case in ops/ is left out in one input, and has one of VALUES in each further input. Of several
cases with the same op and the same kinds of arguments, only the first is used.
"""

import json
import pathlib
import sys

from seeds import graphs

VALUES = [{"as_none": True}, {"as_tensor": {"name": "nobody"}}, {"as_tensors": []}, {"as_tensors": [{"name": "nobody"}]},
          {"as_optional_tensors": [{"as_none": True}]}, {"as_int": -1}, {"as_int": 2**63 - 1}, {"as_int": -2**63},
          {"as_ints": []}, {"as_ints": [0] * 17}, {"as_ints": [-2**63, 2**63 - 1]}, {"as_sym_int": {"as_name": "nobody"}},
          {"as_float": "NaN"}, {"as_float": 1e300}, {"as_floats": []}, {"as_bool": True}, {"as_string": "none"},
          {"as_scalar_type": 13}]


def main(folder):
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    seen = set()
    for name, data in graphs():
        first, *rest = data.split(b"\0")
        model = json.loads(first)
        nodes = model["graph_module"]["graph"]["nodes"]
        if len(nodes) > 3:  # a graph that torch exported: the cases contain its ops
            continue

        shape = str([(node["target"], [(given["name"], *given["arg"]) for given in node["inputs"]]) for node in nodes])
        if shape in seen:
            continue
        seen.add(shape)

        def write(variant):
            (path / f"{name}-{variant}").write_bytes(b"\0".join([json.dumps(model).encode(), *rest]))

        for i, node in enumerate(nodes):
            inputs = node["inputs"]
            for j, given in enumerate(inputs):
                node["inputs"] = inputs[:j] + inputs[j + 1:]
                write(f"{i}-{j}-none")
                for k, value in enumerate(VALUES):
                    node["inputs"] = inputs[:j] + [{**given, "arg": value}] + inputs[j + 1:]
                    write(f"{i}-{j}-{k}")
            node["inputs"] = inputs


if __name__ == "__main__":
    main(*sys.argv[1:])
