"""Parts of a graph of torch.compile that can become kernels, and the graph that calls them.

A part is a set of nodes that computes new tensors from other tensors. It may change in place only memory that it has
allocated itself, and nothing outside of it reads this memory before the part ends. Views that leave a part are computed
again by PyTorch, so that they share memory as they do without attn.
"""

import functools
import heapq
import operator

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from attn._effects import INPUTS, hint, is_size, is_tensor, value_of
from attn._kernel import error


def find_order(graph, effects):
    """Maps each node of `graph` that computes more than sizes to the nodes that must run after it."""
    nodes = [node for node in graph.nodes if node.op not in ("placeholder", "get_attr", "output") and not is_size(node)]
    later = {node: set() for node in nodes}

    def producers(node):
        for source in node.all_input_nodes:
            if is_size(source):
                yield from producers(source)
            elif source in later:
                yield source

    last_write, readers = {}, {}
    barrier, since_barrier = None, []
    for node in nodes:
        for source in producers(node):
            later[source].add(node)
        if node in effects.shares and not effects.writes.get(node) and node not in effects.barriers:
            continue  # a view reads no elements
        if barrier:
            later[barrier].add(node)
        if node in effects.barriers:
            for other in since_barrier:
                later[other].add(node)
            barrier, since_barrier = node, []
        else:
            since_barrier.append(node)
        written = effects.writes.get(node, ())
        for memory in {memory for source in node.all_input_nodes for memory in effects.memory[source]} | effects.memory[node]:
            if memory in last_write:
                later[last_write[memory]].add(node)
            if memory in written:
                for reader in readers.pop(memory, ()):
                    later[reader].add(node)
                last_write[memory] = node
            else:
                readers.setdefault(memory, []).append(node)
    for node in nodes:
        later[node].discard(node)
    return later


def _is_projection(node):
    """Whether `node` takes one of several results of an op."""
    return node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node) and not is_tensor(node.args[0]) \
        and isinstance(value_of(node.args[0]), (tuple, list))


def _levels(nodes, later, is_supported):
    """Returns the level of each node: the number of times that the kind of nodes changes from supported to unsupported
    on the ways from the node to the end. Supported nodes of one level can run together."""
    level = {}
    for node in reversed(nodes):
        here = is_supported(node)
        level[node] = max((level[user] + (is_supported(user) and not here) for user in later[node]), default=0)
    for node in nodes:
        if _is_projection(node) and node.args[0] in level:
            level[node] = level[node.args[0]]
    return level


def find_parts(later, effects, is_known):
    """Returns lists of nodes that can be parts. `later` is the result of find_order. `is_known` says whether attn supports
    the ops of a node."""
    nodes = list(later)

    def writes_only_local(node):
        return all(memory != INPUTS and effects.creators[memory].op not in ("placeholder", "get_attr") for memory in effects.writes.get(node, ()))

    supported = {node for node in nodes if node not in effects.barriers and is_known(node) and writes_only_local(node)}
    for node in nodes:
        if _is_projection(node) and node.args[0] in later and (node in supported) != (node.args[0] in supported):
            supported -= {node, node.args[0]}
    while True:
        level = _levels(nodes, later, supported.__contains__)
        part = {}  # maps nodes to the lists of nodes of their parts
        for node in nodes:
            if node in supported:
                part[node] = [node]
        for node in nodes:
            for user in later[node]:
                if node in part and user in part and level[node] == level[user] and part[node] is not part[user]:
                    part[node] += part[user]
                    for moved in part[user]:
                        part[moved] = part[node]
        # A write needs the op that allocates its memory in the same part.
        split = {node for node in supported for memory in effects.writes.get(node, ())
                 if part.get(effects.creators[memory]) is not part[node]}
        if not split:
            break
        supported -= split
    order = {node: i for i, node in enumerate(nodes)}
    unique = {id(members): members for members in part.values()}
    return [sorted(members, key=order.get) for members in unique.values()]


def order_of(value):
    """The order of dimensions, from the outermost to the innermost, in which the elements of `value` are stored.

    Returns None if it is the order of the dimensions itself.
    """
    sizes, strides = value.shape, value.stride()
    if any(statically_known_true(size == 0) for size in sizes):
        return None
    order = sorted(range(value.ndim), key=lambda axis: (-hint(strides[axis]), axis))
    expected = 1
    for axis in reversed(order):
        if not statically_known_true(sizes[axis] == 1):
            if not statically_known_true(strides[axis] == expected):
                raise error(f"expected results whose elements are adjacent in memory, got sizes {list(sizes)} and strides {list(strides)}")
            expected = expected * sizes[axis]
    kept = [axis for axis in order if not statically_known_true(sizes[axis] == 1)]
    return None if kept == sorted(kept) else order


def _has_size(size, node):
    """Whether the value of `node` is a tensor with a dimension of the size that is the value of the node `size`."""
    value = value_of(node)
    return isinstance(value, torch.Tensor) and any(isinstance(other, torch.SymInt) and other.node.expr == value_of(size).node.expr
                                                   for other in value.shape)


#: Ops that read rows of a tensor.
_LOOKUPS = {f"aten.{name}" for name in ("embedding.default", "index_select.default", "index.Tensor", "gather.default")}


class Part:
    """Nodes of a graph as a module. `inputs` are the nodes whose values it takes, `outputs` those that it returns.

    An input whose number is in `tables` is a weight that only lookups read, whose indices are no constants. If other ops
    read the weight too, it is two inputs.
    """

    def __init__(self, root, nodes, effects):
        self.root, self.nodes, self.effects = root, set(nodes), effects
        self.graph = torch.fx.Graph()
        self.inputs, self.outputs, self.orders, self.tables = [], [], [], set()
        self.inner = {}
        for node in nodes:
            self._copy(node)
        for node in [node for node in self.inputs if isinstance(value_of(node), torch.SymInt)]:
            if not any(map(functools.partial(_has_size, node), self.inputs)):
                # Take a tensor with this size, because a kernel reads sizes from the shapes of its inputs.
                for other in root.graph.nodes:
                    if other.op == "placeholder" and _has_size(node, other):
                        self._inside(other)
                        break

    def _copy(self, node):
        looks_up = not _LOOKUPS.isdisjoint(self.effects.ops.get(node, ())) and node not in self.effects.constants
        inside = functools.partial(self._inside, looks_up=looks_up)
        made = self.graph.create_node(node.op, node.target, torch.fx.map_arg(node.args, inside), torch.fx.map_arg(node.kwargs, inside),
                                      node.name, node.type)
        made.meta = dict(node.meta)
        self.inner[node] = made
        return made

    def _inside(self, node, looks_up=False):
        """The value of `node` in this part. `looks_up` says whether it is for a lookup."""
        is_table = looks_up and node.op == "placeholder" and node in self.effects.constants and value_of(node).is_contiguous()
        if (key := (node, "table") if is_table else node) in self.inner:
            return self.inner[key]
        value = value_of(node)
        if is_size(node) or node.op == "placeholder" and isinstance(value, torch.SymInt):
            if isinstance(value, (int, float, bool)):
                return value
            if node.op != "placeholder":
                return self._copy(node)
        if node.op == "get_attr":
            return self._copy(node)
        if value is not None and not isinstance(value, (torch.Tensor, torch.SymInt)):
            raise error(f"expected inputs that are tensors, got '{node.name}', of type {type(value).__name__}")
        if is_table:
            self.tables.add(len(self.inputs))
        self.inputs.append(node)
        placeholders = [made for made in self.graph.nodes if made.op == "placeholder"]
        first = next(iter(self.graph.nodes), None)
        with self.graph.inserting_after(placeholders[-1]) if placeholders else self.graph.inserting_before(first):
            made = self.graph.placeholder(f"{node.name}_table" if is_table else node.name)
        made.meta = dict(node.meta)
        self.inner[key] = made
        return made

    def is_new(self, node):
        """Whether `node` of this part computes a tensor in memory that the part allocates."""
        if node in self.effects.shares:
            return _is_projection(node) and node.args[0] in self.nodes and node.args[0] not in self.effects.shares
        return is_tensor(node)

    def add_output(self, node):
        if node not in self.outputs:
            self.outputs.append(node)
            self.orders.append(order_of(value_of(node)))

    def finish(self):
        """Returns the part as a module, which returns a tuple of contiguous tensors."""
        if len({memory for node in self.outputs for memory in self.effects.memory[node]}) < len(self.outputs):
            raise error("expected results that share no memory")
        results = []
        for node, order in zip(self.outputs, self.orders):
            result = self.inner[node]
            if order is not None:
                result = self.graph.call_method("contiguous", (self.graph.call_method("permute", (result, *order)),))
            results.append(result)
        self.graph.output(tuple(results))
        self.graph.lint()
        return torch.fx.GraphModule(self.root, self.graph)


class Rest:
    """The graph that calls parts. It computes everything that is not in a part."""

    def __init__(self, root, parts, effects):
        self.root, self.parts, self.effects = root, parts, effects
        self.of = {node: part for part in parts for node in part.nodes}
        self.symbols = {}
        self.needed = {}
        for node in root.graph.nodes:
            value = value_of(node)
            if node.op == "placeholder" and isinstance(value, torch.SymInt):
                self.symbols.setdefault(value.node.expr, node)
        # Find the outputs of each part.
        for node in root.graph.nodes:
            if node not in self.of and not is_size(node):
                for source in node.all_input_nodes:
                    self._need(source)
        for part in parts:
            for source in part.inputs:
                self._need(source)

    def _need(self, node):
        if node in self.needed:
            return
        self.needed[node] = True
        if is_size(node):
            if self._known_size(node) is None:
                for source in node.all_input_nodes:
                    self._need(source)
        elif node in self.of:
            if self.of[node].is_new(node):
                self.of[node].add_output(node)
            else:
                for source in self._sources(node):
                    self._need(source)

    def _known_size(self, node):
        value = value_of(node)
        if isinstance(value, (int, float, bool)):
            return value
        return self.symbols.get(value.node.expr) if isinstance(value, torch.SymInt) else None

    def _sources(self, node):
        """The nodes from which the rest computes `node`, which shares memory with them."""
        if node not in self.effects.shares:
            raise error(f"expected results that are tensors, got those of {node.target}")
        if not self.effects.writes.get(node):
            return node.all_input_nodes
        return [self._written(node)]

    def _written(self, node):
        """The argument that `node` changes in place and returns."""
        value = value_of(node)
        for source in node.all_input_nodes:
            other = value_of(source)
            if isinstance(other, torch.Tensor) and self.effects.exact[source] == self.effects.exact[node] \
                    and other.shape == value.shape and other.stride() == value.stride() \
                    and other.storage_offset() == value.storage_offset() and other.dtype == value.dtype:
                return source
        raise error(f"expected an op in place that returns its argument, got {node.target}")

    def build(self, later, call):
        """Returns the graph. `call(graph, part, inputs)` adds a call of a part and returns its outputs."""
        graph, made = torch.fx.Graph(), {}

        def emit(node):
            new = graph.create_node(node.op, node.target, torch.fx.map_arg(node.args, get), torch.fx.map_arg(node.kwargs, get),
                                    node.name, node.type)
            new.meta = dict(node.meta)
            if hasattr(node, "_dynamo_source"):  # PyTorch's backend needs it for each input
                new._dynamo_source = node._dynamo_source
            made[node] = new
            return new

        def get(node):
            if node in made:
                return made[node]
            if is_size(node):
                known = self._known_size(node)
                if known is not None:
                    return get(known) if isinstance(known, torch.fx.Node) else known
                return emit(node)
            if node in self.of and self.effects.writes.get(node):
                return get(self._written(node))
            return emit(node)  # a view or a constant

        def run(part):
            outputs = call(graph, part, [get(node) for node in part.inputs])
            for node, order, result in zip(part.outputs, part.orders, outputs):
                if order is not None:
                    back = [order.index(axis) for axis in range(len(order))]
                    result = graph.call_method("permute", (result, *back))
                result.meta["example_value"] = value_of(node)
                made[node] = result
            for node in self.needed:  # the views of the outputs, before a region that comes after the part
                if self.of.get(node) is part:
                    get(node)

        for step in self._steps(later):
            if isinstance(step, Part):
                run(step)
            elif step not in made and not is_size(step):
                emit(step)
        graph.lint()
        rest = torch.fx.GraphModule(self.root, graph)
        rest.meta = dict(self.root.meta)
        return rest

    def _steps(self, later):
        """The nodes of the rest and the parts, in an order in which they can run."""
        index = {node: i for i, node in enumerate(self.root.graph.nodes)}
        step_of = {node: self.of.get(node, node) for node in later}
        first = {}
        for node in later:
            first[step_of[node]] = min(index[node], first.get(step_of[node], len(index)))
        before = {step: set() for step in first}
        after = {step: set() for step in first}
        for node, followers in later.items():
            for follower in followers:
                if step_of[node] is not step_of[follower]:
                    before[step_of[follower]].add(step_of[node])
                    after[step_of[node]].add(step_of[follower])
        yield from (node for node in index if node.op == "placeholder")
        ready = [(first[step], step) for step in before if not before[step]]
        ready = [(i, n, step) for n, (i, step) in enumerate(ready)]
        heapq.heapify(ready)
        count, done = len(ready), 0
        while ready:
            _, _, step = heapq.heappop(ready)
            done += 1
            yield step
            for follower in after[step]:
                before[follower].discard(step)
                if not before[follower]:
                    count += 1
                    heapq.heappush(ready, (first[follower], count, follower))
        if done < len(before):
            raise error("expected parts that can run one after the other")  # a bug of find_parts
        yield from (node for node in index if node.op == "output")
