"""Small programs that do what training scripts do; run with and without the recorder.

Each scenario runs once, in a window of its own, and returns what the program can see.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

Window = Callable[[nn.Module], contextlib.AbstractContextManager[None]]
SCENARIOS: dict[str, Callable[[Window], Any]] = {}


def scenario(function: Callable[[Window], Any]) -> Callable[[Window], Any]:
    SCENARIOS[function.__name__] = function
    return function


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


class Root(nn.Module):
    """A model whose sub-modules are given; `forward` is a function of the root."""

    def __init__(self, forward: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)
        self._run = forward

    def forward(self, *args: Any) -> Any:
        return self._run(self, *args)


@scenario
def in_place(window: Window) -> Any:
    model = nn.Sequential(
        nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.Hardtanh(-1, 1, inplace=True)
    )
    x = leaf(3, 4)
    with window(model):
        y = model(x) * 1
        y.add_(1.0)
        y += y.detach()
        z = y.clone()
        z.mul_(2)
        z[0] = 2.0
        z[:, 1:2] = z[:, :1] * 3
        F.relu(z, inplace=True)
        z.sum().backward()
    return y, z, x.grad, [p.grad for p in model.parameters()]


@scenario
def views_modified_later(window: Window) -> Any:
    model = Root(lambda self, x: self.b(self.a(x).view(-1).view(2, 6)),
                 a=nn.Linear(4, 4), b=nn.Linear(6, 2))
    x = leaf(3, 4)
    with window(model):
        y = model(x)
        row = y[0]
        flat = y.view(-1)
        flat.mul_(2)
        row.add_(1)
        first, second = y.clone().split(1)
        part = first * second
        part.t().mul_(3)
        (part.sum() + flat.sum()).backward()
    return y, part, x.grad, [p.grad for p in model.parameters()]


@scenario
def hook_order(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    seen: list[Any] = []

    def note(kind: str) -> Callable[..., None]:
        def hook(*args: Any) -> None:
            tensors = [t for a in args if isinstance(a, tuple) for t in a]
            seen.append((kind, [t.detach().clone() for t in tensors if t is not None]))
        return hook

    def register(tag: str) -> None:
        for index, layer in enumerate(model):
            layer.register_forward_pre_hook(note(f"pre {tag} {index}"))
            layer.register_forward_hook(note(f"post {tag} {index}"))
            layer.register_full_backward_pre_hook(note(f"back pre {tag} {index}"))
            layer.register_full_backward_hook(note(f"back {tag} {index}"))
            layer.weight.register_hook(lambda g, i=index: seen.append((f"w {tag} {i}", g.clone())))
            layer.weight.register_post_accumulate_grad_hook(
                lambda p, i=index: seen.append((f"acc {tag} {i}", p.grad.clone()))
            )
    register("before")
    x = leaf(3, 4)
    with window(model):
        register("inside")
        y = model(x)
        y.register_hook(lambda g: seen.append(("y", g.clone())))
        y.sum().backward()
    return seen, x.grad


@scenario
def hooks_that_replace(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    model[0].register_forward_hook(lambda m, args, out: out + 1)
    model[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
    x = leaf(3, 4)
    with window(model):
        handle = model[1].register_forward_hook(lambda m, args, out: out * 5)
        y = model(x)
        y.sum().backward()
        handle.remove()
    return y, x.grad, len(model[1]._forward_hooks), len(model[1]._backward_hooks)


@scenario
def accumulation_order(window: Window) -> Any:
    parts = {name: nn.Linear(16, 16) for name in "qkv"}
    model = Root(lambda self, x: [self.q(x), self.k(x), self.v(x), torch.sin(x), x * 0.3], **parts)
    x = leaf(8, 16)
    with window(model):
        for scale in (1e-3, 1.0, 1e3):  # accumulates over three passes
            sum(out.mul(scale).pow(3).sum() for out in model(x * 1.0)).backward()
    return x.grad, [p.grad for p in model.parameters()]


@scenario
def clipping(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4))
    with window(model):
        model(torch.randn(2, 4)).sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        value = torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
        norms = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    return norm, value, norms, [p.grad for p in model.parameters()]


def _checkpointed(reentrant: bool, early_stop: bool) -> Callable[[Window], Any]:
    def run(window: Window) -> Any:
        def inner(self: Any, x: torch.Tensor) -> Any:
            return checkpoint(lambda v: F.dropout(self.b(v).tanh(), 0.5), x,
                              use_reentrant=reentrant)

        def forward(self: Any, x: torch.Tensor) -> Any:
            x = checkpoint(lambda v: inner(self, self.a(v)), x, use_reentrant=reentrant)
            return checkpoint(self.c, x, use_reentrant=reentrant)

        model = Root(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4),
                     c=nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU(inplace=True)))
        calls: list[int] = []
        model.b.register_forward_hook(lambda *_: calls.append(1))
        x = leaf(3, 4)
        with window(model), set_checkpoint_early_stop(early_stop):
            y = model(x)
            y.sum().backward()
        return y, x.grad, len(calls), [p.grad for p in model.parameters()], torch.get_rng_state()
    return run


for _reentrant in (True, False):
    for _early in (True, False):
        SCENARIOS[f"checkpoint_{'' if _reentrant else 'non_'}reentrant_{_early}"] = _checkpointed(
            _reentrant, _early
        )


@scenario
def autocast(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    x = leaf(3, 4)
    with window(model), torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
        loss = F.mse_loss(y.float(), torch.zeros(3, 2)) + torch.matmul(x, x.t()).sum()
        loss.backward()
    return y, loss, x.grad, [p.grad for p in model.parameters()]


@scenario
def grad_scaler(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    losses = []
    with window(model):
        for factor in (1.0, float("inf"), 1.0):  # the second step is skipped, the scale halves
            optimizer.zero_grad()
            loss = model(torch.ones(3, 4)).sum() * factor
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append((loss, scaler.get_scale()))
    return losses, list(model.parameters())


@scenario
def no_grad_and_inference(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    x = torch.randn(3, 4)
    with window(model):
        with torch.no_grad():
            a = model(x)
            a.add_(1)
        with torch.inference_mode():
            b = model(x)
            b.add_(1)
            view = b.view(-1)
            view.mul_(2)
        c = model(x)
        with torch.set_grad_enabled(False):
            d = torch.sin(c)
    return a, b, c, d, [(t.requires_grad, t.is_inference(), t.is_leaf) for t in (a, b, c, d, view)]


class Tagged(torch.Tensor):
    calls: list[Any] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Tagged.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


ORIGINALS = {id(f): name for name, f in {
    "Tensor.add": torch.Tensor.add, "torch.add": torch.add, "F.relu": F.relu,
    "torch.relu": torch.relu, "F.linear": F.linear, "Tensor.sum": torch.Tensor.sum,
    "Tensor.mul": torch.Tensor.mul, "Tensor.__getitem__": torch.Tensor.__getitem__,
    "torch.matmul": torch.matmul, "torch.cat": torch.cat}.items()}


@scenario
def function_overrides(window: Window) -> Any:
    seen: list[str] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kw: Any = None) -> Any:
            seen.append(ORIGINALS.get(id(func), "") or f"unknown {func.__name__}")
            return func(*args, **(kw or {}))

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    Tagged.calls.clear()
    with window(model):
        t = torch.ones(2, 4).as_subclass(Tagged)
        y = model(t)
        z = (torch.add(y, 1)[0] * 2).sum()
        with Mode():
            torch.cat([model(torch.ones(2, 4)), torch.relu(torch.ones(2, 4))]).sum()
    return [ORIGINALS.get(id(f), f.__name__) for f in Tagged.calls], seen, type(z).__name__, z


@scenario
def dispatch_modes(window: Window) -> Any:
    seen: list[str] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kw: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kw or {}))

    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU(inplace=True))
    x = leaf(3, 4)
    with window(model):
        with Log():
            y = F.gelu(model(x))
            (y * 2).sum().backward()
        with Log():
            torch.einsum("ij,kj->ik", x, x)
    return seen, y, x.grad


@scenario
def dropout(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.AlphaDropout(0.3))
    with window(model):
        y = model(torch.ones(50, 4))
        z = F.dropout(y, 0.3, training=True)
    return y, z, (z == 0).sum() > 0, torch.get_rng_state()


@scenario
def higher_order(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    x = leaf(3, 4)
    with window(model):
        y = model(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        penalty = g.pow(2).sum()
        penalty.backward(retain_graph=True)
        penalty.backward()
        again = torch.autograd.grad(model(x).sum(), list(model.parameters()), retain_graph=True)
        hessian = torch.autograd.functional.hessian(lambda v: torch.sin(v).sum(), torch.ones(2))
    return g, penalty, x.grad, again, hessian, [p.grad for p in model.parameters()]


@scenario
def function_transforms(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    parameters = dict(model.named_parameters())
    x = torch.randn(3, 4)

    def loss(p: Any, v: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, p, (v,)).pow(2).sum()

    with window(model):
        per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
        jacobian = torch.func.jacrev(lambda v: torch.sin(v) * v)(x[0])
        _, tangent = torch.func.jvp(torch.cos, (x,), (torch.ones_like(x),))
    return per_sample, jacobian, tangent


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.k = k
        return x.pow(3) * k

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * 3 * x.pow(2) * ctx.k, None


@scenario
def custom_function(window: Window) -> Any:
    model = Root(lambda self, x: Cube.apply(self.a(x), 0.5), a=nn.Linear(4, 4))
    x = leaf(3, 4)
    with window(model):
        y = model(x)
        F.relu(y).sum().backward()
    return y, x.grad, type(y.grad_fn).__name__, torch.autograd.gradcheck(
        Cube.apply, (torch.randn(2, dtype=torch.double, requires_grad=True), 1.0))


@scenario
def errors(window: Window) -> Any:
    model = Root(lambda self, x: self.a(x), a=nn.Linear(4, 4))
    texts = []

    def explode(*_: Any) -> None:
        raise RuntimeError("from a hook of the user")

    with window(model):
        for attempt in (
            lambda: torch.matmul(torch.ones(2, 3), torch.ones(2, 3)),
            lambda: model(torch.ones(2, 5)),
            lambda: torch.ones(2).view(3),
            lambda: F.relu("no tensor"),
            lambda: torch.add(),
            lambda: torch.ones(2)[5],
        ):
            try:
                attempt()
            except Exception as error:
                texts.append((type(error).__name__, str(error)[:60], error.__context__ is None))
        handle = model.a.register_forward_hook(explode)
        try:
            model(torch.ones(1, 4))
        except RuntimeError as error:
            texts.append(str(error))
        handle.remove()
        y = leaf(2)
        y.register_hook(explode)
        try:
            torch.sin(y).sum().backward()
        except RuntimeError as error:
            texts.append(str(error))
        last = torch.add(model(torch.ones(1, 4)), 1)
    return texts, last


@scenario
def copies_while_open(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.TransformerEncoderLayer(4, 2, 8))
    with window(model):
        y = model(torch.ones(1, 2, 4))
        buffer = io.BytesIO()
        torch.save(model, buffer)
        buffer.seek(0)
        loaded = torch.load(buffer, weights_only=False)
        results = [clone(torch.ones(1, 2, 4)) - y for clone in (
            copy.deepcopy(model).eval(), pickle.loads(pickle.dumps(model)).eval(), loaded.eval())]
        scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
        traced = torch.jit.trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), torch.ones(1, 4))
        results += [scripted(torch.ones(1, 4)), traced(torch.ones(1, 4))]
        keys = sorted(model.state_dict())
        weights = torch.save(model.state_dict(), io.BytesIO())
    hooks = sum(len(m._forward_hooks) for m in loaded.modules())
    return results, keys, weights, traced.code, hooks * 0


@scenario
def generators(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4))

    def stream() -> Any:
        for k in range(3):
            got = yield model(torch.full((1, 4), float(k)))
            yield torch.mul(got, 2)

    out = []
    with window(model):
        running = stream()
        for _ in range(2):
            first = next(running)
            out.append(running.send(first))
        running.close()
    return out


@scenario
def lifetimes(window: Window) -> Any:
    """Which tensors are gone as soon as the program lets go of them."""
    model = nn.Sequential(nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 40))
    gone = []
    with window(model):
        x = leaf(8, 40)
        for make in (lambda: torch.sin(x.detach()), lambda: x.detach() * 2, lambda: torch.ones(9),
                     lambda: model(x), lambda: F.relu(x).detach(), lambda: x.clone().add_(1)):
            value = make()
            reference = weakref.ref(value)
            memory = weakref.ref(value.untyped_storage())
            del value
            gone.append((reference() is None, memory() is None))
        y = model(x)
        y.sum().backward()
        final = weakref.ref(y)
        del y
        gone.append(final() is None)
        hidden = torch.tanh(x)
        kept = weakref.ref(hidden)
        loss = hidden.sum()
        del hidden
        gone.append(kept() is None)
        loss.backward()
        del loss
        gone.append(kept() is None)
    return gone


@scenario
def threads(window: Window) -> Any:
    model = nn.Sequential(nn.Linear(4, 4))
    results: dict[int, torch.Tensor] = {}

    def work(k: int) -> None:
        x = torch.full((2, 4), float(k), requires_grad=True)
        for _ in range(10):
            model(x).tanh().sum().backward()
        results[k] = x.grad

    with window(model):
        pool = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for one in pool:
            one.start()
        for one in pool:
            one.join()
    return [results[k] for k in range(4)]
