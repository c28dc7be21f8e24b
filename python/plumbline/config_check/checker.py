"""ConfigChecker: what a training script computes with, written into a pack of `config_check`."""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, ClassVar

from plumbline import _core
from plumbline.config_check.pack import PackFile, RandomStacks, packages_text, tree_of

_RANDOM = {
    "random": "random randint uniform choice",
    "np.random": "rand randint choice normal",
    "torch": "rand randint randn rand_like randint_like randn_like manual_seed",
    "torch.Tensor": "exponential_ geometric_ log_normal_ cauchy_",
    "mindspore": "set_seed manual_seed",
    "mindspore.ops": "rand randint randn rand_like randint_like randn_like",
    "mindspore.mint": "rand randint randn rand_like randint_like randn_like",
}


class ConfigChecker:
    """Writes a pack: environment, packages, launch arguments, and of the first calls of a model
    its inputs, its parameters and the places that asked for random numbers before.

    The training is left as it is: what goes wrong while collecting is logged, and the random
    functions are the originals again after the first call of the model.

    Args:
        model: a torch.nn.Module or mindspore.nn.Cell, or a list whose first element counts; None:
            only what can be seen without one.
        shell_path: `.sh` and `.yaml` files that started the training.
        output_zip_path: the pack; several ranks write into one.
        fmk: "pytorch" or "mindspore".
        max_steps: how many calls of the model are collected.
        all_env: store every environment variable, not only those that are compared.
        digests: also store a checksum per tensor, which tells permuted values apart.

    Raises:
        ValueError: an argument is of the wrong type.

    Example:
        >>> ConfigChecker.apply_patches("pytorch")  # doctest: +SKIP
        >>> ConfigChecker(model, ["train.sh"], "run_a.zip")  # doctest: +SKIP
    """

    _stacks: ClassVar[RandomStacks | None] = None
    _megatron_arguments: ClassVar[Any] = None

    def __init__(
        self,
        model: Any = None,
        shell_path: Any = None,
        output_zip_path: str = "./config_check_pack.zip",
        fmk: str = "pytorch",
        *,
        max_steps: int = 1,
        all_env: bool = False,
        digests: bool = True,
    ) -> None:
        self._framework = _framework(fmk)
        if isinstance(model, (list, tuple)):
            model = model[0] if model else None
        if model is not None and not self._framework.is_module(model):
            raise ValueError(
                f"ConfigChecker: model is a {type(model).__name__} (expected a "
                f"{self._framework.MODEL_TYPE} or a list of them)"
            )
        if not isinstance(output_zip_path, str) or not output_zip_path.endswith(".zip"):
            raise ValueError(
                f"ConfigChecker: output_zip_path is {output_zip_path!r} (expected a text that "
                "ends in .zip)"
            )
        if shell_path is not None and not isinstance(shell_path, (list, tuple)):
            raise ValueError(
                f"ConfigChecker: shell_path is {shell_path!r} (expected a list of paths)"
            )
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
            raise ValueError(f"ConfigChecker: max_steps is {max_steps!r} (expected 1 or more)")
        self._pack = PackFile(output_zip_path)
        self._path = output_zip_path
        self._step, self._max_steps, self._digests = 0, max_steps, digests
        self._handle: Any = None
        if self._framework.rank() == 0:
            self._try("start", lambda: self._add_static(list(shell_path or []), all_env))
        if model is not None:
            unseen = self._framework.unseen_calls()
            if unseen:
                _core.log_warning(f"config_check: {unseen}")
            self._handle = self._framework.watch(model, self._before)

    @staticmethod
    def apply_patches(fmk: str = "pytorch") -> None:
        """Counts the calls for random numbers from now until the model's first call, and notes the
        arguments of Megatron. A second call does nothing.

        Raises:
            ValueError: fmk is no framework.
        """
        framework = _framework(fmk)
        if ConfigChecker._stacks is not None:
            return
        owners = {"random": random, **framework.random_owners()}
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            owners["np.random"] = numpy.random
        ConfigChecker._stacks = RandomStacks(
            (f"{library}.{name}", owners[library], name)
            for library, names in _RANDOM.items()
            if library in owners
            for name in names.split()
        )
        ConfigChecker._stacks.start()
        framework.step_aside(ConfigChecker._stacks)
        _watch_megatron()

    @staticmethod
    def compare(bench_zip_path: str, cmp_zip_path: str, output_path: str) -> None:
        """Compares two packs as `plumb config_check -c` does: `output_path`/result.xlsx.

        Raises:
            FileNotFoundError: a pack is missing.
            CorruptDataError: a pack is damaged.
            ValueError: a file is no pack.
            OSError: the workbook cannot be written.
        """
        from plumbline import _compare

        print(_compare.compare_config_packs(bench_zip_path, cmp_zip_path, output_path), end="")

    def _add_static(self, files: list[Any], all_env: bool) -> None:
        present = [str(path) for path in files if os.path.isfile(str(path))]
        for path in files:
            if not os.path.isfile(str(path)):
                _core.log_warning(f"config_check: {path}: no such file; left out")
        members = _outside(present, all_env)
        members["pip"] = packages_text()
        arguments = ConfigChecker._megatron_arguments
        if arguments is not None:
            text = json.dumps(vars(arguments), default=lambda value: None, indent=4)
            members["hyperparameters/hyperparameters_dynamic.json"] = text
        self._pack.add(members)

    def _before(self, model: Any, args: Any, kwargs: Any) -> None:
        """The forward pre-hook."""
        if self._framework.is_compiling() or self._step >= self._max_steps:
            return
        step, self._step = self._step, self._step + 1
        if self._step == self._max_steps and self._handle is not None:
            self._handle.remove()
        self._try(f"step {step}", lambda: self._collect(model, args, kwargs, step))

    def _collect(self, model: Any, args: Any, kwargs: Any, step: int) -> None:
        framework = self._framework
        rank = framework.rank()
        members: dict[str, str] = {}
        stacks = ConfigChecker._stacks
        if stacks is not None and step == 0:
            stacks.finish()
            members[f"random/rank{rank}.json"] = stacks.text()
        place = f"step{step}/rank{rank}"
        parameters = dict(framework.parameters(model))
        numbers, digest = framework.statistics, framework.digest
        inputs = {"args": tree_of(args, numbers), "kwargs": tree_of(kwargs, numbers)}
        weights = {name: numbers(value, True) for name, value in parameters.items()}
        # A parameter without values has no statistics: neither side has it then.
        weights = {name: value for name, value in weights.items() if value}
        members[f"dataset/{place}/dataset.json"] = json.dumps(inputs, indent=4)
        members[f"weights/{place}/weight.json"] = json.dumps(weights, indent=4)
        if self._digests:
            texts = {
                "dataset": {"args": tree_of(args, digest), "kwargs": tree_of(kwargs, digest)},
                "weights": {name: digest(value) for name, value in parameters.items()},
            }
            members[f"digests/{place}/digests.json"] = json.dumps(texts, indent=4)
        self._pack.add(members)

    def _try(self, what: str, collect: Any) -> None:
        try:
            with self._framework.unseen():
                collect()
        except Exception as error:
            _core.log_error(f"config_check: {self._path}: {what} is not recorded: {error}")


def _framework(name: Any) -> Any:
    """The module with what is different between frameworks."""
    if name not in ("pytorch", "mindspore"):
        raise ValueError(f"ConfigChecker: fmk is {name!r} (expected pytorch or mindspore)")
    return importlib.import_module(f"plumbline.config_check.on_{name}")


def _outside(files: list[str], all_env: bool) -> dict[str, str]:
    """What the command `config_check -d` collects; files that cannot be read are left out."""
    from plumbline import _compare

    with tempfile.TemporaryDirectory() as directory:
        pack = str(Path(directory) / "pack.zip")
        good = []
        for file in files:
            try:
                _compare.write_config_pack(pack, [file], False, directory)
                good.append(file)
            except Exception as error:
                _core.log_warning(f"config_check: {error}; left out")
        _compare.write_config_pack(pack, good, all_env, directory)
        with zipfile.ZipFile(pack) as archive:
            return {name: archive.read(name).decode() for name in archive.namelist()}


def _watch_megatron() -> None:
    training: Any = sys.modules.get("megatron.training")
    original = getattr(training, "get_args", None)
    if original is None:
        return

    def get_args(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if ConfigChecker._megatron_arguments is None:
            ConfigChecker._megatron_arguments = result
        return result

    training.get_args = get_args
