"""random_save: a table of every call of a random function, to find where two runs draw apart."""

from __future__ import annotations

import csv
import functools
import linecache
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from plumbline import _core

RANDOM_FUNCTIONS: dict[str, str] = {
    "python_random": (
        "betavariate choice choices expovariate gammavariate gauss getrandbits lognormvariate "
        "normalvariate paretovariate randbytes randint random randrange sample shuffle triangular "
        "uniform vonmisesvariate weibullvariate"
    ),
    "numpy_random": (
        "beta binomial bytes chisquare choice dirichlet exponential f gamma geometric gumbel "
        "hypergeometric laplace logistic lognormal logseries multinomial multivariate_normal "
        "negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson "
        "power rand randint randn random random_integers random_sample ranf rayleigh sample "
        "shuffle standard_cauchy standard_exponential standard_gamma standard_normal standard_t "
        "triangular uniform vonmises wald weibull zipf"
    ),
    "torch_random": (
        "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like "
        "randperm"
    ),
    "tensor_random": (
        "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ "
        "uniform_"
    ),
}
_OWN = str(Path(__file__).parent) + os.sep


class RandomCalls:
    """Writes one row per call: `{library}.{function}.{n}` and the Python stack.

    Args:
        output_path: directory of the table; made when missing.
        rank: global rank, or None while it is unknown.

    Raises:
        OSError: the directory or the table cannot be made.
    """

    def __init__(self, output_path: str, rank: Callable[[], int | None]) -> None:
        self._rank = rank
        self._time = time.strftime("%Y%m%d%H%M%S")
        self._directory = Path(output_path)
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        self._known_rank = rank()
        self._pid = os.getpid()
        self.path = self._directory / self._name()
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._depth = threading.local()
        self._write(["api_name", "stack"])

    def patch(self, owners: dict[str, Any]) -> None:
        """Replaces the functions of each library; `owners` maps the library to module or class."""
        for library, owner in owners.items():
            for name in RANDOM_FUNCTIONS[library].split():
                if callable(getattr(owner, name, None)):
                    setattr(owner, name, self._counted(getattr(owner, name), f"{library}.{name}"))

    def _counted(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            # randint() calls randrange(): the user called the outer one.
            if getattr(self._depth, "inside", False):
                return original(*args, **kwargs)
            self._depth.inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                self._depth.inside = False
            self._count(name, sys._getframe(1))
            return result

        return call

    def _count(self, name: str, caller: FrameType) -> None:
        if os.getpid() != self._pid:
            return  # a forked worker: its rows would mix with the parent's
        with self._lock:
            number = self._counts[name]
            self._counts[name] += 1
            try:
                if self._known_rank is None:
                    self._use_rank()
                self._write([f"{name}.{number}", _stack_text(caller)])
            except OSError as error:
                if number == 0:
                    _core.log_error(f"random_save: {self.path}: {error}")

    def _use_rank(self) -> None:
        self._known_rank = self._rank()
        if self._known_rank is not None:
            target = self._directory / self._name()
            os.rename(self.path, target)
            self.path = target

    def _name(self) -> str:
        known = self._known_rank
        owner = f"proc{os.getpid()}" if known is None else f"rank{known}"
        return f"random_{owner}_{self._time}.csv"

    def _write(self, row: list[str]) -> None:
        with self.path.open("a", newline="", encoding="utf-8") as table:
            csv.writer(table).writerow(row)


def _stack_text(frame: FrameType | None) -> str:
    """Innermost first, without frames of this package or without source text."""
    lines = []
    while frame is not None:
        code = frame.f_code
        source = linecache.getline(code.co_filename, frame.f_lineno).strip()
        if source and not code.co_filename.startswith(_OWN):
            lines.append(
                f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {source} \n"
            )
        frame = frame.f_back
    return "".join(lines)


def start_random_table(
    output_path: Any, rank: Callable[[], int | None], owners: dict[str, Any]
) -> RandomCalls:
    """The table of Python's, NumPy's (when loaded) and the functions of `owners`.

    Raises:
        ValueError: output_path is not a string.
        OSError: the table cannot be made.
    """
    if not isinstance(output_path, str):
        raise ValueError(f"random_save: output_path is {output_path!r} (expected a string)")
    table = RandomCalls(output_path, rank)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        owners = {"numpy_random": numpy.random, **owners}
    table.patch({"python_random": random, **owners})
    return table


def seed_process(seed: int, deterministic: bool) -> None:
    """Seeds Python and, when loaded, NumPy; processes started later hash texts alike.

    Communication between Ascend devices is told whether to be deterministic.
    """
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    os.environ["HCCL_DETERMINISTIC"] = str(deterministic)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def check_seed(seed: Any, mode: Any, rm_dropout: Any) -> None:
    """ValueError if the arguments of seed_all() are of the wrong type or out of range."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= 4294967295:
        raise ValueError(f"seed must be an integer from 0 to 4294967295 (got {seed!r})")
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout)):
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False (got {value!r})")
