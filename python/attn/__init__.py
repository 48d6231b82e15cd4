"""attn compiles attention layers ahead of time, and calls the compiled layers.

    import attn
    k = attn.compile(module, (x, mask), dynamic={"x": {0: "B", 1: "S"}})
    y = k(x, mask)
    k.save("layer.so")                  # for C, C++ and attn.load

`attn.load("layer.so")` and calls need neither PyTorch nor the compiler. `attn.compile`, `attn.attention` and
`attn.plot_mask` need the compiler, which the package attn-compiler contains.
"""

from attn._attn import Error
from attn._attn import version as __version__
from attn._compile import clear_cache, compile
from attn._kernel import Kernel, load, refresh
from attn._masks import attention, mask
from attn._plot import plot_mask

__all__ = ["Error", "Kernel", "attention", "clear_cache", "compile", "load", "mask", "plot_mask", "refresh"]
