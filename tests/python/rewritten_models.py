"""Records formulas that are written in two ways, and faults in the second way.

    rewritten_models.py DIRECTORY

One step of one recording per entry of FORMULAS, in that order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Formula = Callable[..., Tensor]


class Wrong(torch.autograd.Function):
    """A copy whose derivative adds a tenth of the gradient, rows exchanged."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(_: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] + 0.1 * gradients[0].flip(0)


def wrong(x: Tensor) -> Tensor:
    """The same values, another derivative."""
    return Wrong.apply(x)  # type: ignore[no-any-return,no-untyped-call]


def union(added: Formula) -> Tensor:
    """Two sizes less what they share; the rest of the model stands around it."""
    values = [torch.randn(6, 5, requires_grad=True) for _ in range(3)]
    first, second, common = (torch.exp(torch.sin(value)) for value in values)
    whole = added(first + 2, second + 2, common)
    return (torch.log(whole) * common).sum()


def corrected(after: Formula) -> Tensor:
    """A spread that shrinks in a loop, whose last round nobody reads."""
    gain, spread = torch.randn(4, 4, requires_grad=True), torch.eye(4) + 0.1
    total = torch.zeros(())
    for _ in range(3):
        spread = torch.tanh(spread @ gain)
        total = total + torch.logsumexp(spread, 0).sum()
        spread = after(spread, torch.sigmoid(gain))
    return total


def gained(solved: Formula) -> Tensor:
    """A gain by a symmetric matrix."""
    see = torch.randn(3, 4, requires_grad=True)
    spread = torch.tanh(see @ see.t()) + 2 * torch.eye(3)
    return torch.sin(solved(spread, torch.cos(see))).square().sum()


def folded(layer: Formula) -> Tensor:
    """A layer with a norm behind it, and a head."""
    weight, head = (torch.randn(size, 6, requires_grad=True) for size in (6, 3))
    mean, spread = torch.randn(6), torch.rand(6) + 0.5
    values = functional.relu(layer(torch.randn(8, 6), weight, mean, spread))
    return functional.linear(values, head).square().mean()


def with_norm(x: Tensor, weight: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    return functional.batch_norm(functional.linear(x, weight), mean, spread)


def without_norm(x: Tensor, weight: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    factor = torch.rsqrt(spread + 1e-5)
    fixed = (weight.data * factor[:, None]).requires_grad_(False)
    return functional.linear(x, fixed, -mean * factor)


FORMULAS: dict[str, tuple[Callable[[Formula], Tensor], Formula]] = {
    "union": (union, lambda a, b, c: (a + b) - c),
    "union otherwise": (union, lambda a, b, c: b - torch.sub(c, a)),
    "union, another number": (union, lambda a, b, c: b - torch.sub(c, b)),
    "union, without a term": (union, lambda a, b, c: b - torch.sub(b, a)),
    "union, cut": (union, lambda a, b, c: b - torch.sub(c, a.detach())),
    "union, wrong derivative": (union, lambda a, b, c: b - torch.sub(c, wrong(a))),
    "loop": (corrected, lambda p, k: p - k @ p),
    "loop otherwise": (corrected, lambda p, k: (torch.eye(4) - k) @ p),
    "loop, turned": (corrected, lambda p, k: p @ (torch.eye(4) - k)),
    "loop, scaled": (corrected, lambda p, k: (torch.eye(4) - 0.99 * k) @ p),
    "loop, cut": (corrected, lambda p, k: (torch.eye(4) - k.detach()) @ p),
    "loop, wrong derivative": (corrected, lambda p, k: (torch.eye(4) - wrong(k)) @ p),
    "gain": (gained, lambda s, b: b.t() @ torch.linalg.inv(s)),
    "gain otherwise": (gained, lambda s, b: torch.linalg.solve(s, b).t()),
    "gain, scaled": (gained, lambda s, b: torch.linalg.solve(s * 1.01, b).t()),
    "gain, wrong derivative": (gained, lambda s, b: torch.linalg.solve(wrong(s), b).t()),
    "folded": (folded, with_norm),
    "folded otherwise": (folded, without_norm),
    "folded, cut": (folded, lambda *given: with_norm(*given).detach()),
    "folded, scaled": (folded, lambda *given: without_norm(*given) * 1.01),
}


def main() -> int:
    from plumbline.pytorch import PrecisionDebugger

    output = Path(sys.argv[1])
    config = output / "config.json"
    config.write_text(json.dumps({"task": "tensor", "level": "L1",
                                  "dump_path": str(output / "dump")}))
    debugger = PrecisionDebugger(config_path=str(config))
    for model, formula in FORMULAS.values():
        torch.manual_seed(7)
        debugger.start()
        model(formula).backward()
        debugger.stop()
        debugger.step()
    return 0


if __name__ == "__main__":
    sys.exit(main())
