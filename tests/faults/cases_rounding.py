"""Noise and faults beside gradients that are rounding alone."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from below_calls import afterwards
from fault_cases import Case, Setup, fault, noise
from rounding_steps import MODELS, WIDTH

rounding = functools.partial(fault, group="rounding")
rounding_noise = functools.partial(noise, group="rounding")


def written_out(s: Setup) -> None:
    """The softmax as a quotient of exponentials."""
    def shares(scores: torch.Tensor) -> torch.Tensor:
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True)
    s.model.shares = shares


def commuted(s: Setup) -> None:
    s.model.scaled = lambda values: 2.0 * values


def threads(s: Setup) -> None:
    torch.set_num_threads(2)
    s.stack.callback(torch.set_num_threads, 1)


def parts(count: int) -> Callable[[Setup], None]:
    def change(s: Setup) -> None:
        s.model.parts = count
    return change


def times(name: str, factor: float, part: slice = slice(None),
          also: Callable[[Setup], None] = lambda s: None) -> Callable[[Setup], None]:
    """A gradient that is multiplied before the first step, unseen by the recorder."""
    def change(s: Setup) -> None:
        also(s)

        def gradients(number: int) -> None:
            if number == 0:
                s.model.get_parameter(name).grad.numpy()[part] *= factor
        s.model.gradients = gradients
    return change


def flipped(s: Setup) -> None:
    """The gradient of the values' bias in reversed order, beside other micro batches."""
    parts(2)(s)

    def gradients(number: int) -> None:
        gradient = s.model.value.bias.grad.numpy()
        gradient[:] = gradient[::-1].copy()
    s.model.gradients = gradients


def below(kernel: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Setup], None]:
    """One use of a kernel does wrong; the softmax is written out."""
    def both(s: Setup) -> None:
        written_out(s)
        s.changes[kernel] = afterwards(change)
    return both


def with_one_off(values: torch.Tensor) -> torch.Tensor:
    """The last element has the other sign: of a value's bias, not of a key's."""
    values[-1].neg_()
    return values


NOISE: list[tuple[str, Callable[[Setup], None]]] = [
    ("written-out", written_out), ("commuted", commuted), ("threads", threads),
    ("halves", parts(2)), ("quarters", parts(4)),
]
# The first call that reads the gradient of parameter number {}, by rule.
READERS = {"keyadam": "lerp_.{}", "keyamsgrad": "lerp_.{}", "keylion": "lerp.{}",
           "keyaverage": "sub_.{}", "keyadagrad": "addcmul_.{}", "keyadamax": "lerp_.{}",
           "keynadam": "lerp_.{}"}
KEY, VALUE, JOINT = 5, 7, 3  # places of the biases among the parameters
VALUES = slice(2 * WIDTH, 3 * WIDTH)

CASES: list[Case] = [
    *(rounding_noise(f"{model}-{name}", change) for model in MODELS for name, change in NOISE),
    *(rounding(f"{model}-value-off", reader.format(VALUE), "scale",
               times("value.bias", 1.001, also=written_out)) for model, reader in READERS.items()),
    *(rounding(f"{model}-value-off-in-halves", reader.format(VALUE), "scale",
               times("value.bias", 1.001, also=parts(2))) for model, reader in READERS.items()),
    *(rounding(f"{model}-key-large", reader.format(KEY), "",
               times("key.bias", 1e4, also=written_out)) for model, reader in READERS.items()),
    *(rounding(f"{model}-key-threefold", reader.format(KEY), "scale",
               times("key.bias", 3)) for model, reader in READERS.items()),
    rounding("keyadam-flipped", f"lerp_.{VALUE}", "permuted", flipped),
    rounding("jointadam-values-off", f"lerp_.{JOINT}", "scale",
             times("joint.bias", 1.001, VALUES, written_out)),
    rounding("jointlion-values-off", f"lerp.{JOINT}", "scale",
             times("joint.bias", 1.001, VALUES, written_out)),
    rounding("jointlion-one-sign", f"sign_.{JOINT}", "",
             below(f"sign_:{JOINT}", with_one_off)),
    rounding("jointadam-step-off", f"addcdiv_.{JOINT}", "",
             below(f"addcdiv_:{JOINT}", lambda values: values.mul_(1.0001))),
]
