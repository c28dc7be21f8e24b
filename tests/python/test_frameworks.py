"""The examples of frameworks: recorded as they should be, and the same weights as without."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recording import AT_LEVEL, PLUMB

EXAMPLES = Path(__file__).parents[2] / "examples"
# .venv, TorchAO, diffusers and timm (tools/bootstrap.sh optional).
WITH_ALL = Path(__file__).parents[2] / "build" / "optional" / "bin" / "python"
# Of each example: what it needs.
PACKAGES = {"record_trainer": "accelerate", "record_trainer_without_callback": "accelerate",
            "record_accelerate": "accelerate", "record_lightning": "lightning",
            "record_generate": "transformers", "record_lora": "peft",
            "record_continuous_batching": "transformers",
            "record_quantized": "torchao", "record_diffusers": "diffusers",
            "record_timm": "timm"}
# How each runs: level, and whether the fourth softmax, or attention in one call, goes wrong below
# what is recorded.
RUNS = {"without": ("mix", False), "with": ("mix", False), "again": ("mix", False),
        "L0": ("L0", False), "L1": ("L1", False), "fault": ("mix", True)}
OUTPUTS = {name: "out" if name == "with" else f"out_{name}" for name in RUNS}


# Arguments: EXAMPLE ARGUMENT OUT ERRORS LEVEL FAULT, six words per run. What examples import
# takes seconds, so it is imported once, and a child process runs each.
_RUNNER = AT_LEVEL + """
import gc, importlib, os, runpy, sys
for name in ("transformers.models.llama", "accelerate", "lightning", "peft",
             "torchao.quantization", "diffusers", "timm"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

class Changed(TorchDispatchMode):
    uses = 0
    # softmax: in inference mode
    wrong = ("_softmax", "softmax", "_scaled_dot_product_flash_attention_for_cpu")
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            result = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ in self.wrong:
                self.uses += 1
                if self.uses == 4:
                    (result[0] if isinstance(result, tuple) else result).mul_(1.05)
            return result

gc.freeze()
words = sys.argv[1:]
for at in range(0, len(words), 6):
    example, argument, *outputs, level, fault = words[at:at + 6]
    child = os.fork()
    if child == 0:
        for place, path in enumerate(outputs):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), place + 1)
        sys.argv[:] = [example, argument]
        sys.path.insert(0, os.path.dirname(example))
        if argument != "none":
            at_level(level)
        if fault == "True":
            Changed().__enter__()
        runpy.run_path(example, run_name="__main__")
        sys.exit(0)
    with open(outputs[0] + ".status", "w") as status:
        status.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


def is_there(package: str) -> bool:
    if package in ("torchao", "diffusers", "timm"):
        return any(WITH_ALL.parents[1].glob(f"lib/*/site-packages/{package}"))
    return importlib.util.find_spec(package) is not None


def needs(package: str) -> None:
    if not is_there(package):
        pytest.skip(f"{package} is not installed")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every example that can be imported has run, with a recorder and without."""
    pytest.importorskip("transformers")
    root = tmp_path_factory.mktemp("frameworks")
    environment = dict(os.environ, HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", PLUMBLINE_LOG_LEVEL="2")
    words = []
    for example, package in PACKAGES.items():
        if not is_there(package):
            continue
        directory = root / example
        directory.mkdir()
        for name, (level, fault) in RUNS.items():
            argument = "none" if name == "without" else str(directory / OUTPUTS[name])
            words += [str(EXAMPLES / f"{example}.py"), argument, str(directory / name),
                      str(directory / f"{name}.errors"), level, str(fault)]
    python = str(WITH_ALL) if WITH_ALL.is_file() else sys.executable
    subprocess.run([python, "-W", "ignore", "-c", _RUNNER, *words], timeout=400, check=True,
                   env=environment)
    return root


def results_of(directory: Path, names: tuple[str, ...] = ("with", "without")) -> list[str]:
    """The last words of an example that recorded into directory/out, and of one that did not."""
    results = []
    for name in names:
        text = (directory / name).read_text()
        errors = (directory / f"{name}.errors").read_text()
        assert (directory / f"{name}.status").read_text() == "0", text[-1000:] + errors[-3000:]
        results.append(next(line for line in text.splitlines()
                            if line.startswith(("weights ", "tokens "))))
    return results


def entries(directory: Path, step: int) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((directory / f"step{step}/rank/dump.json").read_text())
    return data["data"]


@pytest.mark.parametrize(
    ("example", "steps", "forwards"),
    [
        ("record_trainer", 3, 2),  # two micro-batches to a step
        ("record_trainer_without_callback", 3, 1),
        ("record_accelerate", 4, 1),
        ("record_lightning", 3, 1),
    ],
)
def test_training_is_recorded_and_unchanged(
    ran: Path, example: str, steps: int, forwards: int
) -> None:
    needs(PACKAGES[example])
    directory = ran / example
    recorded, plain = results_of(directory)
    assert recorded == plain
    assert len(list((directory / "out").iterdir())) == steps
    for step in range(steps):
        data = entries(directory / "out", step)
        layers = [n for n in data if ".layers.1.LlamaDecoderLayer.forward." in n]
        assert len(layers) == forwards
        assert all("output" in data[name] for name in layers)
        assert sum(".layers.1.LlamaDecoderLayer.backward." in n for n in data) == forwards
        weights = [n for n in data if n.endswith(".q_proj.Linear.parameters_grad")]
        assert len(weights) == 2 and all(data[n]["weight"][0]["Norm"] > 0 for n in weights)
        if example == "record_accelerate" and step % 2 == 1:
            stack = json.loads((directory / f"out/step{step}/rank/construct.json").read_text())
            assert "optimizer" in stack and "clip_grad" in stack


def test_generation_records_the_tokens_of_the_range(ran: Path) -> None:
    recorded, plain = results_of(ran / "record_generate")
    assert recorded == plain
    data = entries(ran / "record_generate/out", 0)
    layers = [e for n, e in data.items() if ".layers.0.LlamaDecoderLayer.forward." in n]
    # With a key-value cache each call after the prompt reads one token.
    assert [e["input_args"][0]["shape"] for e in layers] == [[1, 1, 16]] * 3
    assert not [n for n in data if "backward" in n]
    assert any(n.startswith("Functional.linear.") for n in data)


def test_one_request_of_the_batches_is_recorded(ran: Path) -> None:
    directory = ran / "record_continuous_batching"
    recorded, plain = results_of(directory)
    assert recorded == plain
    # The request is in batches 1 to 3: with its prompt, then with a token each.
    assert sorted(path.name for path in (directory / "out").iterdir()) == ["step1", "step2",
                                                                         "step3"]
    for step, tokens in ((1, 3), (2, 1), (3, 1)):
        data = entries(directory / "out", step)
        layers = [e for n, e in data.items() if ".LlamaDecoderLayer.forward." in n]
        assert [e["output"][0]["shape"] for e in layers] == [[1, tokens, 16]] * 2
        weights = [e["output"][0]["shape"][0] for n, e in data.items() if ".softmax." in n]
        assert weights == [tokens] * 2


def wrong_calls(target: Path, golden: Path) -> list[str]:
    """The first wrong call of every step that has one."""
    named = []
    steps = sorted(path.name for path in golden.iterdir())
    assert steps == sorted(path.name for path in target.iterdir())
    for step in steps:
        done = subprocess.run([PLUMB, "compare", target / step, golden / step, "--json", "--format",
                               "csv", "-o", target.parent / "result"],
                              capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        named += [answer["first_wrong_call"]["name"]] if answer["first_wrong_call"] else []
        assert answer["complete"] or named, done.stdout
    return named


@pytest.mark.parametrize("example", PACKAGES)
def test_every_level_loses_nothing_and_a_fault_is_named(ran: Path, example: str) -> None:
    needs(PACKAGES[example])
    directory = ran / example
    levels = results_of(directory, ("without", "with", "again", "L0", "L1"))
    assert len(set(levels)) == 1
    assert not list(directory.rglob("dump_error_info.log"))
    assert wrong_calls(directory / "out_again", directory / "out") == []
    results_of(directory, ("fault",))
    named = wrong_calls(directory / "out_fault", directory / "out")[0]
    in_one_call = example in ("record_diffusers", "record_timm")
    wrong = "scaled_dot_product_attention" if in_one_call else "softmax"
    assert named.startswith(f"Functional.{wrong}.") and named.endswith(".forward")


def test_training_and_sampling_of_a_unet_are_recorded(ran: Path) -> None:
    needs("diffusers")
    directory = ran / "record_diffusers"
    recorded, plain = results_of(directory)
    assert recorded == plain
    # Two steps of training, two of sampling.
    for step in range(4):
        data = entries(directory / "out", step)
        assert data["Module.conv_out.Conv2d.forward.0"]["output"][0]["shape"][1:] == [3, 8, 8]
        calls = [n for n in data if n.startswith("Functional.scaled_dot_product_attention.")]
        backward = [n for n in calls if n.endswith(".backward")]
        optimizer = [n for n in data if n.startswith("Optimizer.")]
        assert len(calls) - len(backward) == 4
        assert (len(backward), bool(optimizer)) == ((4, True) if step < 2 else (0, False))


def test_training_of_a_vision_transformer_is_recorded(ran: Path) -> None:
    needs("timm")
    directory = ran / "record_timm"
    recorded, plain = results_of(directory)
    assert recorded == plain
    for step in range(2):
        data = entries(directory / "out", step)
        # 16 patches and the token of the class.
        for direction, part in (("forward", "output"), ("backward", "input")):
            block = data[f"Module.blocks.1.Block.{direction}.0"]
            assert block[part][0]["shape"] == [4, 17, 16]
        assert "Module.patch_embed.proj.Conv2d.forward.0" in data
        assert sum(n.startswith("Optimizer.") for n in data) == 32


def test_adapters_alone_are_updated(ran: Path) -> None:
    needs("peft")
    steps = [n for n in entries(ran / "record_lora/out", 1) if n.startswith("Optimizer.")]
    assert len(steps) == 8 and all(".lora_" in name for name in steps)


def test_a_quantised_weight_has_its_values(ran: Path) -> None:
    needs("torchao")
    pytest.importorskip("transformers")
    data = entries(ran / "record_quantized/out", 0)
    plain = entries(ran / "record_accelerate/out", 0)  # the same model, not quantised
    name = "Module.model.layers.0.self_attn.q_proj.Linear.forward.0"
    weight, golden = (each[name]["parameters"]["weight"] for each in (data, plain))
    assert weight["type"].endswith(".Int8Tensor") and weight["shape"] == golden["shape"]
    assert weight["Norm"] != golden["Norm"]
    assert weight["Norm"] == pytest.approx(golden["Norm"], rel=0.01)
