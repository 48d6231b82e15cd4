"""The compiler of attn.

`python -m attn_compiler` prints the folder of the compiler, for -DCMAKE_PREFIX_PATH=FOLDER in C and C++ projects.
"""

import os
import pathlib
import sys

#: The folder of the installation, which has bin/, include/ and lib/.
PREFIX = pathlib.Path(__file__).resolve().parent


def run():
    """Runs the tool after which this program is named."""
    program = PREFIX / "bin" / "attn-tools"
    os.execv(program, [program, pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
