"""Elementwise functions of one operand."""

import numpy as np

from calls import *

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
        ("erf", erf, 6), ("sin", np.sin, 2), ("cos", np.cos, 2), ("tan", np.tan, 4),
        ("log10", np.log10, 3), ("deg2rad", np.deg2rad, 2), ("rad2deg", np.rad2deg, 2), ("reciprocal", lambda x: 1 / x, 1),
        ("sigmoid", sigmoid, 6), ("relu", lambda x: np.maximum(x, 0), 0), ("neg", np.negative, 0), ("abs", np.abs, 0),
        ("floor", np.floor, 0), ("ceil", np.ceil, 0), ("trunc", np.trunc, 0),
        ("frac", lambda x: x - np.trunc(x), 0), ("round", np.round, 0),
        ("sign", lambda x: np.where(np.isnan(x), 0, np.sign(x)), 0),
        ("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, 4), ("relu6", lambda x: np.clip(x, 0, 6), 0),
        ("isnan", np.isnan, 0), ("isinf", np.isinf, 0), ("logical_not", np.logical_not, 0)]:
    # The results for angles beyond 2^30 are NaN.
    case(op + ".default", function, self=ALL[np.abs(ALL) < 1e9] if op in ("sin", "cos", "tan") else ALL, ulps=ulps)
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
case("hardshrink.default", lambda x: np.where(np.abs(x) <= 0.5, 0, x), self=ALL)
case("hardshrink.default", lambda x, c: np.where(np.abs(x) <= c, 0, x), self=X, lambd=1.25)
case("softshrink.default", lambda x: np.where(np.abs(x) <= 0.5, 0, x - np.sign(x) * 0.5), self=X)
case("softshrink.default", lambda x, c: np.where(np.abs(x) <= c, 0, x - np.sign(x) * c), self=ALL, lambd=0.25)
