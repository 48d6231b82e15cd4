"""Convolutions, poolings and interpolations."""

import numpy as np

from calls import *

random = np.random.default_rng(15)
def convolve(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Computes a convolution of any number of dimensions; a number, or a list of one, applies to all dimensions."""
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
# The sums of 360 products are split into parts, and the last dimension fills a vector and a half.
case("conv2d.default", convolve, input=random.standard_normal((2, 40, 5, 26)).astype("float32"),
     weight=random.standard_normal((9, 40, 3, 3)).astype("float32"), near=1e-5)
# Several tasks compute parts of the image: rows of two dimensions, and columns of one.
case("conv2d.default", convolve, input=random.standard_normal((1, 512, 20, 30)).astype("float32"),
     weight=random.standard_normal((9, 512, 3, 3)).astype("float32"), bias=None, stride=[1], padding=[1], near=1e-4)
case("conv1d.default", convolve, input=random.standard_normal((2, 700, 500)).astype("float32"),
     weight=random.standard_normal((9, 700, 3)).astype("float32"), near=1e-4)
case("conv2d.default", lambda x, w: convolve(x[None], w)[0], input=X3, weight=np.ones((3, 2, 2, 2), "float32"),
     near=1e-6)


def transpose_convolve(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Computes a transposed convolution: each element of x adds its multiple of the kernel to the output."""
    count = w.ndim - 2
    each = lambda v: [v] * count if isinstance(v, int) else list(v) * (count if len(v) == 1 else 1)
    stride, padding, output_padding, dilation = map(each, (stride, padding, output_padding, dilation))
    out = [(n - 1) * s + d * (k - 1) + 1 + max(0, a) for n, s, d, k, a in zip(x.shape[2:], stride, dilation, w.shape[2:], output_padding)]
    result = np.zeros((x.shape[0], w.shape[1] * groups, *out))
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    for g in range(groups):
        part, kernels = x[:, g * per_in:(g + 1) * per_in], w[g * per_in:(g + 1) * per_in]
        for at in np.ndindex(*w.shape[2:]):
            window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, x.shape[2:], stride))
            result[(slice(None), slice(g * per_out, (g + 1) * per_out)) + window] += np.einsum(
                "nc...,co->no...", part, kernels[(slice(None), slice(None)) + at])
    result = result[(slice(None), slice(None)) + tuple(slice(p, size - p) for p, size in zip(padding, out))]
    return result if b is None else result + np.reshape(b, (-1,) + (1,) * count)


for count, name in ((1, "conv_transpose1d.default"), (2, "conv_transpose2d.input"), (3, "conv_transpose3d.input")):
    image = random.standard_normal((2, 4, 5, 3, 4)[:2 + count]).astype("float32")
    kernel = random.standard_normal((4, 6, 3, 2, 3)[:2 + count]).astype("float32")
    grouped = random.standard_normal((4, 3, 2, 3, 1)[:2 + count]).astype("float32")
    six = random.standard_normal(6).astype("float32")
    case(name, transpose_convolve, input=image, weight=kernel, near=1e-6)
    case(name, transpose_convolve, input=image, weight=kernel, bias=six, stride=[2] * count, padding=[1] * count,
         output_padding=[1] * count, near=1e-6)
    case(name, transpose_convolve, input=image, weight=grouped, bias=six, stride=[3], padding=[0], output_padding=[2],
         groups=2, dilation=[1], near=1e-6)
    case(name, transpose_convolve, input=image, weight=kernel, bias=None, stride=[1], padding=[1], output_padding=[0],
         groups=1, dilation=[2], near=1e-6)
    case(name, transpose_convolve, input=image, weight=random.standard_normal((4, 6) + (1,) * count).astype("float32"),
         bias=six, stride=[3] * count, padding=[1] * count, output_padding=[0] * count, near=1e-6)
    # Strides that divide the kernel, with an output padding that the padding leaves out and one that it does not.
    halves = random.standard_normal((4, 3) + (4,) * count).astype("float32")
    case(name, transpose_convolve, input=image, weight=halves, bias=six, stride=[2] * count, padding=[1] * count,
         output_padding=[1] * count, groups=2, near=1e-6)
    case(name, transpose_convolve, input=image, weight=halves, bias=None, stride=[4, 2, 4][:count], padding=[0] * count,
         output_padding=[1, 0, 3][:count], groups=2, near=1e-6)
    case("convolution.default", lambda x, w, b, s, p, d, t, o, g: transpose_convolve(x, w, b, s, p, o, g, d), input=image,
         weight=grouped, bias=six, stride=[2] * count, padding=[0] * count, dilation=[1] * count, transposed=True,
         output_padding=[1] * count, groups=2, near=1e-6)


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

# ---- Poolings ----


def windows(x, kernel, stride=None, padding=0, ceil=False, dilation=1, fill=nan):
    """Returns x (..., height, width) as (..., windows, windows, kernel, kernel); the padding is filled with `fill`."""
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


def adaptive_pool(x, sizes, average=np.mean):
    for axis, size in zip(range(-len(sizes), 0), sizes):
        n = x.shape[axis]
        parts = [x.take(range(i * n // size, -(-(i + 1) * n // size)), axis) for i in range(size)]
        x = np.stack([average(part, axis) for part in parts], axis)
    return x


def adaptive_max_pool(x, sizes):
    return [adaptive_pool(x, sizes, np.max)]


for count in (1, 2, 3):
    image = random.standard_normal({1: (2, 3, 8), 2: (2, 3, 7, 9), 3: (2, 5, 6, 7)}[count]).astype("float32")
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
        case("adaptive_max_" + name, adaptive_max_pool, self=image, output_size=[size] * count)
case("avg_pool2d.default", lambda x, k, s, p, c, i, d: avg_pool(x, k, divisor=d), self=IMAGE, kernel_size=[2, 3],
     stride=[], padding=[0], ceil_mode=False, count_include_pad=True, divisor_override=5, near=1e-6)
case("_adaptive_avg_pool2d.default", adaptive_pool, self=IMAGE, output_size=[2, 2], near=1e-6)
case("_adaptive_avg_pool3d.default", adaptive_pool, self=IMAGE, output_size=[2, 2, 3], near=1e-6)
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
    scales = scales or [None] * (x.ndim - 2)
    sizes = sizes or [int(n * s) for n, s in zip(x.shape[2:], scales)]
    for axis in reversed(range(2, x.ndim)):
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
# Linear interpolation in one dimension and in three.
for count, mode, letters in ((1, "linear", [""]), (3, "trilinear", ["_d", "_h", "_w"])):
    image = random.standard_normal((2, 3, 4, 5, 3)[:2 + count]).astype("float32")
    KERNELS[mode] = KERNELS["bilinear"]
    for kind in ("nearest", mode):
        name, flags = f"upsample_{kind}{count}d", {} if kind == "nearest" else {"align_corners": True}
        for sizes in ([7, 3, 4][:count], [3, 5, 1][:count]):
            case(name + ".vec", lambda x, n, *c, m=kind: upsample(m, x, n, *c[:-1]), input=image, output_size=sizes,
                 **flags, scale_factors=None, near=2e-6)
        factors = [1.75, 1.3, 2.5][:count]
        case(name + ".default", lambda x, n, *c, m=kind: upsample(m, x, n, False, list(c[-len(x.shape) + 2:])),
             self=image, output_size=[int(n * s) for n, s in zip(image.shape[2:], factors)],
             **{key: False for key in flags}, **{"scales" + letter: s for letter, s in zip(letters, factors)}, near=2e-6)
# A factor is ignored if the result has as many elements as the input, or twice as many.
case("upsample_nearest2d.vec", lambda x, n, s: upsample("nearest", x, [3, 10]), input=IMAGE, output_size=None,
     scale_factors=[1.2, 2.1])


def smooth_matrix(n, size, scale, width, kernel):
    """Returns the matrix of an interpolation that averages elements if the result is smaller than the input."""
    scale = 1 / scale if scale else n / size
    weights = np.zeros((size, n))
    for i, j in np.ndindex(size, n):
        distance = abs(j + 0.5 - scale * (i + 0.5)) / max(scale, 1)
        weights[i, j] = kernel(distance) if distance < width else 0
    return weights / weights.sum(1, keepdims=True)


def smooth(mode, x, sizes, scales=(None, None)):
    width, kernel = {"bilinear": (1, lambda d: 1 - d), "bicubic": (2, lambda d: cubic(d, -0.5))}[mode]
    rows, columns = (smooth_matrix(n, size, scale, width, kernel) for n, size, scale in zip(x.shape[2:], sizes, scales))
    return rows @ x @ columns.T


LARGE = random.standard_normal((2, 3, 8, 9)).astype("float32")
for mode in ("bilinear", "bicubic"):
    name = f"_upsample_{mode}2d_aa"
    for sizes in ([8, 9], [16, 20], [3, 4], [5, 1], [1, 13]):
        case(name + ".vec", lambda x, n, *_, m=mode: smooth(m, x, n), input=LARGE, output_size=sizes,
             align_corners=False, scale_factors=None, near=2e-6)
        case(name + ".default", lambda x, n, *_, m=mode: smooth(m, x, n), self=LARGE, output_size=sizes,
             align_corners=False, near=2e-6)
    case(name + ".vec", lambda x, n, c, s, m=mode: smooth(m, x, [4, 15], s), input=LARGE, output_size=None,
         align_corners=False, scale_factors=[0.5, 1.7], near=2e-6)


def grid_sampler(image, grid, mode, padding, aligns):
    def elements(numbers, size):
        at = (numbers + 1) / 2 * (size - 1) if aligns else ((numbers + 1) * size - 1) / 2
        return np.clip(at, 0, size - 1) if padding == 1 else at

    n, c, h, w = image.shape
    result = np.zeros((n, c, *grid.shape[1:3]))
    for at in np.ndindex(n, *grid.shape[1:3]):
        x, y = elements(grid[at][0], w), elements(grid[at][1], h)
        taps = [(np.rint(y), np.rint(x), 1.0)] if mode == 1 else [
            (i, j, (1 - abs(y - i)) * (1 - abs(x - j))) for i in (np.floor(y), np.floor(y) + 1) for j in (np.floor(x), np.floor(x) + 1)]
        if mode == 0 and not np.isfinite(grid[at]).all():
            result[at[0], :, at[1], at[2]] = np.nan
            continue
        for i, j, weight in taps:
            if 0 <= i < h and 0 <= j < w:
                result[at[0], :, at[1], at[2]] += weight * image[at[0], :, int(i), int(j)]
    return result


GRID = random.uniform(-1.4, 1.4, (2, 4, 3, 2)).astype("float32")
GRID[0, 0, 0], GRID[1, 0, 0], GRID[1, 1, 1] = (-1, 1), (np.nan, 0.2), (1e30, -np.inf)
for op in ("grid_sampler", "grid_sampler_2d"):
    for mode, padding, aligns in ((0, 0, False), (0, 0, True), (1, 0, False), (0, 1, True), (1, 1, True)):
        grid = np.where(np.isfinite(GRID) | (padding == 0), GRID, np.float32(0.3))
        case(op + ".default", grid_sampler, input=IMAGE, grid=grid, interpolation_mode=mode, padding_mode=padding,
             align_corners=aligns, near=1e-5)
