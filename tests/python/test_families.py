"""The same training twice is no wrong call, for ten families of well-known models."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from recording import PLUMB, config, run_script

FAMILIES = [
    "llama", "gpt2", "bert", "t5", "vit", "mixtral", "qwen2_moe", "mamba", "whisper", "clip",
]
LEVELS = ["L0", "L1", "mix"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every family at every level, twice: <family>/<level>/<run>/out."""
    pytest.importorskip("transformers")
    directory = tmp_path_factory.mktemp("families")
    words = []
    for family in FAMILIES:
        words.append(family)
        for level in LEVELS:
            for run in ("first", "second"):
                place = directory / family / level / run
                place.mkdir(parents=True)
                words.append(str(config(place, level=level)))
    script = Path(__file__).with_name("family_models.py")
    run_script(script, *words)
    return directory


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_training_twice_is_no_wrong_call(
    recordings: Path, family: str, level: str
) -> None:
    place = recordings / family / level
    done = subprocess.run(
        [PLUMB, "compare", place / "second/out", place / "first/out", "-o", place / "result",
         "--fail-on", "any"],
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert done.stdout.startswith("no wrong call in 2 steps\n"), done.stdout + done.stderr
    assert done.returncode == 0, done.stdout
    assert re.search(r"^  limit: ", done.stdout, re.MULTILINE), done.stdout
