"""compare_distributed() with upstream's arguments; the comparison is plumbline's."""

from __future__ import annotations

from typing import Any

from msprobe.core.common.exceptions import invalid_argument, translated


def compare_distributed(
    npu_dump_dir: str, bench_dump_dir: str, output_path: str, **kwargs: Any
) -> Any:
    """Writes compare_result_rank<n>-rank<n>_<time>.xlsx for every rank into `output_path`.

    Args:
        npu_dump_dir: step directory of the run under test, holding rank0, rank1, ...
        bench_dump_dir: step directory of the reference.
        output_path: made when missing.
        kwargs: upstream's fuzzy_match and auto_analyze (an advisor file per rank, default True);
            stack_mode and is_print_compare_log have no effect, upstream's data_mapping must be
            None and suffix empty.

    Returns:
        plumbline.RanksResult. Ranks pair by number; one that fails does not stop the others.

    Raises:
        MsprobeException: an argument that is not known, not built yet, or refused by upstream.
        FileCheckException, ParseJsonException: a directory that cannot be read.
    """
    from plumbline import compare_ranks  # loads the analysis half: not while recording

    fuzzy_match = bool(kwargs.pop("fuzzy_match", False))
    auto_analyze = bool(kwargs.pop("auto_analyze", True))
    for ignored in ("stack_mode", "is_print_compare_log"):
        kwargs.pop(ignored, None)
    if kwargs.pop("data_mapping", None) is not None:
        raise invalid_argument("compare_distributed: data_mapping is for one rank. Use compare()")
    if kwargs.pop("suffix", ""):
        raise invalid_argument(
            "compare_distributed: suffix is not allowed; choose another output_path"
        )
    if kwargs:
        raise invalid_argument(f"compare_distributed: unknown argument {sorted(kwargs)[0]}")
    with translated():
        return compare_ranks(npu_dump_dir, bench_dump_dir, output_path, formats=("xlsx",),
                             fuzzy_match=fuzzy_match, write_advice=auto_analyze)
