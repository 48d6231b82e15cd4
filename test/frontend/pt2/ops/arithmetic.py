"""Ops of two operands, and selection."""

import numpy as np

from calls import *

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
case("floor_divide.default", np.floor_divide, self=np.array([inf, -inf, inf, -inf, inf], "float32"),
     other=np.array([2, -3, inf, 0.5, -inf], "float32"))
case("floor_divide.default", lambda x, y: x / y, self=np.array([inf, -inf, 1, -1, 0], "float32"),
     other=np.zeros(5, "float32"))
case("floor_divide_.Tensor", np.floor_divide, self=X, other=Y)
case("floor_divide_.Scalar", np.floor_divide, self=J, other=3)
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
WIDE = np.exp(random.standard_normal((2, 500)) * 30).astype("float32") * random.choice([-1, 1], (2, 500))
FAR = [np.append(row, [bound]).astype("float32") for row, bound in zip(WIDE, (3e38, 1.4e-45))]
case("fmod.Tensor", np.fmod, self=FAR[0], other=FAR[1], ulps=0)
case("remainder.Tensor", np.remainder, self=FAR[0], other=FAR[1], ulps=1)
# A number that is an argument is rounded to the type of the tensor, except in sums, products and quotients.
TENTH = np.array([0.1, 0.3, 0.7, 1], "float16")
HALF_TENTH = float(np.float16(0.1))
case("remainder.Scalar", lambda x, y: np.remainder(x, HALF_TENTH), self=TENTH, other=0.1, ulps=1)
case("fmod.Tensor", lambda x, y: np.fmod(x, HALF_TENTH), self=TENTH, other=np.array(0.1, "float32"), ulps=1)
case("floor_divide.default", lambda x, y: np.floor(x / np.float32(0.1)), self=TENTH, other=0.1)
for name, function in [("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("ge", np.greater_equal)]:
    case(name + ".Scalar", lambda x, y, f=function: f(x, HALF_TENTH), self=TENTH, other=0.1)
    case(name + ".Tensor", lambda x, y, f=function: f(x, HALF_TENTH), self=TENTH, other=np.array(0.1, "float32"))
for name, function in [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)]:
    case(f"__i{name}__.Tensor", function, self=I, other=I2)
    case(f"__i{name}__.Scalar", function, self=B, other=True)
case("__ilshift__.Scalar", np.left_shift, self=I, other=2)
case("__irshift__.Scalar", np.right_shift, self=J, other=1)
case("masked_fill.Scalar", lambda x, m, v: np.where(m, 2, x), self=I, mask=B, value=2.5, kind="int64")
case("masked_fill.Scalar", lambda x, m, v: x | m, self=B2, mask=B, value=2)
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
case("clamp.Tensor", lambda x, low, high: np.minimum(np.maximum(x, low), high), self=SPECIAL,
     min=np.array(-1.5, "float32"), max=ONE)
case("clamp.Tensor", lambda x, low, high: np.minimum(np.maximum(x, low), high), self=X, min=COLUMN, max=ROW)
case("clamp.Tensor", lambda x, low, high: np.minimum(x, high), self=I, min=None, max=X, kind="float32")
case("clamp_min.Tensor", np.maximum, self=J, min=I[0], kind="int64")
case("clamp_max.Tensor", np.minimum, self=X, max=ROW)
for name, function in [("tril", np.tril), ("triu", np.triu)]:
    case(name + ".default", function, self=X3)
    case(name + ".default", function, self=I, diagonal=-1)
    case(name + ".default", function, self=B, diagonal=2)
    case(name + "_.default", function, self=X, diagonal=1)
case("addcmul.default", lambda x, a, b: x + a * b, self=X, tensor1=ROW, tensor2=COLUMN, near=2e-7)
case("addcmul.default", lambda x, a, b, v: x + v * a * b, self=X, tensor1=Y, tensor2=P, value=0.5, near=2e-7)
case("addcmul_.default", lambda x, a, b, v: x + v * a * b, self=X, tensor1=Y, tensor2=P, value=2, near=2e-7)
case("addcdiv.default", lambda x, a, b, v: x + v * a / b, self=X, tensor1=Y, tensor2=P, value=-2, near=2e-7)
case("clip.default", lambda x, low, high: np.clip(x, low, high), self=SPECIAL, min=-1.5, max=2)
case("clip.Tensor", lambda x, low: np.maximum(x, low), self=X, min=COLUMN)
for name, function in [("less", np.less), ("greater_equal", np.greater_equal), ("not_equal", np.not_equal)]:
    case(name + ".Tensor", function, self=X, other=ROW)
    case(name + "_.Scalar", lambda x, y, f=function: f(x, y).astype("float32"), self=X, other=0.5)
case("absolute.default", np.abs, self=X)
SQUARE = random.standard_normal((4, 4)).astype("float32")
case("fill_diagonal_.default", lambda x, v: np.where(np.eye(4), v, x), self=SQUARE, fill_value=-2.5)
case("fill_diagonal_.default", lambda x, v: x & ~np.eye(3, 4, dtype=bool), self=B, fill_value=False)
CUBE = np.ones((2, 2, 2), "float16")
case("fill_diagonal_.default", lambda x, v: np.array([[[9, 1], [1, 1]], [[1, 1], [1, 9.0]]]), self=CUBE, fill_value=9)
case("logaddexp.default", np.logaddexp, self=np.array([1, inf, -inf, -inf, nan, 100, -1e30, inf], "float32"),
     other=np.array([2, inf, -inf, 3, 0, -100, 1e30, -inf], "float32"))
case("logaddexp.default", np.logaddexp, self=X * 9, other=COLUMN, near=2e-7)
