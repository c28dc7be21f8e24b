"""Dumps of MindSpore's static graphs, read as `mindinsight.parser.dump` reads them.

Neither MindSpore nor MindInsight is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline import _compare

_RANK = "rank_"
_METADATA = ".dump_metadata"


class RankDirNotFound(FileNotFoundError):
    """No directory `rank_{number}` with `.dump_metadata` in it."""


class NodeTensors:
    """The tensor files of one kernel, by rank and iteration."""

    def __init__(self) -> None:
        self._ranks: dict[str, dict[int, dict[str, list[str]]]] = {}

    def add(self, rank: int, iteration: int, is_output: bool, path: str) -> None:
        """Adds one file."""
        iterations = self._ranks.setdefault(f"{_RANK}{rank}", {})
        files = iterations.setdefault(iteration, {"input": [], "output": []})
        files["output" if is_output else "input"].append(path)

    def to_dict(self) -> dict[str, dict[int, dict[str, list[str]]]]:
        """`{"rank_0": {3: {"input": [paths], "output": [paths]}}}`."""
        return self._ranks


class DumpParser:
    """The calls of `mindinsight.parser.dump.DumpParser` on a dump directory.

    Args:
        dump_dir: what `path` of the dump configuration named.

    Raises:
        RankDirNotFound: there is no rank's directory with `.dump_metadata`.
        ValueError: the configuration in it is no dump configuration.

    Example:
        >>> parser = DumpParser("dump")                # doctest: +SKIP
        >>> parser.get_tensor_files("self.conv1")      # doctest: +SKIP
    """

    def __init__(self, dump_dir: str) -> None:
        self._dump_dir = str(Path(dump_dir).absolute())
        ranks = sorted(_ranks_below(Path(self._dump_dir)))
        if not ranks:
            raise RankDirNotFound(f"{dump_dir}: no directory rank_0 with {_METADATA} in it")
        self._is_sync = all(_is_sync(place) for _, place in ranks)

    def get_tensor_files(
        self,
        qs: str,
        use_regex: bool = False,
        rank_ids: Iterable[int] | None = None,
        iterations: Iterable[int] | None = None,
    ) -> dict[str, NodeTensors]:
        """The tensors of every kernel whose source trace holds a text.

        Args:
            qs: text of the trace, whatever its case: a file, a line, a piece of code.
            use_regex: take `qs` as an ECMAScript expression to search for.
            rank_ids: ranks to look at; None: all.
            iterations: iterations to look at; None: all.

        Returns:
            Full name of each kernel -> its files.

        Raises:
            ValueError: `qs` is no expression.
            plumbline.CorruptDataError: a graph file or a table is damaged.
        """
        found: dict[str, NodeTensors] = {}
        ranks = None if rank_ids is None else list(rank_ids)
        steps = None if iterations is None else list(iterations)
        for kernel, rank, step, is_output, path in _compare.find_source_tensors(
                self._dump_dir, qs, use_regex, ranks, steps):
            found.setdefault(kernel, NodeTensors()).add(rank, step, is_output, path)
        return found

    def export_xlsx(self, output_dir: str | None = None) -> str:
        """Writes the compiled graphs as a workbook.

        Sheets `info`, `constant`, `parameter`, `operator`, `statistics` (how many of each type) and
        `source` (operators by their trace).

        Args:
            output_dir: made if missing; None: the current directory.

        Returns:
            Path of `dump_{date}_{time}.xlsx`.

        Raises:
            plumbline.CorruptDataError: a graph file is damaged.
        """
        directory = str(Path(output_dir or ".").absolute())
        path: str = _compare.write_graph_sheets(self._dump_dir, directory)
        return path

    def convert_all_data_to_host(self) -> list[str]:
        """Converts what an asynchronous dump left in the layout of the device.

        Beside each device file a `.npy` for every tensor of it, in the layout NCHW; a tensor
        without that layout keeps its own, which its name tells. Nothing is removed. What was
        interrupted goes on with the next call.

        Returns:
            A line for each file with tensors that cannot be converted: its path, `,input:0` or
            `,output:2` for each of them, and behind a tab the first reason. They are also in
            `convert_failed_files_summary.txt` in the dump directory.

        Raises:
            ValueError: the dump is synchronous: its tensors are in the layout of the host.
            FileNotFoundError: there is neither a device file nor an array.
            OSError: the directory cannot be written.
        """
        if self._is_sync:
            raise ValueError(f"{self._dump_dir}: is a synchronous dump (expected an asynchronous "
                             "one). Its tensors need no conversion")
        return _compare.convert_tree_to_host(self._dump_dir)


def _ranks_below(root: Path) -> Iterable[tuple[int, Path]]:
    if not root.is_dir():
        return
    for place in root.iterdir():
        number = place.name.removeprefix(_RANK)
        if number != place.name and number.isdigit() and (place / _METADATA).is_dir():
            yield int(number), place / _METADATA


def _is_sync(metadata: Path) -> bool:
    settings = _read(metadata / "data_dump.json")
    common = settings.get("common_dump_settings")
    if not isinstance(common, dict) or not {"net_name", "input_output"} <= common.keys():
        raise ValueError(f"{metadata}/data_dump.json: is no dump configuration (expected "
                         "common_dump_settings with net_name and input_output)")
    device = _read(metadata / "config.json").get("device_target", "Ascend")
    e2e = settings.get("e2e_dump_settings") or {}
    return device != "Ascend" or bool(e2e.get("enable"))


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: is not valid JSON") from error
    return value if isinstance(value, dict) else {}
