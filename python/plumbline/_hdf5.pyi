"""Operator dumps of plumbline."""

from collections.abc import Sequence
import os


class Arguments:
    """Arguments or results of one operator call."""

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def tensor(self, name: str, tensor: tuple[int, str, Sequence[int], int] | None) -> None:
        """
        Address, dtype, sizes and device number of a contiguous tensor on the host, which must live as long as this; None: a tensor without storage.
        """

    def tensors(self, name: str, tensors: Sequence[tuple[int, str, Sequence[int], int] | None]) -> None: ...

    def integers(self, name: str, kind: int, numbers: Sequence[int]) -> None: ...

    def integer(self, name: str, kind: int, number: int) -> None: ...

    def truth(self, name: str, kind: int, value: bool) -> None: ...

    def real(self, name: str, kind: int, number: float) -> None: ...

    def dtype(self, name: str, dtype: str) -> None: ...

    def options(self, name: str, device: int, dtype: str | None) -> None: ...

class DumpWriter:
    """An operator dump that is being written."""

    def __init__(self, path: str | bytes | os.PathLike) -> None:
        """The file appears with the first commit."""

    def write(self, operation: str, call: int, is_output: bool, arguments: Arguments) -> None: ...

    def commit(self) -> None:
        """What was written survives the process from here on."""

class Match:
    """The recorded call that stands for a running one."""

    @property
    def operation(self) -> str: ...

    @property
    def call(self) -> int: ...

    @property
    def tensors(self) -> list[tuple[int, int | None, str, list[int]]]:
        """Index of the argument, of the member of a list or None, dtype, sizes."""

    @property
    def scalars(self) -> list:
        """Index of the argument and its recorded number."""

    def read_into(self, tensor: int, address: int, size: int) -> None:
        """Elements of one of `tensors` in row-major order."""

class OperatorReplay:
    """An operator dump to replay."""

    def __init__(self, path: str | bytes | os.PathLike) -> None: ...

    def match(self, operation: str, arguments: Arguments) -> Match | None:
        """The first unused recorded call that fits, or None."""

def name_maps() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Operators and arguments that have another name on another device."""
