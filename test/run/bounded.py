"""Formulas for the operations of a graph, on float64 values, each with a bound on the error of f32 arithmetic.

A matrix product of multiples of a common unit, such as small integers, is exact in f32 for any order of its sum, so its
bound is 0. All other operations add a few rounding errors. Scores of size s have an error of about 2^-24 s, so
probabilities may be wrong by a factor of exp(2^-22 s). Exact scores that equal the largest score of their row are an
exception, because equal keys get equal probabilities.
"""
import numpy as np

ROUNDING = 2.0**-24
LEAST_PROBABILITY = 2.0**-80  # a smaller probability may be replaced by any number up to this one


# For each type, the greatest rounding error relative to a normal number, and the greatest error of a subnormal number.
ROUNDINGS = {"f16": (2.0**-11, 2.0**-25), "bf16": (2.0**-8, 2.0**-126)}


class Bounded:
    element = "f32"  # the type of a result

    def __init__(self, value, error=None, live=None, said=None, or_nan=None):
        self.value = np.asarray(value, np.float64)
        error = np.zeros(self.value.shape) if error is None else np.broadcast_to(error, self.value.shape)
        self.error = np.where(np.isfinite(self.value), np.where(np.isnan(error), np.inf, error), 0)
        self.live = live  # for scores and probabilities, the pairs that the mask keeps; None: all pairs
        self.said = said  # False for elements whose value is not specified; None: all are specified
        self.or_nan = or_nan  # True for elements that may also be NaN; None: no element may

    def map(self, function):
        """Applies a change of shape to all arrays of this value."""
        part = lambda a: None if a is None else function(np.broadcast_to(a, self.value.shape))
        return Bounded(function(self.value), function(self.error), part(self.live), part(self.said))


def grid(value):
    """Returns the largest tried power of two that divides every value, or None."""
    if not np.isfinite(value).all():
        return None
    largest = np.abs(value).max(initial=0)
    if largest == 0:
        return 1.0
    start = 2.0**(np.floor(np.log2(largest)) - 23)
    for unit in (start * 2.0**i for i in range(22, -1, -3)):
        if (value == np.rint(value / unit) * unit).all():
            return unit
    return None


def rounded(value, error):
    """Returns the value and its bound after one rounding. The bound does not grow if f32 can represent the value."""
    exact = (error == 0) & (value.astype(np.float32) == value)
    return Bounded(value, np.where(exact, 0, error + ROUNDING * np.abs(value)))


def contract(spec, a, b, init=None):
    """Computes a product, summed over the letters that the result lacks, and added to `init`."""
    sizes = dict(zip(spec.split("->")[0].replace(",", ""), a.value.shape + b.value.shape))
    terms = np.prod([n for letter, n in sizes.items() if letter not in spec.split("->")[1]])
    value = np.einsum(spec, a.value, b.value)
    absolute = np.einsum(spec, np.abs(a.value), np.abs(b.value))
    error = 0 * absolute
    if a.error.any():
        error = error + np.einsum(spec, a.error, np.abs(b.value) + b.error)
    if b.error.any():
        error = error + np.einsum(spec, np.abs(a.value), b.error)
    if init is not None:
        value, absolute = value + init.value, absolute + np.abs(init.value)
        error = error + init.error
    inexact = error.any() or not is_exact(a.value, b.value, init, absolute)
    return Bounded(value, error + inexact * (4 + terms**0.5) * ROUNDING * absolute)


def is_exact(a, b, init, absolute):
    units = grid(a), grid(b)
    if None in units:
        return False
    unit = units[0] * units[1]
    if init is not None:
        if grid(init.value) is None:
            return False
        unit = min(unit, grid(init.value))
    return absolute.max(initial=0) < 2.0**23 * unit  # f32 has 24 bits; one is left for the difference of two sums


def scaled(a, factor):
    """Multiplies by a constant. Equal exact values stay equal; the softmax adds the rounding error to the bounds."""
    value = a.value * factor
    return Bounded(value, np.where(a.error == 0, 0, abs(factor) * a.error + ROUNDING * np.abs(value)), a.live, a.said)


def add(a, b):
    sum = rounded(a.value + b.value, a.error + b.error)
    return Bounded(sum.value, sum.error, a.live, a.said)


def masked(a, live):
    live = np.broadcast_to(live, a.value.shape)
    return Bounded(a.value, a.error, live if a.live is None else a.live & live)


def beside(scores, column):
    """Appends one more score, which is kept and exact, to each row."""
    add = lambda a, last: np.concatenate([np.broadcast_to(a, scores.value.shape), last], -1)
    live = None if scores.live is None else add(scores.live, np.full(column.shape, True))
    return Bounded(add(scores.value, column), add(scores.error, np.zeros(column.shape)), live)


def softmax(scores, empty):
    """Computes the softmax over the last axis; a row without a score above -inf becomes `empty`."""
    s = scores.value
    live = s != -np.inf
    if scores.live is not None:
        live &= scores.live
    poisoned = (live & ~(s < np.inf)).any(-1, keepdims=True)
    none = ~live.any(-1, keepdims=True)
    known = np.where(live & (s < np.inf), s, -np.inf)
    largest = known.max(-1, keepdims=True, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, 0)
    weight = np.where(live, np.exp(np.minimum(known - largest, 0)), 0)
    total = weight.sum(-1, keepdims=True)
    p = weight / np.where(total, total, 1)
    apart = np.where(known == largest, 0, 4 * ROUNDING * np.maximum(np.abs(known), np.abs(largest)))
    factor = np.where(live, np.expm1(np.minimum(scores.error + apart, 80)), 0)
    weighted = np.where(p > 0, p * factor, 0)
    error = weighted + p * weighted.sum(-1, keepdims=True) + 32 * ROUNDING * p + LEAST_PROBABILITY * live
    p = np.where(none, empty, p)
    p = np.where(poisoned & live, np.nan, p)
    said = ~(poisoned & ~live)
    return Bounded(p, np.minimum(error, 1), live & ~none, None if said.all() else said)


def average(spec, p, v):
    """Sums values that are weighted by probabilities. The value of a pair that is not kept has no influence."""
    absent = ~np.isfinite(v.value)
    finite = Bounded(np.where(absent, 0, v.value), np.where(absent, 0, v.error))
    known = Bounded(np.where(p.live | np.isnan(p.value), p.value, 0), p.error)
    out = contract(spec, known, finite)
    if absent.any():
        count = lambda held: np.einsum(spec, p.live.astype(float), held.astype(float)) > 0
        nan, plus, minus = (count(held) for held in (np.isnan(v.value), v.value == np.inf, v.value == -np.inf))
        value = np.where(plus, np.inf, np.where(minus, -np.inf, out.value))
        value = np.where(np.isnan(out.value) | nan | (plus & minus), np.nan, value)
        out = Bounded(value, out.error)
    return out


def to_element(a, element):
    """Rounds a result once more, to its type."""
    if element in ROUNDINGS:
        relative, least = ROUNDINGS[element]
        a.error = np.where(np.isfinite(a.value), a.error + relative * (np.abs(a.value) + a.error) + least, 0)
        a.element = element
    return a


def difference(got, want, rtol=2e-5):
    """Returns a text that says how `got` differs from `want`, or None."""
    if got.shape != want.value.shape:
        return f"shape {got.shape}, expected {want.value.shape}"
    finite = np.isfinite(want.value)
    bound = rtol * np.abs(want.value[finite]).max(initial=0) + 1e-9 + want.error
    with np.errstate(all="ignore"):
        right = np.where(finite, np.abs(got - want.value) <= bound,
                         (got == want.value) | (np.isnan(got) & np.isnan(want.value)))
    if want.said is not None:
        right |= ~want.said
    if want.or_nan is not None:
        right |= want.or_nan & np.isnan(got)
    if right.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~right)[0])
    worst = np.where(right | ~finite, 0, np.abs(got - np.where(finite, want.value, 0)))
    text = f"element {index} is {got[index]}, expected {want.value[index]:.9g} within {bound[index]:.2e}"
    return f"{text}; {int((~right).sum())} of {right.size} wrong, by up to {np.nanmax(worst, initial=0):.2e}"
