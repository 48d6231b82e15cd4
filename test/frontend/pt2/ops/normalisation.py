"""Layer norm and related ops."""

import numpy as np

from calls import *

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


def batch_norm_of_input(x, w, b, mean, variance, training, momentum, eps, cudnn):
    axes = (0, *range(2, x.ndim))
    return batch_norm(x, w, b, x.mean(axes), x.var(axes), training, momentum, eps, cudnn)


FOUR, MATRIX = P[0].copy(), Y.copy()
case("layer_norm.default", layer_norm, input=X3, normalized_shape=[4], near=1e-6)
case("layer_norm.default", layer_norm, input=X3, normalized_shape=[4], weight=FOUR, bias=ROW, eps=1e-3, near=1e-6)
case("layer_norm.default", layer_norm, input=X3, normalized_shape=[3, 4], weight=MATRIX, bias=None, near=1e-6)
case("layer_norm.default", layer_norm, input=X3 + 1000, normalized_shape=[4], near=2e-4)
case("native_layer_norm.default", native_layer_norm, input=X3, normalized_shape=[4], weight=FOUR, bias=None, eps=1e-5,
     near=1e-6)
# Decomposed graphs have statistics in the type of the input, others in float32.
for statistics in ("float16", "float32"):
    case("native_layer_norm.default",
         lambda *args, s=statistics: [y.astype(t) for y, t in zip(native_layer_norm(*args), ("float16", s, s))],
         input=X3.astype("float16"), normalized_shape=[4], weight=None, bias=None, eps=1e-3, near=2e-3)
case("rms_norm.default", rms_norm, input=X3, normalized_shape=[4], near=1e-6)
case("rms_norm.default", rms_norm, input=X3, normalized_shape=[3, 4], weight=MATRIX, eps=1e-3, near=1e-6)
case("rms_norm.default", rms_norm, input=X3, normalized_shape=[4], weight=FOUR, eps=None, near=1e-6)
case("rms_norm.default", rms_norm, input=(X3 * 0.01).astype("float16"), normalized_shape=[4], ulps=1)
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
def instance_norm(x, w=None, b=None, *_):
    y = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    return y if w is None else y * w[:, None, None] + b[:, None, None]


case("instance_norm.default", instance_norm, input=IMAGE, weight=None, bias=None, running_mean=None, running_var=None,
     use_input_stats=True, momentum=0.1, eps=1e-5, cudnn_enabled=True, near=1e-6)
case("instance_norm.default", instance_norm, input=IMAGE, weight=SIX, bias=SIX2, running_mean=None, running_var=None,
     use_input_stats=True, momentum=0.1, eps=1e-5, cudnn_enabled=True, near=1e-6)
case("instance_norm.default", lambda x, w, b, m, v, *_: (x - m[:, None, None]) / np.sqrt(v[:, None, None] + 1e-5),
     input=IMAGE, weight=None, bias=None, running_mean=SIX, running_var=SIX2 * SIX2, use_input_stats=False,
     momentum=0.1, eps=1e-5, cudnn_enabled=True, near=1e-6)
case("batch_norm.default", batch_norm_of_input, input=IMAGE, weight=None, bias=None, running_mean=None, running_var=None,
     training=True, momentum=0.0, eps=1e-6, cudnn_enabled=True, near=2e-6)
LONG = (random.standard_normal((1, 2, 20000)) + 3).astype("float32")
case("group_norm.default", lambda x, g, w, b, e, c: (x - x.mean((1, 2), keepdims=True)) / x.std((1, 2), keepdims=True),
     input=LONG, num_groups=1, weight=None, bias=None, eps=0.0, cudnn_enabled=True, near=1e-6)
case("_native_batch_norm_legit.no_stats",
     lambda x, w, b, training, momentum, eps: [batch_norm_of_input(x, w, b, None, None, training, momentum, eps, False)],
     input=IMAGE, weight=SIX, bias=SIX2, training=True, momentum=0.1, eps=1e-5, near=2e-6)
