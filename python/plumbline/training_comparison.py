"""Comparing a training with an inference from Python: `plumbline.compare_training()`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from plumbline import _compare, arguments
from plumbline.comparison_result import (
    FORMATS,
    ComparisonResult,
    conditions_of,
    native_options,
    result_of,
)


def training_rules(
    backend: str, module_map: str | os.PathLike[str] | None
) -> _compare.TrainingRules:
    modules = "" if module_map is None else arguments.path("module_map", module_map)
    return _compare.TrainingRules(arguments.text("backend", backend), modules)


def compare_training(
    training: str | os.PathLike[str],
    inference: str | os.PathLike[str],
    output_dir: str | os.PathLike[str] | None = None,
    *,
    backend: str,
    module_map: str | os.PathLike[str] | None = None,
    formats: str | Iterable[str] = FORMATS,
    fail_on: str | Iterable[str] = ("any",),
    salvage: bool = False,
    threads: int = 0,
) -> ComparisonResult:
    """Compares a training with an inference of the same weights whose modules are fused.

    Args:
        training: the run under test, of one rank, at level L0.
        inference: the reference run: the prefill of the same words.
        backend: what trains, "fsdp" or "megatron".
        module_map: YAML file from a field of the training's paths to what the inference calls it.
        output_dir, formats, fail_on, salvage, threads: as for plumbline.compare().

    Raises:
        ValueError: an argument is wrong, or the two have no module in common.
        OSError, CorruptDataError, UnsupportedError: as plumbline.compare().
    """
    options = native_options(arguments.words("formats", formats), threads)
    options.salvage = arguments.flag("salvage", salvage)
    if output_dir is not None:
        options.output_dir = arguments.path("output_dir", output_dir)
    conditions = conditions_of(fail_on)
    sides = arguments.path("training", training), arguments.path("inference", inference)
    rules = training_rules(backend, module_map)
    if _compare.kind_of_pair(*sides, options) == _compare.PairKind.RANKS:
        raise ValueError(f"{sides[0]} or {sides[1]}: holds several ranks or steps (expected one). "
                         "Use plumbline.compare_ranks(..., backend=...)")
    native = _compare.compare_training(*sides, rules, options)
    if output_dir is not None:
        _compare.write_comparison(native, options)
    return result_of(native, conditions)
