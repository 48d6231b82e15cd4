"""Writes random models, which are modules and functions, for programs_source.py.

The statements of a model are drawn from the functions below that `statement` marks. Each of them writes one or a few
lines, and adds the tensors that these lines compute to `body.values`, from which later statements choose operands.
Shapes are kept as text, such as ("b", "n", "16"), so a model is right for all sizes of its arguments.
"""
import dataclasses

LONGEST = 24  # the number of rows of tables and caches


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size: its text and the least number that it may be."""
    text: str
    low: int = dataclasses.field(compare=False)

    @property
    def known(self):
        return self.text.isdigit()

    def __str__(self):
        return self.text


def number(n):
    return Dim(str(n), n)


def factor(dim):
    """The text of a size as a factor of a product."""
    return dim.text if dim.text.isidentifier() or dim.known else f"({dim})"


@dataclasses.dataclass
class Value:
    """A tensor of a model. `kind` is "float" (the type of x), "low" (bfloat16), "int" or "bool"."""
    name: str
    shape: tuple
    kind: str = "float"
    owner: str = "fresh"  # or "input", "buffer" or "weight": whose storage it may be
    writable: bool = True  # writes do not raise an error
    exact: bool = False  # computed without rounding
    contiguous: bool = False

    @property
    def rank(self):
        return len(self.shape)


@dataclasses.dataclass
class Argument:
    """An argument of a model. `make` is the text that makes it, with {b}, {n} and the like for sizes and {seed}."""
    name: str
    make: str
    shape: tuple = ()
    kind: str = "float"
    once: bool = False  # all calls take the same tensor, such as a cache
    default: str = ""  # the default value in the signature


def tuple_of(shape):
    return "(" + "".join(f"{dim}, " for dim in shape).rstrip(" " if len(shape) == 1 else ", ") + ")"


class Body:
    """The text of one model while it is being written."""
    def __init__(self, rng, is_module, grad=False, coarse=False):
        self.rng, self.is_module = rng, is_module
        self.grad = grad  # gradients are recorded, so writes must not destroy what backward() needs
        self.coarse = coarse  # half types occur, so comparisons of rounded values are not stable
        self.depth, self.lines, self.values = 2 if is_module else 1, [], []
        self.arguments, self.parts, self.buffers, self.globals = [], {}, {}, {}
        self.count = 0
        self.in_branch = False  # in a branch, only writes are drawn
        self.is_layer = False  # attn.compile gets the model
        self.attributes = {}  # attributes of the module that are not buffers, and their first values
        self.used = []  # the names of the statements

    # Text.

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def new(self, expression, shape, kind="float", **more):
        """Assigns an expression to a new variable."""
        value = Value(self.fresh(), tuple(shape), kind, **more)
        self.emit(f"{value.name} = {expression}")
        self.values.append(value)
        return value

    # Choices.

    def chance(self, share):
        return self.rng.random() < share

    def choose(self, *options):
        return self.rng.choice(options)

    def pick(self, test=lambda value: True, kind="float"):
        """Returns one of the values, a late one more often, or None."""
        found = [value for value in self.values if (kind is None or value.kind == kind) and test(value)]
        if not found:
            return None
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def like(self, value, kinds=("float",)):
        """Returns a value that can be broadcast to the shape of `value`, or None."""
        def fits(other):
            return other.rank <= value.rank and all(a == b or a.text == "1"
                                                    for a, b in zip(other.shape[::-1], value.shape[::-1]))

        found = [other for other in self.values if other.kind in kinds and fits(other) and other is not value]
        return self.rng.choice(found) if found else None

    # Parts of the model.

    def linear(self, value, width, bias=True):
        """Returns the text of a projection of the last dimension, which has a known size, to `width`."""
        have = int(value.shape[-1].text)
        if self.is_module:
            known = [name for name, make in self.parts.items() if make == f"nn.Linear({have}, {width})"]
            if known and self.chance(0.1):
                name = self.rng.choice(known)
            else:
                name = f"linear{len(self.parts)}"
                self.parts[name] = f"nn.Linear({have}, {width})" if bias else f"nn.Linear({have}, {width}, bias=False)"
            return f"self.{name}({value.name})"
        if self.chance(0.4):
            name = f"W{len(self.globals)}"
            self.globals[name] = f"randn({width}, {have}, seed={len(self.globals)}) * {have ** -0.5:.2f}"
        else:
            name = f"w{len(self.arguments)}"
            self.argument(name, (number(width), number(have)),
                          f"randn({width}, {have}, seed={{seed}}) * {have ** -0.5:.2f}")
        return self.choose(f"F.linear({value.name}, {name})", f"{value.name} @ {name}.T")

    def argument(self, name, shape, make, kind="float", once=False, default=""):
        self.arguments.append(Argument(name, make, tuple(shape), kind, once, default))

    def input(self, name, shape, make, kind="float"):
        """Adds an argument, which statements may use. Returns the value."""
        self.argument(name, shape, make, kind)
        self.values.append(Value(name, tuple(shape), kind, "input", exact=True, contiguous=True))
        return self.values[-1]

    def buffer(self, make, shape, kind="float", persistent=True):
        """Adds a buffer, or an argument to a function. Returns the value."""
        if self.is_module:
            name = f"buffer{len(self.buffers)}"
            self.buffers[name] = make + ("" if persistent else ", persistent=False")
            name = f"self.{name}"
        else:
            name = f"t{len(self.arguments)}"
            self.argument(name, shape, make, kind, once=True)
        value = Value(name, tuple(shape), kind, "buffer", exact=True, contiguous=True)
        self.values.append(value)
        return value


STATEMENTS = {}


def statement(weight):
    """Marks a function that writes a statement. It returns False if no values fit."""
    def mark(function):
        STATEMENTS[function.__name__] = (weight, function)
        return function

    return mark


def write_statement(body, names=None):
    """Writes one statement, drawn by weight."""
    choices = [(name, weight, function) for name, (weight, function) in STATEMENTS.items()
               if (names is None or name in names) and not (body.in_branch and not name.startswith("write"))]
    for _ in range(20):
        name, _, function = body.rng.choices(choices, [weight for _, weight, _ in choices])[0]
        if function(body) is not False:
            body.used.append(name)
            return


# Attention.


def mask_of(body, n, m, two=False):
    """Writes a boolean mask in which each row keeps a key.

    Returns the value, of shape (n, m) or, unless `two`, (b, 1, 1, m).
    """
    rng = body.rng
    i, j = f"torch.arange({n})[:, None]", f"torch.arange({m})"
    forms = ["tril", "compare", "buffer", "lengths", "written", "padding"]
    if n == m:
        forms.append("window")
    if two:
        forms = ["tril", "compare", "written"]
    form = rng.choice(forms)
    if form == "tril":
        return body.new(f"torch.ones({n}, {m}, dtype=torch.bool).tril()", (n, m), "bool", exact=True, contiguous=True)
    if form == "compare":
        return body.new(f"{j} <= {i}", (n, m), "bool", exact=True, contiguous=True)
    if form == "window":
        return body.new(f"({i} - {j}).abs() < {rng.randint(1, 4)}", (n, m), "bool", exact=True, contiguous=True)
    if form == "buffer" and n.text in "bnm" and m.text in "bnm":
        table = body.buffer(f"torch.ones({LONGEST}, {LONGEST}, dtype=torch.bool).tril()", (number(LONGEST),) * 2,
                            "bool",
                            persistent=body.chance(0.6))
        return body.new(f"{table.name}[:{n}, :{m}]", (n, m), "bool", owner="buffer", exact=True)
    if form in ("lengths", "padding") and m.text in "nm":
        if form == "lengths":
            lengths = next((a.name for a in body.arguments if a.name == "lengths"), None)
            if not lengths:
                lengths = "lengths"
                body.input(lengths, (Dim("b", 1),),
                           "randint(1, 4, {b}, seed={seed})" + body.choose("", "", ".to(torch.int32)"), "int")
            text = f"{j} < {lengths}[:, None]"
        else:
            name = f"keep_{m}"
            if name not in [a.name for a in body.arguments]:
                body.input(name, (Dim("b", 1), m), f"randbool({{b}}, {{{m}}}, seed={{seed}})", "bool")
            text = name
        return body.new(f"({text})[:, None, None, :]", (Dim("b", 1), number(1), number(1), m), "bool", exact=True)
    mask = body.new(f"torch.zeros({n}, {m}, dtype=torch.bool)", (n, m), "bool", exact=True, contiguous=True)
    body.emit(
        rng.choice([
            f"{mask.name}[:, :2] = True", f"{mask.name}[..., ::2] = True", f"{mask.name}.T[0] = True",
            f"{mask.name}.fill_(True).tril_()", f"{mask.name} |= {j} <= {i}", f"{mask.name}[:, 0].fill_(True)"
        ]))
    return mask


def additive(body, mask):
    """Writes a mask of floats from a mask of booleans."""
    text = body.choose(
        f"torch.zeros({tuple_of(mask.shape)}, dtype=x.dtype).masked_fill(~{mask.name}, float('-inf'))",
        f"torch.where({mask.name}, 0.0, float('-inf')).to(x.dtype)", f"(~{mask.name}).to(x.dtype) * -1e4",
        f"torch.zeros({tuple_of(mask.shape)}, dtype=x.dtype)"
        f".masked_fill_({mask.name}.logical_not(), torch.finfo(x.dtype).min)"
    )
    made = body.new(text, mask.shape)
    made.kind = "mask"  # so that other ops do not compute with infinities
    return made


def core(body, q, k, v, mask=None):
    """Writes the attention of q, k and v, of shape (..., length, size). Returns the result."""
    rng, n, m = body.rng, q.shape[-2], k.shape[-2]
    shape = (*q.shape[:-1], v.shape[-1])
    four = q.rank == 4
    group = four and q.shape[1] != k.shape[1]
    if mask is None and body.chance(0.6):
        mask = mask_of(body, n, m)
        if mask.rank == 4 and not (four and q.shape[0].text == "b"):
            mask = None
    if not group and body.chance(0.55):
        return spelled(body, q, k, v, mask, shape)
    options = ""
    if mask is not None:
        options += ", " + (mask if q.kind != "float" or body.chance(0.6) else additive(body, mask)).name
    elif body.chance(0.5):
        options += ", is_causal=True"
    if body.chance(0.2):
        options += f", scale={rng.choice([0.1, 0.5, 1.0])}"
    if group:
        options += ", enable_gqa=True"
    if body.is_module and body.chance(0.1):
        options += ", dropout_p=0.2 if self.training else 0.0"
    return body.new(f"F.scaled_dot_product_attention({q.name}, {k.name}, {v.name}{options})", shape, q.kind)


def spelled(body, q, k, v, mask, shape):
    """Writes an attention op by op."""
    rng, n, m, size = body.rng, q.shape[-2], k.shape[-2], int(q.shape[-1].text)
    scores = (*q.shape[:-1], m)
    products = [
        f"{q.name} @ {k.name}.transpose(-1, -2)", f"torch.matmul({q.name}, {k.name}.mT)",
        f"({q.name} * {size ** -0.5:.3f}) @ {k.name}.transpose(-2, -1)"
    ]
    if q.rank == 4 and q.shape[:2] == k.shape[:2]:
        products.append(f"torch.einsum('bhid,bhjd->bhij', {q.name}, {k.name})")
    if q.rank == 3 and q.shape[0] == k.shape[0]:
        products.append(f"torch.bmm({q.name}, {k.name}.transpose(1, 2))")
    s = body.new(rng.choice(products), scores, q.kind)
    if not body.grad and body.chance(0.4):
        form = rng.choice(["{s} *= {scale}", "{s}.mul_({scale})", "{s}.div_({size} ** 0.5)"] * 3 +
                          ["torch.mul({s}, 0.5, out={s})"] * (not body.is_layer))
        body.emit(form.format(s=s.name, scale=f"{size ** -0.5:.3f}", size=size))
    else:
        s = body.new(f"{s.name} / {size} ** 0.5", scores, q.kind)
    if body.chance(0.15) and n == m:
        bias = body.new(f"-(torch.arange({n})[:, None] - torch.arange({m})).abs() * 0.1", (n, m), exact=False)
        s = body.new(f"{s.name} + {bias.name}", scores, q.kind)
    if mask is not None:
        form = rng.randrange(5 if not body.grad else 3)
        if form == 0:
            s = body.new(f"{s.name}.masked_fill(~{mask.name}, float('-inf'))", scores, q.kind)
        elif form == 1 and q.kind == "float":
            s = body.new(f"{s.name} + {additive(body, mask).name}", scores)
        elif form <= 2:
            s = body.new(f"torch.where({mask.name}, {s.name}, float('-inf'))", scores, q.kind)
        elif form == 3:
            body.emit(f"{s.name}.masked_fill_(~{mask.name}, float('-inf'))")
        else:
            body.emit(f"{s.name}.masked_fill_({mask.name}.logical_not(), torch.finfo({s.name}.dtype).min)")
    p = body.new(
        rng.choice([f"torch.softmax({s.name}, -1)", f"{s.name}.softmax(dim=-1)", f"F.softmax({s.name}, dim=-1)"]),
        scores, q.kind)
    body.values.remove(s)  # its elements may be infinite
    if body.is_module and body.chance(0.15):
        p = body.new(f"F.dropout({p.name}, 0.2, self.training)", scores, q.kind)
    elif not body.grad and body.chance(0.15):
        write_to(body, p)
    products = [f"{p.name} @ {v.name}", f"torch.matmul({p.name}, {v.name})"]
    if q.rank == 4 and q.shape[:2] == v.shape[:2]:
        products.append(f"torch.einsum('bhij,bhjd->bhid', {p.name}, {v.name})")
    if not body.grad and not body.is_layer and body.chance(0.08):
        out = body.new(f"torch.empty({tuple_of(shape)}, dtype={q.name}.dtype)", shape, q.kind, contiguous=True)
        body.emit(f"torch.matmul({p.name}, {v.name}, out={out.name})")
        return out
    return body.new(rng.choice(products), shape, q.kind)


def is_sequence(value):
    """A value of shape (batch, length, width) with a width that several heads can share."""
    return value.rank == 3 and value.shape[-1].known and int(value.shape[-1].text) % 8 == 0 and value.shape[1].low > 0


@statement(2)
def attention(body):
    """Projections, heads and an attention."""
    rng = body.rng
    x = body.pick(is_sequence)
    if x is None:
        return False
    y = x if body.chance(0.65) else body.pick(lambda value: is_sequence(value) and value.shape[0] == x.shape[0]) or x
    b, n, _ = x.shape
    m = y.shape[1]
    heads, size = rng.choice([1, 2, 2, 4]), rng.choice([4, 8, 8, 16])
    width = heads * size
    style = rng.choice(["three", "three", "packed", "chunk", "plain", "single", "gqa"])
    if style in ("packed", "chunk") and y is not x:
        style = "three"
    if style == "single":
        q, k, v = [
            body.new(body.linear(source, size),
                     (*source.shape[:2],
                      number(size))) if body.chance(0.7) or source.shape[-1] != x.shape[-1] else source
            for source in (x, y, y)
        ]
        if q.shape[-1] != k.shape[-1]:
            k = body.new(body.linear(y, int(q.shape[-1].text)), (b, m, q.shape[-1]))
    elif style == "plain":
        have = int(x.shape[-1].text)
        if int(y.shape[-1].text) != have:
            y, m = x, n
        size = next(size for size in (16, 8, 4) if have % size == 0 and have // size <= 4) if have <= 64 else have
        heads = have // size
        q, k, v = [split_heads(body, source, heads, size) for source in (x, y, y)]
        width = have
    elif style == "packed":
        whole = body.new(body.linear(x, 3 * width), (b, n, number(3 * width)), contiguous=True)
        three = (number(3), b, number(heads), n, number(size))
        form = rng.choice(["permute", "select", "unbind"])
        split = f"{whole.name}.{rng.choice(['reshape', 'view'])}({b}, {n}, 3, {heads}, {size})"
        packed = body.new(f"{split}.permute(2, 0, 3, 1, 4)", three)
        names = [body.fresh("q"), body.fresh("k"), body.fresh("v")]
        if form == "select":
            body.emit(f"{', '.join(names)} = {packed.name}[0], {packed.name}[1], {packed.name}[2]")
        elif form == "unbind":
            body.emit(f"{', '.join(names)} = {packed.name}.unbind(0)")
        else:
            body.emit(f"{', '.join(names)} = {packed.name}")
        q, k, v = [Value(name, three[1:], writable=not body.grad) for name in names]
        body.values += [q, k, v]
        if not body.grad and body.chance(0.3):
            write_to(body, rng.choice([whole, packed, q, k, v]))
    elif style == "chunk":
        whole = body.new(body.linear(x, 3 * width), (b, n, number(3 * width)), contiguous=True)
        names = [body.fresh("q"), body.fresh("k"), body.fresh("v")]
        body.emit(f"{', '.join(names)} = {whole.name}." +
                  rng.choice([f"chunk(3, -1)", f"split({width}, dim=-1)", f"chunk(3, dim=2)"]))
        parts = [Value(name, (b, n, number(width)), writable=not body.grad) for name in names]
        body.values += parts
        if not body.grad and body.chance(0.3):
            write_to(body, rng.choice([whole, *parts]))
        q, k, v = [split_heads(body, part, heads, size) for part in parts]
    else:
        shared = 2 if style == "gqa" and heads > 1 else 1
        q = split_heads(body, body.new(body.linear(x, width), (b, n, number(width))), heads, size)
        k, v = [
            split_heads(body, body.new(body.linear(y, width // shared), (b, m, number(width // shared))),
                        heads // shared, size) for _ in range(2)
        ]
        if shared > 1 and body.chance(0.4):
            long = (b, number(heads), m, number(size))
            k = body.new(f"{k.name}.repeat_interleave(2, dim=1)", long)
            v = body.new(
                rng.choice([
                    f"{v.name}.repeat_interleave(2, 1)",
                    f"{v.name}[:, :, None].expand({b}, {heads // 2}, 2, {m}, {size})"
                    f".reshape({b}, {heads}, {m}, {size})"
                ]), long)
        if not body.grad and body.chance(0.25):
            write_to(body, rng.choice([q, k, v]))
    join_heads(body, x, core(body, q, k, v), width)


def join_heads(body, x, result, width):
    """Writes the steps after an attention: joins the heads, projects, and adds the result to x or x to the result."""
    b, n = x.shape[:2]
    if result.rank == 4 and body.chance(0.85):
        result = body.new(
            body.choose(f"{result.name}.transpose(1, 2).reshape({b}, {n}, {width})",
                        f"{result.name}.transpose(1, 2).contiguous().view({b}, {n}, {width})",
                        f"{result.name}.permute(0, 2, 1, 3).flatten(2)"), (b, n, number(width)))
    if result.rank == 3 and body.chance(0.5):
        out = int(x.shape[-1].text)
        result = body.new(body.linear(result, out), (b, n, number(out)))
        form = body.rng.randrange(6)
        if form <= 2 or body.grad:
            body.new(f"{x.name} + {result.name}", result.shape)
        elif form == 3:
            body.emit(f"{result.name} += {x.name}")
        elif form == 4 and may_write(body, x):
            body.emit(f"{x.name}.add_({result.name})")


def split_heads(body, value, heads, size):
    b, n, _ = value.shape
    shape = (b, number(heads), n, number(size))
    text = body.choose(f"{value.name}.reshape({b}, {n}, {heads}, {size}).transpose(1, 2)",
                       f"{value.name}.unflatten(-1, ({heads}, {size})).permute(0, 2, 1, 3)",
                       f"{value.name}.view({b}, {n}, {heads}, {size}).transpose(1, 2)")
    return body.new(text, shape, value.kind, owner=value.owner, writable=value.writable)


# Ops without side effects.


def scalar(body):
    return body.choose("0.5", "2.0", "-1.0", "0.25", "1.5")


@statement(5)
def elementwise(body):
    v = body.pick()
    if v is None:
        return False
    name = v.name
    form = body.rng.randrange(4)
    if form == 0:
        text = body.choose(f"F.gelu({name})", f"F.relu({name})", f"F.silu({name})", f"torch.tanh({name})",
                           f"{name}.sigmoid()", f"torch.exp({name} * 0.1)", f"{name}.abs()", f"-{name}",
                           f"torch.sin({name})", f"{name}.clamp(-1, 1)", f"F.gelu({name}, approximate='tanh')",
                           f"{name}.square()")
    elif form == 1:
        text = f"{name} " + body.choose("*", "+", "-", "/") + " " + scalar(body)
    else:
        other = body.like(v)
        if other is None:
            return False
        text = f"{name} {body.choose('+', '+', '*', '-')} {other.name}"
    body.new(text, v.shape)


@statement(3)
def projection(body):
    v = body.pick(lambda value: value.rank >= 2 and value.shape[-1].known)
    if v is None:
        return False
    width = body.choose(8, 16, 32)
    body.new(body.linear(v, width, bias=body.chance(0.7)), (*v.shape[:-1], number(width)))


@statement(3)
def normalisation(body):
    v = body.pick(lambda value: value.rank >= 2 and value.shape[-1].known and value.shape[-1].low >= 4)
    if v is None:
        return False
    width = v.shape[-1]
    if body.is_module and body.chance(0.7):
        name = f"norm{len(body.parts)}"
        body.parts[name] = f"nn.LayerNorm({width})"
        body.new(f"self.{name}({v.name})", v.shape)
    else:
        body.new(
            body.choose(f"F.layer_norm({v.name}, ({width},))",
                        f"{v.name} * torch.rsqrt({v.name}.square().mean(-1, keepdim=True) + 1e-3)"), v.shape)


@statement(2)
def reduction(body):
    v = body.pick(lambda value: value.rank >= 2)
    if v is None:
        return False
    axis = body.rng.randrange(v.rank)
    keep = body.chance(0.6)
    shape = (*v.shape[:axis], *([number(1)] if keep else []), *v.shape[axis + 1:])
    op = "mean" if keep else "sum"
    if body.chance(0.3):
        op = "amax"
    body.new(f"{v.name}.{op}({axis}, keepdim={keep})", shape)


@statement(2)
def joining(body):
    v = body.pick(lambda value: value.rank >= 2)
    w = v and body.pick(lambda value: value.shape == v.shape)
    if w is None:
        return False
    axis = body.rng.randrange(v.rank)
    size = v.shape[axis]
    twice = number(2 * size.low) if size.known else Dim(f"2 * {factor(size)}", 2 * size.low)
    if body.chance(0.7):
        body.new(f"torch.cat([{v.name}, {w.name}], {axis})", (*v.shape[:axis], twice, *v.shape[axis + 1:]))
    else:
        body.new(f"torch.stack([{v.name}, {w.name}], {axis})", (*v.shape[:axis], number(2), *v.shape[axis:]))


@statement(2)
def copying(body):
    v = body.pick(kind=body.choose("float", "float", "int", "bool"))
    if v is None:
        return False
    copies = ["clone()", "contiguous()", "detach().clone()", "to(x.dtype)" if v.kind == "float" else "clone()"]
    body.new(f"{v.name}.{body.choose(*copies)}", v.shape, v.kind, exact=v.exact, owner=v.owner)


@statement(2)
def unsupported(body):
    """An op that attn does not support, so that only parts of the graph become kernels."""
    v = body.pick(
        lambda value: value.rank >= 2 and value.shape[-1].known and value.shape[-1].low >= 4 and value.rank < 5)
    if v is None:
        return False
    name = v.name
    form = body.rng.randrange(9)
    if form == 8:
        body.new(f"torch.vmap(lambda t: t.sin() + 1)({name})", v.shape)
    elif form == 0:
        body.new(f"torch.fft.rfft({name}, dim=-1).real", (*v.shape[:-1], number(v.shape[-1].low // 2 + 1)))
    elif form == 1:
        body.new(f"torch.cdist({name}, {name})", (*v.shape[:-1], v.shape[-2]))
    elif form == 2:
        body.new(f"torch.linalg.vector_norm({name}, dim=-1, keepdim=True) + torch.special.i0e({name})", v.shape)
    elif form == 3:
        body.new(f"torch.special.erfinv({name}.clamp(-0.5, 0.5))", v.shape)
    elif form == 4:
        body.new(f"torch.logcumsumexp({name}, -1)", v.shape)
    elif form == 5:
        body.new(f"torch.fft.ifft(torch.fft.fft({name})).real", v.shape)
    elif form == 6:
        body.new(f"torch.linalg.matrix_norm({name}, keepdim=True)", (*v.shape[:-2], number(1), number(1)))
    else:
        body.new(f"torch.special.bessel_j0({name})", v.shape) if not body.grad else body.new(
            f"torch.sinc({name})", v.shape)


@statement(1)
def sorting(body):
    v = body.pick(lambda value: value.rank >= 1 and value.shape[-1].low >= 2)
    if v is None:
        return False
    if body.chance(0.5):
        body.new(f"{v.name}.sort(-1).values", v.shape)
    else:
        body.new(f"{v.name}.topk(2, -1).values", (*v.shape[:-1], number(2)))


@statement(2)
def integers(body):
    """Integers and booleans from shapes, arguments and exact floats."""
    form = body.rng.randrange(6)
    n = Dim("n", 3)
    if form == 0:
        body.new("torch.arange(n)", (n,), "int", exact=True)
    elif form == 1:
        v = body.pick(kind="int")
        if v is None:
            return False
        body.new(
            f"{v.name} {body.choose('* 3', '+ 1', '// 2', '% 3', '.clamp(max=2)', '.cumsum(-1)').lstrip()}".replace(
                " .", "."),
            v.shape,
            "int",
            exact=True)
    elif form == 2:
        v = body.pick(lambda value: value.rank >= 1, kind="bool")
        if v is None:
            return False
        body.new(f"{v.name}.sum(-1)", v.shape[:-1], "int", exact=True)
    elif form == 3:
        v = body.pick(kind="bool")
        if v is None:
            return False
        body.new(f"~{v.name}", v.shape, "bool", exact=True)
    else:
        v = body.pick(lambda value: value.exact or not body.coarse and body.chance(0.3))
        if v is None:
            return False
        body.new(f"{v.name} > {body.choose('0.1', '0.5', '-0.3')}", v.shape, "bool", exact=True)


@statement(1)
def randomness(body):
    v = body.pick()
    if v is None:
        return False
    body.new(
        body.choose(f"{v.name} + torch.rand_like({v.name})", f"F.dropout({v.name}, 0.3, True)",
                    f"{v.name} * torch.randn_like({v.name})"), v.shape)


@statement(1)
def casting(body):
    """A detour through another type."""
    v = body.pick(lambda value: value.rank >= 1)
    if v is None:
        return False
    if body.coarse and body.chance(0.7):
        low = body.new(f"{v.name}.to(torch.bfloat16)", v.shape, "low")
        body.new(f"({low.name} * 2).to(x.dtype)", v.shape)
    else:
        body.new(f"{v.name}.to(torch.float64).add(1).to(x.dtype)", v.shape)


@statement(1.5)
def sizes(body):
    """Numbers that follow from sizes, in place of constants."""
    v = body.pick(lambda value: value.rank >= 1)
    if v is None:
        return False
    form = body.rng.randrange(6)
    if form == 0:
        body.new(
            f"{v.name} * {body.choose('n ** -0.5', '(3 / n)', '(1 + b / 4)', 'float(1 + n / 16)', 'math.log(n + 1)')}",
            v.shape)
    elif form == 1:
        body.new(f"{v.name} if n > 6 else -{v.name}", v.shape, owner=v.owner, writable=v.writable)
    elif form == 2:
        body.new(f"torch.full((b, n), {body.choose('n', 'b + n', 'n // 2')})",
                 (Dim("b", 1), Dim("n", body.values[0].shape[1].low)),
                 "int",
                 exact=True,
                 contiguous=True)
    elif form == 3:
        body.new(f"torch.tensor([n, b, {body.rng.randint(0, 3)}])", (number(3),), "int", exact=True, contiguous=True)
    elif form == 4:
        body.new(f"{v.name} * 2 if {v.name}.is_contiguous() else {v.name} + {v.name}.stride(0)", v.shape)
    else:
        body.new(f"{v.name} + {v.name}.numel() % 3", v.shape)


@statement(1)
def constants(body):
    """A tensor that a call makes from numbers, and perhaps changes."""
    v = body.pick(lambda value: value.rank >= 1 and value.shape[-1].known and value.shape[-1].low <= 8)
    if v is None or body.chance(0.3):
        made = body.new("torch.tensor(0.5, dtype=x.dtype)", (), contiguous=True)
    else:
        numbers = ", ".join(f"{i / 4}" for i in range(v.shape[-1].low))
        made = body.new(f"torch.tensor([{numbers}], dtype=x.dtype)", v.shape[-1:], contiguous=True)
    if not body.grad and body.chance(0.5):
        body.emit(f"{made.name}.{body.choose('add_(1)', 'mul_(2)')}")
    if v is not None:
        body.new(f"{v.name} * {made.name}", v.shape)


@statement(1.5)
def positions(body):
    """Adds rows of a table, which other models may change."""
    v = body.pick(lambda value: value.rank == 3 and value.shape[1].text in "nm" and value.shape[-1].known)
    if v is None or not body.is_module or body.in_branch:
        return False
    n, width = v.shape[1:]
    same = [name for name, make in body.buffers.items() if make == f"randn({LONGEST}, {width}, seed=5)"]
    table = f"self.{body.rng.choice(same)}" if same and body.chance(0.5) else \
        body.buffer(f"randn({LONGEST}, {width}, seed=5)", (number(LONGEST), width)).name
    body.new(
        body.choose(f"{v.name} + {table}[:{n}]", f"{v.name} + {table}[torch.arange({n})]",
                    f"{v.name} * {table}[None, -{n}:]"), v.shape)


@statement(1)
def rotation(body):
    """Turns pairs of elements, as rotary embeddings do."""
    v = body.pick(lambda value: value.rank >= 2 and value.shape[-1].known and value.shape[-1].low % 2 == 0)
    if v is None:
        return False
    half = v.shape[-1].low // 2
    if v.name != "x" and not body.is_layer and body.chance(0.3) and v.kind == "float" and not body.coarse:
        body.new(
            f"torch.view_as_real(torch.view_as_complex({v.name}.unflatten(-1, ({half}, 2)).contiguous()) * 1j)"
            ".flatten(-2)",
            v.shape)
    else:
        body.new(
            body.choose(f"torch.cat([-{v.name}[..., {half}:], {v.name}[..., :{half}]], -1)",
                        f"{v.name} * 0.8 + torch.cat((-{v.name}[..., {half}:], {v.name}[..., :{half}]), dim=-1) * 0.6",
                        f"torch.stack([-{v.name}[..., 1::2], {v.name}[..., ::2]], -1).flatten(-2)"), v.shape)


@statement(1)
def library(body):
    """A layer of torch.nn that contains an attention."""
    v = body.pick(lambda value: is_sequence(value) and value.shape[-1].low <= 32)
    if v is None or not body.is_module or body.in_branch:
        return False
    width, heads, name = v.shape[-1], body.choose(1, 2, 4), f"layer{len(body.parts)}"
    if body.chance(0.5):
        body.parts[name] = f"nn.MultiheadAttention({width}, {heads}, batch_first=True)"
        mask = ""
        if body.chance(0.4):
            mask = f", attn_mask={mask_of(body, v.shape[1], v.shape[1], two=True).name}.logical_not()"
        body.new(f"self.{name}({v.name}, {v.name}, {v.name}, need_weights={body.choose(False, False, True)}{mask})[0]",
                 v.shape)
    else:
        options = body.choose("", ", norm_first=True", ", activation='gelu'")
        body.parts[name] = f"nn.TransformerEncoderLayer({width}, {heads}, 16, batch_first=True{options})"
        body.new(f"self.{name}({v.name})", v.shape)


@statement(1)
def embedding(body):
    if body.in_branch or "ids" in [argument.name for argument in body.arguments] or body.values[0].rank < 3:
        return False
    shape = Dim("b", 1), Dim("n", body.values[0].shape[1].low)
    ids = body.input("ids", shape, "randint(0, 9, {b}, {n}, seed={seed})", "int")
    width = body.values[0].shape[2]
    if body.is_module:
        body.parts["embedding"] = f"nn.Embedding(9, {width})"
        body.new(f"self.embedding({ids.name})", (*shape, width))
    else:
        table = body.buffer(f"randn(9, {width}, seed=7)", (number(9), width))
        body.new(body.choose(f"F.embedding({ids.name}, {table.name})", f"{table.name}[{ids.name}]"), (*shape, width))


# Views.


@statement(8)
def view(body):
    v = body.pick(lambda value: value.rank >= 1, kind=body.choose("float", "float", "float", "float", "int", "bool"))
    if v is None:
        return False
    return view_of(body, v) is not None


def view_of(body, v):
    """Writes a view of a value. Returns the view, or None if no drawn view fits."""
    for _ in range(6):
        if found := one_view_of(body, v):
            return found
    return None


def one_view_of(body, v):
    rng, name, shape, rank = body.rng, v.name, v.shape, v.rank
    axis = rng.randrange(rank)
    other = rng.randrange(rank)
    size = shape[axis]

    def new(text, shape, writable=v.writable):
        return body.new(text, shape, v.kind, owner=v.owner, writable=writable, exact=v.exact)

    def index(text):
        if axis == rank - 1 and body.chance(0.5):
            return f"{name}[..., {text}]"
        return f"{name}[" + ":, " * axis + text + "]"

    def replaced(*sizes):
        return (*shape[:axis], *sizes, *shape[axis + 1:])

    form = rng.choice([
        "transpose", "transpose", "permute", "head", "tail", "step", "last", "select", "unsqueeze", "squeeze",
        "flatten", "unflatten", "expand", "diagonal", "unfold", "chunk", "unbind", "T", "same", "detach", "narrow",
        "strided"
    ])
    if form == "transpose" and rank >= 2:
        swapped = list(shape)
        swapped[axis], swapped[other] = swapped[other], swapped[axis]
        return new(f"{name}.{body.choose('transpose', 'swapaxes')}({axis}, {other})", swapped)
    if form == "permute" and rank >= 2:
        order = rng.sample(range(rank), rank)
        return new(f"{name}.permute({', '.join(map(str, order))})", [shape[i] for i in order])
    if form == "head" and size.low >= 2:
        k = rng.randint(1, size.low - 1)
        return new(index(f":{k}"), replaced(number(k)))
    if form == "tail" and size.low >= 3:
        return new(index("1:"),
                   replaced(number(size.low - 1) if size.known else Dim(f"{factor(size)} - 1", size.low - 1)))
    if form == "last" and size.low >= 2:
        return new(index("-2:"), replaced(number(2)))
    if form == "narrow" and size.low >= 3:
        return new(f"{name}.narrow({axis}, 1, 2)", replaced(number(2)))
    if form == "step" and size.low >= 2:
        half = number((size.low + 1) // 2) if size.known else Dim(f"({size} + 1) // 2", (size.low + 1) // 2)
        return new(index("::2"), replaced(half))
    if form == "select" and rank >= 2:
        return new(body.choose(index("0"), index("-1"), f"{name}.select({axis}, 0)"), replaced())
    if form == "unsqueeze" and rank < 5:
        return new(f"{name}.unsqueeze({axis})", (*shape[:axis], number(1), *shape[axis:]))
    if form == "squeeze" and size.text == "1":
        return new(f"{name}.squeeze({axis})", replaced())
    if form == "flatten" and axis + 1 < rank:
        nxt = shape[axis + 1]
        both = number(size.low *
                      nxt.low) if size.known and nxt.known else Dim(f"{factor(size)} * {factor(nxt)}", size.low *
                                                                    nxt.low)
        return new(
            body.choose(f"{name}.flatten({axis}, {axis + 1})",
                        f"{name}.reshape({', '.join(map(str, (*shape[:axis], both, *shape[axis + 2:])))})"),
            (*shape[:axis], both, *shape[axis + 2:]))
    if form == "unflatten" and size.known and size.low >= 4 and size.low % 2 == 0 and rank < 5:
        return new(f"{name}.unflatten({axis}, (2, {size.low // 2}))", replaced(number(2), number(size.low // 2)))
    if form == "expand" and size.text == "1":
        times = body.choose(number(2), number(3), Dim("b", 1))
        text = ", ".join("-1" if i != axis else str(times) for i in range(rank))
        return new(f"{name}.expand({text})", replaced(times), writable=False)
    if form == "diagonal" and rank >= 2 and axis != other and size == shape[other]:
        rest = [dim for i, dim in enumerate(shape) if i not in (axis, other)]
        return new(f"{name}.diagonal(0, {axis}, {other})", [*rest, size])
    if form == "unfold" and size.known and size.low >= 4 and rank < 5:
        step = rng.choice([1, 2])
        return new(f"{name}.unfold({axis}, 2, {step})", (*replaced(number((size.low - 2) // step + 1)), number(2)),
                   writable=v.writable and step == 2)
    if form == "chunk" and size.known and size.low >= 2 and size.low % 2 == 0:
        names = body.fresh(), body.fresh()
        body.emit(f"{names[0]}, {names[1]} = {name}." +
                  body.choose(f"chunk(2, {axis})", f"split({size.low // 2}, {axis})"))
        parts = [
            dataclasses.replace(v,
                                name=name,
                                shape=replaced(number(size.low // 2)),
                                contiguous=False,
                                writable=v.writable and not body.grad) for name in names
        ]
        body.values += parts
        return rng.choice(parts)
    if form == "unbind" and size.known and size.low <= 4 and rank >= 2:
        names = [body.fresh() for _ in range(size.low)]
        body.emit(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {name}.unbind({axis})")
        parts = [
            dataclasses.replace(v, name=name, shape=replaced(), contiguous=False, writable=v.writable and not body.grad)
            for name in names
        ]
        body.values += parts
        return rng.choice(parts)
    if form == "T" and rank >= 2:
        return new(f"{name}.T" if rank == 2 else f"{name}.mT", (*shape[:-2], shape[-1], shape[-2]))
    if form == "same":
        return new(body.choose(f"{name}[...]", f"{name}[:]", f"{name}.view_as({name})"), shape)
    if form == "detach" and not body.grad:
        return new(f"{name}.detach()", shape)
    if form == "strided" and v.contiguous and v.owner == "input" and rank == 3 and body.chance(0.3):
        return new(f"{name}.as_strided((3, 2), (2, 1))", (number(3), number(2)))
    return None


# Writes.


def write_to(body, v):
    """Writes to the elements of a value, in one of many ways."""
    rng, name, rank = body.rng, v.name, v.rank
    local = "." not in name  # `self.buffer += 1` would also replace the attribute by itself
    other = body.like(v, kinds=("float",)) if v.kind == "float" else None
    axis = rng.randrange(rank) if rank else 0
    size = v.shape[axis] if rank else None

    def index(text):
        return f"{name}[" + ":, " * axis + text + "]"

    if v.kind == "bool":
        body.emit(body.choose(f"{name}.logical_not_()", f"{name}.fill_(True)", f"{name}.logical_or_({name}.clone())"))
        return
    if v.kind == "int":
        body.emit(body.choose(f"{name}.add_(1)", f"{name}.mul_(2)", f"{name}.clamp_(max=3)", f"{name}.fill_(2)"))
        return
    forms = ["scalar", "scalar", "unary", "fill", "copy", "add", "iadd", "masked", "index"]
    if rank:
        forms += ["slice", "slice", "step", "indexed", "index_put", "bool", "zero", "index_add", "scatter"]
        forms += ["out"] * (not body.is_layer)
    form = rng.choice(forms)
    if form == "scalar":
        body.emit(
            body.choose(
                f"{name}.add_({scalar(body)})", f"{name}.mul_({scalar(body)})", f"{name}.sub_(0.25)", f"{name}.div_(2)"
            ) if not local or body.chance(0.6) else f"{name} {body.choose('+=', '*=', '-=')} {scalar(body)}")
    elif form == "unary":
        body.emit(f"{name}.{body.choose('relu_', 'tanh_', 'neg_', 'abs_', 'sigmoid_', 'zero_')}()")
    elif form == "fill":
        body.emit(f"{name}.fill_({scalar(body)})")
    elif form == "copy" and other:
        body.emit(f"{name}.copy_({other.name})")
    elif form == "add" and other:
        body.emit(
            body.choose(f"{name}.add_({other.name})", f"{name}.add_({other.name}, alpha=0.5)",
                        f"{name}.mul_({other.name})", f"{name}.lerp_({other.name}.expand_as({name}), 0.5)",
                        f"{name}.addcmul_({other.name}, {other.name})"))
    elif form == "iadd" and other and local:
        body.emit(f"{name} {body.choose('+=', '-=', '*=')} {other.name}")
    elif form == "masked":
        body.emit(f"{name}.masked_fill_({mask_like(body, v)}, {scalar(body)})")
    elif form == "slice" and size.low >= 2:
        text = index(rng.choice([":1", "1:", "0", "-1", f":{size.low - 1}"]))
        body.emit(
            body.choose(f"{text} = {scalar(body)}", f"{text}.mul_({scalar(body)})", f"{text} += 1",
                        f"{text}.copy_({text}.neg())", f"{text} = {name}.mean()"))
    elif form == "step" and size.low >= 2:
        text = index("::2")
        body.emit(body.choose(f"{text} += 1", f"{text} = 0", f"{text}.mul_(0.5)", f"{text} = {text}.flip({axis})"))
    elif form == "indexed" and size.low >= 2:
        place = "torch.tensor([0, 1])"
        body.emit(
            body.choose(f"{name}.index_fill_({axis}, {place}, {scalar(body)})",
                        f"{name}.index_copy_({axis}, {place}, {name}.narrow({axis}, 0, 2).neg())",
                        f"{name}.index_copy_({axis}, {place}, {name}.narrow({axis}, 0, 2).flip({axis}))"))
    elif form == "index_add" and size.low >= 2:
        body.emit(f"{name}.index_add_({axis}, torch.tensor([1, 0]), {name}.narrow({axis}, 0, 2) * 0.5)")
    elif form == "scatter" and size.low >= 2:
        body.emit(
            f"{name}.scatter_({axis}, torch.zeros_like({name}, dtype=torch.int64).narrow({axis}, 0, 1), {scalar(body)})"
        )
    elif form == "index_put" and size.low >= 2:
        body.emit(
            body.choose(
                index("[0, 1]") + f" = {scalar(body)}",
                index("torch.tensor([1])") + " *= 2",
                f"{name}.index_put_((torch.tensor([0]),), {name}.new_full((), 0.5))"))
    elif form == "bool":
        body.emit(f"{name}[{name} > 0.5] = {scalar(body)}" if v.exact or not body.coarse else f"{name}.zero_()")
    elif form == "out":
        if other is not None and other.shape == v.shape and v.kind == other.kind:
            body.emit(
                body.choose(f"torch.add({other.name}, 1, out={name})", f"torch.mul({name}, {other.name}, out={name})",
                            f"torch.tanh({other.name}, out={name})"))
        else:
            body.emit(f"torch.neg({name}, out={name})")
    elif form == "index" and rank >= 2:
        body.emit(f"{name}.transpose(0, 1)[0] = {scalar(body)}")
    else:
        body.emit(f"{name}.mul_(0.5)")


def mask_like(body, v):
    if body.coarse and not v.exact:
        return f"torch.zeros_like({v.name}, dtype=torch.bool)" if v.rank == 0 else f"torch.arange({v.shape[-1]}) < 1"
    return f"{v.name} > 0.3"


def may_write(body, value):
    return value.writable and (not body.grad or value.owner in ("buffer", "input") or body.chance(0.1))


@statement(5)
def write(body):
    v = body.pick(lambda value: may_write(body, value),
                  kind=body.choose("float", "float", "float", "float", "float", "int", "bool"))
    if v is None:
        return False
    write_to(body, v)


@statement(3)
def write_view(body):
    """A view of a value, or a view of a view, and a write to it."""
    v = body.pick(lambda value: may_write(body, value) and value.rank >= 1)
    if v is None or body.in_branch:
        return False
    for _ in range(body.choose(1, 1, 2, 3)):
        v = view_of(body, v) or v
        if v.rank == 0:
            break
    if v.writable:
        write_to(body, v)


@statement(1)
def write_shape(body):
    """Swaps two dimensions of a tensor in place, which changes its sizes and strides but no element."""
    v = body.pick(
        lambda value: value.rank >= 2 and value.owner == "fresh" and "." not in value.name and value.kind == "float")
    if v is None or body.grad or body.in_branch:
        return False
    axis, other = body.rng.sample(range(v.rank), 2)
    body.emit(f"{v.name}.{body.choose('transpose_', 'swapaxes_')}({axis}, {other})"
              if v.rank != 2 or body.chance(0.4) else f"{v.name}.t_()")
    swapped = list(v.shape)
    swapped[axis], swapped[other] = swapped[other], swapped[axis]
    v.shape, v.contiguous = tuple(swapped), False


@statement(0.7)
def write_weight(body):
    """A model that changes its own weights."""
    linears = [part for part, make in body.parts.items() if make.startswith("nn.Linear")]
    if not linears or body.grad or body.is_layer or body.in_branch:
        return False
    body.emit("with torch.no_grad():")
    body.emit(
        f"    self.{body.rng.choice(linears)}.weight."
        + body.choose('mul_(0.9)', 'add_(0.01)', 'T.mul_(1.1)', 'clamp_(-1, 1)')
    )


@statement(2)
def write_input(body):
    v = body.pick(lambda value: value.owner in ("input", "buffer") and may_write(body, value))
    if v is None:
        return False
    write_to(body, v)


@statement(2)
def write_buffer(body):
    if body.in_branch:
        return False
    form = body.rng.randrange(4)
    if form == 0:
        count = body.buffer("torch.zeros(1)", (number(1),))
        body.emit(
            body.choose(f"{count.name}.add_(1)", f"{count.name} += 1" if body.is_module else f"{count.name}.add_(1)"))
    elif form == 1:
        v = body.pick(lambda value: value.rank >= 2 and value.shape[-1].known and all(
            dim.text in ("b", "n", "m", "1") or dim.known for dim in value.shape[-2:]))
        if v is None or v.shape[-2].low > LONGEST:
            return False
        table = body.buffer(f"randn({LONGEST}, {v.shape[-1]}, seed=5)", (number(LONGEST), v.shape[-1]))
        row = v.name + "[0]" * (v.rank - 2)
        body.emit(
            body.choose(f"{table.name}[:{v.shape[-2]}] = {row}", f"{table.name}[:{v.shape[-2]}].add_({row})",
                        f"{table.name}.T[:, :{v.shape[-2]}].copy_({row}.T)", f"{table.name}[{v.shape[-2]}:] *= 0.5"))
        body.new(f"{table.name}[:{v.shape[-2]}]", v.shape[-2:], owner="buffer")
    elif form == 2 and body.is_module:
        count = body.buffer("torch.zeros((), dtype=torch.int64)", (), "int")
        body.emit(f"{count.name} += n")
    elif body.is_module:
        rows = number(LONGEST // 2)
        table = next((name for name, make in body.buffers.items() if make.startswith(f"randn({LONGEST}")), None)
        if table is None:
            return False
        width = number(int(body.buffers[table].split()[1].rstrip(",")))
        second = body.buffer(body.choose(f"self.{table}[:12]", f"self.{table}[12:]", f"self.{table}[::2]"),
                             (rows, width))
        body.emit(f"{second.name}.mul_(0.5)")
    else:
        return False


@statement(1.5)
def region(body):
    """A block under a context."""
    if body.in_branch or body.depth > 3:
        return False
    if not body.grad and body.chance(0.25):
        body.emit("for i in range(2):")
        body.depth += 1
        body.in_branch = True
        write_statement(body, ["write", "write_input"])
        body.in_branch = False
        body.depth -= 1
        if body.lines[-1].endswith("range(2):"):
            body.lines.pop()
            return False
        return True
    contexts = ["torch.no_grad()", "torch.enable_grad()", "torch.inference_mode()"
                ] + ["torch.autocast('cpu', dtype=torch.bfloat16)"] * 2 * body.coarse
    context = body.rng.choice(contexts)
    if body.grad and context != "torch.no_grad()" and "autocast" not in context:
        return False
    start = len(body.lines)
    body.emit(f"with {context}:")
    before = len(body.values)
    body.depth += 1
    for _ in range(body.rng.randint(1, 2)):
        write_statement(body, ["elementwise", "view", "attention", "projection", "write"])
    body.depth -= 1
    if len(body.lines) == start + 1:
        body.lines.pop()
        return False
    for value in body.values[before:] if "autocast" in context else ():
        if value.kind == "float":
            value.kind = "low"


@statement(1)
def lower(body):
    """Converts a value of bfloat16 to the type of x."""
    v = body.pick(kind="low")
    if v is None:
        return False
    body.new(f"{v.name}.to(x.dtype)", v.shape)


@statement(1)
def graph_break(body):
    if body.in_branch:
        return False
    form = body.rng.randrange(5)
    if form == 0:
        body.emit("torch._dynamo.graph_break()")
    elif form == 1:
        body.emit("print('', end='')")
    elif form == 2:
        v = body.pick(lambda value: value.rank >= 1 and value.exact)
        if v is None:
            return False
        body.new(f"{v.name}[{v.name} > 0].sum()", ())  # the size of a tensor depends on elements
    elif form == 3 and body.is_module:
        v = body.pick(lambda value: value.rank >= 1)
        if v is None:
            return False
        body.new(f"{v.name} * float(self.scale)" if body.chance(0.5) else f"{v.name} + self.scale.item()", v.shape)
        body.parts["scale"] = "nn.Parameter(torch.ones(()))"
    else:
        v = body.pick(lambda value: value.rank >= 1 and (value.exact or not body.coarse))
        w = body.pick(lambda value: may_write(body, value))
        if v is None or w is None:
            return False
        body.emit(f"if {v.name}.{body.choose('sum', 'mean', 'max')}().item() > 0.1:")
        body.depth += 1
        body.in_branch = True
        write_to(body, w)
        body.in_branch = False
        body.depth -= 1


@statement(1.5)
def keeping(body):
    """Keeps a tensor in an attribute of the module that is not a buffer."""
    v = body.pick(kind=None)
    if v is None or not body.is_module or body.in_branch:
        return False
    form = body.rng.randrange(3)
    if form == 0:
        body.emit(f"self.kept = {v.name}")
    elif form == 1:
        body.emit(f"self.kept_list.append({v.name})")
    else:
        body.emit("self.kept_number += 1")


@statement(1)
def arguments(body):
    """Uses an argument that is a dictionary, a number or a boolean."""
    if body.in_branch or body.is_layer:
        return False
    v = body.pick(lambda value: value.rank == 3 and value.shape[0].text == "b" and value.shape[1].text == "n" and value.
                  shape[2].known)
    if v is None:
        return False
    names = [argument.name for argument in body.arguments]
    form = body.rng.choice(["more", "scale", "flag", "extra", "extra"])
    if form == "more" and form in names:
        body.emit(body.choose(f"more['new'] = {v.name}", f"more['list'].append({v.name})", "more['list'][0] = 0.25"))
    elif form in names:
        return False
    elif form == "more":
        width = v.shape[2]
        body.argument(
            "more", (),
            f"{{{{'a': randn({{b}}, {{n}}, {width}, seed={{seed}}), 'list': [0.5, randn({width}, seed={{seed}})]}}}}",
            "other")
        body.values.append(Value("more['a']", v.shape, "float", "input", exact=True, contiguous=True))
        body.values.append(Value("more['list'][1]", v.shape[2:], "float", "input", exact=True, contiguous=True))
        body.new(f"{v.name} + more['a'] * more['list'][0]", v.shape)
    elif form == "scale":
        body.argument("scale", (), "{scale}", "other", default="0.5")
        body.new(f"{v.name} * scale", v.shape)
    elif form == "flag":
        body.argument("flag", (), "{flag}", "other", default="False")
        body.new(f"{v.name} * 2 if flag else {v.name}", v.shape)
    else:
        width = v.shape[2]
        body.argument("extra", (), f"randn({{b}}, {{n}}, {width}, seed={{seed}})", "other", default="None")
        body.new(f"{v.name} if extra is None else {v.name} + extra", v.shape)
        if not body.grad and body.chance(0.4):
            body.emit("if extra is not None:")
            body.emit(f"    extra{body.choose('[:, 0] = 1', '.mul_(0.5)', ' += 1')}")


# Caches.


def cached_attention(body):
    """Writes the keys and values of x to caches, and an attention over the caches."""
    rng = body.rng
    x = body.pick(lambda value: is_sequence(value) and value.shape[0].text == "b" and value.shape[1].text == "n")
    b, n, _ = x.shape
    heads, size, shared = rng.choice([1, 2, 4]), rng.choice([4, 8]), 1
    if heads > 1 and body.chance(0.3):
        shared = 2
    width = heads * size
    q = split_heads(body, body.new(body.linear(x, width), (b, n, number(width))), heads, size)
    k, v = [
        split_heads(body, body.new(body.linear(x, width // shared), (b, n, number(width // shared))), heads // shared,
                    size) for _ in range(2)
    ]
    layout = rng.choice(["bhld", "bhld", "blhd", "both"])
    key_heads, rows = number(heads // shared), number(LONGEST)
    full = number(3), key_heads, rows, number(size)
    form = rng.choice(["pos", "pos", "start", "start", "cat"])
    if form == "cat" and body.is_module:
        return growing_attention(body, x, q, k, v, width)
    if form == "cat":
        form = "pos"
    if layout == "both":
        both = body.buffer(f"torch.zeros(2, 3, {full[1]}, {rows}, {size})", (number(2), *full))
        caches = [body.new(f"{both.name}[{i}]", full, owner="buffer") for i in range(2)]
    else:
        shape = full if layout == "bhld" else (full[0], rows, full[1], full[3])
        caches = [body.buffer(f"torch.zeros({', '.join(map(str, shape))})", shape) for _ in range(2)]
        if layout == "blhd":
            caches = [body.new(f"{cache.name}.transpose(1, 2)", full, owner="buffer") for cache in caches]
    if body.chance(0.6):
        caches = [body.new(f"{cache.name}[:b]", (b, *full[1:]), owner="buffer") for cache in caches]
    else:
        caches = [body.new(f"{cache.name}.narrow(0, 0, b)", (b, *full[1:]), owner="buffer") for cache in caches]
    if form == "pos":
        body.input("pos", (n,), "torch.arange({start}, {start} + {n})", "int")
        write = rng.choice([
            "{c}.index_copy_(2, pos, {x})", "{c}[:, :, pos] = {x}", "{c}.transpose(1, 2)[:, pos] = {x}.transpose(1, 2)",
            "{c}.index_put_((torch.arange(b)[:, None], slice(None), pos), {x}.transpose(1, 2))"
            if False else "{c}.index_copy_(2, pos, {x})", "{c}.scatter_(2, pos[:, None].expand_as({x}), {x})"
        ])
        end = rows
        mask = body.new(f"torch.arange({LONGEST}) <= pos[:, None]", (n, rows), "bool", exact=True)
    else:
        body.argument("start", (), "{start}", "other")
        write = rng.choice([
            "{c}[:, :, start:start + n] = {x}", "{c}.narrow(2, start, n).copy_({x})",
            "{c}.transpose(1, 2)[:, start:start + n] = {x}.transpose(1, 2)", "{c}[:, :, start:start + n].copy_({x})"
        ])
        end = rows
        mask = body.new(f"torch.arange({LONGEST}) <= torch.arange(start, start + n)[:, None]", (n, rows),
                        "bool",
                        exact=True)
        if body.chance(0.5):
            end = Dim("(start + n)", 1)
            mask = body.new(f"{mask.name}[:, :start + n]", (n, end), "bool", exact=True)
    for cache, x_ in zip(caches, (k, v)):
        body.emit(write.format(c=cache.name, x=x_.name))
    keys = [
        body.new(f"{cache.name}[:, :, :start + n]",
                 (b, key_heads, end, full[3]), owner="buffer") if end != rows else cache for cache in caches
    ]
    if body.chance(0.3):
        body.emit(
            body.choose(f"{caches[0].name}.mul_(0.9)", f"{caches[1].name}[:, :, 0] += 0.5",
                        f"{keys[0].name}[..., ::2] *= 1.1"))
    join_heads(body, x, core(body, q, *keys, mask), width)


def growing_attention(body, x, q, k, v, width):
    """An attention over keys and values that each call appends to those of earlier calls."""
    b, n, _ = x.shape
    for name, new in (("kept_k", k), ("kept_v", v)):
        body.attributes[name] = "None"
        body.emit(
            f"self.{name} = {new.name} if self.{name} is None or self.{name}.shape[0] != b else "
            f"torch.cat([self.{name}, {new.name}], 2)"
        )
    end = Dim("self.kept_k.shape[2]", 1)
    keys = [
        body.new(f"self.{name}", (*new.shape[:2], end, new.shape[3]), owner="buffer")
        for name, new in (("kept_k", k), ("kept_v", v))
    ]
    join_heads(body, x, core(body, q, *keys, None), width)


# Models.

PLAIN = [
    "attention", "elementwise", "projection", "normalisation", "reduction", "joining", "copying", "integers", "view",
    "write", "write_view", "write_input", "write_buffer", "rotation", "library", "embedding", "constants", "positions"
]  # the statements of layers that attn.compile gets


def results(body):
    """Writes the return statement. Returns the one value that is returned, or None."""
    rng = body.rng
    late = [value for value in body.values if value.kind != "low" or body.chance(0.5)]
    count = rng.choice([1, 1, 1, 2, 2, 3, 4])
    chosen = [late[max(rng.randrange(len(late)), rng.randrange(len(late)))] for _ in range(count)]
    if body.chance(0.7):
        chosen[0] = late[-1]
    names = [value.name for value in chosen]
    if count == 1:
        body.emit(f"return {names[0]}")
        return chosen[0]
    if body.chance(0.2):
        names.append(
            rng.choice([
                "None", "3", "x.shape[1]", "x", "b", "x.mT", "x[0]", "'text'", "2.5", "True", "n * 2", "n / 2",
                *(["x.shape[0]"] if body.is_layer else ["x.stride(1)", "x.is_contiguous()"])
            ]))
    form = rng.randrange(5)
    if form == 0:
        body.emit("return {" + ", ".join(f"'{chr(97 + i)}': {name}" for i, name in enumerate(names)) + "}")
    elif form == 1:
        body.emit(f"return {names[0]}, ({', '.join(names[1:])},)")
    elif form == 2:
        body.emit(f"return [{', '.join(names)}]")
    else:
        body.emit(f"return {', '.join(names)}")
    return None


class Model:
    """A model: its text, and the names that it has in run()."""
    def __init__(self, rng, name, is_module, grad, coarse, width, form):
        self.name, self.is_module, self.grad = name, is_module, grad
        self.variable = name.lower() if is_module else name
        body = self.body = Body(rng, is_module, grad, coarse)
        body.is_layer = form == "layer"
        b, n = Dim("b", 1), Dim("n", 1 if form == "cache" else 3)
        body.input("x", (b, n, number(width)), f"randn({{b}}, {{n}}, {width}, seed={{seed}})")
        body.emit("b, n, _ = x.shape")
        if form != "cache" and body.chance(0.35):
            m = n if body.chance(0.5) else Dim("m", 3)
            body.input("y", (b, m, number(width)), f"randn({{b}}, {{{m}}}, {width}, seed={{seed}})")
            if m != n:
                body.emit("m = y.shape[1]")
        length = rng.randint(0, 6)
        places = [rng.randint(0, length) for _ in range(rng.choice([1, 1, 1, 2]))]
        for i in range(length + 1):
            if i in places and form == "cache":
                cached_attention(body)
                break
            for _ in range(places.count(i)):
                write_statement(body, ["attention"])
            if i < length:
                write_statement(body, PLAIN if form == "layer" else None)
        self.result = results(body)

    def text(self, to):
        body = self.body
        ordered = sorted(body.arguments, key=lambda argument: bool(argument.default))
        signature = ", ".join(argument.name + f"={argument.default}" * bool(argument.default) for argument in ordered)
        if not self.is_module:
            lines = [f"{name} = ({make}){to}" if to else f"{name} = {make}"
                     for name, make in body.globals.items()] + [""] * 2 * bool(body.globals)
            return "\n".join([*lines, f"def {self.name}({signature}):", *body.lines])
        used = "\n".join(body.lines)
        more = {
            **body.attributes, **({"kept_list": "[]"} if "kept_list" in used else {}),
            **({"kept_number": "0"} if "kept_number" in used else {})
        }
        lines = [f"class {self.name}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        lines += [f"        self.{part} = {make}" for part, make in [*body.parts.items(), *more.items()]]
        lines += [f'        self.register_buffer("{part}", {make})' for part, make in body.buffers.items()]
        return "\n".join([*lines, "", f"    def forward(self, {signature}):", *body.lines])
