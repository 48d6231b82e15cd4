"""Products of matrices, and attention."""

import numpy as np

from calls import *

random = np.random.default_rng(14)
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
case("outer.default", np.outer, self=np.arange(5), vec2=V6)
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
case("addmm.default", lambda c, a, b, alpha: np.broadcast_to(c, (5, 7)), self=V7, mat1=A * nan, mat2=A2, alpha=0)
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
    if plain == "ij,jk->ik" and operands[1].shape[0] == 1:  # unlike torch, numpy does not repeat this operand
        CASES[-1].want = lambda _, x: x[0] @ np.repeat(x[1], 6, 0)
    elif plain == "...ij->ij":  # unlike torch, numpy does not sum over these dimensions
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
case(SDPA, attention, query=Q[0, 0], key=K[0, 0], value=K[0, 0], near=1e-6)
case(SDPA, attention, query=Q[0, 0], key=K, value=K[0, :1], near=1e-6)
case(SDPA, attention, query=Q[:1], key=K[:, :1].copy(), value=K, attn_mask=MASK, near=1e-6)
case(SDPA, lambda q, k, v: attention(q, k, v), query=Q.astype("float16"), key=K.astype("float16"),
     value=K.astype("float16"), ulps=1)
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
A, B2 = random.standard_normal((2, 3, 5)).astype("float32"), random.standard_normal((4, 5)).astype("float32")
case("inner.default", lambda a, b: np.inner(a.astype("float64"), b), self=A, other=B2, ulps=16)
case("inner.default", lambda a, b: np.inner(a.astype("float64"), b), self=B2[0], other=B2[1], ulps=16)
case("linalg_matmul.default", lambda a, b: a.astype("float64") @ b, self=A, other=B2.T.copy(), ulps=16)
case("kron.default", np.kron, self=B2, other=A[0])
case("kron.default", np.kron, self=A, other=B2)
case("kron.default", np.kron, self=B2[0], other=A[0, 0])

# ---- Mixtures of experts ----


def grouped(x, weight, ends):
    out, start = np.zeros((len(x), weight.shape[2])), 0
    for matrix, end in zip(weight, ends):
        out[start:end] = x[start:end] @ matrix
        start = end
    return out


ROWS, MATRICES = random.standard_normal((9, 5)).astype("float32"), random.standard_normal((4, 5, 7)).astype("float32")
# One group is empty, and the last row belongs to no group.
ENDS = np.array([3, 3, 7, 8], "int32")
case("transformers.grouped_mm_fallback.default", grouped, input=ROWS, weight=MATRICES, offs=ENDS, near=1e-6)
case("_grouped_mm.default", grouped, self=ROWS, mat2=MATRICES, offs=ENDS, near=1e-6)

case("tensordot.default", lambda x, y, i, j: np.tensordot(x, y, (i, j)), self=X3, other=X3.transpose(2, 0, 1).copy(),
     dims_self=[2, 0], dims_other=[0, 1], near=1e-6)
