"""Watchpoints in Python: the calls of `mindinsight.debugger`, on every recording.

A script for it runs with its import changed, without MindSpore. Steps are iterations, as files
count them. `plumb watch` says the same on a command line.

Size caps: the selecting functions have upstream's arguments.
"""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plumbline import _compare
from plumbline.watch.conditions import ConditionBase
from plumbline.watch.tensor_statistics import (
    Row,
    Statistics,
    StatisticsFiles,
    by_tensor,
    row_of,
    write_summary,
)

Numbers = int | Iterable[int] | None  # of iterations, ranks or slots; None: all

_WORDS = {1: "nan", 2: "inf", 4: "no_prev_tensor", 8: "out_of_mem", 16: "no_history",
          32: "no_value"}
_FRAME = re.compile(r"File (?P<path>.*?), line (?P<line>\d+),? ?in ?[^:]*:? ?(?P<code>.*)", re.S)


class Node:
    """A kernel of a static graph, or a recorded call, on one rank."""

    def __init__(self, dump: DumpAnalyzer, rank: int, graph: str, name: str) -> None:
        self._dump = dump
        self._rank = rank
        self._graph = graph
        self._name = name
        self.numbers: list[int] = []  # of its tensors

    @property
    def name(self) -> str:
        """Full name."""
        return self._name

    @property
    def rank(self) -> int:
        """Rank of the process."""
        return self._rank

    @property
    def graph_name(self) -> str:
        """Name of the graph; of recorded calls empty."""
        return self._dump.trace(self).graph_name or self._graph

    @property
    def root_graph_id(self) -> int:
        """Number of the root graph; 0 where there is none."""
        text = self._dump.trace(self).root_graph or self._graph
        return int(text) if text.isdigit() else 0

    @property
    def stack(self) -> list[dict[str, Any]]:
        """Frames with `file_path`, `line_no` and `code_line`, innermost first."""
        frames = []
        for frame in self._dump.frames(self):
            found = _FRAME.match(frame)
            if found:
                frames.append({"file_path": found["path"], "line_no": int(found["line"]),
                               "code_line": found["code"].strip()})
        return frames

    def get_input_tensors(self, iterations: Numbers = None,
                          slots: Numbers = None) -> list[DebuggerTensor]:
        """What went in, by iteration and slot; slots run over all inputs."""
        own = self._dump.tensors_of(self, "input", iterations, slots)
        if own:
            return own
        found: list[DebuggerTensor] = []
        for node in self._dump.get_input_nodes(self):
            found += node.get_output_tensors(iterations)
        wanted = _listed(slots)
        return found if wanted is None else [one for i, one in enumerate(found) if i in wanted]

    def get_output_tensors(self, iterations: Numbers = None,
                           slots: Numbers = None) -> list[DebuggerTensor]:
        """What came out, likewise."""
        return self._dump.tensors_of(self, "output", iterations, slots)

    def __repr__(self) -> str:
        return f"rank: {self._rank}, graph_name: {self.graph_name}, node_name: {self._name}"


class DebuggerTensor:
    """One tensor of a node at one iteration."""

    def __init__(self, dump: DumpAnalyzer, number: int, node: Node, slot: int,
                 iteration: int) -> None:
        self._dump = dump
        self.number = number
        self._node = node
        self._slot = slot
        self._iteration = iteration

    @property
    def node(self) -> Node:
        """Whose it is."""
        return self._node

    @property
    def slot(self) -> int:
        """Which of the node's."""
        return self._slot

    @property
    def iteration(self) -> int:
        """The step, counted as the files count."""
        return self._iteration

    @property
    def rank(self) -> int:
        """Rank of the process."""
        return self._node.rank

    def value(self) -> Any:
        """A NumPy array; None where no elements were recorded."""
        return self._dump.value(self.number)

    def __repr__(self) -> str:
        return (f"rank: {self.rank}, graph_name: {self._node.graph_name}, node_name: "
                f"{self._node.name}, slot: {self._slot}, iteration: {self._iteration}")


class Watchpoint:
    """A condition and the tensors that it is held against."""

    def __init__(self, tensors: Iterable[DebuggerTensor], condition: ConditionBase) -> None:
        self._tensors = list(tensors)
        if not all(isinstance(one, DebuggerTensor) for one in self._tensors):
            raise TypeError("tensors: expected a list of DebuggerTensor")
        if not isinstance(condition, ConditionBase):
            raise TypeError(f"condition is a {type(condition).__name__} (expected a condition such "
                            "as TensorOverflowCondition())")
        self._condition = condition

    @property
    def tensors(self) -> list[DebuggerTensor]:
        """What is looked at."""
        return self._tensors

    @property
    def condition(self) -> ConditionBase:
        """What is looked for."""
        return self._condition


class HitDetail(dict[str, dict[str, Any]]):
    """Parameter -> its threshold, the actual value, and whether it hit."""

    def __init__(self, condition: ConditionBase,
                 checks: Sequence[tuple[str, float, bool | None, float | None]]) -> None:
        super().__init__(
            (name, {"threshold": threshold, "actual_value": actual, "hit": hit})
            for name, threshold, hit, actual in checks)
        self._condition = condition

    @property
    def name(self) -> str:
        """Name of the condition."""
        return self._condition.name

    @property
    def condition_id(self) -> int:
        """Its number."""
        return self._condition.condition_id

    @property
    def param_dict(self) -> dict[str, Any]:
        """The actual values."""
        return {name: one["actual_value"] for name, one in self.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name}={one['threshold']}: {one['actual_value']}"
                         for name, one in self.items() if one["hit"]) or "None"


class WatchpointHit:
    """A tensor that met a condition, or could not be judged by it."""

    def __init__(self, watchpoint: Watchpoint, tensor: DebuggerTensor, code: int, reasons: str,
                 checks: Sequence[tuple[str, float, bool | None, float | None]]) -> None:
        self._watchpoint = watchpoint
        self._tensor = tensor
        self._code = code
        self._reasons = reasons
        self._checks = checks

    @property
    def tensor(self) -> DebuggerTensor:
        """Which tensor."""
        return self._tensor

    @property
    def condition(self) -> ConditionBase:
        """Which condition."""
        return self._watchpoint.condition

    @property
    def error_code(self) -> int:
        """0 for a hit, otherwise the sum of why it was not evaluated."""
        return self._code

    @property
    def error_msg(self) -> list[str]:
        """The same in words; also reasons for which upstream has no number."""
        known = [word for bit, word in _WORDS.items() if self._code & bit]
        return known or self._reasons.split()

    @property
    def reasons(self) -> list[str]:
        """Words of plumbline for what was not evaluated."""
        return self._reasons.split()

    def get_threshold(self) -> ConditionBase:
        """The condition with its parameters."""
        return self.condition

    def get_hit_detail(self) -> HitDetail | None:
        """The actual value of each parameter, and which of them hit; None with a code."""
        return None if self._reasons else HitDetail(self.condition, self._checks)

    def __repr__(self) -> str:
        what = f"error_code: {self._code}, {self.error_msg}" if self._reasons else "hit"
        return f"{self.condition.name}: {what}, {self._tensor!r}"


class _Trace:
    """What compiled graphs say about a node."""

    def __init__(self, graph_name: str = "", root_graph: str = "",
                 stack: Sequence[str] = (), inputs: Sequence[str] = ()) -> None:
        self.graph_name = graph_name
        self.root_graph = root_graph
        self.stack = list(stack)
        self.inputs = list(inputs)


class DumpAnalyzer:
    """Every tensor of a recording, to be selected and held against conditions.

    Args:
        dump_dir: a dump of static graphs, recorded calls, a monitor's output or checkpoints.
        mem_limit: as upstream, in MB; nothing here needs as much.

    Raises:
        FileNotFoundError: no such directory.
        ValueError: nothing in it that can be watched.
        plumbline.CorruptDataError: it is damaged.

    Example:
        >>> analyzer = DumpAnalyzer("dump")                              # doctest: +SKIP
        >>> tensors = analyzer.select_tensors("conv", iterations=[0])    # doctest: +SKIP
    """

    def __init__(self, dump_dir: str, mem_limit: int | None = None) -> None:
        if mem_limit is not None and (isinstance(mem_limit, bool) or not isinstance(mem_limit, int)
                                      or not 2048 <= mem_limit <= 2147483647):
            raise ValueError(f"mem_limit is {mem_limit} (expected None or 2048 to 2147483647)")
        self._dump_dir = str(dump_dir)
        self._native = _compare.open_watched(self._dump_dir)
        self._nodes: dict[tuple[int, str, str], Node] = {}
        self._tensors: list[DebuggerTensor] = []
        self._io: list[str] = []
        self._traces = {(rank, name): _Trace(graph, root, stack, inputs)
                        for rank, graph, root, name, _, stack, inputs in self._native.nodes}
        for number, (step, rank, graph, name, io, slot, _) in enumerate(self._native.tensors):
            node = self._nodes.setdefault((rank, graph, name), Node(self, rank, graph, name))
            node.numbers.append(number)
            self._tensors.append(DebuggerTensor(self, number, node, slot, step))
            self._io.append(io)
        known = {(rank, name) for rank, _, name in self._nodes}
        for rank, name in self._traces:
            if (rank, name) not in known:
                self._nodes[rank, "", name] = Node(self, rank, "", name)

    def get_ranks(self) -> list[int]:
        """Ranks that have tensors, ascending."""
        return sorted({one.rank for one in self._tensors})

    def get_iterations(self, ranks: Numbers = None) -> list[int]:
        """Iterations that have tensors, ascending."""
        chosen = self._chosen_ranks(ranks)
        return sorted({one.iteration for one in self._tensors
                       if chosen is None or one.rank in chosen})

    def select_nodes(self, query_string: str, use_regex: bool = False,
                     select_by: str = "node_name", ranks: Numbers = None,
                     case_sensitive: bool = True) -> list[Node]:
        """Nodes whose name, or a line of whose stack, holds a text or an expression.

        Args:
            query_string: the text.
            use_regex: it is an expression to search for.
            select_by: "node_name" or "code_stack".
            ranks: one or several; None: all.
            case_sensitive: False: in any case.

        Raises:
            ValueError: a rank that was not recorded, another way to select.
        """
        if select_by not in ("node_name", "code_stack"):
            raise ValueError(f"select_by is {select_by!r} (expected node_name or code_stack)")
        pattern = re.compile(query_string if use_regex else re.escape(query_string),
                             0 if case_sensitive else re.IGNORECASE)
        chosen = self._chosen_ranks(ranks)
        found = []
        for node in self._nodes.values():
            if chosen is not None and node.rank not in chosen:
                continue
            texts = [node.name] if select_by == "node_name" else [
                f"# {frame['file_path']}:{frame['line_no']}  {frame['code_line']}"
                for frame in node.stack]
            if any(pattern.search(text) for text in texts):
                found.append(node)
        return found

    def select_tensors(self, query_string: str, use_regex: bool = False,
                       select_by: str = "node_name", iterations: Numbers = None,
                       ranks: Numbers = None, slots: Numbers = None,
                       case_sensitive: bool = True) -> list[DebuggerTensor]:
        """Outputs of the nodes that select_nodes() gives, of some iterations and slots.

        Raises:
            ValueError: an iteration or a rank that was not recorded.
        """
        found: list[DebuggerTensor] = []
        steps = self._chosen_iterations(iterations, ranks)
        for node in self.select_nodes(query_string, use_regex, select_by, ranks, case_sensitive):
            found += node.get_output_tensors(steps, slots)
        return found

    def select_tensor_statistics(self, iterations: Numbers = None,
                                 ranks: Numbers = None) -> Statistics:
        """Rows of `statistic.csv`: {rank: {iteration: {"op:io:slot": [rows]}}}.

        A row has the columns of its file, as text. Of iterations without that file the rows are
        computed from the elements, where they were recorded, with the name of the node.

        Warnings of Python say what was damaged and is left out.

        Raises:
            ValueError: an iteration or a rank that was not recorded; neither statistics nor
                elements are there.
        """
        files = StatisticsFiles(self._dump_dir)
        chosen, steps = self._chosen_ranks(ranks), self._chosen_iterations(iterations, ranks)
        found: Statistics = {rank: {} for rank in (self.get_ranks() if chosen is None else chosen)}
        missing: dict[tuple[int, int], list[Row]] = {}
        for rank, tables in found.items():
            for step in self.get_iterations(rank):
                if steps is None or step in steps:
                    tables[step] = files.rows(rank, step) or {}
                    if not tables[step]:
                        missing[rank, step] = []
        self._compute_rows(missing)
        for (rank, step), rows in missing.items():
            found[rank][step] = by_tensor(rows)
        if not any(rows for tables in found.values() for rows in tables.values()):
            raise ValueError(f"{self._dump_dir}: holds no statistic.csv and no elements of tensors "
                             "(expected a dump whose saved_data is statistic, full or tensor)")
        return found

    def summary_statistics(self, statistics: Statistics, overflow_value: float = 65500,
                           out_path: str = "./") -> str:
        """Writes `statistics_summary.csv`: a row for each tensor over all iterations and ranks.

        Columns: op_type, op_name, tensor_name; in how many rows there is an infinity, a NaN, an
        extreme beyond overflow_value in size; how many rows there are; in how many all is well; in
        how many iterations of a rank. A row that does not say enough is in none of these.

        Args:
            statistics: what select_tensor_statistics() returned.
            overflow_value: at least 0.
            out_path: directory of the file; made when missing.

        Returns:
            Its path.

        Raises:
            ValueError: overflow_value is none.
            TypeError: statistics are none.
            OSError: the file cannot be written.
        """
        return write_summary(statistics, overflow_value, out_path)

    def check_watchpoints(self, watchpoints: Iterable[Watchpoint],
                          error_on_no_value: bool = False) -> list[WatchpointHit]:
        """Hits, and tensors that could not be judged, by iteration and place in it.

        Args:
            watchpoints: what to look for, and where.
            error_on_no_value: also tensors without elements or values (code 32).
        """
        all_points = list(watchpoints)
        rows = self._native.check(
            [(point.condition.expression, [one.number for one in point.tensors])
             for point in all_points])
        hits = []
        for point, number, code, reasons, checks in rows:
            if code & 32 and not error_on_no_value:
                continue
            hits.append(WatchpointHit(all_points[point], self._tensors[number], code, reasons,
                                      checks))
        return hits

    def get_input_nodes(self, node: Node) -> list[Node]:
        """Nodes whose outputs go into it, as compiled graphs have it."""
        names = self.trace(node).inputs
        return [other for name in names for other in self._named(node.rank, name)]

    def get_output_nodes(self, node: Node) -> list[Node]:
        """Nodes that its outputs go into."""
        return [other for other in self._nodes.values()
                if other.rank == node.rank and node.name in self.trace(other).inputs]

    def list_affected_nodes(self, tensor: DebuggerTensor) -> list[Node]:
        """Nodes that a tensor goes into, whichever of its node's outputs it is."""
        return self.get_output_nodes(tensor.node)

    def export_graphs(self, output_dir: str | None = None) -> str:
        """Writes the compiled graphs as a workbook; returns its path."""
        path: str = _compare.write_graph_sheets(self._dump_dir,
                                                str(Path(output_dir or ".").absolute()))
        return path

    # ---- what nodes and tensors ask

    def trace(self, node: Node) -> _Trace:
        """What compiled graphs say about a node."""
        return self._traces.get((node.rank, node.name), _Trace())

    def frames(self, node: Node) -> list[str]:
        """The call stack of a node as it was recorded."""
        if not node.numbers:
            return self.trace(node).stack
        stack: list[str] = self._native.stack(node.numbers[0])
        return stack

    def value(self, number: int) -> Any:
        """The elements of a tensor as a NumPy array; None: there are none."""
        stored: Any = self._native.value(number)
        if stored is None:
            return None
        numpy = importlib.import_module("numpy")
        data, dtype, shape = stored
        return numpy.frombuffer(data, dtype=dtype).reshape(shape)

    def tensors_of(self, node: Node, io: str, iterations: Numbers,
                   slots: Numbers) -> list[DebuggerTensor]:
        """Tensors of one side of a node; all but inputs are outputs."""
        steps, wanted = _listed(iterations), _listed(slots)
        return [one for one in map(self._tensors.__getitem__, node.numbers)
                if (self._io[one.number] == "input") == (io == "input")
                and (steps is None or one.iteration in steps)
                and (wanted is None or one.slot in wanted)]

    def _named(self, rank: int, name: str) -> list[Node]:
        return [node for key, node in self._nodes.items() if key[0] == rank and key[2] == name]

    def _chosen_ranks(self, ranks: Numbers) -> list[int] | None:
        return _known(ranks, "ranks", self.get_ranks())

    def _chosen_iterations(self, iterations: Numbers, ranks: Numbers) -> list[int] | None:
        return _known(iterations, "iterations", self.get_iterations(ranks))

    def _compute_rows(self, wanted: dict[tuple[int, int], list[Row]]) -> None:
        """Adds the rows of tensors with elements to (rank, iteration)."""
        for one, (*_, kind) in zip(self._tensors, self._native.tensors, strict=True):
            rows = wanted.get((one.rank, one.iteration))
            if rows is None:
                continue
            try:
                value = self.value(one.number)
            except RuntimeError as error:  # a damaged file
                warnings.warn(f"{one!r}: is left out: {error}", stacklevel=3)
                continue
            if value is not None:
                rows.append(row_of(one.node.name, kind, self._io[one.number], one.slot, value))


def _listed(numbers: Numbers) -> list[int] | None:
    """One number is a list of it."""
    if numbers is None:
        return None
    return [numbers] if isinstance(numbers, int) else list(numbers)


def _known(numbers: Numbers, name: str, known: list[int]) -> list[int] | None:
    chosen = _listed(numbers)
    for number in chosen or []:
        if number not in known:
            raise ValueError(f"{name}: {number} was not recorded (expected some of "
                             f"{json.dumps(known)})")
    return chosen
