"""Signs of gradients of two trainings: `plumbline.GradComparator`."""

from __future__ import annotations

import os
import warnings

from plumbline import _compare

_PLOTS = ("png", "svg", "none")


class GradComparator:
    """Compares what task grad_probe recorded of two trainings.

    Both functions write `similarities.csv` (the share of equal signs per parameter and step),
    `first_suspect.csv`, a picture per parameter and the page `grad_compare.html`, print the answer
    and return it.
    """

    @classmethod
    def compare_distributed(
        cls, path1: str, path2: str, output_dir: str, plot: str = "png", threads: int = 0
    ) -> str:
        """Every rank that both have.

        Args:
            path1: directory of a gradient probe, which holds rank0, ...
            path2: that of the training to hold to.
            output_dir: each rank's files are written into rank{R} of it; made when missing.
            plot: pictures as "png" or "svg", or "none".
            threads: 0: one per core.

        Returns:
            The answer; its first line names the first suspect.

        Raises:
            RuntimeError: nothing in common, or the shapes of a parameter differ.
            TypeError: an array of signs is not bool.
            FileNotFoundError: a path is no directory.
            ValueError: `plot` is none of these.

        Example:
            >>> GradComparator.compare_distributed("npu", "gpu", "diff")  # doctest: +SKIP
        """
        for path in (path1, path2):
            _check_directory(path)
            if not any(_is_rank(path, name) for name in os.listdir(path)):
                raise RuntimeError(f"{path}: no directory rank{{R}} (compare() takes those of one "
                                   "rank)")
        return _compare_paths(path1, path2, output_dir, plot, threads)

    @classmethod
    def compare(
        cls, path1: str, path2: str, output_dir: str, plot: str = "png", threads: int = 0
    ) -> str:
        """One rank: the directories hold step0, ... Otherwise as `compare_distributed()`."""
        for path in (path1, path2):
            _check_directory(path)
        return _compare_paths(path1, path2, output_dir, plot, threads)


def _compare_paths(path1: str, path2: str, output_dir: str, plot: str, threads: int) -> str:
    if plot not in _PLOTS:
        raise ValueError(f"plot is {plot!r} (expected one of {', '.join(_PLOTS)})")
    try:
        text, problems = _compare.compare_gradients(path1, path2, output_dir, plot, threads)
    except FileNotFoundError as error:  # the paths are there: nothing in common
        raise RuntimeError(str(error)) from None
    except ValueError as error:
        raise TypeError(str(error)) from None
    for problem in problems:
        warnings.warn(problem, stacklevel=3)
    print(text, end="")
    return text


def _check_directory(path: str) -> None:
    if not os.path.isdir(path):
        raise FileNotFoundError(f"{path}: no such directory")


def _is_rank(path: str, name: str) -> bool:
    digits = name.removeprefix("rank")
    return digits != name and digits.isdigit() and os.path.isdir(os.path.join(path, name))
