"""What a case is: the pair of runs, which call is truly wrong first, and why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from below_calls import Change, Kernels

if TYPE_CHECKING:
    from small_models import Subject


@dataclass
class Setup:
    """What a case works on."""

    subject: Subject
    stack: ExitStack
    changes: dict[str, Change] = field(default_factory=dict)

    @property
    def model(self) -> Any:
        """The model, without its type: cases change it at will."""
        return self.subject.model

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute until the step is over."""
        self.stack.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    def kernels(self) -> Kernels | None:
        """Puts the changes of kernels in force."""
        return self.stack.enter_context(Kernels(self.changes)) if self.changes else None


@dataclass(frozen=True)
class Case:
    """One pair of runs: the golden run of `model`, and the same model after `change`."""

    name: str
    model: str
    change: Callable[[Setup], None]
    # The calls that may be named: the first recorded call whose numbers are wrong, and, where a
    # call is missing from the target, the call whose place it was. Empty: the pair differs in
    # rounding only and no call may be named.
    culprits: tuple[str, ...] = ()
    # Class of the cause, or several that are equally true; empty where the classes of the tool have
    # no fitting one.
    cause: str = ""
    held_out: bool = False  # written after the rules were fixed, counted apart
    group: str = ""  # cases that are counted together; empty: by held_out
    environment: tuple[tuple[str, str], ...] = ()  # recorded in a process of its own with these


def fault(name: str, culprits: str, cause: str, change: Callable[[Setup], None],
          **more: Any) -> Case:
    """A case whose model is the first word of its name; `culprits` are short names of calls."""
    return Case(name, name.split("-")[0], change, tuple(map(full_name, culprits.split())), cause,
                **more)


def noise(name: str, change: Callable[[Setup], None], **more: Any) -> Case:
    """A pair that differs in rounding only."""
    return Case(name, name.split("-")[0], change, **more)


def full_name(short: str) -> str:
    """"linear.3" to "Functional.linear.3.forward", "linear.3<" to that of backward."""
    direction = "backward" if short.endswith("<") else "forward"
    short = short.removesuffix("<")
    if short.split(".")[0] in _PREFIXED:
        return f"{short}.{direction}"
    api = short.rsplit(".", 1)[0]
    prefix = next((prefix for prefix, names in _APIS.items() if api in names), "Tensor")
    return f"{prefix}.{short}.{direction}"


_PREFIXED = ("Functional", "Tensor", "Torch", "Distributed")
_APIS = {
    "Functional": ("linear", "layer_norm", "softmax", "gelu", "dropout", "embedding", "silu",
                   "conv2d", "batch_norm", "relu", "cross_entropy", "scaled_dot_product_attention",
                   "rms_norm", "adaptive_avg_pool2d"),
    "Torch": ("matmul", "addmm", "tanh", "cat", "rsqrt", "triu", "where"),
}
