"""A plumbline dump holds what upstream's dump of the same step holds."""

from __future__ import annotations

import re
import zlib

import pytest
import torch
from conftest import DUMPED_ONLY, RECORDINGS, STEPS, Runs
from dump_difference import is_tensor, unexplained
from known_differences import (
    INPLACE_MODEL,
    INPLACE_OUTPUT,
    KNOWN_DIFFERENCES,
    PERTURBED,
    UPSTREAM_ONLY,
)

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

CASES = [(recording, step) for recording in RECORDINGS + DUMPED_ONLY for step in STEPS]
TENSOR_CASES = [case for case in CASES if case[0].endswith("/tensor")]




def only_upstream(recording: str, name: str) -> bool:
    """Whether an entry or tensor file of this name can exist in upstream's recording only."""
    return bool(UPSTREAM_ONLY.match(name)
                or (INPLACE_MODEL.match(recording) and INPLACE_OUTPUT.match(name)))


def entry_of(file_name: str) -> str:
    """The entry that a tensor file belongs to."""
    return re.split(r"\.(?:input|output|parameters|kwargs)\.|\.(?:weight|bias)\b", file_name)[0]


def is_module_backward(name: str) -> bool:
    """Whether an entry is the backward of a module."""
    return name.startswith("Module.") and ".backward." in name


@pytest.mark.parametrize(("recording", "step"), CASES)
def test_same_entries_in_the_same_order(plumbline: Runs, upstream: Runs, recording, step):
    ours = list(plumbline.rank(recording, step).data)
    theirs = [name for name in upstream.rank(recording, step).data
              if not only_upstream(recording, name)]
    assert [name for name in theirs if name not in ours] == [], "entries that only upstream has"
    assert [name for name in ours if name not in theirs] == [], "entries that only plumbline has"
    if "/L1/" in recording:
        assert ours == theirs
    # Where a module's backward stands between those of its calls: key module-backward.
    assert [name for name in ours if not is_module_backward(name)] == \
           [name for name in theirs if not is_module_backward(name)]


@pytest.mark.parametrize(("recording", "step"), CASES)
def test_same_structure_and_numbers(plumbline: Runs, upstream: Runs, recording, step):
    ours, theirs = plumbline.rank(recording, step).data, upstream.rank(recording, step).data
    assert theirs, "upstream recorded nothing"
    found = unexplained(f"{recording}/step{step}", ours, theirs, set())
    assert found == [], f"{len(found)} differences, (path, plumbline, upstream)"


@pytest.mark.parametrize(("recording", "step"), CASES)
def test_same_header(plumbline: Runs, upstream: Runs, recording, step):
    ours = plumbline.rank(recording, step).read("dump.json")
    theirs = upstream.rank(recording, step).read("dump.json")
    for key in ("task", "level", "framework"):
        assert ours[key] == theirs[key]
    assert (ours["dump_data_dir"] is None) == (theirs["dump_data_dir"] is None)


@pytest.mark.parametrize(("recording", "step"), CASES)
def test_same_construct(plumbline: Runs, upstream: Runs, recording, step):
    """Key module-backward: of backward entries, upstream's parent must enclose ours."""
    ours = plumbline.rank(recording, step).read("construct.json")
    theirs = {name: parent for name, parent
              in upstream.rank(recording, step).read("construct.json").items()
              if not only_upstream(recording, name)}
    assert set(ours) == set(theirs)
    for name, parent in theirs.items():
        if ".backward" not in name:
            assert ours[name] == parent, name
            continue
        enclosing = {None}
        here = ours[name]
        while isinstance(here, str) and here not in enclosing:
            enclosing.add(here)
            here = ours.get(here)
        assert parent in enclosing, f"{name}: {parent} does not enclose {ours[name]}"


@pytest.mark.parametrize(("recording", "step"), CASES)
def test_same_stacks_in_the_model_code(plumbline: Runs, upstream: Runs, recording, step):
    """The frames of the model must agree; those inside the recorder cannot."""
    def model_frames(stacks):
        return {name: [frame for frame in frames if "/tests/compat/models.py" in frame]
                for name, frames in stacks.items()}

    ours = plumbline.rank(recording, step).read("stack.json")
    theirs = {name: frames for name, frames
              in upstream.rank(recording, step).read("stack.json").items()
              if not only_upstream(recording, name)}
    assert model_frames(ours) == model_frames(theirs)


@pytest.mark.parametrize(("recording", "step"), TENSOR_CASES)
def test_same_tensor_files(plumbline: Runs, upstream: Runs, recording, step):
    ours = plumbline.rank(recording, step).path / "dump_tensor_data"
    theirs = upstream.rank(recording, step).path / "dump_tensor_data"
    names = sorted(path.name for path in theirs.iterdir()
                   if not only_upstream(recording, entry_of(path.name)))
    assert names, "upstream wrote no tensor"
    extra = {path.name for path in ours.iterdir()} - set(names)
    assert [name for name in extra if not name.endswith("LlamaAttention.backward.0.input.1.pt")] \
        == [], "files that only plumbline wrote"
    for name in names:
        if INPLACE_MODEL.match(recording) and name.startswith("Functional.relu.0.backward.output"):
            continue  # key inplace-output
        one = torch.load(ours / name, weights_only=True)
        other = torch.load(theirs / name, weights_only=True)
        assert (one.dtype, one.shape, one.requires_grad) == \
               (other.dtype, other.shape, other.requires_grad), name
        tolerance = 1e-4 if PERTURBED.match(f"{recording}/step{step}:{name}") else 0.0
        torch.testing.assert_close(one.detach(), other.detach(), rtol=tolerance, atol=tolerance,
                                   equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if name.endswith("/tensor")])
def test_tensor_files_fit_their_statistics(plumbline: Runs, recording):
    """Independent truth: torch's own max, min and zlib's CRC-32 of the stored tensor."""
    rank = plumbline.rank(recording, 0)
    checked = 0
    stack = list(rank.data.values())
    while stack:
        node = stack.pop()
        if is_tensor(node) and node.get("data_name"):
            tensor = torch.load(rank.path / "dump_tensor_data" / node["data_name"],
                                weights_only=True).detach()
            assert list(tensor.shape) == node["shape"] and str(tensor.dtype) == node["dtype"]
            if tensor.numel() and not tensor.isnan().any():
                assert node["Max"] == tensor.max().item()
                assert node["Min"] == tensor.min().item()
            if "md5" in node and tensor.dtype != torch.bfloat16:
                assert node["md5"] == f"{zlib.crc32(tensor.contiguous().numpy().tobytes()):08x}"
            checked += 1
        elif isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    assert checked > 20


def test_every_known_difference_occurs(plumbline: Runs, upstream: Runs):
    used: set[str] = set()
    for recording, step in CASES:
        unexplained(f"{recording}/step{step}", plumbline.rank(recording, step).data,
                    upstream.rank(recording, step).data, used)
    assert {line.key for line in KNOWN_DIFFERENCES} - used == set(), "stale lines: remove them"
