"""Writes .pt2 files in the format of torch.export.save, without torch.

    program = Program()
    x = program.input("x", numpy.ones((2, 3), "float32"))
    y = program.node("aten.add.Tensor", numpy.empty((2, 3), "float32"), self=x, other=1.5)
    program.output(y)
    program.save("add.pt2")

A numpy array describes a tensor by its type, sizes and strides. The elements of the array matter only for weights.
"""

import io
import json
import math
import zipfile

import numpy as np

DTYPES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8,
          "complex64": 10, "complex128": 11,
          "bool": 12, "bfloat16": 13}


LEAF = {"type": None, "context": None, "children_spec": []}


def tree(value):
    """Returns the pytree that torch writes for nested tuples and dictionaries; any other value is a leaf."""
    if isinstance(value, dict):
        context, children = json.dumps(list(value)), value.values()
    elif isinstance(value, tuple):
        context, children = "null", value
    else:
        return LEAF
    return {"type": f"builtins.{type(value).__name__}", "context": context, "children_spec": [tree(v) for v in children]}


class DType(str):
    """The name of an element type, as an argument of a node."""


class Value:
    """A tensor of the graph, a size, or a float or a condition that is computed from sizes."""

    def __init__(self, name, is_size=False, is_float=False, is_condition=False):
        self.name, self.is_size, self.is_float, self.is_condition = name, is_size, is_float, is_condition


def symbol(name):
    return f"Symbol('{name}', positive=True, integer=True)"


def expression(text):
    """Returns the entry in the file for a size that is a symbol or a sympy expression, from its text."""
    return {"as_expr": {"expr_str": text if "(" in text else symbol(text), "hint": {"as_int": 4}}}


def size(value):
    """Returns the entry in the file for a size: a number, the name of a symbol, or the text of a sympy expression."""
    return expression(value) if isinstance(value, str) else {"as_int": int(value)}


def meta(array, sizes=None):
    """Returns the entry in the file for a tensor with the type, sizes and strides of the array."""
    strides = [stride // array.itemsize for stride in array.strides] if array.size else [1] * array.ndim
    return {"dtype": DTYPES[array.dtype.name], "sizes": [size(n) for n in sizes or array.shape],
            "requires_grad": False, "device": {"type": "cpu", "index": None}, "strides": [size(n) for n in strides],
            "storage_offset": size(0), "layout": 7}


def number(value):
    """Converts a float for JSON, which has no infinities and no NaN: torch writes these as strings."""
    special = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return "NaN" if math.isnan(value) else special.get(value, value)


def argument(value):
    """Returns the entry in the file for an argument of a node. It has one field, whose name is the kind of argument."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, Value) and value.is_float:
        return {"as_sym_float": {"as_name": value.name}}
    if isinstance(value, Value) and value.is_condition:
        return {"as_sym_bool": {"as_name": value.name}}
    if isinstance(value, Value):
        return {"as_sym_int": {"as_name": value.name}} if value.is_size else {"as_tensor": {"name": value.name}}
    if isinstance(value, DType):
        return {"as_scalar_type": DTYPES[value]}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": number(value)}
    if isinstance(value, str):
        return {"as_string": value}
    if all(isinstance(element, int) for element in value):
        return {"as_ints": list(value)}
    if all(isinstance(element, float) for element in value):
        return {"as_floats": [number(element) for element in value]}
    if all(isinstance(element, Value) and not element.is_size for element in value):
        return {"as_tensors": [{"name": element.name} for element in value]}
    if any(isinstance(element, Value) and element.is_size for element in value):
        return {"as_sym_ints": [{"as_name": element.name} if isinstance(element, Value) else {"as_int": element}
                                for element in value]}
    return {"as_optional_tensors": [argument(element) for element in value]}


class Program:
    """A graph under construction."""

    def __init__(self):
        self.tensors, self.symbols, self.ranges = {}, {}, {}
        self.nodes, self.inputs, self.outputs, self.specs, self.weights = [], [], [], [], {}
        self.literals = {}
        # Conditions on sizes; the nesting of the inputs, as torch's pytree; the names of the outermost arguments.
        self.guards, self.tree, self.names = [], None, []
        self.output_tree = None
        # Sizes, strides and offset of weights that are views of the data in the file.
        self.stored = {}
        # For weights whose data are given as bytes, arrays that have their type.
        self.kinds = {}
        self.mutations = []

    def input(self, name, array, sizes=None):
        """Adds a tensor that the caller passes. Sizes that are strings are symbols, with values of at least 2."""
        self.specs.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})
        for text in sizes or ():
            if isinstance(text, str) and "(" not in text:
                self.ranges[text] = {"min_val": 2, "max_val": 4096}
        return self._argument(name, meta(array, sizes))

    def weight(self, name, array):
        """Adds a parameter, whose data is in the file."""
        value = "p_" + name
        self.weights[name] = np.ascontiguousarray(array)
        self.specs.append({"parameter": {"arg": {"name": value}, "parameter_name": name}})
        return self._argument(value, meta(self.weights[name]))

    def buffer(self, name, array):
        """Adds a buffer, whose data is in the file, and to which the graph may write."""
        value = "b_" + name
        self.weights[name] = np.ascontiguousarray(array)
        self.specs.append({"buffer": {"arg": {"name": value}, "buffer_name": name, "persistent": True}})
        return self._argument(value, meta(self.weights[name]))

    def literal(self, name, array):
        """Adds a constant tensor that is in the code of the model."""
        value = "c_" + name
        self.literals[name] = np.asarray(array)
        self.specs.append({"tensor_constant": {"arg": {"name": value}, "tensor_constant_name": name}})
        return self._argument(value, meta(np.asarray(array)))

    def _argument(self, name, described):
        self.tensors[name] = described
        self.inputs.append({"as_tensor": {"name": name}})
        return Value(name)

    def node(self, target, like=(), /, *, symbolic=None, line=0, file="ops.py", is_list=False, **arguments):
        """Adds a call of an op. `like` is an array of the type and sizes of the result, or a list for several results.

        `symbolic` holds the sizes if not all of them are numbers, or a list of such sizes for several results.
        """
        name = f"{target.split('.')[1]}_{len(self.nodes)}"
        likes = like if isinstance(like, (list, tuple)) else [like]
        results = [Value(f"{name}_{i}") for i in range(len(likes))]
        sizes = symbolic if isinstance(like, (list, tuple)) and symbolic else [symbolic] * len(likes)
        for result, array, sizes_of_one in zip(results, likes, sizes):
            self.tensors[result.name] = meta(array, sizes_of_one)
        outputs = [{"as_tensor": {"name": result.name}} for result in results]
        self._node(name, target, [{"as_tensors": [o["as_tensor"] for o in outputs]}] if is_list else outputs, (file, line),
                   arguments)
        return results if isinstance(like, (list, tuple)) else results[0]

    def block(self, target, body, *tensors, autocast=False):
        """Adds a node that has a graph, as torch.export does for torch.no_grad(), and returns the results of the node.

        `body` adds nodes to the graph and returns the results of the graph, which may be among `tensors`.
        """
        inner, name = Program(), f"block_{len(self.nodes)}"
        results = body(inner, *[inner._argument(f"arg{i}", self.tensors[t.name]) for i, t in enumerate(tensors)])
        for result in results:
            inner.output(result)
        outside = [Value(f"{name}_{i}") for i in range(len(results))]
        for result, value in zip(results, outside):
            self.tensors[value.name] = inner.tensors[result.name]
        arguments = [{"as_bool": False}]
        if target == "wrap_with_autocast":  # the device, the element type, whether autocast is on, and whether it caches
            arguments = [{"as_string": "cpu"}, {"as_none": True}, {"as_bool": autocast}, {"as_bool": True}]
        arguments.append({"as_graph": {"name": name, "graph": inner.model()["graph_module"]["graph"]}})
        arguments += [argument(tensor) for tensor in tensors]
        self.nodes.append({"target": "torch.ops.higher_order." + target, "outputs": [argument(v) for v in outside],
                           "inputs": [{"name": "", "arg": each, "kind": 1} for each in arguments],
                           "metadata": {"stack_trace": 'File "ops.py", line 0, in forward\n'}, "name": name,
                           "is_hop_single_tensor_return": False})
        return outside

    def size(self, tensor, dim):
        """Adds a node that reads a size, which is a symbol, so that other nodes can use it."""
        name = f"sym_size_{len(self.nodes)}"
        self.symbols[name] = self.tensors[tensor.name]["sizes"][dim]
        self._node(name, "aten.sym_size.int", [{"as_sym_int": {"as_name": name}}], ("ops.py", 0), {"self": tensor, "dim": dim})
        return Value(name, is_size=True)

    def arithmetic(self, function, expression, **arguments):
        """Adds a size that `function`, such as "mul", computes; `expression` is its text, such as "Mul({a}, {b})"."""
        name = f"{function}_{len(self.nodes)}"
        texts = {key: self.symbols[value.name]["as_expr"]["expr_str"] if isinstance(value, Value) else f"Integer({value})"
                 for key, value in arguments.items()}
        self.symbols[name] = {"as_expr": {"expr_str": expression.format(**texts), "hint": {"as_int": 4}}}
        module = "torch." if function.startswith("sym_") else "_operator."
        self._node(name, module + function, [{"as_sym_int": {"as_name": name}}], ("ops.py", 0), arguments)
        return Value(name, is_size=True)

    def real(self, target, **arguments):
        """Adds a float that `target`, such as "_operator.truediv", computes from sizes and floats."""
        name = f"real_{len(self.nodes)}"
        self._node(name, target, [{"as_sym_float": {"as_name": name}}], ("ops.py", 0), arguments)
        return Value(name, is_float=True)

    def element(self, tensor, symbol):
        """Adds a node that reads the only element of a tensor as a number; `symbol` is the name of this number."""
        name = f"item_{len(self.nodes)}"
        self.symbols[name] = expression(symbol)
        self._node(name, "aten.item.default", [{"as_sym_int": {"as_name": name}}], ("ops.py", 0), {"self": tensor})
        return Value(name, is_size=True)

    def condition(self, function, **arguments):
        """Adds a condition that `function`, such as "le", computes from sizes and elements."""
        name = f"{function}_{len(self.nodes)}"
        self._node(name, "_operator." + function, [{"as_sym_bool": {"as_name": name}}], ("ops.py", 0), arguments)
        return Value(name, is_condition=True)

    def effect(self, target, /, *, line=0, **arguments):
        """Adds a call of an op without a result."""
        self._node(f"{target.split('.')[1]}_{len(self.nodes)}", target, [], ("ops.py", line), arguments)

    def _node(self, name, target, outputs, place, arguments):
        if target.startswith(("aten.", "transformers.")):
            target = "torch.ops." + target
        inputs = [{"name": key, "arg": argument(value), "kind": 1} for key, value in arguments.items()]
        trace = 'File "{}", line {}, in forward\n    '.format(*place) + target
        self.nodes.append({"target": target, "inputs": inputs, "outputs": outputs,
                           "metadata": {"stack_trace": trace}, "is_hop_single_tensor_return": None, "name": name})

    def mutation(self, value, target, kind="buffer"):
        """Makes `value` the new content of `target`, a buffer or user_input, as in graphs without in-place ops."""
        spec = {f"{kind}_mutation": {"arg": {"name": value.name}, f"{kind}_name": target}}
        self.mutations.append(({"as_tensor": {"name": value.name}}, spec))

    def constant(self, name, value):
        """Adds an input that is not a tensor. The file contains its value."""
        self.specs.append({"constant_input": {"name": name, "value": argument(value)}})

    def output(self, value):
        self.outputs.append(argument(value))

    def model(self):
        mutated, specs = [output for output, _ in self.mutations], [spec for _, spec in self.mutations]
        graph = {"inputs": self.inputs, "outputs": mutated + self.outputs, "nodes": self.nodes,
                 "tensor_values": self.tensors,
                 "sym_int_values": self.symbols, "sym_bool_values": {}, "is_single_tensor_return": False,
                 "custom_obj_values": {}, "sym_float_values": {}}
        results = specs + [{"user_output": {"arg": output}} for output in self.outputs]
        signature = {"in_spec": json.dumps([1, self.tree]), "forward_arg_names": self.names}
        if self.output_tree:
            signature["out_spec"] = json.dumps([1, self.output_tree])
        calls = [{"fqn": "", "signature": signature}]
        module = {"graph": graph, "signature": {"input_specs": self.specs, "output_specs": results},
                  "module_call_graph": calls if self.tree or self.output_tree else [], "metadata": {}, "treespec_namedtuple_fields": {}}
        return {"graph_module": module, "opset_version": {"aten": 10}, "range_constraints": self.ranges,
                "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "torch_version": "2.15.0",
                "guards_code": self.guards}

    def save(self, path):
        """Writes a zip file whose entries are not compressed."""
        config, entries = {}, {}
        for i, (name, array) in enumerate(self.weights.items()):
            config[name] = {"path_name": f"weight_{i}", "is_param": True, "use_pickle": False,
                            "tensor_meta": meta(self.kinds.get(name, array))}
            if name in self.stored:
                shape, strides, offset = self.stored[name]
                config[name]["tensor_meta"].update(sizes=[size(n) for n in shape], strides=[size(n) for n in strides],
                                                   storage_offset=size(offset))
            entries[f"data/weights/weight_{i}"] = array.tobytes()
        entries["data/weights/model_weights_config.json"] = json.dumps({"config": config})
        constants = {name: {"path_name": f"tensor_{i}", "is_param": False, "use_pickle": False, "tensor_meta": meta(array)}
                     for i, (name, array) in enumerate(self.literals.items())}
        entries["data/constants/model_constants_config.json"] = json.dumps({"config": constants})
        for i, array in enumerate(self.literals.values()):
            entries[f"data/constants/tensor_{i}"] = array.tobytes()
        entries["models/model.json"] = json.dumps(self.model())
        entries.update({"archive_format": "pt2", "archive_version": "0", ".data/version": "6\n",
                        "byteorder": "little"})
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, data in entries.items():
                archive.writestr("model/" + name, data)
        with open(path, "wb") as file:
            file.write(stream.getvalue())
