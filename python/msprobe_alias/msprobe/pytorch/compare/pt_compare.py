"""compare() with upstream's arguments; the comparison is plumbline's."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msprobe.core.common.exceptions import invalid_argument, translated

_KNOWN_KEYS = ("npu_json_path", "bench_json_path", "stack_json_path", "is_print_compare_log")


def compare(
    input_param: dict[str, Any],
    output_path: str,
    *,
    stack_mode: bool = False,
    auto_analyze: bool = True,
    fuzzy_match: bool = False,
    data_mapping: Any = None,
    suffix: str = "",
) -> Any:
    """Writes compare_result_<time>.xlsx (and .csv, .json) into `output_path`.

    Args:
        input_param: "npu_json_path" and "bench_json_path", dump.json files or directories of one
            rank; optional "stack_json_path"; "is_print_compare_log" has no effect.
        output_path: made when missing.
        stack_mode: with a stack_json_path: write the call-stack column.
        auto_analyze: also write advisor_<time>.txt.
        fuzzy_match: ignore call numbers.
        data_mapping: YAML file or dict of values that are called otherwise on the golden side.
        suffix: put behind "compare_result" and "advisor" in the names of the files.

    Returns:
        plumbline.ComparisonResult.

    Raises:
        MsprobeException: a path is missing in `input_param`, the dumps do not fit.
        TypeError: data_mapping is neither.
        FileCheckException, ParseJsonException: a file that cannot be read.
    """
    from plumbline import compare as compare_runs  # loads the analysis half: not while recording

    if not isinstance(input_param, dict):
        raise invalid_argument(f"input_param is {type(input_param).__name__} (expected a dict)")
    for key in ("npu_json_path", "bench_json_path"):
        if not input_param.get(key):
            raise invalid_argument(f"input_param: {key} is missing (expected one of {_KNOWN_KEYS})")
    stack = input_param.get("stack_json_path") or None
    with translated(), mapping_file(data_mapping) as mappings:
        return compare_runs(
            input_param["npu_json_path"],
            input_param["bench_json_path"],
            output_path,
            fuzzy_match=fuzzy_match,
            show_stack=stack_mode or stack is None,
            stack_path=stack,
            write_advice=auto_analyze,
            mappings=mappings,
            suffix=suffix,
        )


@contextmanager
def mapping_file(data_mapping: Any) -> Iterator[dict[str, str]]:
    """A data mapping in each of upstream's forms, as `plumbline.compare` takes it."""
    if data_mapping is None or isinstance(data_mapping, str):
        yield {"data": data_mapping} if data_mapping else {}
    elif isinstance(data_mapping, dict):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "data_mapping.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(data_mapping, file)  # JSON is YAML
            yield {"data": path}
    else:
        raise TypeError(f"data_mapping is {type(data_mapping).__name__} (expected str or dict)")
