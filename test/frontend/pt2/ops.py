"""Calls every op that .pt2 files may hold, on every level of this machine, and compares with numpy: ops.py FOLDER

A case is an op, what it should return, and its arguments by the names of torch's schemas. References are computed in
float64. Results that are integers or booleans must be equal; floats may differ by some units in the last place (ulps),
or, where many elements are summed, by a fraction of the largest (near). Many cases share a file, which is compiled
once. Fails as well if `attn-import --ops` lists an op without a case.
"""

import concurrent.futures
import inspect
import json
import math
import os
import subprocess
import sys

import numpy as np

from program import DType, Program
from sizes import FUNCTIONS

CASES_PER_FILE = 40
CASES, GRAPHS = [], []
# What attn does not compute yet, and why; printed, not called.
NOT_YET = []
# What no file may hold, in any form.
REFUSED = {"native_dropout.default"}


class Case:
    """One call of an op."""

    def __init__(self, op, want, kind, ulps, near, many, line, arguments):
        self.op, self.want, self.kind, self.line, self.arguments = op, want, kind, line, arguments
        self.ulps, self.near, self.many = ulps, near, many

    def tensors(self):
        """The arrays among the arguments, those in lists too."""
        for value in self.arguments.values():
            yield from (a for a in (value if isinstance(value, list) else [value]) if isinstance(a, np.ndarray))

    def results(self):
        """What the op should return, of the types that it should have."""
        want = self.want
        if callable(want):
            with np.errstate(all="ignore"):
                want = want(*[widened(value) for value in self.arguments.values()])
        wants = want if isinstance(want, (list, tuple)) else [want]
        kinds = self.kind if isinstance(self.kind, (list, tuple)) else [self.kind] * len(wants)
        return [(np.asarray(w), kind or self.kind_of(np.asarray(w))) for w, kind in zip(wants, kinds)]

    def kind_of(self, want):
        """Unless a case says otherwise, the type is that of the first tensor of the same category."""
        if want.dtype == bool:
            return "bool"
        category = np.floating if np.issubdtype(want.dtype, np.floating) else np.integer
        kinds = [a.dtype.name for a in self.tensors() if np.issubdtype(a.dtype, category)]
        return kinds[0] if kinds else "float32" if category is np.floating else "int64"


def widened(value):
    """Floats as float64, everything else as it is."""
    if isinstance(value, list):
        return [widened(element) for element in value]
    is_float = isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating)
    return value.astype("float64") if is_float else value


def case(op, want, kind=None, ulps=2, near=0.0, many=False, not_yet="", **arguments):
    line = inspect.currentframe().f_back.f_lineno
    if not_yet:
        NOT_YET.append((f"ops.py:{line}: {op}", not_yet))
    else:
        CASES.append(Case(op, want, kind, ulps, near, many, line, arguments))


def graph(function):
    """Several nodes in a row: the function adds them to a builder."""
    GRAPHS.append(function)
    return function


def graph_not_yet(why):
    return lambda function: NOT_YET.append((function.__name__, why))


# ---- Data ----

random = np.random.default_rng(7)
X = random.standard_normal((3, 4)).astype("float32") * 2
Y = random.standard_normal((3, 4)).astype("float32")
P = np.abs(Y) + np.float32(0.1)
ROW, COLUMN = X[0].copy(), Y[:, :1].copy()
X3 = random.standard_normal((2, 3, 4)).astype("float32")
ONE = np.array(1.5, "float32")  # of rank 0
D = random.standard_normal((3, 4))  # float64
H = random.standard_normal((3, 4)).astype("float16")
B = random.integers(0, 2, (3, 4)).astype(bool)
B2 = random.integers(0, 2, (3, 4)).astype(bool)
I = random.integers(-9, 9, (3, 4))  # int64
I2 = random.integers(-9, 9, (3, 4))
J = random.integers(-9, 9, (3, 4)).astype("int32")
S = random.integers(-100, 100, (3, 4)).astype("int8")
U = random.integers(0, 255, (3, 4)).astype("uint8")
SEVEN = np.array(7)  # int64 of rank 0
inf, nan = math.inf, math.nan
SPECIAL = np.array([nan, inf, -inf, 0.0, -0.0, 1e-40, -1e-40, 1.4e-45, 1.2e-38, 3e38, -3e38, 1, -1, 0.5, -0.5, 1.5,
                    2.5, -2.5, 1e-4, -1e-4, 3, 10, -10, 50, -50, 8388609, 0.99999994, -0.99999994], "float32")
ORDINARY = np.concatenate([np.linspace(-20, 20, 41), np.geomspace(1e-6, 80, 23), -np.geomspace(1e-6, 80, 23)])
ALL = np.concatenate([SPECIAL, ORDINARY.astype("float32")])
HOLES = np.array([[1, nan, 3], [-inf, inf, nan], [2, 2, 1], [0, -0.0, -1]], "float32")
TIES = np.array([[1, 3, 3], [2, 2, 1], [nan, 5, nan], [-1, -1, -1]], "float32")

# ---- Functions of one element ----

erf = np.vectorize(math.erf, otypes=["float64"])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_of(x, approximate="none"):
    if approximate == "tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + erf(x / math.sqrt(2)))


for op, function, ulps in [
        ("exp", np.exp, 4), ("exp2", np.exp2, 4), ("expm1", np.expm1, 2), ("log", np.log, 2), ("log2", np.log2, 2),
        ("log1p", np.log1p, 2), ("sqrt", np.sqrt, 1), ("rsqrt", lambda x: 1 / np.sqrt(x), 2), ("tanh", np.tanh, 6),
        ("erf", erf, 6), ("sin", np.sin, 2), ("cos", np.cos, 2), ("reciprocal", lambda x: 1 / x, 1),
        ("sigmoid", sigmoid, 6), ("relu", lambda x: np.maximum(x, 0), 0), ("neg", np.negative, 0), ("abs", np.abs, 0),
        ("floor", np.floor, 0), ("ceil", np.ceil, 0), ("trunc", np.trunc, 0), ("round", np.round, 0),
        ("sign", lambda x: np.where(np.isnan(x), 0, np.sign(x)), 0),
        ("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, 4), ("relu6", lambda x: np.clip(x, 0, 6), 0),
        ("isnan", np.isnan, 0), ("isinf", np.isinf, 0), ("logical_not", np.logical_not, 0)]:
    # Angles beyond 2^30 are NaN.
    case(op + ".default", function, self=ALL[np.abs(ALL) < 1e9] if op in ("sin", "cos") else ALL, ulps=ulps)
    case(op + ".default", function, self=X3[:, ::2].copy(), ulps=ulps)
for op, function in [("exp", np.exp), ("sqrt", np.sqrt), ("sin", np.sin), ("sigmoid", sigmoid), ("log1p", np.log1p)]:
    case(op + ".default", lambda x, f=function: f(x.astype("float64")), self=np.abs(I), kind="float32", ulps=6)
    case(op + ".default", lambda x, f=function: f(x.astype("float64")), self=B, kind="float32", ulps=6)
for op, function in [("neg", np.negative), ("abs", np.abs), ("relu", lambda x: np.maximum(x, 0)), ("sign", np.sign)]:
    case(op + ".default", function, self=I)
    case(op + ".default", function, self=S)
    case(op + "_.default", function, self=X)
for op in ("floor", "ceil", "trunc", "round"):
    case(op + ".default", lambda x: x, self=I)
    case(op + "_.default", getattr(np, op), self=X)
    case(op + ".default", getattr(np, op), self=np.concatenate([D.ravel() * 1e3, ALL, [2.0**52 + 1, 2.0**52 - 0.5]]),
         ulps=0)
case("rsqrt.default", lambda x: 1 / np.sqrt(x), self=np.abs(D), ulps=1)
for op, function in [("isnan", np.isnan), ("isinf", np.isinf), ("logical_not", np.logical_not)]:
    case(op + ".default", function, self=I)
    case(op + ".default", function, self=B)
case("logical_not.default", np.logical_not, self=U)
LARGE = np.array([1e3, 12345.678, 1e5, 1e6, -1e6, 3.1415927e6, 1048576.0, 710.0, -33333.33], "float32")
case("sin.default", np.sin, self=LARGE)
case("cos.default", np.cos, self=LARGE)
for op, function in [("exp", np.exp), ("tanh", np.tanh), ("log", np.log), ("sin", np.sin)]:
    case(op + ".default", function, self=H, ulps=1)
case("exp_.default", np.exp, self=X, ulps=4)
case("sqrt_.default", np.sqrt, self=P)
case("bitwise_not.default", np.invert, self=I)
case("bitwise_not.default", np.invert, self=B)
case("bitwise_not.default", np.invert, self=U)
case("silu.default", lambda x: x * sigmoid(x), self=X3, ulps=6)
case("silu_.default", lambda x: x * sigmoid(x), self=ORDINARY.astype("float32"), ulps=6)
case("hardswish.default", lambda x: x * np.clip(x + 3, 0, 6) / 6, self=ORDINARY.astype("float32"), near=1e-7)
case("gelu.default", gelu_of, self=X3, near=4e-7)
case("gelu.default", lambda x, mode: gelu_of(x, mode), self=X3, approximate="tanh", near=4e-7)
case("elu.default", lambda x: np.where(x > 0, x, np.expm1(x)), self=ALL, ulps=4)
case("elu.default", lambda x, alpha, scale, rate: scale * np.where(x > 0, x, alpha * np.expm1(x * rate)), self=X,
     alpha=2, scale=0.5, input_scale=1.5, ulps=6)
case("elu_.default", lambda x: np.where(x > 0, x, np.expm1(x)), self=X, ulps=4)
case("leaky_relu.default", lambda x: np.where(x > 0, x, 0.01 * x), self=ALL, ulps=2)
case("leaky_relu.default", lambda x, slope: np.where(x > 0, x, slope * x), self=X, negative_slope=0.2)
case("softplus.default", lambda x: np.where(x > 20, x, np.log1p(np.exp(x))), self=ALL, ulps=6)
case("softplus.default", lambda x, beta, most: np.where(x * beta > most, x, np.log1p(np.exp(x * beta)) / beta),
     self=ORDINARY.astype("float32"), beta=2.0, threshold=5, ulps=6)
case("hardtanh.default", lambda x: np.clip(x, -1, 1), self=ALL, ulps=0)
case("hardtanh_.default", lambda x, low, high: np.clip(x, low, high), self=X, min_val=-0.5, max_val=2)
case("relu6.default", lambda x: np.clip(x, 0, 6), self=I)
case("hardtanh.default", lambda x, low, high: np.clip(x, low, high), self=J, min_val=-2, max_val=3)
case("celu.default", lambda x, a: np.where(x > 0, x, a * np.expm1(x / a)), self=ALL, alpha=1.5, ulps=4)
case("selu.default", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), self=ALL,
     ulps=4)
case("mish.default", lambda x: x * np.tanh(np.logaddexp(0, x)), self=ORDINARY.astype("float32"), ulps=12, near=1e-7)
case("log_sigmoid.default", lambda x: -np.logaddexp(0, -x), self=ALL, ulps=6)
case("threshold.default", lambda x, t, v: np.where(x <= t, v, x), self=ALL, threshold=0.5, value=-7.0, ulps=0)
CHANNELS = np.array([0.25, -0.5, 2], "float32")
case("prelu.default", lambda x, w: np.where(x > 0, x, x * w[:, None]), self=X3, weight=CHANNELS)
case("prelu.default", lambda x, w: np.where(x > 0, x, x * w), self=X3, weight=CHANNELS[:1].copy())
case("prelu.default", lambda x, w: np.where(x > 0, x, x * w), self=ALL, weight=CHANNELS[:1].copy())
case("_prelu_kernel.default", lambda x, w: np.where(x > 0, x, x * w), self=X3, weight=CHANNELS.reshape(1, 3, 1))
for kind in ("float32", "float16"):
    most = float(np.finfo(kind).max)
    case("nan_to_num.default", lambda x, m=most: np.nan_to_num(x, posinf=m, neginf=-m),
         self=np.float32([nan, inf, -inf, 1.5, -0.0]).astype(kind))
case("nan_to_num.default", lambda x, a, b, c: np.nan_to_num(x, nan=a, posinf=b, neginf=c), self=SPECIAL, nan=1.5,
     posinf=2.0, neginf=-3.0, ulps=0)
case("nan_to_num.default", lambda x: x, self=I)
case("square.default", np.square, self=X)
case("square.default", np.square, self=I)
for x in (SPECIAL, I, B):
    case("isfinite.default", np.isfinite, self=x)
case("glu.default", lambda x: x[..., :2] * sigmoid(x[..., 2:]), self=X, ulps=6)
case("glu.default", lambda x, dim: x[:, :2] * sigmoid(x[:, 2:]), self=X3[:, [0, 1, 2, 0]].copy(), dim=-2, ulps=6)
for op in ("dropout", "feature_dropout", "alpha_dropout"):
    case(op + ".default", lambda x, p, train: x, input=X3, p=0.5, train=False)
case("dropout.default", lambda x, p, train: x, input=X, p=0.0, train=True)

# ---- Two operands ----

case("add.Tensor", np.add, self=X, other=Y)
case("add.Tensor", lambda x, y, alpha: x + alpha * y, self=X, other=ROW, alpha=-2.5, near=1e-7)
case("add.Tensor", np.add, self=COLUMN, other=ROW)
case("add.Tensor", np.add, self=X, other=1.25)
case("add.Tensor", np.add, self=I, other=3)
case("add.Tensor", np.add, self=I, other=0.5, kind="float32")
case("add.Tensor", np.add, self=S, other=J, kind="int32")
case("add.Tensor", np.add, self=S, other=U, kind="int16")
case("add.Tensor", lambda x, y: x.astype(int) + y, self=B, other=J, kind="int32")
case("add.Tensor", np.add, self=J, other=SEVEN, kind="int32")
case("add.Tensor", np.add, self=I, other=ONE, kind="float32")
case("add.Tensor", np.add, self=H, other=X, kind="float32")
case("add.Tensor", np.add, self=D, other=X, kind="float64")
case("add.Tensor", np.add, self=H, other=ONE, kind="float16", ulps=1)
case("add.Scalar", lambda x, y, alpha: x + alpha * y, self=X, other=2.5, alpha=3, near=1e-7)
case("add_.Tensor", np.add, self=X, other=ROW)
case("add_.Tensor", lambda x, y, alpha: x + alpha * y, self=I, other=I2, alpha=3)
case("add_.Tensor", np.add, self=X, other=I)
case("add_.Scalar", np.add, self=S, other=100, kind="int8")
for name in ("sub", "subtract"):
    case(name + ".Tensor", np.subtract, self=X, other=COLUMN)
    case(name + ".Tensor", lambda x, y, alpha: x - alpha * y, self=I, other=J, alpha=2, kind="int64")
    case(name + ".Scalar", np.subtract, self=X, other=2)
case("sub_.Tensor", np.subtract, self=X, other=Y)
case("rsub.Scalar", lambda x, y: y - x, self=X, other=1)
case("rsub.Scalar", lambda x, y: y - x, self=I, other=1.5, kind="float32")
case("rsub.Tensor", lambda x, y: y - x, self=X, other=ROW)
for name in ("mul", "multiply"):
    case(name + ".Tensor", np.multiply, self=X, other=Y)
    case(name + ".Tensor", np.multiply, self=X, other=B, kind="float32")
    case(name + ".Scalar", np.multiply, self=I, other=-3)
case("mul.Tensor", np.logical_and, self=B, other=B2)
case("mul.Tensor", np.multiply, self=U, other=U)
case("mul_.Tensor", np.multiply, self=X, other=ONE)
for name in ("div", "divide", "true_divide"):
    case(name + ".Tensor", np.divide, self=X, other=Y)
    case(name + ".Tensor", np.divide, self=I, other=np.where(J == 0, 1, J).astype("int32"), kind="float32")
    case(name + ".Scalar", np.divide, self=X, other=3)
    case(name + ".Scalar", np.divide, self=B, other=2, kind="float32")
case("div.Tensor", np.divide, self=SPECIAL, other=np.array(0.0, "float32"))
case("div_.Tensor", np.divide, self=X, other=ROW)
QUOTIENTS = np.array([1, -1, 7, -7, 7.5, -7.5, 0.3, -0.3, 6, 1e6, 0.0, -0.0], "float32")
for mode, function in [("floor", np.floor_divide), ("trunc", lambda x, y: np.trunc(x / y))]:
    for divisor in (0.1, 2, -2.5, 3.0):
        exact = float(np.float32(divisor))
        case("div.Tensor_mode", lambda x, y, _, f=function, d=exact: f(x, d) if f is np.floor_divide else
             np.trunc((x / d).astype("float32")), self=QUOTIENTS, other=divisor, rounding_mode=mode)
    case("div.Tensor_mode", lambda x, y, _, f=function: f(x, y), self=X, other=Y, rounding_mode=mode)
    case("div.Tensor_mode", lambda x, y, _, f=function: f(x, y), self=I, other=4, rounding_mode=mode, kind="int64")
    case("div.Scalar_mode", lambda x, y, _, f=function: f(x, y), self=S, other=-7, rounding_mode=mode, kind="int8")
case("div.Scalar_mode", lambda x, y, _: x / y, self=X, other=2.0, rounding_mode=None)
case("div_.Scalar_mode", lambda x, y, _: np.floor(x / y), self=X, other=0.25, rounding_mode="floor")
case("floor_divide.default", np.floor_divide, self=X, other=Y)
case("floor_divide.default", np.floor_divide, self=I, other=-4)
case("floor_divide.Scalar", np.floor_divide, self=J, other=3)
ONES = np.ones(8, "float32")
TENTHS = np.array([0.1, 0.2, 0.3, 0.7, -0.1, -0.3, inf, -inf], "float32")
case("floor_divide.default", np.floor_divide, self=ONES, other=TENTHS)
case("remainder.Scalar", lambda x, y: x % y, self=I, other=4)
case("remainder.Scalar", lambda x, y: x % y, self=J, other=-4)
case("remainder.Tensor", lambda x, y: x % y, self=S, other=7)
case("remainder_.Scalar", lambda x, y: x % y, self=I, other=5)
case("fmod.Scalar", np.fmod, self=I, other=-4)
case("fmod.Tensor", np.fmod, self=S, other=7)
case("fmod_.Scalar", np.fmod, self=I, other=5)
DIVIDENDS, DIVISORS = (np.array(list(values), "float32") for values in zip(*[
    (a, b) for a in (-inf, -7.5, -2, -0.3, -0.0, 0.0, 1, 5.5, 1e6, 3.3e-39, inf, nan)
    for b in (-inf, -3, -0.1, 0.0, 0.25, 0.7, 2, 123.456, inf, nan)]))
case("fmod.Tensor", np.fmod, self=DIVIDENDS, other=DIVISORS, ulps=0)
case("remainder.Tensor", lambda x, y: np.where(np.isinf(y) & np.isfinite(x),
                                               np.where((x < 0) == (y < 0), x, np.where(x == 0, x, y)),
                                               np.remainder(x, y)), self=DIVIDENDS, other=DIVISORS, ulps=1)
case("fmod.Scalar", lambda x, y: np.fmod(x, y), self=ORDINARY.astype("float32"), other=0.75, ulps=0)
case("remainder.Scalar", lambda x, y: np.remainder(x, y), self=ORDINARY.astype("float32"), other=-0.75, ulps=1)
case("remainder.Scalar", lambda x, y: np.remainder(x, y), self=H, other=0.5, ulps=1)
case("fmod.Scalar", lambda x, y: x * nan, self=np.array([1e20, -1e20], "float32"), other=3.0)
SHIFTS = np.array([0, 1, 5, 31])
for name, function in [("left", np.left_shift), ("right", np.right_shift)]:
    short = f"__{name[0]}shift__"
    for overload in (".Tensor", ".Tensor_Scalar"):
        case(f"bitwise_{name}_shift{overload}", function, self=I, other=SHIFTS if overload == ".Tensor" else 3)
    for overload in (".Tensor", ".Scalar"):
        case(short + overload, function, self=J, other=SHIFTS.astype("int32") if overload == ".Tensor" else 4)
    case(f"bitwise_{name}_shift.Tensor", lambda x, y, z=name == "left": np.where(z | (x >= 0), 0, -1).astype("int8"),
         self=S, other=np.array([8, 100, -1, -100], "int8"))
for overload, weight in ((".Scalar", 0.25), (".Scalar", 2), (".Tensor", ROW)):
    case("lerp" + overload, lambda x, y, w: x + w * (y - x), self=X, end=Y, weight=weight, near=1e-6)
case("lerp.Scalar", lambda x, y, w: y, self=np.array([1e8, -1e8], "float32"), end=np.array([1.0, 3.0], "float32"),
     weight=1.0)
case("lerp_.Scalar", lambda x, y, w: x + w * (y - x), self=X, end=Y, weight=0.75, near=1e-6)
for name, function in [("fmax", np.fmax), ("fmin", np.fmin)]:
    case(name + ".default", function, self=SPECIAL, other=SPECIAL[::-1].copy(), ulps=0)
    case(name + ".default", function, self=I, other=J)
NUMBERS = np.array([-3, -2.5, -1, -0.5, -0.0, 0, 0.25, 1, 1.7, 3, inf, -inf, nan], "float32")
for exponent in (0, 1, 2, 3, 5, -1, -2, -3, 64):
    case("pow.Tensor_Scalar", lambda x, y: np.power(x, float(y)), self=NUMBERS, exponent=exponent, ulps=8)
for exponent in (0.0, 2.0, 0.7, -1.3, 65.0, 67.0, 2.5):
    case("pow.Tensor_Scalar", np.power, self=NUMBERS, exponent=exponent, ulps=4)
for exponent in (0.5, -0.5):
    case("pow.Tensor_Scalar", np.power, self=P, exponent=exponent)
for exponent in (0, 1, 2, 3):
    case("pow.Tensor_Scalar", lambda x, y: np.power(x, y), self=I, exponent=exponent)
case("pow.Tensor_Scalar", np.power, self=np.abs(J), exponent=2.5, kind="float32")
case("pow_.Scalar", np.power, self=X, exponent=2)
BASES, EXPONENTS = (np.array(list(values), "float32") for values in zip(*[
    (a, b) for a in (-inf, -2, -1, -0.5, -0.0, 0.0, 0.5, 1, 2.5, inf, nan)
    for b in (-inf, -3, -2, -0.5, 0.0, 0.5, 1, 2, 3, 17, inf, nan)]))
case("pow.Tensor_Tensor", np.power, self=BASES, exponent=EXPONENTS, ulps=2)
case("pow.Tensor_Tensor", np.power, self=P, exponent=ROW, ulps=2)
case("pow.Scalar", np.power, self=2, exponent=X, ulps=2)
case("pow.Scalar", np.power, self=0.3, exponent=NUMBERS, ulps=8)
for name, function in [("maximum", np.maximum), ("minimum", np.minimum), ("max", np.maximum), ("min", np.minimum)]:
    overload = ".default" if len(name) > 3 else ".other"
    case(name + overload, function, self=X, other=ROW)
    case(name + overload, function, self=I, other=J)
    case(name + overload, function, self=SPECIAL, other=SPECIAL[::-1].copy(), ulps=0)
COMPARE = np.array([1, 2, nan, -0.0, inf], "float32"), np.array([1, 3, nan, 0.0, -inf], "float32")
for name, function in [("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
                       ("gt", np.greater), ("ge", np.greater_equal)]:
    case(name + ".Tensor", function, self=COMPARE[0], other=COMPARE[1])
    case(name + ".Tensor", function, self=I, other=COLUMN)
    case(name + ".Tensor", function, self=U, other=S)
    case(name + ".Scalar", function, self=X, other=0)
    case(name + ".Scalar", function, self=B, other=False)
case("eq.Scalar", np.equal, self=I, other=2.5)
case("lt.Scalar", np.less, self=X, other=inf)
for name, function in [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)]:
    for form in ("bitwise_" + name, f"__{name}__"):
        case(form + ".Tensor", function, self=B, other=B2)
        case(form + ".Tensor", function, self=I, other=J, kind="int64")
        case(form + ".Scalar", function, self=J, other=6)
        case(form + ".Scalar", function, self=B, other=True, kind="bool")
    logical = getattr(np, "logical_" + name)
    case(f"logical_{name}.default", logical, self=B, other=B2)
    case(f"logical_{name}.default", logical, self=I, other=X)
    case(f"logical_{name}_.default", logical, self=B, other=I)
case("bitwise_and_.Tensor", np.bitwise_and, self=B, other=B2)

# ---- Selection ----

case("masked_fill.Scalar", lambda x, m, v: np.where(m, v, x), self=X, mask=B, value=-inf)
case("masked_fill.Scalar", lambda x, m, v: np.where(m, v, x), self=I, mask=B[0].copy(), value=7)
case("masked_fill.Scalar", lambda x, m, v: np.where(m, v, x), self=B, mask=B2, value=True)
case("masked_fill.Tensor", lambda x, m, v: np.where(m, v, x), self=X, mask=B, value=ONE)
case("masked_fill.Tensor", lambda x, m, v: np.where(m, v, x), self=X, mask=B, value=SEVEN)
case("masked_fill_.Scalar", lambda x, m, v: np.where(m, v, x), self=X, mask=B, value=0)
case("where.self", np.where, condition=B, self=X, other=Y)
case("where.self", np.where, condition=B[:, :1].copy(), self=ROW, other=ONE)
case("where.self", np.where, condition=B, self=I, other=X, kind="float32")
case("where.self", np.where, condition=B, self=U, other=U[::-1].copy())
case("where.ScalarSelf", np.where, condition=B, self=1.5, other=X)
case("where.ScalarSelf", np.where, condition=B, self=1, other=X)
case("where.ScalarOther", np.where, condition=B, self=X, other=-inf)
case("where.ScalarOther", np.where, condition=B, self=J, other=2.5, kind="float32")
case("where.Scalar", np.where, condition=B, self=1.0, other=0.0, kind="float32")
case("where.Scalar", np.where, condition=B, self=1, other=0)
case("where.Scalar", np.where, condition=B, self=True, other=False, kind="bool")
case("clamp.default", lambda x, low, high: np.clip(x, low, high), self=SPECIAL, min=-1.5, max=2)
case("clamp.default", lambda x, low, high: np.minimum(x, high), self=X, min=None, max=0.5)
case("clamp.default", lambda x, low: np.maximum(x, low), self=X, min=0.5)
case("clamp.default", lambda x, low, high: np.clip(x, low, high), self=I, min=-3, max=2)
case("clamp.default", lambda x, low, high: np.clip(x, low, high), self=I, min=-2.5, max=2, kind="float32")
case("clamp.default", lambda x, low, high: np.full(x.shape, -1.0), self=X, min=1.0, max=-1.0)
case("clamp_min.default", np.maximum, self=X, min=0.25)
case("clamp_max.default", np.minimum, self=J, max=2)
case("clamp_.default", lambda x, low, high: np.clip(x, low, high), self=X, min=-1, max=1)
case("clamp_min_.default", np.maximum, self=X, min=0)
for name, function in [("tril", np.tril), ("triu", np.triu)]:
    case(name + ".default", function, self=X3)
    case(name + ".default", function, self=I, diagonal=-1)
    case(name + ".default", function, self=B, diagonal=2)
    case(name + "_.default", function, self=X, diagonal=1)
case("addcmul.default", lambda x, a, b: x + a * b, self=X, tensor1=ROW, tensor2=COLUMN, near=2e-7)
case("addcmul.default", lambda x, a, b, v: x + v * a * b, self=X, tensor1=Y, tensor2=P, value=0.5, near=2e-7)
case("addcmul_.default", lambda x, a, b, v: x + v * a * b, self=X, tensor1=Y, tensor2=P, value=2, near=2e-7)
case("addcdiv.default", lambda x, a, b, v: x + v * a / b, self=X, tensor1=Y, tensor2=P, value=-2, near=2e-7)

# ---- Reductions ----

for name, function in [("sum", np.sum), ("mean", np.mean)]:
    overload = ".dim_IntList" if name == "sum" else ".dim"
    case(name + ".default", function, self=X3, near=1e-6)
    case(name + ".default", function, self=ONE)
    case(name + overload, lambda x, dim, f=function: f(x, axis=-1), self=X3, dim=[-1], near=1e-6)
    case(name + overload, lambda x, dim, keep, f=function: f(x, axis=(0, 2), keepdims=True), self=X3, dim=[-1, 0],
         keepdim=True, near=1e-6)
    case(name + overload, lambda x, dim, f=function: f(x), self=X3, dim=None, near=1e-6)
    case(name + overload, lambda x, dim, f=function: f(x), self=X3, dim=[], near=1e-6)
    case(name + overload, lambda x, dim, dtype, f=function: f(x, axis=1), self=I, dim=[1], dtype=DType("float32"),
         kind="float32")
    case(name + overload, lambda x, dim, keep, f=function: f(x, 1), self=H, dim=[1], keepdim=False, ulps=1)
    case(name + overload, lambda x, dim, f=function: f(x, 1), self=HOLES, dim=[1], near=1e-6)
case("sum.default", np.sum, self=I)
case("sum.dim_IntList", lambda x, dim: x, self=ONE, dim=[-1])
case("sum.dim_IntList", lambda x, dim: np.zeros(3), self=np.zeros((0, 3), "float32"), dim=[0])
case("mean.dim", lambda x, dim: np.full(3, nan), self=np.zeros((0, 3), "float32"), dim=[0])
case("sum.default", np.sum, self=B, kind="int64")
case("sum.dim_IntList", lambda x, dim: np.sum(x, 0), self=U, dim=[0], kind="int64")
case("sum.default", lambda x, dtype: np.sum(x.astype(int)), self=S, dtype=DType("int32"), kind="int32")
for name, root in [("var", lambda x: x), ("std", np.sqrt)]:
    case(name + ".default", lambda x, f=root: f(np.var(x, ddof=1)), self=X3, near=1e-6)
    case(name + ".default", lambda x, _, f=root: f(np.var(x)), self=X3, unbiased=False, near=1e-6)
    case(name + ".dim", lambda x, dim, f=root: f(np.var(x, -1, ddof=1)), self=X3, dim=[-1], near=1e-6)
    case(name + ".dim", lambda x, dim, u, keep, f=root: f(np.var(x, (0, 1), keepdims=True)), self=X3, dim=[0, 1],
         unbiased=False, keepdim=True, near=1e-6)
    case(name + ".correction", lambda x, dim, c, f=root: f(np.var(x, 1, ddof=2)), self=X3, dim=[1], correction=2,
         near=1e-6)
    case(name + ".correction", lambda x, dim, c, keep, f=root: f(np.var(x, 2, ddof=0.5, keepdims=True)), self=X3,
         dim=[-1], correction=0.5, keepdim=True, near=1e-6)
    case(name + ".correction", lambda x, dim, c, f=root: f(np.var(x, ddof=1)), self=X3, dim=None, correction=None,
         near=1e-6)
    case(name + ".correction", lambda x, dim, c: np.full(2, inf), self=np.array([[1, 2], [3, 5]], "float32"), dim=[1],
         correction=2)
for name, function in [("max", np.max), ("min", np.min)]:
    where = np.argmax if name == "max" else np.argmin
    for dim in ([0], [-1], [0, 2], []):
        axes = tuple(dim) or None
        case(f"a{name}.default", lambda x, dim, f=function, a=axes: f(x, axis=a), self=X3, dim=dim)
    case(f"a{name}.default", lambda x, dim, keep, f=function: f(x, axis=1, keepdims=True), self=I, dim=[1],
         keepdim=True)
    case(f"a{name}.default", lambda x, dim, f=function: f(x, axis=1), self=HOLES, dim=[1])
    case(name + ".default", function, self=X3)
    case(name + ".default", function, self=S)
    for x in (X, TIES, HOLES, I):
        case(name + ".dim", lambda x, dim, f=function, w=where: [f(x, 1), w(x, 1)], self=x, dim=-1,
             kind=[x.dtype.name, "int64"])
    case(name + ".dim", lambda x, dim, keep, f=function, w=where: [f(x, 0)[None], w(x, 0)[None]], self=X3, dim=0,
         keepdim=True, kind=["float32", "int64"])
    for x in (X, TIES, HOLES, I):
        case(f"arg{name}.default", lambda x, f=where: f(x), self=x, kind="int64")
        case(f"arg{name}.default", lambda x, dim, f=where: f(x, dim), self=x, dim=-2, kind="int64")
    case(f"arg{name}.default", lambda x, dim, keep, f=where: f(x, 1)[:, None], self=X3, dim=1, keepdim=True,
         kind="int64")
    case(f"arg{name}.default", lambda x, dim, keep, f=where: f(x).reshape(1, 1), self=X, dim=None, keepdim=True,
         kind="int64")
for name, function in [("any", np.any), ("all", np.all)]:
    for x in (B, X, I, np.zeros((2, 3), bool), HOLES):
        case(name + ".default", function, self=x)
        case(name + ".dim", lambda x, dim, f=function: f(x, 1), self=x, dim=-1)
    case(name + ".dim", lambda x, dim, keep, f=function: f(x, 0, keepdims=True), self=B, dim=0, keepdim=True)
    case(name + ".dims", lambda x, dim, keep, f=function: f(x, (0, 1), keepdims=True), self=B, dim=[0, -1],
         keepdim=True)
    case(name + ".dims", lambda x, dim, f=function: f(x), self=B, dim=None)
    case(name + ".dims", lambda x, dim: x, self=B, dim=[])
case("cumsum.default", lambda x, dim: np.cumsum(x, 1), self=X3, dim=1, near=1e-6)
case("cumsum.default", lambda x, dim: np.cumsum(x, -1), self=X3, dim=-1, near=1e-6)
case("cumsum.default", lambda x, dim: np.cumsum(x, 0), self=I, dim=0)
case("cumsum.default", lambda x, dim: np.cumsum(x, 1), self=B, dim=1, kind="int64")
case("cumsum.default", lambda x, dim, dtype: np.cumsum(x, 1), self=J, dim=1, dtype=DType("float32"), kind="float32")
case("cumsum_.default", lambda x, dim: np.cumsum(x, 0), self=X, dim=0, near=1e-6)
case("cumprod.default", lambda x, dim: np.cumprod(x, 1), self=X3, dim=1, near=1e-6)
case("cumprod.default", lambda x, dim: np.cumprod(x, 0), self=I, dim=0)
case("prod.default", np.prod, self=X, near=1e-6)
case("prod.default", np.prod, self=I)
case("prod.dim_int", lambda x, d, k: np.prod(x, 1, keepdims=True), self=X3, dim=-2, keepdim=True, near=1e-6)
case("prod.dim_int", lambda x, d: np.prod(x, 1), self=B, dim=1, kind="int64")
for x in (X3 * 30, np.float32([[[-inf, -inf], [inf, 1]], [[nan, 1], [-inf, 2]]])):
    case("logsumexp.default", lambda x, d: np.logaddexp.reduce(x, 2), self=x, dim=[-1], near=1e-6)
case("logsumexp.default", lambda x, d, k: np.log(np.exp(x).sum((0, 1), keepdims=True)), self=X3, dim=[0, 1],
     keepdim=True, near=1e-6)
for name, root in [("var_mean", lambda x: x), ("std_mean", np.sqrt)]:
    case(name + ".correction", lambda x, d, c, k, f=root: [f(np.var(x, 1, ddof=c, keepdims=True)),
                                                           x.mean(1, keepdims=True)], self=X3, dim=[1], correction=2,
         keepdim=True, near=1e-6)
    case(name + ".dim", lambda x, d, u, f=root: [f(np.var(x, (0, 2))), x.mean((0, 2))], self=X3, dim=[0, 2],
         unbiased=False, near=1e-6)
for order in (1, 2, 2.0, inf):
    case("linalg_vector_norm.default", lambda x, p: np.linalg.norm(x.ravel(), p), self=X3, ord=order, ulps=4)
    case("linalg_vector_norm.default", lambda x, p, dim, keep: np.linalg.norm(x, p, axis=1, keepdims=True), self=X,
         ord=order, dim=[-1], keepdim=True, ulps=4)
case("linalg_vector_norm.default", lambda x, p, dim, keep, dtype: np.linalg.norm(x, axis=0), self=X, ord=2, dim=[0],
     keepdim=False, dtype=DType("float64"), kind="float64")


def softmax(x, dim, *_):
    e = np.exp(x - np.max(x, dim, keepdims=True))
    return e / np.sum(e, dim, keepdims=True)


def log_softmax(x, dim, *_):
    return x - np.max(x, dim, keepdims=True) - np.log(np.sum(np.exp(x - np.max(x, dim, keepdims=True)), dim,
                                                              keepdims=True))


MASKED = np.where(B, X, -inf).astype("float32")
MASKED[:, 0] = 1
for name, function in [("softmax", softmax), ("log_softmax", log_softmax)]:
    for dim in (-1, 0, 1):
        case(name + ".int", function, self=X3 * 8, dim=dim, ulps=16, near=2e-7)
    case(name + ".int", function, self=MASKED, dim=-1, near=4e-7)
    case(name + ".int", function, self=I, dim=1, dtype=DType("float32"), kind="float32", near=1e-6)
    case(name + ".int", function, self=H, dim=-1, dtype=DType("float32"), kind="float32", near=1e-6)
    case(name + ".int", function, self=H, dim=-1, dtype=None, ulps=1)
    case(f"_{name}.default", function, self=X3, dim=1, half_to_float=False, near=4e-7)

# ---- Products ----

A, A2, A3 = (random.standard_normal(sizes).astype("float32") for sizes in ((5, 6), (6, 7), (2, 6, 7)))
V5, V6, V7 = (random.standard_normal(n).astype("float32") for n in (5, 6, 7))
BATCH, BATCH2 = (random.standard_normal(sizes).astype("float32") for sizes in ((2, 5, 6), (2, 6, 7)))
case("matmul.default", np.matmul, self=A, other=A2, near=1e-6)
case("matmul.default", np.matmul, self=A, other=V6, near=1e-6)
case("matmul.default", np.matmul, self=V5, other=A, near=1e-6)
case("matmul.default", np.matmul, self=V6, other=V6, near=1e-6)
case("matmul.default", np.matmul, self=BATCH, other=A2, near=1e-6)
case("matmul.default", np.matmul, self=A, other=BATCH2, near=1e-6)
case("matmul.default", np.matmul, self=BATCH[:, None].copy(), other=BATCH2, near=1e-6)
case("matmul.default", np.matmul, self=BATCH[:1].copy(), other=BATCH2, near=1e-6)
case("matmul.default", np.matmul, self=BATCH, other=V6, near=1e-6)
case("matmul.default", np.matmul, self=np.zeros((3, 0), "float32"), other=np.zeros((0, 2), "float32"))
case("matmul.default", np.matmul, self=D, other=D.T.copy(), near=1e-12)
case("matmul.default", np.matmul, self=H, other=H.T.copy(), near=1e-3)
case("mm.default", np.matmul, self=A, mat2=A2, near=1e-6)
case("bmm.default", np.matmul, self=BATCH, mat2=BATCH2, near=1e-6)
case("mv.default", np.matmul, self=A, vec=V6, near=1e-6)
case("dot.default", np.dot, self=V6, tensor=V6, near=1e-6)
case("vdot.default", np.dot, self=V6, other=V6, near=1e-6)
case("addmv.default", lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b), self=V5, mat=A, vec=V6, beta=0.5,
     alpha=2, near=1e-6)
case("outer.default", np.outer, self=V5, vec2=V6)
case("ger.default", np.outer, self=V5, vec2=V6)
case("linear.default", lambda x, w: x @ w.T, input=BATCH, weight=A, near=1e-6)
case("linear.default", lambda x, w, b: x @ w.T + b, input=BATCH, weight=A, bias=V5, near=1e-6)
case("linear.default", lambda x, w, b: x @ w.T, input=V6, weight=A, bias=None, near=1e-6)
BIAS57 = random.standard_normal((5, 7)).astype("float32")
case("addmm.default", lambda c, a, b: c + a @ b, self=V7, mat1=A, mat2=A2, near=1e-6)
case("addmm.default", lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b), self=BIAS57, mat1=A, mat2=A2, beta=0.5,
     alpha=2, near=1e-6)
case("addmm.default", lambda c, a, b, beta: a @ b, self=np.full((5, 1), nan, "float32"), mat1=A, mat2=A2, beta=0,
     near=1e-6)
case("addmm_.default", lambda c, a, b: c + a @ b, self=BIAS57, mat1=A, mat2=A2, near=1e-6)
case("baddbmm.default", lambda c, a, b: c + a @ b, self=V7, batch1=BATCH, batch2=BATCH2, near=1e-6)
case("baddbmm.default", lambda c, a, b, beta, alpha: alpha * (a @ b) - c, self=BIAS57, batch1=BATCH, batch2=BATCH2,
     beta=-1, alpha=0.125, near=1e-6)
Q, K = (random.standard_normal(sizes).astype("float32") for sizes in ((2, 3, 4, 5), (2, 3, 6, 5)))
SQUARE = random.standard_normal((4, 4)).astype("float32")
for equation, operands in [
        ("ij,jk->ik", [A, A2]), ("ij,jk", [A, A2]), ("bhqd,bhkd->bhqk", [Q, K]), ("bhqd,bhkd->bqhk", [Q, K]),
        ("ii->i", [SQUARE]), ("ii", [SQUARE]), ("ii->", [SQUARE]), ("ij->ji", [X]), ("ij->", [X]), ("ij->j", [X]),
        ("...ij,...jk->...ik", [BATCH, BATCH2]), ("...ij,jk->...ik", [BATCH, A2]), ("...ij->...ji", [Q]),
        ("...i->...", [Q]), ("i...->...", [Q]), ("i,j->ij", [V5, V6]), ("i,i->", [V6, V6]), ("ij,ij->ij", [X, Y]),
        ("ij,i->ij", [A, V5]), ("ii,i->i", [SQUARE, ROW]), ("iij->j", [np.stack([SQUARE] * 4, 2)[..., :3].copy()]),
        ("ij,jk,kl->il", [A, A2, A2.T.copy()]), ("i,j,k->ijk", [V5, V6, V7]),
        ("b i j , b j k -> b i k", [BATCH, BATCH2]),
        ("aB,Bc", [A, A2]), ("ij,kj->i", [A, A]), ("...,...->...", [X3, Y]),
        ("i...,i...->...", [Q, K[:, :, :4].copy()]),
        ("...ij,...jk->...ik", [BATCH[:1].copy(), A3]), ("ij,jk->ik", [A, A2[:1].copy()]), ("...ij->ij", [X3])]:
    case("einsum.default", None, equation=equation, tensors=operands, near=1e-6)
    plain = equation.replace(" ", "")
    if plain == "ij,jk->ik" and operands[1].shape[0] == 1:  # numpy refuses to repeat what torch repeats
        CASES[-1].want = lambda _, x: x[0] @ np.repeat(x[1], 6, 0)
    elif plain == "...ij->ij":  # numpy refuses to sum what torch sums
        CASES[-1].want = lambda _, x: x[0].sum(0)
    else:
        CASES[-1].want = lambda _, x, e=plain: np.einsum(e, *x)


def attention(q, k, v, mask=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1]**-0.5 if scale is None else scale)
    scores = scores if mask is None else np.where(mask, scores, -inf) if mask.dtype == bool else scores + mask
    return softmax(scores, -1) @ v


MASK = np.concatenate([np.ones((4, 1), bool), random.integers(0, 2, (4, 5)).astype(bool)], 1)
SDPA = "scaled_dot_product_attention.default"
case(SDPA, attention, query=Q, key=K, value=K, near=1e-6)
case(SDPA, attention, query=Q, key=K, value=K, attn_mask=MASK, near=1e-6)
case(SDPA, attention, query=Q, key=K, value=K, attn_mask=random.standard_normal((2, 1, 4, 6)).astype("float32"),
     near=1e-6)
case(SDPA, lambda q, k, v, m, p, c: attention(q, k, v, np.tri(4, 6, dtype=bool)), query=Q, key=K, value=K,
     attn_mask=None, dropout_p=0.0, is_causal=True, near=1e-6)
case(SDPA, lambda q, k, v, s: attention(q, k, v, scale=s), query=Q, key=K, value=K, scale=0.25, near=1e-6)
case(SDPA, lambda q, k, v, g: attention(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1)), query=Q, key=K[:, :1].copy(),
     value=K[:, :1].copy(), enable_gqa=True, near=1e-6)
FUSED = "_scaled_dot_product_%s.default"
for name in ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
             "fused_attention_overrideable", "attention_math"):
    case(FUSED % name, lambda q, k, v, p, c, s: [attention(q, k, v, np.tri(4, 6, dtype=bool), s)], query=Q, key=K,
         value=K, dropout_p=0.0, is_causal=True, scale=0.25, near=1e-6)
case(FUSED % "flash_attention_for_cpu", lambda q, k, v, m: [attention(q, k, v, m)], query=Q, key=K, value=K,
     attn_mask=MASK, near=1e-6)
for name in ("efficient_attention", "cudnn_attention"):
    case(FUSED % name, lambda q, k, v, m, *_: [attention(q, k, v, m)], query=Q, key=K, value=K,
         attn_bias=random.standard_normal((2, 3, 4, 6)).astype("float32"), compute_log_sumexp=False, near=1e-6)
case(FUSED % "flash_attention", lambda q, k, v, r: [attention(q, k, v)], query=Q, key=K, value=K,
     return_debug_mask=False, near=1e-6)


def convolve(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Any number of dimensions; one number, or a list of one, stands for all."""
    count = w.ndim - 2
    stride, dilation = ([v] * count if isinstance(v, int) else list(v) * (count if len(v) == 1 else 1)
                        for v in (stride, dilation))
    if padding == "same":
        padding = [(d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for d, k in zip(dilation, w.shape[2:])]
    elif padding == "valid" or padding == 0:
        padding = [(0, 0)] * count
    else:
        padding = [(p, p) for p in list(padding) * (count if len(padding) == 1 else 1)]
    x = np.pad(x, [(0, 0), (0, 0)] + padding)
    out = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[2:], dilation, w.shape[2:], stride)]
    result = np.zeros((x.shape[0], w.shape[0], *out))
    per = w.shape[0] // groups
    for o in range(w.shape[0]):
        part = x[:, o // per * w.shape[1]:(o // per + 1) * w.shape[1]]
        for at in np.ndindex(*w.shape[2:]):
            window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, out, stride))
            result[:, o] += np.einsum("nc...,c->n...", part[(slice(None), slice(None)) + window],
                                      w[(o, slice(None)) + at])
        result[:, o] += 0 if b is None else b[o]
    return result


for count in (1, 2, 3):
    name = f"conv{count}d"
    image = random.standard_normal((2, 4, 7, 6, 5)[:2 + count]).astype("float32")
    kernel = random.standard_normal((6, 4, 3, 2, 3)[:2 + count]).astype("float32")
    grouped = random.standard_normal((6, 2, 2, 3, 2)[:2 + count]).astype("float32")
    six = random.standard_normal(6).astype("float32")
    case(name + ".default", convolve, input=image, weight=kernel, near=1e-6)
    case(name + ".default", convolve, input=image, weight=kernel, bias=six, stride=[2] * count, padding=[1] * count,
         near=1e-6)
    case(name + ".default", convolve, input=image, weight=grouped, bias=None, stride=[1], padding=[2], dilation=[2],
         groups=2, near=1e-6)
    case(name + ".default", convolve, input=image, weight=kernel, bias=six, stride=list(kernel.shape[2:]), near=1e-6)
    case(name + ".padding", convolve, input=image, weight=grouped, bias=six, stride=[1] * count, padding="same",
         dilation=[1] * count, groups=2, near=1e-6)
    case(name + ".padding", convolve, input=image, weight=kernel, bias=None, stride=[2] * count, padding="valid",
         near=1e-6)
    case("convolution.default", lambda x, w, b, s, p, d, t, o, g: convolve(x, w, b, s, p, d, g), input=image,
         weight=kernel, bias=six, stride=[1] * count, padding=[1] * count, dilation=[1] * count, transposed=False,
         output_padding=[0] * count, groups=1, near=1e-6)
case("conv2d.default", lambda x, w: convolve(x[None], w)[0], input=X3, weight=np.ones((3, 2, 2, 2), "float32"),
     near=1e-6)


def image_to_columns(x, kernel, dilation, padding, stride):
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    return np.concatenate([windows(x[..., c:c + 1, :, :], kernel, stride, [0, 0], False, dilation)
                           .reshape(*x.shape[:-3], -1, kernel[0] * kernel[1]).swapaxes(-1, -2)
                           for c in range(x.shape[-3])], -2)


IMAGES = random.standard_normal((2, 3, 5, 7)).astype("float32")
case("im2col.default", image_to_columns, self=IMAGES, kernel_size=[3, 2], dilation=[1, 2], padding=[1, 0],
     stride=[2, 1])
case("im2col.default", image_to_columns, self=IMAGES[0].copy(), kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0],
     stride=[1, 1])

# ---- Normalisation ----


def layer_norm(x, sizes, w=None, b=None, eps=1e-5):
    axes = tuple(range(-len(sizes), 0))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * (1 if w is None else w) + (0 if b is None else b)


def native_layer_norm(x, sizes, w, b, eps):
    return [layer_norm(x, sizes, w, b, eps), x.mean(-1, keepdims=True),
            1 / np.sqrt(x.var(-1, keepdims=True) + eps)]


def rms_norm(x, sizes, w=None, eps=2.0**-23):
    mean = (x * x).mean(tuple(range(-len(sizes), 0)), keepdims=True)
    return x / np.sqrt(mean + (2.0**-23 if eps is None else eps)) * (1 if w is None else w)


def group_norm(x, groups, w=None, b=None, eps=1e-5):
    parts = x.reshape(x.shape[0], groups, -1)
    y = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + eps)
    along = (-1,) + (1,) * (x.ndim - 2)
    return y.reshape(x.shape) * (1 if w is None else w.reshape(along)) + (0 if b is None else b.reshape(along))


def batch_norm(x, w, b, mean, variance, training, momentum, eps, cudnn):
    mean, variance, w, b = (default if v is None else v.reshape((-1,) + (1,) * (x.ndim - 2))
                            for v, default in ((mean, 0), (variance, 1), (w, 1), (b, 0)))
    return (x - mean) / np.sqrt(variance + eps) * w + b


FOUR, MATRIX = P[0].copy(), Y.copy()
case("layer_norm.default", layer_norm, input=X3, normalized_shape=[4], near=1e-6)
case("layer_norm.default", layer_norm, input=X3, normalized_shape=[4], weight=FOUR, bias=ROW, eps=1e-3, near=1e-6)
case("layer_norm.default", layer_norm, input=X3, normalized_shape=[3, 4], weight=MATRIX, bias=None, near=1e-6)
case("layer_norm.default", layer_norm, input=X3 + 1000, normalized_shape=[4], near=2e-4)
case("native_layer_norm.default", native_layer_norm, input=X3, normalized_shape=[4], weight=FOUR, bias=None, eps=1e-5,
     near=1e-6)
case("rms_norm.default", rms_norm, input=X3, normalized_shape=[4], near=1e-6)
case("rms_norm.default", rms_norm, input=X3, normalized_shape=[3, 4], weight=MATRIX, eps=1e-3, near=1e-6)
case("rms_norm.default", rms_norm, input=X3, normalized_shape=[4], weight=FOUR, eps=None, near=1e-6)
IMAGE = random.standard_normal((2, 6, 3, 5)).astype("float32")
SIX, SIX2 = (random.standard_normal(6).astype("float32") for _ in range(2))
case("group_norm.default", group_norm, input=IMAGE, num_groups=3, near=1e-6)
case("group_norm.default", group_norm, input=IMAGE, num_groups=2, weight=SIX, bias=SIX2, eps=1e-3, near=1e-6)
case("group_norm.default", group_norm, input=IMAGE[:, :, 0, 0].copy(), num_groups=2, weight=SIX, bias=None, near=1e-6)
for w, b in ((SIX, SIX2), (None, None), (SIX, None), (None, SIX2)):
    for op in ("native_batch_norm", "_native_batch_norm_legit_no_training"):
        training = {} if op[0] == "_" else {"training": False}
        case(op + ".default", lambda x, w, b, m, v, *_: [batch_norm(x, w, b, m, v, False, 0.1, 1e-5, False)],
             input=IMAGE, weight=w, bias=b, running_mean=SIX2, running_var=np.abs(SIX) + 1, **training, momentum=0.1,
             eps=1e-5, near=1e-6)
    case("batch_norm.default", batch_norm, input=IMAGE, weight=w, bias=b, running_mean=SIX2,
         running_var=np.abs(SIX) + 1, training=False, momentum=0.1, eps=1e-5, cudnn_enabled=True, near=1e-6)


def weight_norm(v, g, dim):
    norm = np.sqrt((v * v).sum(tuple(i for i in range(v.ndim) if i != dim), keepdims=True))
    return [v / norm * g, norm]


def native_group_norm(x, w, b, n, c, hw, groups, eps):
    parts = x.reshape(n, groups, -1)
    return [group_norm(x, groups, w, b, eps), parts.mean(2), 1 / np.sqrt(parts.var(2) + eps)]


case("native_group_norm.default", native_group_norm, input=IMAGE, weight=SIX, bias=None, N=2, C=6, HxW=15, group=3,
     eps=1e-3, near=1e-6)
for op in ("_weight_norm", "_weight_norm_interface"):
    for dim in (0, 2):
        case(op + ".default", lambda v, g, d, o=op: weight_norm(v, g, d)[:1 + o.endswith("face")], v=X3,
             g=np.arange(1, 1 + X3.shape[dim], dtype="float32").reshape([-1 if i == dim else 1 for i in range(3)]),
             dim=dim, near=1e-6)

# ---- Poolings ----


def windows(x, kernel, stride=None, padding=0, ceil=False, dilation=1, fill=nan):
    """x (..., height, width) as (..., windows, windows, kernel, kernel); elements of the padding are `fill`."""
    stride = kernel if not stride else stride
    count = len(kernel)
    out = []
    for n, k, s, p, d in zip(x.shape[-count:], kernel, stride, padding, dilation):
        number = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
        out.append(number - ((number - 1) * s >= n + p))
    result = np.full((*x.shape[:-count], *out, *kernel), fill)
    for at in np.ndindex(*out, *kernel):
        where = [i * s + j * d - p for i, j, s, d, p in zip(at[:count], at[count:], stride, dilation, padding)]
        inside = [-p <= w < n + p for w, n, p in zip(where, x.shape[-count:], padding)]
        if not all(inside):
            result[(..., *at)] = inf  # beyond the padding
        elif all(0 <= w < n for w, n in zip(where, x.shape[-count:])):
            result[(..., *at)] = x[(..., *where)]
    return result


def spread(value, count, otherwise):
    value = otherwise if value is None or value == [] else value
    return [value] * count if isinstance(value, int) else list(value) * (count if len(value) == 1 else 1)


def avg_pool(x, kernel, stride=None, padding=None, ceil=False, include=True, divisor=None):
    count = len(kernel)
    kernel, padding = spread(kernel, count, 1), spread(padding, count, 0)
    parts = windows(x, kernel, spread(stride, count, kernel), padding, ceil, [1] * count)
    axes = tuple(range(-count, 0))
    number = divisor or (np.isfinite(parts) | (np.isnan(parts) & include)).sum(axes)
    return np.where(np.isfinite(parts), parts, 0).sum(axes) / number


def max_pool(x, kernel, stride=None, padding=None, dilation=None, ceil=False):
    count = len(kernel)
    parts = windows(x, kernel, spread(stride, count, kernel), spread(padding, count, 0), ceil, spread(dilation, count,
    1))
    return np.where(np.isfinite(parts), parts, -inf).max(tuple(range(-count, 0)))


def adaptive_pool(x, sizes):
    for axis, size in zip(range(-len(sizes), 0), sizes):
        n = x.shape[axis]
        x = np.stack([x.take(range(i * n // size, -(-(i + 1) * n // size)), axis).mean(axis) for i in range(size)],
        axis)
    return x


for count in (1, 2):
    image = random.standard_normal((2, 3, 7, 9)[:1 + count] + (8,) * (count == 1)).astype("float32")
    name = f"pool{count}d.default"
    for options in ({}, {"stride": [2] * count}, {"stride": [2] * count, "padding": [1] * count, "ceil_mode": True},
                    {"stride": [], "padding": [1] * count, "ceil_mode": True, "count_include_pad": False}):
        case("avg_" + name, avg_pool, self=image, kernel_size=[3] * count, near=1e-6, **options)
    for options in ({}, {"stride": [2] * count, "padding": [1] * count},
                    {"stride": [3] * count, "padding": [1] * count, "dilation": [2] * count, "ceil_mode": True}):
        case("max_" + name, max_pool, self=image, kernel_size=[2] * count, **options)
    case(f"max_pool{count}d_with_indices.default", lambda x, k: [max_pool(x, k)], self=image, kernel_size=[2] * count)
    for size in (1, 2, 3, 7, 8, 10):
        case("adaptive_avg_" + name, adaptive_pool, self=image, output_size=[size] * count, near=1e-6)
case("avg_pool2d.default", lambda x, k, s, p, c, i, d: avg_pool(x, k, divisor=d), self=IMAGE, kernel_size=[2, 3],
     stride=[], padding=[0], ceil_mode=False, count_include_pad=True, divisor_override=5, near=1e-6)
case("_adaptive_avg_pool2d.default", adaptive_pool, self=IMAGE, output_size=[2, 2], near=1e-6)
case("max_pool1d.default", lambda x, k, s: np.array([[nan, 3, 4], [-inf, 1, 1]]),
     self=np.array([[nan, 2, 3, 4], [-inf, -inf, 1, 1]], "float32"), kernel_size=[2], stride=[1])


def resample(x, axis, size, corners, scale, taps, kernel):
    n = x.shape[axis]
    if corners:
        scale = np.float32(n - 1) / np.float32(size - 1) if size > 1 else np.float32(0)
    else:
        scale = np.float32(1 / scale) if scale else np.float32(n) / np.float32(size)
    result = []
    for i in range(size):
        centre = np.float32(0 if corners or taps == 1 else 0.5)
        at = np.float32(scale * (np.float32(i) + centre)) - centre
        at = max(at, np.float32(0)) if taps == 2 else at
        first = math.floor(at)
        result.append(sum(x.take(min(max(first + t, 0), n - 1), axis) * kernel(abs(float(at) - first - t))
                          for t in range(-((taps - 1) // 2), taps // 2 + 1)))
    return np.stack(result, axis)


def cubic(d, a=-0.75):
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


KERNELS = {"nearest": (1, lambda d: 1), "bilinear": (2, lambda d: 1 - d), "bicubic": (4, cubic)}


def upsample(mode, x, sizes, corners=False, scales=None):
    scales = scales or [None, None]
    sizes = sizes or [int(n * s) for n, s in zip(x.shape[2:], scales)]
    for axis in (3, 2):
        x = resample(x, axis, sizes[axis - 2], corners, scales[axis - 2], *KERNELS[mode])
    return x


for mode in KERNELS:
    name = f"upsample_{mode}2d"
    for corners in (False, True)[:1 + (mode != "nearest")]:
        flags = {} if mode == "nearest" else {"align_corners": corners}
        for sizes in ([6, 10], [2, 3], [3, 5], [7, 1]):
            case(name + ".vec", lambda x, n, *c, m=mode: upsample(m, x, n, *c[:-1]), input=IMAGE, output_size=sizes,
                 **flags, scale_factors=None, near=2e-6)
        case(name + ".vec", lambda x, n, *c, m=mode: upsample(m, x, None, c[0] if c[:-1] else False, c[-1]),
             input=IMAGE, output_size=None, **flags, scale_factors=[2.0, 1.7], near=2e-6)
        case(name + ".default", lambda x, n, *c, m=mode: upsample(m, x, n, c[0] if len(c) > 2 else False, c[-2:]),
             self=IMAGE, output_size=[4, 8], **flags, scales_h=1.5, scales_w=1.6, near=2e-6)
        case(name + ".default", lambda x, n, *c, m=mode: upsample(m, x, n, *c), self=IMAGE, output_size=[4, 8], **flags,
             near=2e-6)

# ---- Creation ----

for name, value in [("zeros", 0), ("ones", 1)]:
    case(name + ".default", np.full((2, 3), float(value)), size=[2, 3])
    case(name + ".default", np.full((2,), bool(value)), size=[2], dtype=DType("bool"))
    case(name + "_like.default", np.full((3, 4), float(value)), self=X)
    case(name + "_like.default", np.full((3, 4), value), self=X, dtype=DType("int64"), kind="int64")
    case(f"new_{name}.default", np.full((2,), value), self=J, size=[2])
    case(f"new_{name}.default", np.full((2,), float(value)), self=J, size=[2], dtype=DType("float32"), kind="float32")
case("empty.memory_format", np.zeros((2, 3)), size=[2, 3])
case("empty_like.default", np.zeros((3, 4)), self=X)
case("new_empty.default", np.zeros((2,)), self=X, size=[2])
case("full.default", np.full((2, 3), -inf), size=[2, 3], fill_value=-inf)
case("full.default", np.full((2, 3), 7), size=[2, 3], fill_value=7)
case("full.default", np.full((2,), True), size=[2], fill_value=True)
case("full.default", np.full((2,), True), size=[2], fill_value=2, dtype=DType("bool"))
case("full.default", np.full((2,), 2), size=[2], fill_value=2.5, dtype=DType("int64"))
case("full.default", np.full((2,), nan), size=[2], fill_value=nan)
case("full.default", np.array(3.0), size=[], fill_value=3, dtype=DType("float16"), kind="float16")
case("full_like.default", np.full((3, 4), 2.5), self=X, fill_value=2.5)
case("full_like.default", np.full((3, 4), True), self=B, fill_value=1)
case("new_full.default", np.full((2, 2), 9), self=I, size=[2, 2], fill_value=9)
case("fill.Scalar", lambda x, v: np.full(x.shape, v), self=X, value=2, kind="float32")
case("fill.Scalar", lambda x, v: np.full(x.shape, v), self=I, value=2)
case("fill.Tensor", lambda x, v: np.full(x.shape, v), self=X, value=ONE)
case("fill_.Tensor", lambda x, v: np.full(x.shape, float(v)), self=X, value=SEVEN)
case("fill_.Scalar", lambda x, v: np.full(x.shape, True), self=B, value=2)
case("zero.default", lambda x: x * 0, self=X)
case("zero_.default", lambda x: x * 0, self=I)
case("scalar_tensor.default", np.array(2.5), s=2.5)
case("scalar_tensor.default", np.array(3), s=3, dtype=DType("int64"))
case("scalar_tensor.default", np.array(-inf), s=-inf, dtype=DType("float32"))
case("arange.default", np.arange(5), end=5)
case("arange.default", np.arange(5.0), end=5, dtype=DType("float32"))
case("arange.default", np.arange(4.5), end=4.5)
case("arange.start", np.arange(-2, 5), start=-2, end=5)
case("arange.start", np.arange(2, 5).astype("int32"), start=2, end=5, dtype=DType("int32"), kind="int32")
case("arange.start_step", np.arange(1, 10, 3), start=1, end=10, step=3)
case("arange.start_step", np.arange(5, -5, -3), start=5, end=-5, step=-3)
case("arange.start_step", np.arange(0, 1, 0.1), start=0, end=1, step=0.1)
case("arange.start_step", np.arange(0, 8, 2.0), start=0, end=8, step=2, dtype=DType("float32"))
for steps in (0, 1, 2, 5, 64):
    case("linspace.default", np.linspace(-1, 2.5, steps), start=-1, end=2.5, steps=steps)
case("eye.default", np.eye(3), n=3)
case("eye.m", np.eye(2, 4).astype(int), n=2, m=4, dtype=DType("int64"))
case("eye.m", np.eye(4, 2).astype(bool), n=4, m=2, dtype=DType("bool"))

# ---- Types and copies ----

FLOATS = np.array([0.0, -0.0, 1.9, -1.9, nan, 2.0, 100.5], "float32")
for name in ("alias", "detach", "lift_fresh", "clone", "detach_copy", "lift_fresh_copy", "contiguous"):
    case(name + ".default", lambda x: x, self=X3)
case("detach_.default", lambda x: x, self=X)
case("clone.default", lambda x, f: x, self=I, memory_format=None)
for op in ("to.dtype", "_to_copy.default", "to.dtype_layout"):
    case(op, lambda x, t: x.astype("float16"), self=X, dtype=DType("float16"), kind="float16", ulps=0)
    case(op, lambda x, t: x.astype("int64"), self=X, dtype=DType("int64"), kind="int64")
    case(op, lambda x, t: x != 0, self=FLOATS, dtype=DType("bool"), kind="bool")
    case(op, lambda x, t: x.astype("float64"), self=I, dtype=DType("float32"), kind="float32")
    case(op, lambda x, t: x.astype("int32"), self=U, dtype=DType("int32"), kind="int32")
    case(op, lambda x, t: x, self=X, dtype=DType("float64"), kind="float64", ulps=0)
    case(op, lambda x, t: x.astype("uint8"), self=S, dtype=DType("uint8"), kind="uint8")
    case(op, lambda x, t: x.astype("float64"), self=B, dtype=DType("float32"), kind="float32")
    case(op, lambda x, t: x, self=X, dtype=DType("float32"))
case("to.device", lambda x, d, t: x.astype("int32"), self=X, device="cpu", dtype=DType("int32"), kind="int32")
case("to.prim_Device", lambda x, d, t: x, self=H, device="cpu", dtype=DType("float32"), kind="float32")
case("to.other", lambda x, y: x, self=X, other=D, kind="float64", ulps=0)
case("type_as.default", lambda x, y: x, self=J, other=X, kind="float32")
case("type_as.default", lambda x, y: x, self=X, other=Y)
case("copy.default", lambda x, y: np.broadcast_to(y, x.shape), self=X, src=ROW)
case("copy.default", lambda x, y: y.astype("int64"), self=I, src=X, kind="int64")
case("copy_.default", lambda x, y: y, self=X, src=I, kind="float32")

# ---- Views ----

for op in ("view", "_unsafe_view"):
    case(op + ".default", lambda x, n: x.reshape(6, 4), self=X3, size=[6, 4])
    case(op + ".default", lambda x, n: x.reshape(2, 2, 6), self=X3, size=[2, -1, 6])
case("_reshape_alias.default", lambda x, n, s: x.reshape(4, 6), self=X3, size=[4, 6], stride=[6, 1])
for sizes in ([24], [-1, 3, 2], [1, 2, 12, 1], [3, 2, 4]):
    case("reshape.default", lambda x, n: x.reshape(n), self=X3, shape=sizes)
case("reshape.default", lambda x, n: x.reshape(1), self=ONE, shape=[1])
case("reshape.default", lambda x, n: x.reshape(()), self=ONE.reshape(1, 1), shape=[])
case("view_as.default", lambda x, y: x.reshape(y.shape), self=X3, other=np.zeros((8, 3), "float32"))
case("reshape_as.default", lambda x, y: x.reshape(y.shape), self=X3, other=np.zeros((2, 12), "float32"))
case("flatten.using_ints", lambda x: x.reshape(-1), self=X3)
case("flatten.using_ints", lambda x, a, b: x.reshape(6, 4), self=X3, start_dim=0, end_dim=-2)
case("flatten.using_ints", lambda x: x.reshape(1), self=ONE)
case("unflatten.int", lambda x, d, n: x.reshape(2, 3, 2, 2), self=X3, dim=-1, sizes=[2, -1])
case("unsqueeze.default", lambda x, d: x[:, None], self=X, dim=1)
case("unsqueeze.default", lambda x, d: x[..., None], self=X, dim=-1)
THIN = X3.reshape(1, 2, 1, 12)
case("squeeze.default", np.squeeze, self=THIN)
case("squeeze.dim", lambda x, d: x[0], self=THIN, dim=0)
case("squeeze.dim", lambda x, d: x, self=THIN, dim=-1)
case("squeeze.dims", lambda x, d: x[0, :, 0], self=THIN, dim=[0, -2, 1])
case("squeeze.dims", lambda x, d: x, self=THIN, dim=[])
for op in ("expand.default", "broadcast_to.default"):
    case(op, lambda x, n: np.broadcast_to(x, (2, 3, 4)), self=COLUMN, size=[2, -1, 4])
    case(op, lambda x, n: np.broadcast_to(x, (3, 4)), self=ROW, size=[3, 4])
case("expand_as.default", lambda x, y: np.broadcast_to(x, y.shape), self=ROW, other=X3)
case("transpose.int", lambda x, a, b: x.swapaxes(a, b), self=X3, dim0=0, dim1=-1)
case("swapdims.default", lambda x, a, b: x.swapaxes(a, b), self=X3, dim0=1, dim1=2)
case("swapaxes.default", lambda x, a, b: x.swapaxes(a, b), self=X3, axis0=-1, axis1=-3)
case("permute.default", lambda x, d: x.transpose(2, 0, 1), self=X3, dims=[2, 0, -2])
case("permute.default", lambda x, d: x.T, self=B, dims=[1, 0])
for op in ("movedim", "moveaxis"):
    case(op + ".int", np.moveaxis, self=X3, source=0, destination=-1)
    case(op + ".intlist", np.moveaxis, self=Q, source=[0, -1], destination=[1, 0])
case("t.default", np.transpose, self=X)
case("t.default", np.transpose, self=ROW)
case("numpy_T.default", np.transpose, self=X3)
case("mT.default", lambda x: x.swapaxes(-1, -2), self=X3)
for dim, index in ((0, 1), (1, -1), (-1, 0), (-2, -3)):
    case("select.int", lambda x, d, i: x.take(i, d), self=X3, dim=dim, index=index)
LONG = np.arange(20, dtype="float32").reshape(2, 10)
LAST = 9223372036854775807
for start, end, step in ((2, 8, 1), (0, LAST, 1), (-3, LAST, 1), (0, -2, 1), (1, -1, 3), (-100, 5, 2), (8, 100, 1),
                         (5, 5, 1), (7, 3, 1), (None, None, 4), (-6, -2, 2)):
    case("slice.Tensor", lambda x, d, a, b, s: x[:, slice(a, b, s)], self=LONG, dim=-1, start=start, end=end, step=step)
case("slice.Tensor", lambda x: x, self=LONG)
case("slice.Tensor", lambda x, d, a: x[1:], self=I, dim=0, start=1)
case("narrow.default", lambda x, d, a, n: x[:, 2:5], self=LONG, dim=1, start=2, length=3)
case("narrow.default", lambda x, d, a, n: x[:, -4:-1], self=LONG, dim=-1, start=-4, length=3)
for op in ("split.Tensor", "unsafe_split.Tensor"):
    case(op, lambda x, n, d: [x[:, :4], x[:, 4:8], x[:, 8:]], self=LONG, split_size=4, dim=1, many=True)
    case(op, lambda x, n: [x[:1], x[1:]], self=LONG, split_size=1, many=True)
case("split.sizes", lambda x, n, d: [x[:, :2], x[:, 2:9], x[:, 9:]], self=LONG, split_size=[2, 7, 1], dim=-1,
     many=True)
for op in ("split_with_sizes.default", "unsafe_split_with_sizes.default"):
    case(op, lambda x, n, d: [x[:, :2], x[:, 2:2], x[:, 2:]], self=LONG, split_sizes=[2, 0, 8], dim=1, many=True)
for op in ("chunk.default", "unsafe_chunk.default"):
    case(op, lambda x, n, d: [x[:, :4], x[:, 4:8], x[:, 8:]], self=LONG, chunks=3, dim=-1, many=True)
    case(op, lambda x, n, d: [x[:, i:i + 2] for i in range(0, 10, 2)], self=LONG, chunks=6, dim=1, many=True)
case("unbind.int", lambda x: [x[0], x[1]], self=X3, many=True)
case("unbind.int", lambda x, d: [x[:, :, i] for i in range(4)], self=X3, dim=-1, many=True)

NONE = np.zeros((2, 0), "float32")
case("split.Tensor", lambda x, n, d: [x], self=NONE, split_size=3, dim=1, many=True)
case("chunk.default", lambda x, n, d: [x, x], self=NONE, chunks=2, dim=1, many=True)

for name, function in [("view", lambda x, n: x.reshape(n)), ("expand", lambda x, n: np.broadcast_to(x, n))]:
    case(name + "_copy.default", function, self=X3, size=[2, 3, 4])
case("permute_copy.default", lambda x, d: x.transpose(d), self=X3, dims=[2, 0, 1])
case("transpose_copy.int", lambda x, a, b: x.swapaxes(a, b), self=X3, dim0=0, dim1=-1)
case("t_copy.default", np.transpose, self=X)
case("alias_copy.default", lambda x: x, self=X)
case("squeeze_copy.dim", lambda x, d: x[0], self=THIN, dim=0)
case("unsqueeze_copy.default", lambda x, d: x[:, None], self=X, dim=1)
case("select_copy.int", lambda x, d, i: x[:, 1], self=X3, dim=1, index=1)
case("slice_copy.Tensor", lambda x, d, a, b: x[:, 1:3], self=X3, dim=1, start=1, end=3)
case("split_copy.Tensor", lambda x, n, d: [x[:, :4], x[:, 4:8], x[:, 8:]], self=LONG, split_size=4, dim=1, many=True)
case("unbind_copy.int", lambda x: [x[0], x[1]], self=X3, many=True)
for op in ("diagonal", "linalg_diagonal", "diagonal_copy"):
    for offset in (0, 1, -1, 3, -2, 9):
        case(op + ".default", lambda x, o, a, b: np.diagonal(x, o, a, b), self=X3, offset=offset, dim1=-2, dim2=2)
    case(op + ".default", np.diagonal, self=X)


def with_diagonal(x, part, offset=0, a=0, b=1):
    y = np.moveaxis(x.copy(), (a, b), (-2, -1))
    for i in range(part.shape[-1]):
        y[..., i + max(-offset, 0), i + max(offset, 0)] = part[..., i]
    return np.moveaxis(y, (-2, -1), (a, b))


for offset in (0, 2, -1):
    case("diagonal_scatter.default", with_diagonal, self=X3, src=np.diagonal(X3, offset, 1, 2) + np.float32(9),
         offset=offset, dim1=1, dim2=-1)
case("diagonal_scatter.default", with_diagonal, self=I, src=np.arange(3))
for size, step in ((3, 1), (4, 2), (10, 1), (1, 3), (0, 1)):
    case("unfold.default", lambda x, d, n, s: np.stack([x[:, i:i + n] for i in range(0, 11 - n, s)], 1), self=LONG,
         dimension=-1, size=size, step=step)
case("as_strided.default", lambda x, n, s, o: np.stack([x.ravel()[o + i:o + i + 3] for i in (0, 5)]), self=LONG,
     size=[2, 3], stride=[5, 1], storage_offset=4)
case("as_strided.default", lambda x, n, s: x.ravel()[:4], self=I, size=[4], stride=[1])
case("as_strided.default", lambda x, n, s: np.broadcast_to(x.ravel()[:3, None], (3, 2)), self=X, size=[3, 2],
     stride=[1, 0])
PIXELS = random.standard_normal((2, 12, 2, 3)).astype("float32")
case("pixel_shuffle.default", lambda x, r: x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 4, 6),
     self=PIXELS, upscale_factor=2)
case("pixel_unshuffle.default", lambda x, r: x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2,
                                                                                                             3),
     self=PIXELS.reshape(2, 3, 4, 6), downscale_factor=2)
case("channel_shuffle.default", lambda x, g: x.reshape(2, 3, 4, 2, 3).swapaxes(1, 2).reshape(x.shape), self=PIXELS,
     groups=3)

# ---- Joins ----

for op in ("cat.default", "concat.default"):
    case(op, lambda x: np.concatenate(x), tensors=[X, Y, X])
    case(op, lambda x, d: np.concatenate(x, 1), tensors=[X, COLUMN], dim=-1)
case("cat.default", lambda x, d: np.concatenate(x), tensors=[I, X], dim=0, kind="float32")
case("cat.default", lambda x, d: x[1], tensors=[np.zeros(0, "float32"), X], dim=0)
case("stack.default", lambda x: np.stack(x), tensors=[X, Y])
case("stack.default", lambda x, d: np.stack(x, -1), tensors=[X, Y, X], dim=-1)
case("stack.default", lambda x, d: np.stack(x), tensors=[ONE, ONE], dim=0)
case("repeat.default", lambda x, n: np.tile(x, n), self=X, repeats=[2, 1, 3])
case("repeat.default", lambda x, n: np.tile(x, n), self=I, repeats=[2, 2])
case("tile.default", lambda x, n: np.tile(x, n), self=X3, dims=[2])
case("tile.default", lambda x, n: np.tile(x, n), self=X, dims=[2, 1, 2])
for op in ("repeat_interleave.self_int", "repeat_interleave.self_Symint"):
    case(op, lambda x, n, d: np.repeat(x, 2, 1), self=X3, repeats=2, dim=-2)
    case(op, lambda x, n: np.repeat(x, 3), self=ROW, repeats=3)
case("roll.default", lambda x, s, d: np.roll(x, 1, 1), self=X3, shifts=[1], dims=[1])
case("roll.default", lambda x, s, d: np.roll(x, (-1, 7), (0, 2)), self=X3, shifts=[-1, 7], dims=[0, -1])
case("roll.default", lambda x, s, d: x, self=X3, shifts=[4], dims=[2])
case("flip.default", lambda x, d: x[::-1, :, ::-1], self=X3, dims=[0, -1])
case("flip.default", lambda x, d: x, self=X3, dims=[])
case("pad.default", lambda x, p: np.pad(x, ((0, 0), (1, 2))), self=X, pad=[1, 2])
case("pad.default", lambda x, p, m, v: np.pad(x, ((2, 0), (1, 0)), constant_values=-inf), self=X, pad=[1, 0, 2, 0],
     mode="constant", value=-inf)
case("pad.default", lambda x, p: np.pad(x[:, 1:], ((0, 0), (0, 2))), self=X, pad=[-1, 2])
case("constant_pad_nd.default", lambda x, p: x[1:, :-2], self=X, pad=[0, -2, -1, 0])
case("constant_pad_nd.default", lambda x, p, v: np.full((3, 2), 9.0), self=X, pad=[2, -4], value=9)
case("constant_pad_nd.default", lambda x, p: np.pad(x[:, :-1], ((0, 0), (1, 0))), self=X, pad=[1, -1])
case("constant_pad_nd.default", lambda x, p, v: np.pad(x, 1, constant_values=7), self=I, pad=[1, 1, 1, 1], value=7)
case("constant_pad_nd.default", lambda x, p, v: np.pad(x, ((0, 0), (0, 3)), constant_values=1), self=B, pad=[0, 3],
     value=1)
case("diff.default", np.diff, self=X)
case("diff.default", lambda x, n, d: np.diff(x, axis=0), self=I, n=1, dim=0)
case("diff.default", lambda x: x[:, 1:] != x[:, :-1], self=B)
case("diff.default", lambda x, n, d, a, b: np.diff(x, axis=1, prepend=a, append=b), self=X, n=1, dim=-1,
     prepend=COLUMN, append=COLUMN)
for arguments in ({}, {"indexing": "ij"}, {"indexing": "xy"}):
    case("meshgrid.indexing" if arguments else "meshgrid.default",
         lambda x, indexing="ij": np.meshgrid(*x, indexing=indexing), tensors=[ROW, V5, V6], many=True, **arguments)

# ---- Indices ----

AT, AT32 = np.array([[2, 0, 1, 1], [0, 0, 2, 2]]), np.array([2, 0, 0, 1, 2], "int32")
case("embedding.default", lambda w, i: w[i], weight=X, indices=AT)
case("embedding.default", lambda w, i, p, s, r: w[i], weight=X, indices=AT32, padding_idx=0, scale_grad_by_freq=False,
     sparse=False)
case("index_select.default", lambda x, d, i: x[:, i], self=X3, dim=1, index=AT32)
case("index_select.default", lambda x, d, i: x[..., i], self=X3, dim=-1, index=np.array([3, 3, 0]))
case("gather.default", lambda x, d, i: np.take_along_axis(x[:2], i, 1), self=X, dim=1, index=AT)
case("gather.default", lambda x, d, i: np.take_along_axis(x, i, 0), self=X, dim=-2, index=AT)
case("gather.default", lambda x, d, i: np.take_along_axis(x, i, 0), self=B, dim=0, index=AT)
NEGATIVE, PAIR = np.array([-1, 0, -3, 2]), np.array([[1], [-2]])
case("index.Tensor", lambda x, i: x[i[0]], self=X, indices=[NEGATIVE])
case("index.Tensor", lambda x, i: x[i[0], i[1]], self=X, indices=[NEGATIVE, NEGATIVE])
case("index.Tensor", lambda x, i: x[:, i[1]], self=X3, indices=[None, NEGATIVE])
case("index.Tensor", lambda x, i: x[PAIR, :, NEGATIVE], self=X3, indices=[PAIR, None, NEGATIVE])
case("index.Tensor", lambda x, i: x[:, PAIR, NEGATIVE], self=X3, indices=[None, PAIR, NEGATIVE])
case("index.Tensor", lambda x, i: x[:, i[1]], self=I, indices=[None, AT32.astype("int64")])
case("_unsafe_index.Tensor", lambda x, i: x[i[0]], self=X, indices=[NEGATIVE])


def put(x, indices, values, accumulate=False):
    """x[indices...] = values, the last of several that an element gets, or += values, all of them."""
    x = x.copy()
    at = tuple(slice(None) if index is None else index for index in indices)
    if accumulate:
        np.add.at(x, at, values)
    else:
        x[at] = values
    return x


def copied(x, dim, index, source):
    return put(x, [None] * (dim % x.ndim) + [np.atleast_1d(index)], source)


def sliced(x, source, dim=0, start=None, end=None, step=1):
    x = x.copy()
    x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)] = source
    return x


def selected(x, source, dim, index):
    x = x.copy()
    x[(slice(None),) * dim + (index,)] = source
    return x


ROWS, POINTS = np.array([2, 0]), np.array([[1], [0]])
case("index_copy.default", copied, self=X, dim=0, index=ROWS, source=Y[:2])
case("index_copy.default", copied, self=X3, dim=-1, index=np.array([3]), source=X3[..., :1])
case("index_copy.default", copied, self=X3, dim=1, index=np.array(2), source=X3[:, :1])
case("index_copy.default", copied, self=I, dim=0, index=np.array([1, 1, 1], "int32"), source=I2)
case("index_copy.default", copied, self=X3, dim=1, index=np.zeros(0, "int64"), source=X3[:, :0])
case("index_put.default", put, self=X, indices=[ROWS], values=Y[:2])
case("index_put.default", put, self=X, indices=[ROWS], values=ONE)
case("index_put.default", put, self=X3, indices=[None, ROWS], values=X3[:, 1:] * 2)
case("index_put.default", put, self=X3, indices=[ROWS[1:], None, ROWS], values=COLUMN.T[:, :1])
case("index_put.default", put, self=X3, indices=[POINTS, None, ROWS], values=X.reshape(2, 2, 3))
case("index_put.default", put, self=X3, indices=[None, POINTS, ROWS], values=X.ravel()[:8].reshape(2, 2, 2))
case("index_put.default", put, self=B, indices=[AT[0], AT[0]], values=B[0])
case("index_put.default", put, self=X, indices=[AT[0], AT[0]], values=Y[0], accumulate=True)
case("index_put.default", put, self=I, indices=[AT[0]], values=I2[:1], accumulate=True)
case("index_put.default", put, self=H, indices=[AT[0]], values=H[:1], accumulate=True, ulps=1)
case("index_put.default", lambda x, i, v, a: x | np.isin(np.arange(3), i[0])[:, None], self=B, indices=[AT[0]],
     values=np.ones((1, 4), bool), accumulate=True)
case("_unsafe_index_put.default", put, self=X3, indices=[None, ROWS], values=X3[:, 1:] * 2)
case("index_put_.default", put, self=X, indices=[ROWS], values=Y[:2])
# Wherever a boolean index holds, the same values are written.
case("index_put.default", lambda x, i, v: np.where(i[0], v, x), self=X, indices=[B], values=ONE)
case("index_put.default", lambda x, i, v: np.where(i[0][:, None], v, x), self=I, indices=[B[:, 0]],
     values=np.array([4]))
case("index_put.default", lambda x, i, v: np.where(i[0][:, None], v, x), self=X, indices=[B[:, 0]], values=ROW)
case("index_put.default", lambda x, i, v: np.where(i[0][:, :, None], v, x), self=X3, indices=[B[:2, :3]],
     values=ROW[None])
case("index_put.default", lambda x, i, v: np.where(i[1][:, None], v, x), self=X3, indices=[None, B[:, 0]],
     values=X3[:, :1] + 9)
case("index_put.default", lambda x, i, v: np.where(i[2], v, x), self=X3, indices=[None, None, B[0]],
     values=X3[0, :, :1])
case("index_put_.default", lambda x, i, v, a: x + v * i[0], self=X, indices=[B], values=ONE, accumulate=True)


def added(x, dim, index, source, alpha=1):
    return put(x, [None] * (dim % x.ndim) + [index], alpha * source, accumulate=True)


def filled(x, dim, index, value):
    return put(x, [None] * (dim % x.ndim) + [np.atleast_1d(index)], value)


MANY = np.concatenate([X, Y[:2]])
case("index_add.default", added, self=X, dim=0, index=AT32, source=MANY, near=1e-6)
case("index_add.default", added, self=X, dim=0, index=AT32, source=MANY, alpha=2.5, near=1e-6)
case("index_add_.default", added, self=I, dim=1, index=np.array([0, 3, 0]), source=I2[:, :3], alpha=-1)
case("index_add.default", lambda x, *_: x, self=X, dim=-1, index=np.zeros(0, "int64"), source=X[:, :0])
case("index_fill.int_Scalar", filled, self=X3, dim=1, index=ROWS, value=-inf)
case("index_fill.int_Scalar", filled, self=J, dim=-2, index=np.array(2), value=5)
case("index_fill.int_Scalar", filled, self=B, dim=0, index=ROWS, value=2)
case("index_fill_.int_Tensor", filled, self=X3, dim=2, index=AT32, value=ONE)
case("index_fill.int_Tensor", filled, self=X, dim=0, index=AT32, value=SEVEN)


def scattered(x, dim, index, source, function=lambda old, new: new):
    """One element after the other."""
    x, source = x.copy(), np.broadcast_to(source, index.shape) if np.ndim(source) == 0 else source
    for at in np.ndindex(*index.shape):
        to = at[:dim % x.ndim] + (index[at],) + at[dim % x.ndim + 1:]
        x[to] = function(x[to], source[at])
    return x


COLUMNS = np.array([[3, 0, 3], [1, 1, 2]])
for op in ("scatter", "scatter_"):
    case(op + ".src", scattered, self=X, dim=0, index=AT, src=Y)
    case(op + ".value", scattered, self=X, dim=-2, index=AT, value=-inf)
case("scatter.src", scattered, self=I, dim=-1, index=COLUMNS, src=I2)
case("scatter.src", scattered, self=X3, dim=1, index=AT[None, :, :3], src=X3 * 10)
case("scatter.src", lambda x, *_: x, self=X, dim=1, index=AT[:, :0], src=Y)
case("scatter.value", scattered, self=np.zeros_like(X3), dim=2, index=np.array([[[1], [3], [0]], [[2], [2], [3]]]),
     value=1)
case("scatter.value", scattered, self=B, dim=1, index=AT[:, :2], value=True)
case("scatter.value", scattered, self=ROW, dim=0, index=np.array([3, 1]), value=7)
for op in ("scatter_add", "scatter_add_"):
    case(op + ".default", lambda *x: scattered(*x, np.add), self=X, dim=0, index=AT, src=Y, near=1e-6)
case("scatter_add.default", lambda *x: scattered(*x, np.add), self=J, dim=1,
     index=np.array([[3, 0, 3, 3], [1, 1, 2, 1]]), src=J)
case("scatter_add.default", lambda *x: scattered(*x, np.logical_or), self=B, dim=0, index=AT, src=B2)

case("slice_scatter.default", sliced, self=X, src=Y[:2], dim=0, start=1)
case("slice_scatter.default", sliced, self=X, src=Y[:, ::2], dim=-1, start=0, end=LAST, step=2)
case("slice_scatter.default", sliced, self=X, src=Y[:, :1], dim=1, start=-3, end=-2)
case("slice_scatter.default", sliced, self=X, src=Y[:0], dim=0, start=5, end=7)
case("slice_scatter.default", sliced, self=I, src=I2)
case("select_scatter.default", selected, self=X, src=ROW, dim=0, index=-1)
case("select_scatter.default", selected, self=X3, src=X3[:, 0], dim=1, index=2)


# ---- Several nodes ----
# Numpy's views share elements as torch's do, so that each graph is written twice, once for either.


class Builder:
    """Adds nodes to a program, and their references."""

    def __init__(self, program, inputs):
        self.program, self.inputs, self.wanted = program, inputs, []

    def input(self, array, sizes=None):
        self.inputs.append(array)
        return self.program.input(f"x{len(self.program.inputs)}", array, sizes)

    def call(self, op, like, /, **arguments):
        line = inspect.currentframe().f_back.f_lineno
        return self.program.node("aten." + op, like, line=line, **arguments)

    def output(self, value, want, near=0.0):
        self.program.output(value)
        line = inspect.currentframe().f_back.f_lineno
        self.wanted.append((Case("graph", want, None, 1, near, False, line, {}), want, want.dtype.name))


@graph
def column_filled(b):
    """x = x.clone(); x[:, 1].fill_(0)"""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    part = b.call("select.int", y[:, 1], self=x, dim=1, index=1)
    b.call("fill_.Scalar", y[:, 1], self=part, value=0)
    y[:, 1] = 0
    b.output(x, y)
    b.output(b.call("mul.Tensor", y, self=x, other=2.0), y * 2)


@graph
def slices_written(b):
    """x[1:, ::2] += 10, x.t()[-1] = 5, x.view(12)[3:6].neg_(): each is seen by the others."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    turned = b.call("t.default", y.T, self=x)
    flat = b.call("view.default", y.reshape(12), self=x, size=[12])
    rows = b.call("slice.Tensor", y[1:], self=x, dim=0, start=1, end=LAST)
    some = b.call("slice.Tensor", y[1:, ::2], self=rows, dim=1, start=0, end=LAST, step=2)
    b.call("add_.Tensor", y[1:, ::2], self=some, other=10)
    y[1:, ::2] += 10
    last = b.call("select.int", y.T[-1], self=turned, dim=0, index=-1)
    b.call("fill_.Scalar", y.T[-1], self=last, value=5)
    y.T[-1] = 5
    run = b.call("slice.Tensor", y.reshape(12)[3:6], self=flat, dim=0, start=3, end=6)
    b.call("neg_.default", y.reshape(12)[3:6], self=run)
    y.reshape(12)[3:6] *= -1
    for value, want in ((x, y), (turned, y.T), (some, y[1:, ::2])):
        b.output(value, want.copy())


@graph_not_yet("bufferization copies an argument that is returned as another view of it")
def view_written(b):
    """x.view(12)[3:6].neg_(), where the view is the result."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    flat = b.call("view.default", y.reshape(12), self=x, size=[12])
    run = b.call("slice.Tensor", y.reshape(12)[3:6], self=flat, dim=0, start=3, end=6)
    b.call("neg_.default", y.reshape(12)[3:6], self=run)
    y.reshape(12)[3:6] *= -1
    b.output(flat, y.reshape(12))


@graph
def before_and_after(b):
    """What was computed from x before a write keeps its elements; a copy does too."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    before = b.call("add.Tensor", y, self=x, other=1.0)
    copied = b.call("clone.default", y, self=x)
    b.call("mul_.Tensor", y, self=x, other=3.0)
    b.output(before, y + 1)
    b.output(copied, y.copy())
    b.output(x, y * 3)


@graph
def parts_copied(b):
    """a, b = x.chunk(2, -1); a.copy_(b); x[..., None].squeeze_like views in between"""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    left, right = b.program.node("aten.chunk.default", [y[:, :2], y[:, 2:]], is_list=True, self=x, chunks=2, dim=-1)
    b.call("copy_.default", y[:, :2], self=left, src=right)
    y[:, :2] = y[:, 2:]
    wide = b.call("unsqueeze.default", y[:, None], self=x, dim=1)
    moved = b.call("permute.default", y[:, None].transpose(2, 0, 1), self=wide, dims=[2, 0, 1])
    first = b.call("select.int", y[:, None].transpose(2, 0, 1)[0], self=moved, dim=0, index=0)
    b.call("zero_.default", y[:, None].transpose(2, 0, 1)[0], self=first)
    y[:, 0] = 0
    b.output(x, y)
    b.output(right, y[:, 2:].copy())


@graph
def masked_in_place(b):
    """x[0].masked_fill_(x[0] > 0, -1), and a tensor of the graph's own making."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    row = b.call("select.int", y[0], self=x, dim=0, index=0)
    mask = b.call("gt.Scalar", y[0] > 0, self=row, other=0)
    b.call("masked_fill_.Scalar", y[0], self=row, mask=mask, value=-1)
    y[0][y[0] > 0] = -1
    b.output(x, y)
    zeros = np.zeros((4, 4), "float32")
    grid = b.call("zeros.default", zeros, size=[4, 4])
    narrow = b.call("narrow.default", zeros[1:3], self=grid, dim=0, start=1, length=2)
    b.call("add_.Tensor", zeros[1:3], self=narrow, other=row)
    zeros[1:3] += y[0]
    b.output(grid, zeros)


@graph
def contiguous_view(b):
    """contiguous() and reshape() of what is contiguous already are the tensor itself."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    same = b.call("contiguous.default", y, self=x)
    flat = b.call("reshape.default", y.reshape(-1), self=same, shape=[-1])
    b.call("add_.Scalar", y.reshape(-1), self=flat, other=1.0)
    b.output(x, y + 1)
    turned = b.call("t.default", y.T, self=x)
    copied = b.call("contiguous.default", np.ascontiguousarray(y.T), self=turned)
    b.output(copied, np.ascontiguousarray((y + 1).T))


@graph
def unread_results(b):
    """What only gradients need is not computed."""
    none = np.zeros(0, "float32")
    want = batch_norm(IMAGE.astype("float64"), SIX, SIX2, SIX2, np.abs(SIX), False, 0.1, 1e-3, False).astype("float32")
    first, *_ = b.call("_native_batch_norm_legit_no_training.default", [want, none, none], input=b.input(IMAGE),
                       weight=b.input(SIX), bias=b.input(SIX2), running_mean=b.input(SIX2),
                       running_var=b.input(np.abs(SIX)), momentum=0.1, eps=1e-3)
    b.output(first, want, near=1e-6)


@graph
def rows_written(b):
    """cache[:, 1:3] = new, by indices that the graph computes; the views of the cache see it."""
    y = X3.copy()
    x = b.call("clone.default", y, self=b.input(X3))
    turned = b.call("transpose.int", y.swapaxes(0, 1), self=x, dim0=0, dim1=1)
    at = b.call("arange.start", np.arange(1, 3), start=1, end=3)
    new = b.input(np.ascontiguousarray(X3[:, :2] * 10))
    b.call("index_copy_.default", y, self=x, dim=1, index=at, source=new)
    y[:, 1:] = X3[:, :2] * 10
    row = b.call("select.int", y[0], self=x, dim=0, index=0)
    b.call("index_put_.default", y[0], self=row, indices=[b.input(np.array([2]))], values=b.input(ROW))
    y[0, 2] = ROW
    b.output(x, y.copy())
    b.output(turned, y.swapaxes(0, 1).copy())


@graph
def diagonal_written(b):
    y = X3.copy()
    x = b.call("clone.default", y, self=b.input(X3))
    part = b.call("diagonal.default", np.diagonal(y, 1, 1, 2), self=x, offset=1, dim1=1, dim2=2)
    b.call("fill_.Scalar", np.diagonal(y, 1, 1, 2), self=part, value=5)
    for i in range(3):
        y[:, i, i + 1] = 5
    b.output(x, y)


@graph
def asserted(b):
    x = b.input(X)
    b.call("_assert_tensor_metadata.default", [], a=x, size=None, stride=None, dtype=DType("float32"))
    b.call("_assert_tensor_metadata.default", [], a=x, size=[3, 4], stride=[4, 1], dtype=None)
    b.output(x, X)


def dynamic(b):
    """Sizes that a call decides: x (s0, 3, s1)."""
    array = random.standard_normal((4, 3, 5)).astype("float32")
    x = b.input(array, ["s0", 3, "s1"])
    rows, columns = b.program.size(x, 0), b.program.size(x, -1)
    turned = b.call("transpose.int", array.swapaxes(0, 2), self=x, dim0=0, dim1=2, symbolic=["s1", 3, "s0"])
    b.output(turned, array.swapaxes(0, 2).copy())
    whole = b.call("ones.default", np.ones((5, 4), "float32"), size=[columns, rows], symbolic=["s1", "s0"])
    b.output(whole, np.ones((5, 4), "float32"))
    b.output(b.call("arange.default", np.arange(5), end=columns, symbolic=["s1"]), np.arange(5))
    both = b.program.arithmetic("add", "Add({a}, {b})", a=rows, b=columns)
    again = b.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=both, b=rows)
    twice = b.program.arithmetic("mul", "Mul({a}, {b})", a=again, b=2)
    less = b.program.arithmetic("neg", "Mul(Integer(-1), {a})", a=again)
    same = b.program.arithmetic("add", "Add({a}, {b})", a=twice, b=less)
    b.output(b.call("arange.default", np.arange(5), end=same, symbolic=["s1"]), np.arange(5))
    part = b.call("select.int", array[:, 1], self=x, dim=1, index=-2, symbolic=["s0", "s1"])
    b.output(b.call("softmax.int", array[:, 1], self=part, dim=-1, symbolic=["s0", "s1"]),
             softmax(array[:, 1].astype("float64"), -1).astype("float32"), near=1e-6)
    b.output(b.call("mean.dim", array.mean((0, 2)), self=x, dim=[0, 2]),
             array.astype("float64").mean((0, 2)).astype("float32"), near=1e-6)
    b.output(b.call("flip.default", array, self=x, dims=[0, 2], symbolic=["s0", 3, "s1"]), array[::-1, :, ::-1].copy())
    grown = b.call("expand.default", array, self=b.call("slice.Tensor", array[:, :1], self=x, dim=1, start=0, end=1,
                                                        symbolic=["s0", 1, "s1"]),
                   size=[rows, 3, columns], symbolic=["s0", 3, "s1"])
    b.output(grown, np.repeat(array[:, :1], 3, 1))


# ---- Running ----


def run(*command):
    return subprocess.run(command, text=True, capture_output=True)


class File:
    """Some cases in one graph."""

    def __init__(self, path, cases, graphs):
        self.path, self.inputs, self.wanted, self.failures = path, [], [], []
        program = self.program = Program()
        seen = {}
        for one in cases:
            self.add(one, seen)
        for function in graphs:
            builder = Builder(program, self.inputs)
            function(builder)
            self.wanted += builder.wanted
        program.save(path + ".pt2")

    def tensor(self, array, name, seen):
        """Arrays that several cases share are one input. What torch calls a weight is one here."""
        key = id(array), name == "weight"
        if key not in seen and name == "weight":
            seen[key] = self.program.weight(f"w{len(self.program.inputs)}", array), array
        elif key not in seen:
            seen[key] = self.program.input(f"x{len(self.program.inputs)}", array), array
            self.inputs.append(array)
        return seen[key][0]

    def add(self, one, seen):
        arguments = {}
        for name, value in one.arguments.items():
            if isinstance(value, np.ndarray):
                arguments[name] = self.tensor(value, name, seen)
            elif isinstance(value, list) and any(isinstance(element, np.ndarray) for element in value):
                arguments[name] = [None if a is None else self.tensor(a, name, seen) for a in value]
            else:
                arguments[name] = value
        in_place = one.op.split(".")[0].endswith("_") and not one.op.startswith("__")
        if in_place:
            arguments["self"] = self.program.node("aten.clone.default", one.arguments["self"], line=one.line,
                                                  self=arguments["self"])
        wants = one.results()
        likes = [np.empty(want.shape, kind) for want, kind in wants]
        results = self.program.node("aten." + one.op, likes, line=one.line, is_list=one.many, **arguments)
        for result, (want, kind) in zip(results, wants):
            # What works in place changes its argument.
            self.program.output(arguments["self"] if in_place else result)
            self.wanted.append((one, want, kind))

    def check(self):
        """Compiles the file and compares on every level; returns how often it compared."""
        library = self.path + ".so"
        compiled = run("attnc", self.path + ".pt2", "-o", library)
        if compiled.returncode != 0:
            self.failures.append(compiled.stderr.strip())
            return 0
        inputs = []
        for i, array in enumerate(self.inputs):
            np.save(f"{self.path}.{i}.npy", array)
            inputs.append(f"--input={self.path}.{i}.npy")
        # From the best level that this machine runs down.
        function = json.loads(run("attn-run", "--describe", "--json", library).stdout)["functions"][0]
        names = [level["level"] for level in function["levels"]]
        names = names[names.index(function["level"]):]
        count = 0
        for level in names:
            folder = f"{self.path}.{level}"
            os.makedirs(folder, exist_ok=True)
            called = run("attn-run", library, f"--level={level}", "--guard", f"--output-dir={folder}", *inputs)
            if called.returncode != 0:
                self.failures.append(f"{library} on {level}: {called.stderr.strip()}")
                continue
            for i, (one, want, kind) in enumerate(self.wanted):
                self.compare(np.load(f"{folder}/{i}.npy"), one, want, kind, level)
                count += 1
        return count

    def compare(self, got, one, want, kind, level):
        complaint = difference(got, want, kind, one.ulps, one.near)
        if complaint:
            arguments = {k: v for k, v in one.arguments.items() if not isinstance(v, (np.ndarray, list))}
            self.failures.append(f"ops.py:{one.line}: {one.op} {arguments or ''} on {level}: {complaint}")


def difference(got, want, kind, ulps, near):
    """What is wrong with a result, or nothing."""
    if got.dtype.name != kind or got.shape != want.shape:
        return f"expected {kind}{list(want.shape)}, got {got.dtype.name}{list(got.shape)}"
    with np.errstate(all="ignore"):
        if got.dtype.kind != "f":
            wrong = got != want.astype(kind)
        else:
            rounded = want.astype(kind)
            finite = np.abs(want[np.isfinite(want)])
            allowed = ulps * np.spacing(np.abs(rounded)).astype("float64") + near * finite.max(initial=0)
            same = (got == rounded) | (np.isnan(got) & np.isnan(want))
            # A NaN is close to nothing, and neither is an infinity.
            wrong = ~same & ~(np.abs(got.astype("float64") - want) <= np.where(np.isfinite(rounded), allowed, 0))
    if not wrong.any():
        return ""
    at = np.argwhere(wrong)[0]
    return (f"{wrong.sum()} of {wrong.size} elements differ, at {list(at)} expected {want[tuple(at)]!r}, "
            f"got {got[tuple(at)]!r}")


def files(folder):
    """As many cases as fit into one file, file after file; graphs of several nodes in two more."""
    for i, first in enumerate(range(0, len(CASES), CASES_PER_FILE)):
        yield f"{folder}/{i:02}", CASES[first:first + CASES_PER_FILE], []
    yield f"{folder}/graphs", [], GRAPHS
    yield f"{folder}/dynamic", [], [dynamic]


def alone(folder, cases, graphs):
    """The failures of cases one by one, for a file that does not compile."""
    parts = [(one.line, [one], []) for one in cases] + [(one.__name__, [], [one]) for one in graphs]
    for i, (name, some, functions) in enumerate(parts):
        file = File(f"{folder}/alone-{name}-{i}", some, functions)
        file.check()
        yield from file.failures


def check(path, cases, graphs):
    file = File(path, cases, graphs)
    count = file.check()
    if count == 0 and len(cases) + len(graphs) > 1:
        file.failures = list(alone(os.path.dirname(path), cases, graphs)) or file.failures
    return count, file.failures


def uncovered():
    table = [line.split("`")[1] for line in run("attn-import", "--ops").stdout.splitlines() if line.startswith("| `")]
    graphs = "".join(map(inspect.getsource, [*GRAPHS, dynamic, Program.size])).replace('arithmetic("', '"_operator.')
    have = {one.op for one in CASES} | REFUSED | set(FUNCTIONS)
    return table, [op for op in table if op not in have and op + '"' not in graphs]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda file: check(*file), files(folder)))
    failures = [failure for _, some in results for failure in some]
    table, missing = uncovered()
    failures += [f"expected a case of '{op}'" for op in missing]
    for failure in failures:
        print(failure)
    for what, why in NOT_YET:
        print(f"not yet: {what}: {why}")
    print(f"{len(table)} ops, {len(CASES)} cases and {len(GRAPHS) + 1} graphs in {len(results)} files, "
          f"{sum(count for count, _ in results)} results compared, {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
