"""Records small models: sound, with products that are summed in float64, and with a fault beside.

    noisy_models.py DIRECTORY TASK

One step of one recording per entry of RUNS, in that order. What changes stands below the recorded
calls, in kernels, or is the choice of an optimizer's form.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

Change = Callable[[Any, list[Any]], Any]
PRODUCTS = ("mm", "addmm", "convolution", "convolution_backward")


class Kernels(TorchDispatchMode):
    """Computes products in float64, and chosen other kernels as `changes` say."""

    def __init__(self, changes: dict[str, Change]) -> None:
        super().__init__()
        self.changes = changes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            if name in self.changes:
                return self.changes[name](func, list(args))
            if name not in PRODUCTS:
                return func(*args, **(kwargs or {}))
            result = func(*[_to(torch.float64, each) for each in args], **(kwargs or {}))
            if isinstance(result, Tensor):
                return _to(torch.float32, result)
            return tuple(_to(torch.float32, each) for each in result)


def _to(dtype: torch.dtype, value: Any) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def scaled(kernel: Any, args: list[Any]) -> Any:
    """The kernel, its first result times 1.01."""
    first, *rest = kernel(*args)
    return first * 1.01, *rest


def one_scaled(kernel: Any, args: list[Any]) -> Any:
    """The kernel, which has one result, times 1.01."""
    return kernel(*args) * 1.01


def with_epsilon(kernel: Any, args: list[Any]) -> Any:
    """The kernel with another epsilon than its last argument."""
    return kernel(*args[:-1], 0.1)


class Normal(nn.Module):
    """A normalisation behind a product whose channels have means of `ratio` deviations."""

    def __init__(self, norm: nn.Module, ratio: float, signs: bool) -> None:
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(32, 64, bias=False), norm, nn.Linear(64, 10)
        means = torch.randint(0, 2, (64,)) * 2 - 1.0 if signs else torch.ones(64)
        with torch.no_grad():
            self.enter.weight.copy_(torch.randn(64, 32) / 6)
            self.enter.weight[:, :8] = (means * ratio / 8)[:, None] + 0.01 * torch.randn(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.relu(self.norm(self.enter(x))))  # type: ignore[no-any-return]


class Pictures(nn.Module):
    """A convolution of numbers far from zero, a normalisation and a mean over all places."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm, self.leave = nn.Conv2d(3, 16, 3), norm, nn.Linear(16, 10)
        with torch.no_grad():
            self.conv.weight.add_(0.3 * torch.randn(16, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(  # type: ignore[no-any-return]
            torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Gated(Pictures):
    """A scale of the channels between normalisation and mean, on the right or on the left."""

    def __init__(self, is_left: bool) -> None:
        super().__init__(nn.BatchNorm2d(16))
        self.scale, self.is_left = nn.Parameter(1 + 0.3 * torch.randn(16, 10, 10)), is_left

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.norm(self.conv(x)))
        h = self.scale * h if self.is_left else h * self.scale
        return self.leave(h.mean((2, 3)))  # type: ignore[no-any-return]


def one_pass(model: nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward and backward; all but that is made before."""
    y = torch.randint(0, 10, (len(x),))
    return lambda: functional.cross_entropy(model(x), y).backward()  # type: ignore[no-any-return]


def columns(norm: nn.Module, ratio: float, signs: bool) -> Callable[[], None]:
    """One pass of numbers whose products have a mean."""
    model = Normal(norm, ratio, signs).train()
    x = torch.randn(48, 32)
    x[:, :8] = 1 + 0.001 * torch.randn(48, 8)
    return one_pass(model, x)


def pictures(norm: nn.Module, mean: float) -> Callable[[], None]:
    """One pass of pictures with that mean."""
    return one_pass(Pictures(norm).train(), torch.randn(8, 3, 12, 12) + mean)


def unlike(norm: nn.Module) -> Callable[[], None]:
    """One pass of channels with means of their own, far from zero."""
    model = Pictures(norm).train()
    with torch.no_grad():
        model.conv.bias.add_(1000 * torch.randn(16))  # type: ignore[union-attr]
    return one_pass(model, torch.randn(8, 3, 12, 12))


def trained(rule: Callable[..., Optimizer], fault: str = "", **form: Any) -> Callable[[], None]:
    """Two steps of an optimizer and a pass. The bias before the batch norm has no gradient."""
    model = Pictures(nn.BatchNorm2d(16)).train()
    optimizer = rule(model.parameters(), lr=2e-3 if fault == "rate" else 1e-3, **form)
    xs, y = torch.randn(3, 8, 3, 12, 12) + 1, torch.randint(0, 10, (8,))

    def run() -> None:
        for number, x in enumerate(xs):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            if number == 0 and fault == "sign":
                model.get_parameter("leave.weight").grad.numpy()[:, 3] *= -1  # type: ignore[union-attr]
            if number == 0 and fault == "skipped":
                model.get_parameter("leave.weight").grad = None
            if number < len(xs) - 1:
                optimizer.step()
    return run


def near(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], None]:
    """One pass whose results come close to what they shall be."""
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8)).train()
    x = torch.randn(40, 16)
    y = model(x).detach() + 1e-3 * torch.randn(40, 8)
    return lambda: loss(model(x), y).backward()  # type: ignore[no-any-return,no-untyped-call]


def learnt(loss: Callable[[Tensor, Tensor], Tensor], left: float) -> Callable[[], None]:
    """One pass of a model that all but gives what it shall: a student that began as its teacher."""
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)).train()
    x = torch.randn(40, 16)
    y = model(x).detach() + left * torch.randn(40, 16)
    return lambda: loss(model(x), y).backward()  # type: ignore[no-any-return,no-untyped-call]


def divergence(a: Tensor, b: Tensor) -> Tensor:
    """Of shares."""
    shares = functional.log_softmax(a, -1), functional.softmax(b, -1)
    return functional.kl_div(*shares, reduction="batchmean")


def angle(a: Tensor, b: Tensor) -> Tensor:
    """One less the cosines, in one call."""
    return functional.cosine_embedding_loss(a, b, torch.ones(len(a)))


LEARNT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "divergence": divergence, "angle": angle, "square": functional.mse_loss,
    "cosine": lambda a, b: (1 - functional.cosine_similarity(a, b, -1)).mean(),
    "absolute": functional.l1_loss, "norm": lambda a, b: functional.pairwise_distance(a, b).mean(),
    "pairs": lambda a, b: torch.cdist(a, b).mean(),
    "unit": lambda a, b: 1 - (functional.normalize(a) * functional.normalize(b)).sum(-1).mean(),
    "logistic": lambda a, b: functional.binary_cross_entropy_with_logits(a, torch.sigmoid(b)),
}


def in_pieces(query: Tensor, key: Tensor) -> Tensor:
    """Scores as a sum of products."""
    first, second = ([part.chunk(2, -1)[at] for part in (query, key)] for at in (0, 1))
    return (first[0] @ first[1].mT + second[0] @ second[1].mT) * 0.25


SCORES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "": lambda query, key: (query @ key.transpose(1, 2)) * 0.25, "pieces": in_pieces,
    "scaled": lambda query, key: (query * 0.25) @ key.mT,
    "halves": lambda query, key: (query * 0.5) @ (key * 0.5).mT,
    "plain": lambda query, key: (query @ key.mT) * 0.25,  # views are no recorded calls
    "viewed": lambda query, key: (key @ query.mT).mT * 0.25,
    "forgotten": lambda query, key: (key @ query.mT) * 0.25,
    "turned": lambda query, key: (key @ query.transpose(1, 2)).transpose(1, 2) * 0.25,
}


class Attentions(nn.Module):
    """Layers of attention; the gradients of the keys' biases are rounding alone."""

    def __init__(self, layers: int, scores: str = "") -> None:
        super().__init__()
        self.scores = SCORES[scores]
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
                                    for _ in range(layers))
        self.leave = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        for query, key, value, mix in self.layers:  # type: ignore[misc]
            h = functional.layer_norm(x, (32,))
            x = x + mix(torch.softmax(self.scores(query(h), key(h)), -1) @ value(h))
        return self.leave(x)  # type: ignore[no-any-return]


def attended(layers: int, fault: str = "", scores: str = "",
             foreach: bool = True) -> Callable[[], None]:
    """Two steps of AdamW and a pass: gradients of biases are sums that nothing recorded."""
    model = Attentions(layers, scores).train()
    rate = 1e-2 if fault == "rate" else 1e-3
    optimizer = AdamW(model.parameters(), lr=rate, foreach=foreach)
    xs, y = torch.randn(3, 4, 12, 32), torch.randint(0, 10, (4, 12))

    def run() -> None:
        for number, x in enumerate(xs):
            optimizer.zero_grad()
            functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
            if number == 0 and fault == "sign":
                model.get_parameter("layers.1.2.bias").grad.numpy()[:16] *= -1  # type: ignore[union-attr]
            if number < 2:
                optimizer.step()
    return run


def in_double(kernel: Any, args: list[Any]) -> Any:
    """The kernel, computed in float64."""
    return _to(torch.float32, kernel(*[_to(torch.float64, each) for each in args]))


def one_less_overlap(a: Tensor, b: Tensor) -> Tensor:
    """The loss of segmentations, for numbers."""
    return 1 - 2 * (a * b).sum(1).mean() / ((a * a).sum(1) + (b * b).sum(1)).mean()


Model = Callable[[], Callable[[], None]]
Run = tuple[Model, dict[str, Change] | None]  # None: as the framework computes
RUNS: dict[str, Run] = {}


def add(name: str, model: Model, **faults: dict[str, Change]) -> None:
    """A model as it is, beside noise, and beside noise with faults."""
    RUNS[name] = model, None
    RUNS[f"{name} otherwise"] = model, {}
    for fault, changes in faults.items():
        RUNS[f"{name}, {fault}"] = model, changes


BATCH, LAYER = "native_batch_norm", "native_layer_norm"
for _ratio in (8.0, 60.0, 200.0):
    for _signs in (False, True):
        add(f"batch {_ratio} {_signs}",
            lambda ratio=_ratio, signs=_signs: columns(nn.BatchNorm1d(64), ratio, signs),
            scale={BATCH: scaled}, epsilon={BATCH: with_epsilon})
    add(f"layer {_ratio}", lambda ratio=_ratio: columns(nn.LayerNorm(64), ratio, False),
        scale={LAYER: scaled})
    add(f"pictures {_ratio}", lambda mean=_ratio: pictures(nn.BatchNorm2d(16), mean),
        scale={BATCH: scaled}, gradient={"native_batch_norm_backward": scaled})
    add(f"instance {_ratio}", lambda mean=_ratio: pictures(nn.InstanceNorm2d(16), mean),
        scale={BATCH: scaled})
    add(f"group {_ratio}", lambda mean=_ratio: pictures(nn.GroupNorm(4, 16), mean),
        scale={"native_group_norm": scaled})
for _name, _norm in {"instance": nn.InstanceNorm2d, "batch": nn.BatchNorm2d,
                     "group": lambda channels: nn.GroupNorm(channels, channels)}.items():
    add(f"unlike {_name}", lambda norm=_norm: unlike(norm(16)),
        scale={"native_group_norm" if _name == "group" else BATCH: scaled})
for _name, _loss in {
    "distance": torch.dist, "overlap": one_less_overlap,
    "spread": lambda a, b: (a - b + 30).var(),
}.items():
    add(_name, lambda loss=_loss: near(loss), tanh={"tanh": one_scaled},
        gradient={"tanh_backward": one_scaled})
for _left in (1e-3, 1e-5):
    for _name, _loss in LEARNT.items():
        # Nearer than that, gradients are as far off as the fault makes them.
        _of_gradient = {"gradient": {"tanh_backward": one_scaled}} if _left > 1e-4 else {}
        add(f"learnt {_name} {_left}", lambda loss=_loss, left=_left: learnt(loss, left),
            tanh={"tanh": one_scaled}, **_of_gradient)
for _layers in (2, 6):
    RUNS[f"attention {_layers}"] = (lambda layers=_layers: attended(layers)), None
    for _name, _changes in {"otherwise": {"sum": in_double}, "rate": {}, "sign": {}}.items():
        RUNS[f"attention {_layers}{' ' if _name == 'otherwise' else ', '}{_name}"] = (
            lambda layers=_layers, fault=_name: attended(layers, fault)), _changes
RUNS["scores"] = (lambda: attended(6, foreach=False)), None
RUNS["views"] = (lambda: attended(2, scores="plain")), None
RUNS["views otherwise"] = (lambda: attended(2, scores="viewed")), None
RUNS["views, forgotten"] = (lambda: attended(2, scores="forgotten")), None
for _scores in ("pieces", "scaled", "halves", "viewed", "turned"):
    for _name, _fault, _foreach in (("scores {} otherwise", "", False),
                                    ("attention 6 {} otherwise", "", True),
                                    ("attention 6, {} sign", "sign", True)):
        RUNS[_name.format(_scores)] = (
            lambda fault=_fault, scores=_scores, foreach=_foreach: attended(
                6, fault, scores, foreach)), None
RUNS["gate"] = (lambda: one_pass(Gated(False).train(), torch.randn(8, 3, 12, 12) + 1)), None
_LEFT = lambda: one_pass(Gated(True).train(), torch.randn(8, 3, 12, 12) + 1)  # noqa: E731
RUNS["gate otherwise"], RUNS["gate, product"] = (_LEFT, {}), (_LEFT, {"mul": one_scaled})
for _rule in (Adam, SGD):
    _name = _rule.__name__
    RUNS[_name] = (lambda rule=_rule: trained(rule, foreach=False)), None
    RUNS[f"{_name} foreach"] = (lambda rule=_rule: trained(rule, foreach=True)), None
    RUNS[f"{_name} foreach otherwise"] = RUNS[f"{_name} foreach"][0], {}
    RUNS[f"{_name} fused otherwise"] = (lambda rule=_rule: trained(rule, fused=True)), {}
    RUNS[f"foreach {_name}"] = RUNS[f"{_name} foreach"]
    RUNS[f"foreach {_name} otherwise"] = RUNS[f"{_name} foreach"][0], {}
    for _fault in ("rate", "sign", "skipped"):
        RUNS[f"{_name}, {_fault}"] = RUNS[f"foreach {_name}, {_fault}"] = (
            lambda rule=_rule, fault=_fault: trained(rule, fault, foreach=True)), {}


def main() -> int:
    from plumbline.pytorch import PrecisionDebugger

    output, task = Path(sys.argv[1]), sys.argv[2]
    config = output / f"{task}.json"
    config.write_text(json.dumps({"task": task, "level": "L1", "dump_path": str(output / task)}))
    debugger = PrecisionDebugger(config_path=str(config))
    torch.set_num_threads(1)
    for model, changes in RUNS.values():
        torch.manual_seed(7)
        run = model()
        debugger.start()
        with contextlib.nullcontext() if changes is None else Kernels(changes):
            run()
        debugger.stop()
        debugger.step()
    return 0


if __name__ == "__main__":
    sys.exit(main())
