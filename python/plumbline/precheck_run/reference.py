"""Which reference function stands for an operator: those of plumbline and those of users.

Users name files in $PLUMBLINE_REFERENCES, or as in upstream's tool in $MSPROBE_BENCH_PATH, apart
by ":"; a folder stands for its .yaml files. A later entry wins over an earlier one, and all win
over plumbline's own, with a warning.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from plumbline import _reference as native
from plumbline.precheck_run import reference_operators as operators

VARIABLES = ("MSPROBE_BENCH_PATH", "PLUMBLINE_REFERENCES")
_LOG = logging.getLogger("plumbline")


@dataclass(frozen=True)
class Reference:
    """A reference function, called as the operator is."""

    name: str
    function: Callable[..., Any]
    aliases: Mapping[str, str] = field(default_factory=dict)  # upstream's name -> the vendor's

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **self._known(kwargs))

    def _known(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords by the vendor's names.

        Raises:
            TypeError: there are others; names them.
        """
        parameters = inspect.signature(self.function).parameters
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            return dict(kwargs)
        named = {
            name if name in parameters else self.aliases.get(name, name): value
            for name, value in kwargs.items()
        }
        unknown = [name for name in named if name not in parameters]
        if unknown:
            raise TypeError(f"{self.name}: unknown keyword {', '.join(sorted(unknown))} "
                            f"(expected {', '.join(parameters)})")
        return named


_SELF = {"data": "self", "input0": "self", "input": "self", "input_x": "self", "x": "self"}
_INPUT = {"data": "input", "input0": "input", "input_data": "input", "x": "input", "self": "input",
          "gama": "weight", "gamma": "weight", "beta": "bias", "dy_tensor": "grad"}
_SCORES = {"data": "x", "input": "x", "self": "x", "finished_optional": "finished"}
# Name -> function and its aliases.
_BUILT_IN: dict[str, tuple[Callable[..., Any], Mapping[str, str]]] = {
    "npu_apply_adam": (operators.npu_apply_adam, {"eps": "epsilon"}),
    "npu_apply_adam_w": (operators.npu_apply_adam_w, {"eps": "epsilon"}),
    "npu_confusion_transpose": (operators.npu_confusion_transpose, _SELF),
    "npu_confusion_transpose_backward": (operators.npu_confusion_transpose_backward, {}),
    "fast_gelu": (operators.npu_fast_gelu, _SELF),
    "npu_fast_gelu": (operators.npu_fast_gelu, _SELF),
    "npu_fast_gelu_backward": (operators.npu_fast_gelu_backward, _SELF),
    "npu_fusion_attention": (operators.npu_fusion_attention, {"scale_value": "scale"}),
    "npu_fusion_attention_grad": (operators.npu_fusion_attention_grad, {"scale": "scale_value"}),
    "gpu_fusion_attention": (operators.gpu_fusion_attention, {}),
    "npu_group_norm_silu": (operators.npu_group_norm_silu, _INPUT),
    "npu_layer_norm_eval": (operators.npu_layer_norm_eval, _INPUT),
    "npu_linear": (operators.npu_linear, _INPUT),
    "npu_linear_backward": (operators.npu_linear_backward, _INPUT),
    "matmul_backward": (operators.matmul_backward, {}),
    "npu_mish": (operators.npu_mish, _SELF),
    "npu_moe_gating_top_k_softmax": (operators.npu_moe_gating_top_k_softmax, _SCORES),
    "npu_rms_norm": (operators.npu_rms_norm, {**_SELF, "gama": "gamma", "eps": "epsilon"}),
    "npu_rms_norm_backward": (operators.npu_rms_norm_backward, {**_SELF, "gama": "gamma"}),
    "npu_rotary_mul": (operators.npu_rotary_mul, _INPUT),
    "npu_rotary_mul_backward": (operators.npu_rotary_mul_backward,
                                {**_SELF, "dy_tensor": "grad"}),
    "npu_scaled_masked_softmax": (operators.npu_scaled_masked_softmax, _SCORES),
    "npu_scaled_masked_softmax_backward": (operators.npu_scaled_masked_softmax_backward, {}),
    "npu_sort_v2": (operators.npu_sort_v2, _SELF),
    "npu_swiglu": (operators.npu_swiglu, _SELF),
    "npu_swiglu_backward": (operators.npu_swiglu_backward, _SELF),
    "flash_attention_score": (operators.flash_attention_score, {}),
}


def find(name: str) -> Reference | None:
    """The reference function of an operator, or None."""
    return _references().get(name)


def set_recorded(dtype: str | None) -> None:
    """The type that the tensors of the next calls had on the device, by its plain name.

    Where it has 16 bits, results take part in the roundings that the device makes in between.
    """
    operators.recording.dtype = dtype


def set_threads(threads: int) -> None:
    """How many threads a reference function uses at most; 0: one per core."""
    native.set_threads(threads)


@functools.lru_cache(maxsize=1)
def _references() -> dict[str, Reference]:
    found = {
        name: Reference(name, function, aliases) for name, (function, aliases) in _BUILT_IN.items()
    }
    for path in _user_files():
        for reference in _of_file(path, found):
            if reference.name in found:
                _LOG.warning("%s: %s takes the place of the reference function that was there",
                             path, reference.name)
            found[reference.name] = reference
    return found


def _user_files() -> list[Path]:
    paths: list[Path] = []
    for variable in VARIABLES:
        for part in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            path = Path(part)
            if path.is_dir():
                paths += sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml"))
            elif path.is_file():
                paths.append(path)
            else:
                _LOG.warning("$%s: there is no %s; its reference functions are missing", variable,
                             part)
    return paths


def _of_file(path: Path, known: Mapping[str, Reference]) -> list[Reference]:
    """The reference functions of a user's file; those that do not load are left out."""
    references = []
    try:
        entries = native.read_user_references(path)
    except (ValueError, OSError) as error:
        _LOG.warning("%s; none of its reference functions is used", error)
        return []
    for name, forward, backward, _ in entries:
        try:
            references.append(Reference(name, _function(path, name, forward, known)))
        except (ImportError, LookupError, OSError, ValueError, SyntaxError) as error:
            _LOG.warning("%s: %s is not used: %s", path, name, error)
            continue
        if not backward:
            continue
        try:
            function = _function(path, name, backward, known, is_backward=True)
        except (ImportError, LookupError, OSError, ValueError, SyntaxError) as error:
            _LOG.warning("%s: the backward of %s is not used: %s", path, name, error)
            continue
        references.append(Reference(_last_name(backward, name), function))
    return references


def _last_name(written: str, operator: str) -> str:
    """What a backward is registered as: the name of its function."""
    place, _, name = written.rpartition(":")
    if written.endswith(".so"):
        return f"{operator}_backward"
    return f"{name}_backward" if place.endswith(".so") else name


def _function(path: Path, operator: str, written: str, known: Mapping[str, Reference], *,
              is_backward: bool = False) -> Callable[..., Any]:
    """The function that an entry names: "file.py:f", "module:f", "lib.so", "lib.so:f" or "f".

    A mere name is a function of the Python file beside the YAML file with the same name, or a
    reference function that is known already.
    """
    place, _, name = written.rpartition(":")
    if written.endswith(".so"):
        place, name = written, operator
    if place.endswith(".so"):
        return _LibraryFunction(native.UserLibrary(path.parent / place), name, is_backward)
    if not place:
        beside = path.with_suffix(".py")
        if not beside.is_file():
            if written not in known:
                raise LookupError(f"there is no function {written}, and no {beside.name}")
            return known[written]
        place = beside.name
    module = (_load(path.parent / place) if place.endswith(".py")
              else importlib.import_module(place))
    found = getattr(module, name, None)
    if not callable(found):
        raise LookupError(f"{place} has no function {name}")
    return found  # type: ignore[no-any-return]


def _load(path: Path) -> ModuleType:
    """A Python file as a module of its own."""
    name = f"plumbline_references_{abs(hash(str(path.resolve())))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LookupError(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


class _LibraryFunction:
    """A function of a shared library (include/plumbline/reference_api.h)."""

    def __init__(self, library: native.UserLibrary, name: str, is_backward: bool) -> None:
        if name not in library.names or (is_backward and not library.has_backward(name)):
            raise LookupError(f"the library has no {'backward' if is_backward else 'forward'} of "
                              f"{name}, only {', '.join(library.names)}")
        self._library = library
        self._name = name
        self._is_backward = is_backward

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given = tuple(map(_plain, args))
        named = {name: _plain(value) for name, value in kwargs.items()}
        has_gradient = not self._is_backward and self._library.has_backward(self._name)

        def backward(grads: tuple[torch.Tensor, ...], _: Any) -> list[torch.Tensor | None]:
            return self._run(True, (*grads, *given), named)

        results = operators.differentiable(
            lambda: _one_or_all(self._run(self._is_backward, given, named)),
            backward if has_gradient else None, [*_tensors(args), *_tensors(kwargs.values())],
            results=sys.maxsize if has_gradient else 0)
        return results

    def _run(self, is_backward: bool, args: tuple[Any, ...],
             kwargs: Mapping[str, Any]) -> list[torch.Tensor | None]:
        arrays = self._library.run(self._name, is_backward, args, dict(kwargs))
        return [None if array is None else operators.tensor_of(array) for array in arrays]


def _one_or_all(results: list[torch.Tensor | None]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def _tensors(values: Any) -> list[torch.Tensor]:
    """All tensors among arguments, depth first."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _plain(value: Any) -> Any:
    """An argument as a library takes it."""
    if isinstance(value, torch.Tensor):
        return operators.plain(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# ---- Outputs before they are compared


def post_process(api: str, outputs: Any, kwargs: Mapping[str, Any]) -> Any:
    """Outputs of an operator as they are compared, those of the device and of the host alike.

    Grouped operators fill as many rows as their groups have and leave the rest undefined; these
    rows become zeros. Outputs of all other operators are returned as they are.
    """
    keyword = {"npu_dequant_swiglu_quant": "group_index", "npu_grouped_matmul": "group_list"}
    groups = kwargs.get(keyword.get(api.rpartition(".")[2], ""))
    if groups is None:
        return outputs
    rows = int(groups.sum()) if isinstance(groups, torch.Tensor) else int(sum(groups))
    return _first_rows(outputs, rows)


def _first_rows(outputs: Any, rows: int) -> Any:
    if isinstance(outputs, torch.Tensor):
        if outputs.dim() == 0 or outputs.shape[0] <= rows:
            return outputs
        kept = torch.zeros_like(outputs)
        kept[:rows] = outputs[:rows]
        return kept
    if isinstance(outputs, (list, tuple)):
        return type(outputs)(_first_rows(output, rows) for output in outputs)
    return outputs
