"""`plumb config_check -vc` and `-vv`: configurations in logs of verl. What is in a log is known,
because Python's pprint has written it; what the tables must hold follows from Python's repr and ==.
"""

from __future__ import annotations

import csv
import json
import pprint
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

PREFIX = "\x1b[36m(TaskRunner pid=123)\x1b[0m "
MISSING = object()
CONFIG: dict[str, Any] = {
    "actor_rollout_ref": {
        "actor": {"shuffle": False, "lr": 1e-06, "betas": [0.9, 0.999], "clip": None,
                  "names": ["it's", 'a "b"', "x, y: {z}"], "big": 2**70, "load_weight": True,
                  "use_dynamic_bsz": False},
        "model": {"path": "/data/models/" + "long_part/" * 12, "use_remove_padding": True,
                  "override": {}, "text": "back\\slash and\nline"},
        "rollout": {"log_prob_use_dynamic_bsz": False, "nested": [{"a": 1}, []], "one": 1}},
    "data": {"shuffle": False, "empty": []},
    "ray_init": {"num_cpus": 4},
    "trainer": {"balance_batch": False, "profiler": {"steps": 3}, "ratio": 0.25}}


def log(path: Path, config: dict[str, Any], prefix: str = PREFIX, noise: bool = True) -> Path:
    """The lines of one process among those of others."""
    lines = ["start of training", "{'actor_rollout_ref': {'old': 1}}"]
    for i, line in enumerate(pprint.pformat(config, width=78).splitlines()):
        foreign = noise and i > 2 and i % 4 == 0
        lines.append(prefix + line)
        if foreign:
            lines += ["INFO another process: 12%, done", f"{prefix}WARNING 08-01 12:00: hello, you"]
    path.write_text("\n".join([*lines, prefix + "step:1 - loss: 0.5"]) + "\n")
    return path


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, "config_check", *map(str, words)], text=True,
                          capture_output=True, check=False, timeout=60)


def flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        return {path: value}
    found: dict[str, Any] = {}
    for key, member in value.items():
        found |= flat(member, f"{path}/{key}" if path else key)
    return found


def expected(left: dict[str, Any], right: dict[str, Any], names: list[str]) -> list[list[str]]:
    rows = []
    for name in names:
        a, b = left.get(name, MISSING), right.get(name, MISSING)
        same = a is not MISSING and b is not MISSING and a == b
        rows.append([name, *("NA" if x is MISSING else repr(x) for x in (a, b)),
                     "\u662f" if same else "\u5426"])
    return rows


def table(path: Path) -> list[list[str]]:
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("prefix, noise", [(PREFIX, True), (PREFIX, False), ("", False)])
def test_two_logs(tmp_path: Path, prefix: str, noise: bool) -> None:
    other = json.loads(json.dumps(CONFIG))
    other["actor_rollout_ref"]["actor"] |= {"lr": 2e-06, "betas": [0.9, 0.99], "shuffle": 0}
    other["actor_rollout_ref"]["rollout"]["one"] = True
    other["ray_init"]["num_cpus"] = other["trainer"]["profiler"]["steps"] = 9
    del other["trainer"]["ratio"]
    done = plumb("-vc", log(tmp_path / "npu.log", CONFIG, prefix, noise),
                 log(tmp_path / "bench.txt", other, prefix, noise), "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    left, right = flat(CONFIG), flat(other)
    names = sorted(name for name in left.keys() | right.keys()
                   if "ray_" not in name and "profiler/" not in name)
    header, *rows = table(tmp_path / "out/hyper_params_compare.csv")
    assert header == ["\u8d85\u53c2\u540d\u79f0", "NPU\u751f\u6548\u503c",
                      "bench\u751f\u6548\u503c", "\u662f\u5426\u4e00\u81f4"]
    assert rows == expected(left, right, names)
    assert sum(row[3] == "\u5426" for row in rows) == 3
    assert done.stdout.startswith(f"the configurations differ in 3 of {len(rows)} parameters\n")
    assert "actor_rollout_ref/actor/lr: 1e-06 in npu, 2e-06 in bench" in done.stdout
    assert json.loads((tmp_path / "out/NPU_config.json").read_text()) == CONFIG
    text = (tmp_path / "out/bench_config.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    assert plumb("-vc", tmp_path / "npu.log", tmp_path / "bench.txt", "-o", tmp_path / "o",
                 "--fail-on", "error").returncode == 1
    same = plumb("-vc", tmp_path / "npu.log", tmp_path / "npu.log", "-o", tmp_path / "o",
                 "--fail-on", "error")
    assert same.returncode == 0 and same.stdout.startswith("the configurations agree in ")


def test_a_log_in_json(tmp_path: Path) -> None:
    lines = json.dumps(CONFIG, indent=1).replace('{\n "actor_rollout_ref"', '{"actor_rollout_ref"')
    (tmp_path / "a.log").write_text(lines)
    done = plumb("-vc", tmp_path / "a.log", log(tmp_path / "b.log", CONFIG), "-o", tmp_path / "o")
    assert done.stdout.startswith("the configurations agree in "), done.stdout


def test_a_log_against_what_it_should_be(tmp_path: Path) -> None:
    log(tmp_path / "a.log", CONFIG)
    done = subprocess.run([PLUMB, "msprobe", "config_check", "-vv", tmp_path / "a.log", "-o",
                           tmp_path / "out"], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    header, *rows = table(tmp_path / "out/hyper_params_verify.csv")
    assert header[1:3] == ["bench\u751f\u6548\u503c", "target\u751f\u6548\u503c"]
    assert len(rows) == 17 and rows == sorted(rows)
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["trainer/balance_batch"] == ["False", "False", "\u662f"]
    assert by_name["VLLM_ASCEND_ENABLE_NZ"] == ["0", "NA", "\u5426"]
    (tmp_path / "own.yaml").write_text(
        "trainer:\n  ratio: 0.25\n  balance_batch: 'False'\ndata:\n  shuffle: 0\n  empty: []\n")
    done = plumb("-vv", tmp_path / "own.yaml", tmp_path / "a.log", "-o", tmp_path / "own")
    assert done.returncode == 0, done.stderr
    assert table(tmp_path / "own/hyper_params_verify.csv")[1:] == [
        ["data/empty", "[]", "[]", "\u662f"], ["data/shuffle", "0", "False", "\u662f"],
        ["trainer/balance_batch", "'False'", "False", "\u5426"],
        ["trainer/ratio", "0.25", "0.25", "\u662f"]]
    assert json.loads((tmp_path / "own/tgt_config.json").read_text()) == CONFIG


def test_bad_logs_are_one_line(tmp_path: Path) -> None:
    good = log(tmp_path / "good.log", CONFIG)
    text = good.read_text()
    (tmp_path / "cut.log").write_text(text[: text.rindex("balance_batch")])
    (tmp_path / "none.log").write_text("nothing\n")
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "deep.log").write_text("{'actor_rollout_ref': " + "[" * 100_000)
    (tmp_path / "bad.yaml").write_text("a: [1\n")
    (tmp_path / "good.yml").write_text("a: 1\n")
    cases = [("-vc", good, tmp_path / name, status) for name, status in (
        ("cut.log", 5), ("none.log", 5), ("empty.log", 5), ("deep.log", 5), ("missing.log", 3),
        ("bad.yaml", 2))]
    cases += [("-vv", tmp_path / "bad.yaml", good, 5), ("-vv", tmp_path / "good.yml", good, 2),
              ("-vv", good, tmp_path / "bad.yaml", 2), ("-vc", good, "", 2)]
    for option, first, second, status in cases:
        done = plumb(option, first, *([second] if second else []), "-o", tmp_path / "out")
        assert done.returncode == status, (option, first, second, done.stderr)
        assert done.stderr.count("\n") == 1 and not done.stdout
        assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    assert plumb("-vc", good, good, "-o", tmp_path / "file").returncode == 6
