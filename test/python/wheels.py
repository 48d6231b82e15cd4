"""wheels.py MODELS LIBRARY [--load]: compiles an example with the installed packages, saves it as LIBRARY, and checks
the sizes of the packages. With --load, calls the saved library, and checks the error of a compilation without the
compiler."""
import pathlib
import sys

import attn
import numpy as np

models, library = map(pathlib.Path, sys.argv[1:3])
x, expected = (np.load(models / f"mha.{name}.npy") for name in ("x", "out"))


def size(name, bound):
    folder = pathlib.Path(attn.__file__).parent.parent
    files = [path for part in (name, f"{name}.libs") for path in (folder / part).rglob("*")
             if path.is_file() and path.suffix != ".pyc"]
    total = sum(path.stat().st_size for path in files)
    assert 0 < total < bound, (name, total)
    return total


if "--load" in sys.argv:
    assert not (pathlib.Path(attn.__file__).parent.parent / "attn_compiler").exists()
    print(f"loaded: error {np.abs(attn.load(library)(x) - expected).max():.1e}")
    try:
        attn.compile(models / "gpt2.pt2", cache=False)
    except attn.Error as error:
        assert "install the package attn-compiler" in str(error)
    else:
        raise AssertionError("compiled without a compiler")
else:
    kernel = attn.compile(models / "mha.pt2")
    print(f"compiled: error {np.abs(kernel(x) - expected).max():.1e}")
    kernel.check(x)
    kernel.save(library)
    print(f"runtime: {size('attn', 1e6)} bytes")
    print(f"compiler: {size('attn_compiler', 120e6)} bytes")
