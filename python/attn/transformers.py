"""attn as an attention implementation of Hugging Face's transformers.

    import attn.transformers
    attn.transformers.register()
    model = AutoModel.from_config(config, attn_implementation="attn")

In such a model, attn computes only the attention. With torch.compile(model, backend="attn"), attn also compiles the ops
around it.
"""

import functools
import warnings

import torch
from torch.autograd import forward_ad
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from attn import dynamo
from attn._compile import compile_text
from attn._masks import TYPES, Mask, write


def _causal(b, h, q, k):
    return k <= q


def _kept(b, h, q, k, keep: bool):
    return keep[b, q, k]


def _kept_of_all(b, h, q, k, keep: bool):
    return keep[q, k]


def _keys(b, h, q, k, keep: bool, end):
    return keep[b, k] & (k < end[b])  # attn skips the tiles of keys from end[b] on


MASKS = {"none": None, "causal": Mask(_causal), "kept": Mask(_kept), "kept of all": Mask(_kept_of_all),
         "keys": Mask(_keys)}


@functools.cache
def _kernel(kind, device, *arguments):
    return compile_text(write(MASKS[kind], *arguments), "attention", target=None, device=device, num_threads=None)


def _packed(tensor):
    """Makes `tensor` (batch, heads, length, size) contiguous in one of the layouts, without a copy if possible.

    Returns the tensor and the name of its layout.
    """
    if tensor.is_contiguous():
        return tensor, "bhsd"
    swapped = tensor.transpose(1, 2)
    return (swapped, "bshd") if swapped.is_contiguous() else (tensor.contiguous(), "bhsd")


def _masked(mask, batch, queries, keys):
    """Returns the kind of `mask`, a boolean mask of (batch, 1, queries, keys), and the arrays that its kernel takes.

    Each size of the mask may be 1. If all queries keep the same keys, the mask is not copied for each query.
    """
    mask = mask[:, 0]
    if mask.shape[1] == 1 < queries:
        keep = mask[:, 0].expand(batch, keys).contiguous()
        return "keys", (keep, keep.flip(1).cumsum(1).bool().sum(1))
    mask = mask.expand(-1, -1, keys)
    return ("kept of all", (mask[0].contiguous(),)) if len(mask) == 1 else ("kept", (mask.contiguous(),))


def _attend(query, key, value, mask, is_causal, scale, softcap):
    """Calls the kernel. Returns its result as (batch, queries, heads, size)."""
    kind, arrays = "causal" if is_causal else "none", ()
    if mask is not None:
        kind, arrays = _masked(mask, query.shape[0], query.shape[2], key.shape[2])
    query, layout = _packed(query)
    key, key_layout = _packed(key)
    value, value_layout = _packed(value)
    if value_layout != key_layout:
        key, value, key_layout = [t if of == "bhsd" else t.transpose(1, 2).contiguous()
                                  for t, of in ((key, key_layout), (value, value_layout))] + ["bhsd"]
    head = {"bhsd": 1, "bshd": 2}
    kernel = _kernel(kind, str(query.device), query.shape[head[layout]], query.shape[-1], key.shape[head[key_layout]],
                     value.shape[-1], scale, str(query.dtype).removeprefix("torch."), layout, key_layout, softcap)
    result = kernel(query, key, value, *arrays)
    return result if layout == "bshd" else result.transpose(1, 2).contiguous()


@torch.library.custom_op("attn::attention", mutates_args=())
def _op(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, is_causal: bool,
        scale: float, softcap: float | None) -> torch.Tensor:
    return _attend(query, key, value, mask, is_causal, scale, softcap)


@_op.register_fake
def _(query, key, value, mask, is_causal, scale, softcap):
    return query.new_empty(query.shape[0], query.shape[2], query.shape[1], value.shape[-1])


def _why_not(query, key, value, mask, dropout, kwargs):
    """Why attn cannot compute this attention, or None."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value)):
        return "a gradient is required, and attn computes none; call inside torch.inference_mode()"
    if not torch.compiler.is_compiling() and (
            torch._C._functorch.maybe_current_level() is not None
            or any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in (query, key, value))):
        return "torch.func or forward-mode differentiation transforms it"
    if dropout:
        return "dropout is on"
    if str(query.dtype).removeprefix("torch.") not in TYPES:
        return f"the type is {query.dtype}"
    for name in ("position_bias", "s_aux"):
        if kwargs.get(name) is not None:
            return f"{name} is given"
    if mask is not None and (mask.dtype != torch.bool or mask.ndim != 4 or mask.shape[1] != 1):
        return f"the mask is {mask.dtype} of shape {tuple(mask.shape)}"
    return None


def _spelled_out(query, key, value, mask, is_causal, scale, dropout, position_bias=None, softcap=None, s_aux=None):
    """Attention in PyTorch with softcap and sinks (s_aux), which scaled_dot_product_attention does not support."""
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    scores = query @ key.transpose(-1, -2) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if position_bias is not None:
        scores = scores + position_bias
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min) if mask.dtype == torch.bool else scores + mask
    if s_aux is not None:
        scores = torch.cat([scores, s_aux.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1).to(scores.dtype)], -1)
    kept = torch.softmax(scores, -1, dtype=torch.float32).to(query.dtype)[..., :key.shape[2]]
    return (torch.dropout(kept, dropout, dropout > 0) @ value).transpose(1, 2).contiguous()


def _decomposed(query, key, value, mask, is_causal, scale, softcap):
    """Computes the op attn::attention with ops that attn compiles together with the rest of a graph."""
    if softcap is not None:
        return _spelled_out(query, key, value, mask, is_causal, scale, 0.0, softcap=softcap)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal, scale=scale, enable_gqa=True)
    return out.transpose(1, 2).contiguous()


dynamo.decompositions[torch.ops.attn.attention.default] = _decomposed
_warned = set()


def attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **kwargs):
    """The attention of a layer, with the arguments and results that transformers expects of an attention function.

    If attn cannot compute the attention, PyTorch computes it, and a warning says why.
    """
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    if attention_mask is not None:
        attention_mask = attention_mask[..., :key.shape[2]]
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        batch, = torch.broadcast_shapes(query.shape[:1], key.shape[:1], value.shape[:1])
        query, key, value = (tensor.expand(batch, -1, -1, -1) for tensor in (query, key, value))
    is_causal_here = getattr(module, "is_causal", True) if is_causal is None else is_causal
    is_causal_here = bool(query.shape[2] > 1 and attention_mask is None and is_causal_here)
    softcap = kwargs.get("softcap")
    reason = _why_not(query, key, value, attention_mask, dropout, kwargs)
    if reason:
        if reason not in _warned:
            _warned.add(reason)
            warnings.warn(f"attn: attention of {type(module).__name__} runs in PyTorch, because {reason}", stacklevel=2)
        if softcap is not None or kwargs.get("s_aux") is not None:
            given = {name: kwargs.get(name) for name in ("position_bias", "softcap", "s_aux")}
            return _spelled_out(query, key, value, attention_mask, is_causal_here, scaling, dropout, **given), None
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling,
                                      is_causal=is_causal, **kwargs)
    compute = _op if torch.compiler.is_compiling() else _attend
    return compute(query, key, value, attention_mask, is_causal_here, float(scaling), None if softcap is None else float(softcap)), None


def register(name: str = "attn") -> None:
    """Makes attn available to models as attn_implementation=`name`."""
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, sdpa_mask)
