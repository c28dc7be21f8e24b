"""The context manager that dumps, replays or checks operators.

Size caps: the arguments of `dumper` are those of the interface it has to have.
"""

from __future__ import annotations

import os
import sys
import warnings
from datetime import datetime
from typing import Any

DEVICE_ERROR = (
    "check_overflow and load_with_acl_dump are only supported on NPU device, however there is no "
    "NPU available!"
)


class dumper:
    """Dumps operators to an HDF5 file, replays one, or finds those whose results overflow.

    The interface of `torch.utils.dumper` of PyTorch 1.5 for Ascend. One step is enough; one process
    at a time. The file is readable at any moment, also after the process was killed.

    Args:
        enabled: False: does nothing.
        use_dump: write the inputs and outputs of every operator.
        use_load: give every operator the recorded inputs of the same operator, and write its
            outputs.
        check_overflow: write the inputs and outputs of operators that return NaN or infinity, and
            print their names.
        dump_path: the file, which ends in .h5, or the directory of a file named by the time;
            default the working directory.
        load_file_path: the file to replay; only with use_load.
        load_with_acl_dump: with use_load, on an NPU: the kernels of replayed operators are dumped
            as acl.json in the working directory says.

    Raises:
        RuntimeError: arguments that are no such combination, and missing files.

    Example:
        >>> with dumper(use_dump=True, dump_path="step.h5"):  # doctest: +SKIP
        ...     model(data).sum().backward()
    """

    _entered = False  # any of them: operators are process-wide

    def __init__(
        self,
        enabled: bool = True,
        use_dump: bool = False,
        use_load: bool = False,
        check_overflow: bool = False,
        dump_path: str | None = None,
        load_file_path: str | None = None,
        load_with_acl_dump: bool = False,
    ) -> None:
        self.enabled = enabled
        self.use_dump = use_dump
        self.use_load = use_load
        self.check_overflow = check_overflow
        self.load_with_acl_dump = load_with_acl_dump
        self.dump_path = dump_path
        self.load_file_path = load_file_path if use_load else None
        self._session: Any = None
        if enabled:
            self._check_switches()
            self._check_paths()

    @staticmethod
    def get_op_map() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """What operators and their arguments are called on other devices.

        Returns:
            Names of operators, and of arguments, that stand for each name.
        """
        from plumbline import _hdf5

        return _hdf5.name_maps()

    def __enter__(self) -> dumper:
        if not self.enabled:
            return self
        if dumper._entered:
            raise RuntimeError("utils dumper are not reentrant")
        if self.use_dump or self.use_load or self.check_overflow:
            # Brings the HDF5 library, which nothing else of the package needs.
            from plumbline.pytorch.operator_dump.session import Session

            self._session = Session(self, npu)
            self._session.start()
        dumper._entered = True
        return self

    def __exit__(self, *error: object) -> None:
        if not self.enabled:
            return
        dumper._entered = False
        if self._session is not None:
            self._session.stop()
            self._session = None

    def _check_switches(self) -> None:
        switches = (self.use_dump, self.use_load, self.check_overflow, self.load_with_acl_dump)
        if not all(isinstance(switch, bool) for switch in switches):
            raise RuntimeError(
                "use_dump/use_load/check_overflow/load_with_acl_dump should be set to True or "
                "False!"
            )
        if self.use_dump + self.use_load + self.check_overflow > 1:
            raise RuntimeError(
                "dump mode, load mode and check overflow mode can not run together!"
            )
        if self.load_with_acl_dump:
            if npu() is None:
                raise RuntimeError(DEVICE_ERROR)
            if os.environ.get("ACL_DUMP_DATA") == "1":
                warnings.warn(
                    "ACL_DUMP_DATA is 1, which dumps the whole process; load_with_acl_dump needs 0",
                    stacklevel=3,
                )

    def _check_paths(self) -> None:
        load = self.load_file_path
        if self.use_load and not (load and load.endswith(".h5") and os.path.isfile(load)):
            raise RuntimeError("load_file_path error, please input a real h5 file path")
        path = os.getcwd() if self.dump_path is None else os.fspath(self.dump_path)
        if os.path.isdir(path):
            path = os.path.join(path, datetime.now().strftime("%Y%m%d_%H%M%S.%f") + ".h5")
        if load and os.path.realpath(path) == os.path.realpath(load):
            raise RuntimeError("dump_path and load_file_path can not be same!")
        directory = os.path.dirname(path) or "."
        if not os.path.isdir(directory):
            raise RuntimeError(
                f"dump_path error, the directory '{directory}' does not exist, please input a "
                "valid one"
            )
        if not path.endswith(".h5"):
            raise RuntimeError(
                f"dump_path error, filename '{os.path.basename(path)}' should be end with .h5"
            )
        self.dump_path = path


def npu() -> Any:
    """torch_npu.npu, where that is loaded and has a device."""
    found = getattr(sys.modules.get("torch_npu"), "npu", None)
    return found if found is not None and found.is_available() else None
