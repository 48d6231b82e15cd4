"""Writes random programs for programs.py.

A program is the text of one or two models (programs_model.py) and of a function `run()`, which calls them and changes
their weights, buffers and arguments between the calls. A program depends only on the seed and its number.
"""
import random

from programs_model import LONGEST, Model

HEAD = """\
# fallback: {fallback}
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
"""

NO_GRAD, INFERENCE, GRAD = MODES = ["torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()"]


class Script:
    """The text of run(): calls of models, and changes between them."""
    def __init__(self, rng, models, form, mode, to):
        self.rng, self.models, self.form, self.mode, self.to = rng, models, form, mode, to
        self.lines, self.depth, self.seed, self.count = ["def run():"], 1, rng.randrange(1000), 0
        self.coarse = models[0].body.coarse
        self.start = 0  # the position of the next token of a cache
        self.around = "torch.no_grad()"  # changes of weights
        self.optimizer = False  # whether run() has made one
        self.once = {}  # the names of the arguments that all calls take
        self.fixed = None  # for a layer whose kernel has fixed sizes: these sizes

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    def chance(self, share):
        return self.rng.random() < share

    def next_seed(self):
        self.seed += 1
        return self.seed

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def sizes(self, first=False):
        rng = self.rng
        if self.fixed:
            return self.fixed
        if self.form == "cache":
            n = 1 if not first and self.chance(0.75) else rng.choice([2, 3, 5])
            if self.start + n > LONGEST:
                self.start = 0
            found = {"b": 2, "n": n, "m": n, "start": self.start}
            self.start += n
        else:
            low = 2 if self.form == "layer" else 1
            found = {
                "b": max(low,
                         rng.choice([1, 2, 2, 3]) * (rng.random() < 0.985)),
                "n": rng.choice([3, 4, 5, 7, 8, 11, 16, 17]), "m": rng.choice([3, 5, 6, 9, 13]), "start": 0
            }
        return {**found, "scale": rng.choice([0.5, 2.0]), "flag": rng.choice([True, False])}

    def inputs(self, model, sizes, keywords=True):
        """Writes the arguments of a call. Returns their names, or "parameter=name" for some of them."""
        names, rng = [], self.rng
        floats = {}  # the names and shapes of the arguments x and y
        contiguous = self.form == "layer" and not self.copies
        for argument in model.body.arguments:
            if argument.once and (model.name, argument.name) in self.once:
                names.append(self.once[model.name, argument.name])
                continue
            seed, name = self.next_seed(), self.fresh(argument.name)
            text = argument.make.format(**sizes, seed=seed)
            shape = [eval(dim.text, {}, sizes) for dim in argument.shape]
            if argument.kind == "float" and argument.name in ("x", "y"):
                b, n, c = shape
                form = rng.random()
                if argument.name == "y" and form < 0.12 and shape == floats["x"][1]:
                    text = rng.choice([names[0], f"{names[0]}[...]", f"{names[0]}.view(-1, {n}, {c})"])
                elif argument.name == "y" and form < 0.3 and shape == floats["x"][1] and not contiguous:
                    base = self.fresh("base")  # x and y become views of one tensor
                    self.emit(f"{base} = randn({b}, {n + 1}, {2 * c}, seed={seed}){self.to}")
                    self.emit(f"watch({base}={base})")
                    first, text = rng.choice([(f"{base}[:, 1:, :{c}]", f"{base}[:, 1:, {c}:]"),
                                              (f"{base}[:, 1:, :{c}]", f"{base}[:, :-1, :{c}]"),
                                              (f"{base}[:, 1:, ::2]", f"{base}[:, 1:, 1::2]")])
                    self.emit(f"{names[0]} = {first}")
                elif form > 0.5 and b == 1 and self.form not in ("layer", "cache") and (tables := [
                        name for name, make in model.body.buffers.items() if make == f"randn({LONGEST}, {c}, seed=5)"
                ]):
                    text = f"{model.variable}.{rng.choice(tables)}[None, :{n}]"
                elif form > 0.72 and not contiguous:
                    text = rng.choice([
                        f"randn({n}, {b}, {c}, seed={seed}).transpose(0, 1)",
                        f"randn({b}, {n + 2}, {c}, seed={seed})[:, 1:-1]",
                        f"randn({b}, {n}, {2 * c}, seed={seed})[..., ::2]", f"randn({b}, {c}, {n}, seed={seed}).mT",
                        f"randn({b + 1}, {n}, {c}, seed={seed})[1:]",
                        f"randn({b}, {n}, {2 * c}, seed={seed})[..., {c}:]"
                    ])
                elif form > 0.69 and not contiguous:
                    text = f"randn(1, {n}, {c}, seed={seed}).expand({b}, -1, -1)"
                floats[argument.name] = name, shape
            dtype = self.to if argument.kind == "float" and ("randn" in text or "zeros" in text) else ""
            if dtype and ".expand" in text:
                text = text.replace(".expand", f"{dtype}.expand")
            elif dtype and (" * " in text):
                text = f"({text}){dtype}"
            elif dtype:
                text += dtype
            if argument.kind == "float" and argument.name in (
                    "x", "y") and "randn" in text and ".expand" not in text and self.form != "layer":
                special = rng.random()
                if special < 0.03 and not model.grad:
                    text = f"nn.Parameter({text}, requires_grad={rng.choice([True, False])})"
                elif special < 0.07 and not model.grad or special < 0.3 and model.grad and "[" not in text:
                    text += ".requires_grad_()"
            if argument.default:
                if self.chance(0.6):  # otherwise the call omits it
                    if "randn" in text:
                        self.emit(f"{name} = {text}{self.to}")
                        text = name
                    names.append(f"{argument.name}={text}")
                continue
            self.emit(f"{name} = {text}")
            if argument.name == "x" and self.chance(0.03):
                self.emit(f"torch._dynamo.mark_static_address({name})")
            if argument.once:
                self.once[model.name, argument.name] = name
            names.append(name)
        names = sorted(names, key=lambda name: "=" in name)
        if keywords and self.chance(0.15):  # by keyword from some argument on
            plain = [argument.name for argument in model.body.arguments if not argument.default]
            first = rng.randint(1, len(plain))
            names = [name if i < first or "=" in name else f"{plain[i]}={name}" for i, name in enumerate(names)]
        return names

    # Changes between calls.

    def change(self, model, last):
        """Writes a change of the weights, of the buffers or of an earlier result. `last` is the name of a result."""
        rng, body, at = self.rng, model.body, model.variable
        if not model.is_module:
            forms = ["result", "global"] if body.globals else ["result"]
        else:
            forms = ["scale", "load", "mode", "result", "gradients", "direct"]
            if any(make.startswith("nn.Linear") for make in body.parts.values()):
                forms += ["one", "replace", "tie", "module", "hook", "one", "replace", "data"]
            if body.buffers:
                forms += ["buffer", "buffer", "same buffer"]
            if body.parts:
                forms += ["step", "step"]
            if self.form != "layer":
                forms += ["type"]
        if self.form == "layer":
            forms += ["copy", "functional"]
        if self.flat and self.chance(0.5):
            self.emit(f"flat.{rng.choice(['mul_(0.5)', 'neg_()', 'add_(0.1)'])}")
            self.flat = False
            return None
        form = rng.choice(forms)
        linears = [part for part, make in body.parts.items() if make.startswith("nn.Linear")]
        if form == "scale":
            self.emit(f"with {self.around}:")
            self.emit(f"    for parameter in {at}.parameters():")
            self.emit(f"        parameter.{rng.choice(['mul_(1.5)', 'add_(0.05)', 'copy_(parameter.flip(0))'])}")
        elif form == "one":
            self.emit(f"with {self.around}:")
            self.emit(
                f"    {at}.{rng.choice(linears)}.weight."
                + rng.choice(['mul_(0.5)', 'neg_()', 'zero_()', 'add_(0.1)', 't_().t_()'])
            )
        elif form == "load":
            self.emit(f"{at}.load_state_dict(init({model.name}(), seed={self.next_seed()}).state_dict())")
        elif form == "replace":
            part = rng.choice(linears)
            old = f"{at}.{part}.weight"
            new = rng.choice([
                f"(randn(*{old}.shape, seed={self.next_seed()}) * 0.2){self.to}",
                f"(randn(*{old}.shape[::-1], seed={self.next_seed()}) * 0.2){self.to}.T", f"{old}.detach()",
                f"(randn(1, {old}.shape[1], seed={self.next_seed()}) * 0.2){self.to}.expand({old}.shape)", "shared"
            ])
            if new == "shared":  # a weight that is a view of a tensor, which then changes
                self.emit(f"flat = (randn({old}.shape[0] + 2, {old}.shape[1], seed={self.next_seed()}) * 0.2){self.to}")
                self.emit(f"{old} = nn.Parameter(flat[1:-1])")
                if self.chance(0.7):
                    return "flat"
            else:
                self.emit(f"{old} = nn.Parameter({new})")
        elif form == "tie":
            same = [(a, b) for a in linears for b in linears if a < b and body.parts[a] == body.parts[b]]
            if same:
                a, b = rng.choice(same)
                self.emit(rng.choice([f"{at}.{b}.weight = {at}.{a}.weight", f"{at}.{b} = {at}.{a}"]))
        elif form == "module":
            part = rng.choice(linears)
            self.emit(f"{at}.{part} = init({body.parts[part]}, seed={self.next_seed()}){self.to}")
        elif form == "hook":
            part = rng.choice([f".{part}" for part in linears] + [""] * (model.result is not None))
            self.emit(f"{at}{part}.register_forward_hook(lambda module, args, result: result * 2)")
        elif form == "mode":
            self.emit(f"{at}.{rng.choice(['train()', 'eval()', 'requires_grad_(False)'])}")
        elif form == "buffer":
            part = rng.choice(list(body.buffers))
            self.emit(f"with {self.around}:")
            self.emit("    " + rng.choice([
                f"{at}.{part}.copy_({at}.{part}.flip(-1))" if "()" not in
                body.buffers[part] else f"{at}.{part}.zero_()", f"{at}.{part} = {at}.{part}.clone()",
                f"{at}.{part}.mul_(1)", f"{at}.{part}.fill_(1)", f"{at}.{part} = torch.ones_like({at}.{part})"
            ]))
        elif form == "same buffer":
            same = [(a, b) for a in body.buffers for b in body.buffers if a < b and body.buffers[a] == body.buffers[b]]
            if same:
                a, b = rng.choice(same)
                self.emit(f"{at}.{b} = {at}.{a}")
        elif form == "step":
            # The default eps of Adam is 0 in float16, which makes a parameter without a gradient NaN.
            optimizer = rng.choice([
                "SGD({p}, lr=0.1)", "SGD({p}, lr=0.1, momentum=0.5, foreach=True)", "Adam({p}, lr=0.01, eps=1e-3)",
                "AdamW({p}, lr=0.01, eps=1e-3, foreach=True)", "SGD({p}, lr=0.1, fused=True)",
                "AdamW({p}, lr=0.01, eps=1e-3, fused=True)"
            ])
            if not self.optimizer or self.chance(0.5):
                self.emit(f"optimizer = torch.optim.{optimizer.format(p=f'{at}.parameters()')}")
                self.optimizer = True
            self.emit(f"{at}.requires_grad_(True)")
            self.emit("with torch.enable_grad():")
            self.emit(f"    sum(parameter.square().sum() for parameter in {at}.parameters()).backward()")
            self.emit("optimizer.step()")
            self.emit(rng.choice(["optimizer.zero_grad()", f"{at}.zero_grad(set_to_none=False)"]))
        elif form == "gradients":
            self.emit(f"{at}.requires_grad_({rng.choice([True, False])})")
        elif form == "result":
            self.emit(f"scribble({last})")
        elif form == "direct":
            self.direct = True  # the next call is one of the model itself
        elif form == "data":
            self.emit(f"next({at}.parameters()).data.mul_(0.5)" if rng.random() <
                      0.5 else f"{at}.{rng.choice(linears)}.weight.data.add_(0.1)")
            self.emit(f"refresh({at})")
        elif form == "copy" and model.fast == "outer":
            self.emit("whole = copy.deepcopy(whole)")
            self.emit("outer = whole")
            self.emit("watch(whole=whole)")
        elif form == "functional":
            self.functional = True
        elif form == "global":
            name = rng.choice(list(body.globals))
            self.emit(f"{name}.{rng.choice(['mul_(0.5)', 'neg_()'])}")
        elif form == "type":
            self.to = rng.choice([".to(torch.float64)", ".to(torch.float32)"] +
                                 [".to(torch.bfloat16)", ".to(torch.float16)"] * self.coarse)
            self.emit(f"{at}{self.to}")
            return "type"
        return None

    def call(self, model, names, mode):
        """Writes a call. Returns the name of the result."""
        around = [mode]
        if self.coarse and self.chance(0.2):
            around.append("torch.autocast('cpu', dtype=torch.bfloat16)")
        self.emit(f"with {', '.join(around)}:")
        name = self.fresh("r")
        function = model.variable if self.direct else model.fast
        if self.functional and not any("=" in name for name in names):
            self.emit(f"    state = {{key: value * 0.5 for key, value in {function}.named_parameters()}}")
            self.emit(f"    {name} = call(torch.func.functional_call, {function}, state, ({', '.join(names)},))")
        else:
            self.emit(f"    {name} = call({function}, {', '.join(names)})")
        self.direct = self.functional = False
        if model.grad and mode == GRAD and self.chance(0.8):
            self.emit(f"loss({name}).backward()")
        return name

    def begin(self):
        """Writes the lines that make and compile the models."""
        rng = self.rng
        for i, model in enumerate(self.models):
            at, body = model.variable, model.body
            model.fast = f"fast{i or ''}"
            if model.is_module:
                if self.mode == INFERENCE and self.form != "layer" and self.chance(0.1):
                    self.emit("with torch.inference_mode():")  # such weights do not count their changes
                    self.emit(f"    {at} = init({model.name}(), seed={self.next_seed()}){self.to}.eval()")
                    self.around = "torch.inference_mode()"
                else:
                    self.emit(f"{at} = init({model.name}(), seed={self.next_seed()}){self.to}" +
                              rng.choice([".eval()"] * 6 + ["" if self.form != "layer" else ".eval()"]))
                if self.mode == GRAD and not model.grad:
                    self.emit(f"{at}.requires_grad_(False)")
                if self.form != "layer":
                    self.emit(f"watch({at}={at})")
            for name in body.globals:
                self.emit(f"watch({name}={name})")
        if len(self.models) == 2:
            first, second = self.models
            for a in [*first.body.parts, *first.body.buffers]:
                for b in [*second.body.parts, *second.body.buffers]:
                    mine, theirs = [{**model.body.parts, **model.body.buffers}[part]
                                    for model, part in ((first, a), (second, b))]
                    if mine == theirs and self.chance(0.4):
                        self.emit(f"{second.variable}.{b} = {first.variable}.{a}")
                        break
        if self.form != "layer":
            for model in self.models:
                self.emit(
                    f"{model.fast} = compiled({model.variable}"
                    + rng.choice(['', '', '', ', dynamic=True', ', dynamic=False']) + ")"
                )

    def begin_layer(self, model, names, sizes):
        """Writes the lines that compile a layer, and put it into a model. Returns the text of that model."""
        rng, body = self.rng, model.body
        options = ", copy=True" * self.copies
        if self.chance(0.6):
            dims = {}
            for argument in body.arguments:
                found = {
                    i: "b" if dim.text == "b" else (dim.text, 3, LONGEST - 1)
                    for i, dim in enumerate(argument.shape) if not dim.known and dim.text in "bnm"
                }
                if found:
                    dims[argument.name] = found
            options += f", dynamic={dims}"
        else:
            self.fixed = sizes
        self.emit(f"fast = as_module({model.variable}, ({', '.join(names)},){options})")
        self.emit("watch(model=model)" if self.chance(0.5) else "watch(model=model, layer=fast)")
        width = body.arguments[0].shape[2]
        rest = [argument.name for argument in body.arguments[1:]]
        if self.chance(0.25):
            return ""
        self.emit(f"whole = init(Outer(fast), seed={self.next_seed()}){self.to}.eval()")
        if self.mode == GRAD and not model.grad:
            self.emit("whole.requires_grad_(False)")
        self.emit("watch(whole=whole)")
        self.emit("outer = compiled(whole)" if self.chance(0.3) else "outer = whole")
        model.fast = "outer"
        x = rng.choice(["x", "self.first(x)", "self.norm(x)", "self.first(x) + x"])
        after = "r * 2" if model.result is not None else "r, x"
        return "\n".join([
            "class Outer(nn.Module):", "    def __init__(self, layer):", "        super().__init__()",
            "        self.layer = layer", f"        self.first = nn.Linear({width}, {width})",
            f"        self.norm = nn.LayerNorm({width})", "", f"    def forward(self, {', '.join(['x', *rest])}):",
            f"        r = self.layer({', '.join([x, *rest])})", f"        return {after}"
        ])

    def write(self):
        """Returns the text of the program after its models."""
        rng = self.rng
        self.copies = self.form == "layer" and self.chance(0.5)
        self.direct = self.functional = self.flat = False
        self.begin()
        sizes, text = self.sizes(first=True), ""
        model, last, inside = self.models[0], None, self.chance(0.2)
        if self.form == "layer":
            names = self.inputs(model, sizes, keywords=False)
            text = self.begin_layer(model, names, sizes)
        else:
            names = None
        calls = rng.choice([1, 2, 2, 3, 3, 4]) if self.form != "cache" else rng.choice([2, 3, 4, 5])
        for _ in range(calls):
            model, before = rng.choice(self.models), model
            changed = self.change(model, last) if last and self.chance(0.5) else None
            self.flat = self.flat or changed == "flat"
            if changed == "type":
                self.once.clear()
            mode = self.mode if self.chance(0.92) else rng.choice(MODES[:2])
            if names is None or model is not before or changed == "type" or self.form == "cache" or self.chance(0.6):
                if last and model is before and changed is None and model.result is not None and self.chance(0.15) and \
                        model.result.shape == model.body.arguments[0].shape and self.form != "layer":
                    names = [last, *names[1:]]  # the result becomes an argument
                    if self.form == "cache":
                        sizes = self.sizes()
                        names = self.inputs(model, sizes)
                else:
                    if last and (self.form == "cache" or self.chance(0.5)):
                        sizes = self.sizes()
                    if inside:
                        self.emit(f"with {mode}:")
                        self.depth += 1
                        names = self.inputs(model, sizes)
                        self.depth -= 1
                    else:
                        names = self.inputs(model, sizes)
            if self.chance(0.15 if any(
                    name.startswith(("ids", "pos"))
                    for name in names) else 0.04):  # a call that eager refuses, and then one that it takes
                first = names[0]
                wrong = [names[:-1]]
                if self.form != "layer":  # a kernel of attn.compile also refuses sizes and types that eager allows
                    wrong += [[f"{first}[..., :3]", *names[1:]], [f"{first}.to(torch.float64)", *names[1:]]]
                for i, name in enumerate(names):
                    if name.startswith(("ids", "pos")):
                        wrong += [[*names[:i], f"{name} + 100", *names[i + 1:]]] * 3
                self.call(model, rng.choice(wrong), mode)
            last = self.call(model, names, mode)
        return (text + "\n\n\n" if text else "") + "\n".join(self.lines)


KINDS = {"module": 45, "function": 15, "cache": 15, "pair": 10, "layer": 15}


def make(seed, index, only=None):
    """Returns the kind of a program, its text, and the names of its statements."""
    rng = random.Random(f"{seed}/{index}")
    kind = rng.choices(list(KINDS), KINDS.values())[0]
    kind = only or kind
    share = rng.random()
    fallback = "inductor" if share < 0.02 else "eager" if share < 0.3 else "aot_eager"
    mode = rng.choices(MODES, [5, 4, 1.5])[0]
    grad = mode == GRAD and rng.random() < 0.5
    coarse = rng.random() < 0.15
    to = rng.choice([".to(torch.bfloat16)", ".to(torch.float16)", "", ""
                     ]) if coarse else ".to(torch.float64)" if rng.random() < 0.03 else ""
    width = rng.choice([8, 16, 16, 24, 32])
    if kind == "pair":
        models = [
            Model(rng, "First", True, grad, coarse, width, kind),
            Model(rng, "Second", True, grad, coarse, width, kind)
        ]
    else:
        is_module = kind in ("module", "layer") or kind == "cache" and rng.random() < 0.7
        models = [Model(rng, "Model" if is_module else "function", is_module, grad, coarse, width, kind)]
    script = Script(rng, models, kind, mode, to).write()
    text = "\n\n\n".join([HEAD.format(fallback=fallback).rstrip(), *[model.text(to)
                                                                     for model in models], script]) + "\n"
    return kind, text, [name for model in models for name in model.body.used]
