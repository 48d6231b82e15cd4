"""interface.py TEST...: fails unless each public name of attn, and of the classes that it returns, is in a TEST."""
import pathlib
import re
import sys

import attn
from attn._plot import Picture
from attn._report import Report, Table

text = "".join(pathlib.Path(path).read_text() for path in sys.argv[1:])
classes = (attn.Kernel, Report, Table, Picture)
names = set(attn.__all__) | {name for of in classes for name in dir(of) if not name.startswith("_")}
names |= {"backend", "reports", "register"}  # of attn.dynamo and attn.transformers, which need PyTorch
missing = sorted(name for name in names if not re.search(rf"\b{name}\b", text))
assert not missing, f"no test uses {missing}"
