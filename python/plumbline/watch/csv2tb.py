"""Files of a training monitor for TensorBoard: `plumbline.csv2tensorboard_by_step()`.

Size caps: the function has upstream's six arguments.
"""

from __future__ import annotations

import os
import warnings

from plumbline import _compare


def csv2tensorboard_by_step(
    monitor_path: str | os.PathLike[str],
    time_start: str | None = None,
    time_end: str | None = None,
    process_num: int | None = None,
    data_type_list: list[str] | None = None,
    output_dirpath: str | os.PathLike[str] | None = None,
) -> str:
    """Converts the csv files of a training monitor to event files of TensorBoard.

    Args:
        monitor_path: directory that holds those of the ranks, `Dec03_21-34-40-rank0-3f9c1a2b`, ...
        time_start, time_end: directories from one time to another alone, such as
            `Dec03_21-34-40`, both included.
        process_num: threads; None: one per core.
        data_type_list: kinds of files such as `["actv", "grad_reduced"]`; None: all.
        output_dirpath: made if missing; None: `{time}-csv2tensorboard_by_step` in monitor_path.

    Returns:
        The directory with `rank{R}/{kind}/events.out.tfevents.*`. Warnings of Python say what was
        damaged in the files, and that older event files were replaced.

    Raises:
        ValueError: an argument that is none of these.
        FileNotFoundError: no directory of a monitor, or no row of these kinds.
        CorruptDataError: a csv file that is none of a monitor.
    """
    if process_num is not None and (
            not isinstance(process_num, int) or isinstance(process_num, bool) or process_num < 1):
        raise ValueError(f"process_num({process_num}) is not a positive integer")
    if data_type_list is not None and not isinstance(data_type_list, list):
        raise ValueError(f"data_type_list({data_type_list}) is not a list")
    path, problems = _compare.monitor_to_tensorboard(
        monitor_path, output_dirpath or "", time_start or "", time_end or "",
        data_type_list or [], process_num or 0)
    for problem in problems:
        warnings.warn(problem, stacklevel=2)
    return path
