"""The C runtime of attn."""

from os import PathLike
from typing import Any, final

version: str

def packed_bytes() -> int:
    """The size in bytes of all packed weights in memory. Weights that several functions pack alike count once."""

class Error(RuntimeError):
    """An error of attn. Its text says what was expected and what was given."""

    #: The name of the error's status in attn.h without the prefix ATTN_ERROR_, such as "SHAPE", or "COMPILE" if the
    #: model cannot be exported or compiled.
    status: str

@final
class Library:
    """A library that attnc wrote. Loading a library runs its code: load only libraries that you trust."""

    def __new__(cls, path: str | bytes | PathLike[str] | PathLike[bytes]) -> Library: ...
    @property
    def name(self) -> str:
        """The library's name."""

    @property
    def compiler(self) -> str:
        """The version of the compiler that wrote the library."""

    @property
    def manifest(self) -> str:
        """The description of the library's functions, as JSON."""

class Function:
    """A function of a library, for one ISA level or GPU; the base class of attn.Kernel.

    An array is a tensor of PyTorch, an array of NumPy or of another package that supports DLPack, or an object that
    supports the buffer protocol. A call returns arrays of the package of the first input, or of NumPy if this input
    supports only the buffer protocol.
    """

    #: The number of threads that compute a call together. None, the default, means torch.get_num_threads() if the first
    #: input is a tensor of PyTorch, and otherwise the number of CPUs that the process may use.
    num_threads: int | None

    def __new__(
        cls, library: Library, name: str, level: str | None = None, device_type: int = 0, device_id: int = 0
    ) -> Function: ...
    @property
    def name(self) -> str:
        """The function's name in its library, such as "forward"."""

    @property
    def level(self) -> str:
        """The ISA level of the code that calls run, such as "x86-64-v3"."""

    def __call__(self, *inputs: Any, **options: Any) -> Any: ...
    def run(
        self, inputs: tuple[Any, ...], outputs: tuple[Any, ...] | None = None, statistics: dict[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """Calls the function with a tuple of arrays, in the order of the signature, and returns a tuple of its outputs.

        Writes the outputs to the arrays in `outputs`, a tuple, if it is given. Adds statistics of the call to the
        dictionary `statistics`, if it is given: nanoseconds, workspace_bytes, level, schedules, tiles_run and
        tiles_skipped.
        """

    def workspace_size(self, inputs: tuple[Any, ...]) -> int:
        """The size in bytes of the workspace for a call with these inputs, a tuple of arrays, on one thread."""

    @property
    def _report_text(self) -> str: ...

    def _set_weights(self, tensors: dict[str, Any]) -> None: ...
    def _load_weights(self, path: str | bytes | PathLike[str] | PathLike[bytes]) -> None: ...
    def _use_embedded_weights(self) -> None: ...
