"""Comparing two recordings from Python: `plumbline.compare()`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from plumbline import _compare, arguments
from plumbline.checkpoint_comparison import compare_checkpoints
from plumbline.comparison_result import (
    FORMATS,
    ComparisonResult,
    conditions_of,
    native_options,
    result_of,
)
from plumbline.rank_comparison import RanksResult, compare_whole_runs


def compare(
    target: str | os.PathLike[str],
    golden: str | os.PathLike[str],
    output_dir: str | os.PathLike[str] | None = None,
    *,
    formats: str | Iterable[str] = FORMATS,
    fail_on: str | Iterable[str] = ("any",),
    fuzzy_match: bool = False,
    salvage: bool = False,
    show_stack: bool = True,
    stack_path: str | os.PathLike[str] | None = None,
    write_advice: bool = False,
    noise: str | os.PathLike[str] | None = None,
    threads: int = 0,
    mappings: Mapping[str, str | os.PathLike[str] | bool] | None = None,
    suffix: str = "",
) -> ComparisonResult | RanksResult:
    """Compares two recorded runs and names the first call that went wrong.

    One rank and step gives a ComparisonResult, several steps or ranks a RanksResult, two arrays or
    checkpoints (.npy, .pt, .safetensors, directories of them) a CheckpointResult. Some steps or
    ranks only: plumbline.compare_ranks(). A training with an inference: compare_training().

    Args:
        target: the run under test: a dump.json, or a directory of a rank, a step or a dump.
        golden: the reference run.
        output_dir: where the result files go, made when missing; None writes no file.
        formats: which result files: "xlsx", "csv", "json", "html", and also "jsonl", "sqlite",
            "junit", "sarif"; a text may name several with commas.
        fail_on: what makes `exit_code` 1: "wrong" (a call is named), "unjudged", "suspicious",
            "broken", "unmatched", "any" (0: every call has its counterpart, nothing differs).
        fuzzy_match: ignore call numbers: the k-th call of a name pairs with the k-th.
        salvage: compare the complete records of a truncated dump.json.
        show_stack, stack_path: write the call-stack column; its stack.json if not the target's.
        write_advice: also write upstream's advisor_<time>.txt.
        noise: a third run that is right; as far as it is from the golden run is noise.
        threads: worker threads; 0: one per core.
        mappings: YAML files by kind, "data", "api", "cell", "layer"; True: the built-in rules.
        suffix: put behind "compare_result" in the names of files; as stack_path for one rank only.

    Raises:
        ValueError: an argument is wrong, the two recordings do not fit together, or the paths
            hold what another function or command compares, which the message names.
        OSError: a path is missing, or the operating system refused to read or write.
        plumbline.CorruptDataError: a file is damaged; the message has the byte offset.
        plumbline.UnsupportedError: a recording that plumbline cannot compare.
    """
    options = native_options(arguments.words("formats", formats), threads)
    options.fuzzy_match = arguments.flag("fuzzy_match", fuzzy_match)
    options.salvage = arguments.flag("salvage", salvage)
    options.show_stack = arguments.flag("show_stack", show_stack)
    options.write_advice = arguments.flag("write_advice", write_advice)
    options.suffix = arguments.text("suffix", suffix)
    options.set_mappings(*_mapping_files(mappings or {}))
    options.stack_path = "" if stack_path is None else arguments.path("stack_path", stack_path)
    options.noise_path = "" if noise is None else arguments.path("noise", noise)
    if output_dir is not None:
        options.output_dir = arguments.path("output_dir", output_dir)
    sides = arguments.path("target", target), arguments.path("golden", golden)
    return _compared(sides, options, conditions_of(fail_on), output_dir is not None)


def _compared(sides: tuple[str, str], options: _compare.CompareOptions, conditions: list[str],
              writes: bool) -> ComparisonResult | RanksResult:
    """By what the two paths hold, as the program."""
    kind = _compare.kind_of_pair(*sides, options)
    if kind == _compare.PairKind.CHECKPOINTS:
        return compare_checkpoints(sides, options, conditions, writes)
    if kind == _compare.PairKind.RANKS:
        return compare_whole_runs(sides, options, conditions, writes)
    if kind != _compare.PairKind.RECORDING:
        raise ValueError(f"{sides[0]}: holds {kind.text} (expected recordings, arrays or "
                         "checkpoints). Compare these with the command `plumb compare`")
    native = _compare.compare_runs(*sides, options)
    if writes:
        _compare.write_comparison(native, options)
    return result_of(native, conditions)


def _mapping_files(
    mappings: Mapping[str, str | os.PathLike[str] | bool],
) -> tuple[str, str | None, str | None, str | None]:
    """The four kinds as the native side takes them: a path, or "" for the built-in rules."""
    kinds = ("data", "api", "cell", "layer")
    if not isinstance(mappings, Mapping):
        raise TypeError(f"mappings: {mappings!r} is of type {type(mappings).__name__} "
                        f"(expected a dict of paths by kind, {kinds})")
    found: dict[str, str] = {}
    for kind, value in mappings.items():
        if kind not in kinds or (kind == "data" and isinstance(value, bool)):
            raise ValueError(f"mappings: {kind}={value!r} (expected {kinds}, data as a path)")
        if isinstance(value, bool):
            if value:
                found[kind] = ""
        else:
            found[kind] = arguments.path(f"mappings[{kind!r}]", value)
    return found.get("data", ""), found.get("api"), found.get("cell"), found.get("layer")
