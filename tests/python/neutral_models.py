"""Models whose trainings must not notice that they are watched.

python neutral_models.py DIRECTORY [MODEL ...]

Prints a line of JSON for each model and front end (front_ends.py). What they need is imported once;
a child process, forked after that, trains each time.
"""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.nn as nn
import torch.nn.functional as F
from front_ends import NAMES, Trace, Training, train
from torch.utils.checkpoint import checkpoint


def plain(model: nn.Module, loss_of_step: Callable[[], torch.Tensor]) -> Training:
    """AdamW, clipped gradients."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(trace: Trace) -> None:
        loss = loss_of_step()
        loss.backward()
        trace.add("losses", [loss, nn.utils.clip_grad_norm_(model.parameters(), 1.0)])
        trace.gradients(model)
        optimizer.step()
        optimizer.zero_grad()

    return Training([model], [optimizer], step)


def language_model(name: str) -> Training:
    import transformers

    if name == "gpt2":
        settings = transformers.GPT2Config(
            vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, attn_pdrop=0.1,
        )
        model = transformers.GPT2LMHeadModel(settings)
    else:
        settings = transformers.LlamaConfig(
            vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
        )
        model = transformers.LlamaForCausalLM(settings)

    def loss() -> torch.Tensor:
        ids = torch.randint(0, 50, (2, 8))
        return model(input_ids=ids, labels=ids).loss

    return plain(model, loss)


class Convolutions(nn.Module):
    """Batch norm, in-place activations, dropout, a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        y = self.second(x)
        y += x
        y = F.max_pool2d(F.relu(y, inplace=True), 2)
        return self.head(F.dropout(y.mean((2, 3)), 0.1, self.training))


def convolutions(wrap: Callable[[nn.Module], Any] = lambda model: model) -> Training:
    model = wrap(Convolutions())
    return plain(model, lambda: F.cross_entropy(
        model(torch.randn(4, 3, 8, 8)), torch.randint(0, 5, (4,))))


class Recurrent(nn.Module):
    """Two layers in both directions, dropout between them, sequences of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 2, dropout=0.2, bidirectional=True)
        self.head = nn.Linear(16, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 4, 2]))
        y, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0])
        return self.head(y)


def recurrent() -> Training:
    model = Recurrent()

    def loss() -> torch.Tensor:
        x = torch.randn(5, 3, 6)
        return F.mse_loss(model(x), x)

    return plain(model, loss)


def adversarial() -> Training:
    """Two models, an optimizer each; one backward pass goes through both."""
    maker = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(True), nn.Linear(16, 8))
    judge = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 16)),
                          nn.LeakyReLU(0.2, inplace=True), nn.Dropout(0.2), nn.Linear(16, 1))
    first = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.9))
    second = torch.optim.SGD(judge.parameters(), lr=1e-2, momentum=0.9)

    def step(trace: Trace) -> None:
        second.zero_grad()
        fake = maker(torch.randn(8, 4))
        loss = F.softplus(judge(fake.detach())).mean() + F.softplus(
            -judge(torch.randn(8, 8))).mean()
        loss.backward()
        trace.gradients(judge)
        second.step()
        first.zero_grad()
        other = F.softplus(-judge(fake)).mean()
        other.backward()
        trace.gradients(maker)
        trace.add("losses", [loss, other])
        first.step()

    return Training([maker, judge], [first, second], step)


class Block(nn.Module):
    """Dropout, BatchNorm, ReLU in place, several users of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.2)
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, dict[str, Any]]:
        y = self.norm(x)
        x = x + self.drop(self.q(y) * self.k(y) * scale)
        y = self.mlp(x)
        y += x
        y.mul_(0.5)
        return y, {"aux": y.mean()}


class Blocks(nn.Module):
    """Two checkpointed blocks, one shared layer, a tied head, an unused parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
        self.shared = nn.Linear(8, 8)
        self.unused = nn.Parameter(torch.ones(3))
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.shared(self.embed(ids))
        x, _ = checkpoint(self.blocks[0], x, use_reentrant=True)
        x, _ = checkpoint(self.blocks[1], x, 0.5, use_reentrant=False)
        x, extra = self.blocks[2](self.shared(x), scale=0.25)
        return self.head(F.dropout(x, 0.1, self.training)) + extra["aux"]


def accumulated() -> Training:
    """Two micro-batches a step; a second optimizer that calls a closure."""
    net, critic = Blocks(), nn.Linear(16, 1)
    adam = torch.optim.AdamW(net.parameters(), lr=1e-2)
    lbfgs = torch.optim.LBFGS(critic.parameters(), max_iter=3)

    def step(trace: Trace) -> None:
        for _ in range(2):
            ids = torch.randint(0, 16, (6,))
            loss = F.cross_entropy(net(ids), ids)
            (loss / 2).backward()
            trace.add("losses", loss)
        trace.add("losses", nn.utils.clip_grad_norm_(net.parameters(), 1.0))
        trace.gradients(net)
        adam.step()
        adam.zero_grad()
        data = net(torch.arange(6)).detach()

        def closure() -> torch.Tensor:
            lbfgs.zero_grad()
            loss = critic(data).square().mean()
            loss.backward()
            trace.gradients(critic)
            return loss

        trace.add("losses", lbfgs.step(closure))

    return Training([net, critic], [adam, lbfgs], step, micro_batches=2)


MODELS: dict[str, Callable[[], Training]] = {
    "gpt2": functools.partial(language_model, "gpt2"),
    "llama": functools.partial(language_model, "llama"),
    "conv": convolutions,
    "lstm": recurrent,
    "gan": adversarial,
    "blocks": accumulated,
}


def main() -> int:
    directory, *names = sys.argv[1:]
    for name in names:
        MODELS[name]()
    importlib.import_module("torch._dynamo")  # as the first optimizer does
    gc.freeze()  # the children's last collections leave alone what is imported
    failures = 0
    for name, front_end in itertools.product(names, ["none", *NAMES]):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            found = train(front_end, MODELS[name], Path(directory) / name / front_end)
            print("RESULT " + json.dumps({"model": name, "front end": front_end, **found}))
            return 0
        failures += os.waitpid(child, 0)[1] != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
