"""compare_distributed() with upstream's arguments: one comparison per pair of ranks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.pytorch.compare.pt_compare import compare

_RANK = re.compile(r"rank(0|[1-9][0-9]*)?")


def compare_distributed(
    npu_dump_dir: str,
    bench_dump_dir: str,
    output_path: str,
    *,
    stack_mode: bool = False,
    auto_analyze: bool = True,
    fuzzy_match: bool = False,
    data_mapping: Any = None,
    **others: Any,
) -> list[Any]:
    """Compares the ranks of two step directories; each pair has its own files.

    Ranks pair by number. `compare_result_rank0-rank0_<time>.xlsx` is the table of the first.

    Args:
        npu_dump_dir: directory of one step; its children are rank0, rank1, ...
        bench_dump_dir: the same of the reference.
        output_path: made when missing.
        stack_mode: without effect, as upstream: the column is there when there is a stack.json.
        auto_analyze: also write advisor_rankN-rankN_<time>.txt.
        fuzzy_match: ignore call numbers.
        data_mapping: as for compare().
        others: none; `suffix` is refused as upstream refuses it.

    Returns:
        One plumbline.ComparisonResult per pair, in the order of the ranks.

    Raises:
        MsprobeException: an unknown argument, or a rank that only one side has. The ranks that both
            have are compared first.
        FileCheckException: a directory is missing or has no rank, or a file that cannot be read.
    """
    for name in others:
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR,
                               f"compare_distributed: {name} is not an argument of it")
    targets, goldens = _ranks(npu_dump_dir), _ranks(bench_dump_dir)
    results = []
    for rank in sorted(targets.keys() & goldens.keys()):
        sides = {"npu_json_path": str(targets[rank] / "dump.json"),
                 "bench_json_path": str(goldens[rank] / "dump.json")}
        results.append(compare(sides, output_path, auto_analyze=auto_analyze,
                               fuzzy_match=fuzzy_match, data_mapping=data_mapping,
                               suffix=f"_{targets[rank].name}-{goldens[rank].name}"))
    alone = sorted(targets.keys() ^ goldens.keys())
    if alone:
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR,
                               f"compare_distributed: only one side has rank {alone[0]}; "
                               f"{len(results)} ranks that both have were compared")
    return results


def _ranks(directory: str) -> dict[int, Path]:
    """The rank directories by number; `rank`, which a run without ranks writes, is -1."""
    found = {}
    try:
        children = sorted(Path(directory).iterdir())
    except OSError as error:
        raise FileCheckException(FileCheckException.ILLEGAL_PATH_ERROR, str(error)) from error
    for child in children:
        match = _RANK.fullmatch(child.name)
        if match and child.is_dir():
            found[int(match[1]) if match[1] else -1] = child
    if not found:
        raise FileCheckException(FileCheckException.ILLEGAL_PATH_ERROR,
                                 f"{directory}: holds no rank directory (expected rank0, rank1)")
    return found
