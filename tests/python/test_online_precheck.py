"""The online pre-check: a training on the test device, and a process that checks its calls."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from online_machines import (
    BreakingLink,
    Checker,
    Trainer,
    calls_of,
    free_port,
    make_certificates,
    rows_of,
    wait_until,
    write_config,
)
from online_training import CALLS
from recording import PLUMB
from small_disk import MOUNT

# Operator of the device and the call of the model that runs it.
DEFECTS = {
    "addmm": "Functional.linear", "mm": "Torch.mm", "gelu": "Functional.gelu", "tanh": "Torch.tanh",
    "native_layer_norm": "Functional.layer_norm", "_softmax": "Torch.softmax", "exp": "Torch.exp",
    "sqrt": "Torch.sqrt", "sigmoid": "Torch.sigmoid", "mul": "Torch.mul",
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def unchecked() -> str:
    """Digest of three steps of the training on the CPU without a check."""
    return Trainer("-", 3).end()[0]


def online(tmp_path: Path, port: int, tls: Path | None, **keys: Any) -> Path:
    return write_config(tmp_path / "config.json", host="127.0.0.1", port=port,
                        tls_path=str(tls or ""), **keys)


def worst_of(row: list[str]) -> str:
    return "error" if "error" in row[1:3] else row[1]


def test_ten_defects_are_found_over_mutual_tls(tmp_path: Path, certificates: Path) -> None:
    assert set(DEFECTS) == set(CALLS)
    checker = Checker(tmp_path / "out", "--rank_list", "0", "--fail-on", "error", "--device_type",
                      "cpu", tls=certificates)
    defects = [{"op": op, "kind": "scale", "value": 1.05} for op in DEFECTS]
    trainer = Trainer(online(tmp_path, checker.port, certificates), 2, "testdev",
                      PLUMBLINE_TEST_DEVICE_DEFECTS=json.dumps(defects))
    text = trainer.end()[1]
    status, answer = checker.end()
    assert status == 1, answer
    assert answer.startswith("wrong: "), answer
    assert "0 dropped, 0 unsent, 0 lost" in text
    wrong = {row[0].rsplit(".", 1)[0] for row in rows_of(tmp_path / "out")
             if worst_of(row) == "error"}
    assert {op: call in wrong for op, call in DEFECTS.items()} == dict.fromkeys(DEFECTS, True)
    # A device beside the CPU that checks has no such errors.
    worse = {row[0].rsplit(".", 1)[0]
             for row in rows_of(tmp_path / "out", name="api_precision_compare")
             if worst_of(row) == "error"}
    assert {op: call in worse for op, call in DEFECTS.items()} == dict.fromkeys(DEFECTS, True)
    assert not list(tmp_path.glob("dumps/**/*"))
    assert not (tmp_path / "out/online_spool").exists()


def test_right_device_passes_and_the_training_is_the_same(
    tmp_path: Path, certificates: Path
) -> None:
    checker = Checker(tmp_path / "out", tls=certificates)
    with_check = Trainer(online(tmp_path, checker.port, certificates), 3, "testdev").end()[0]
    status, answer = checker.end()
    assert with_check == Trainer("-", 3, "testdev").end()[0]
    assert status == 0, answer
    assert answer.startswith("no API is wrong in "), answer
    rows = rows_of(tmp_path / "out")
    assert len(rows) == len(calls_of(tmp_path / "out"))
    assert {row[1] for row in rows} <= {"pass", "SKIP"}
    # Every call of the model but those of the optimizer has a forward and, where it has one, a
    # backward that was compared.
    backward = [row for row in rows if row[2] == "pass"]
    assert len(backward) >= 3 * len(DEFECTS) - 3, rows


def test_fifty_cut_links(tmp_path: Path, certificates: Path, unchecked: str) -> None:
    checker = Checker(tmp_path / "out", tls=certificates)
    link = BreakingLink(checker.port, 50)
    trainer = Trainer(online(tmp_path, link.port, certificates), 3)
    assert trainer.end(180)[0] == unchecked
    status, answer = checker.end()
    assert link.cut == 50
    assert status == 0, answer
    calls = calls_of(tmp_path / "out")
    assert set(calls.values()) == {1}
    assert {step for _, step in calls} == {"step 0", "step 1", "step 2"}
    assert "0 records dropped by the training, 0 lost here" in answer


@pytest.mark.parametrize("whose", ["checker", "trainer"])
def test_foreign_certificates(
    tmp_path: Path, certificates: Path, unchecked: str, whose: str
) -> None:
    foreign = make_certificates(tmp_path / "foreign", name="other")
    sides = {"checker": certificates, "trainer": certificates} | {whose: foreign}
    if whose == "trainer":  # which would believe the other side
        shutil.copy(certificates / "ca.crt", foreign)
    checker = Checker(tmp_path / "out", tls=sides["checker"])
    digest, text = Trainer(online(tmp_path, checker.port, sides["trainer"]), 3).end()
    assert digest == unchecked
    assert "Both sides need certificates of the same ca.crt" in text, text
    assert text.count("The training goes on; the connection is tried again") <= 2, text
    assert text.count("[WARNING] online pre-check") <= 4, text  # with "53 times more: ..."
    assert "unsent, 0 lost on the other machine: these are not checked" in text
    status, answer = checker.interrupt()
    assert status == 130
    assert answer.startswith("nothing was judged"), answer
    # The same trouble of many tries is told once, and counted.
    secure = [line for line in checker.lines if "no secure connection" in line]
    assert len([line for line in secure if " more: " not in line]) <= 2, secure
    assert len(secure) <= 4, secure
    assert not list((tmp_path / "out").glob("*.csv"))


def test_expired_and_missing_certificates(tmp_path: Path, certificates: Path) -> None:
    expired = make_certificates(tmp_path / "expired", days=-1)
    for folder, what in ((expired, "server.crt: the certificate has expired"),
                         (tmp_path, "server.crt: no such file")):
        checker = Checker(tmp_path / "out", tls=folder)
        assert checker.end()[0] != 0
        assert any(what in line for line in checker.lines), checker.lines
    _, text = Trainer(online(tmp_path, free_port(), expired), 1).end()
    assert "client.crt: the certificate has expired. Make a new one. Nothing is checked" in text


def test_killed_server_goes_on(tmp_path: Path, certificates: Path, unchecked: str) -> None:
    port = free_port()
    with_device = ("--device_type", "cpu")
    first = Checker(tmp_path / "out", *with_device, port=port, tls=certificates)
    trainer = Trainer(online(tmp_path, port, certificates), 3, pause=1.0)
    wait_until(lambda: any("rank 0 step 0" in line for line in first.lines))
    first.kill()
    trainer.wait_for_steps(1)
    other = Checker(tmp_path / "out", port=port, tls=certificates)
    assert other.end()[0] == 2
    assert any("was begun with --device_type. Go on" in line for line in other.lines), other.lines
    second = Checker(tmp_path / "out", *with_device, port=port, tls=certificates)
    assert trainer.end()[0] == unchecked
    status, answer = second.end()
    assert status == 0, answer
    calls = calls_of(tmp_path / "out")
    assert set(calls.values()) == {1}
    assert {step for _, step in calls} == {"step 0", "step 1", "step 2"}
    assert " in 3 steps" in answer
    # The files of three sides have each call of each step once, too, and nothing that is worse.
    assert calls_of(tmp_path / "out", name="api_precision_compare") == calls
    rows = rows_of(tmp_path / "out", name="api_precision_compare")
    assert {row[1] for row in rows} <= {"pass", "SKIP"}
    assert sum(row[1] == "pass" for row in rows) >= 3 * (len(DEFECTS) - 1), rows
    details = rows_of(tmp_path / "out", "details", name="api_precision_compare")
    assert {row[0] for row in details if row[-3] == "pass"} >= {
        "Functional.gelu.0.forward.output.0", "Torch.mm.0.backward.output.0"}
    assert str(tmp_path / "out/api_precision_compare_result_") in answer


def test_killed_training_is_told(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    trainer = Trainer(online(tmp_path, port, certificates), 60, pause=0.5)
    trainer.wait_for_steps(1)
    checker = Checker(tmp_path / "out", "--idle_timeout", "7", port=port, tls=certificates)
    wait_until(lambda: any("rank 0 step 0" in line for line in checker.lines))
    trainer.process.kill()
    trainer.process.communicate()
    status, answer = checker.end()
    assert status == 1
    assert "it ended without saying stop: what it had left is not known" in answer
    assert "others were not checked" in answer.splitlines()[0]
    assert rows_of(tmp_path / "out")[-1][0] == "(not checked)"


def test_shared_directory_of_two_ranks(tmp_path: Path, unchecked: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    checker = Checker(tmp_path / "out", "--rank_list", "0,1", shared=shared)
    trainers = []
    for rank in (0, 1):
        (tmp_path / str(rank)).mkdir()
        config = write_config(tmp_path / str(rank) / "config.json", nfs_path=str(shared))
        trainers.append(Trainer(config, 3, RANK=str(rank), WORLD_SIZE="2"))
    assert [trainer.end()[0] for trainer in trainers] == [unchecked, unchecked]
    status, answer = checker.end()
    assert status == 0, answer
    counts = [calls_of(tmp_path / "out", rank) for rank in (0, 1)]
    assert counts[0] == counts[1]
    assert set(counts[0].values()) == {1}
    assert not [path for path in shared.rglob("*") if path.is_file()]


def test_dropped_records_are_counted_on_both_sides(tmp_path: Path, unchecked: str) -> None:
    """Nobody listens until the training has filled its memory."""
    port = free_port()
    config = online(tmp_path, port, None)
    keys = json.loads(config.read_text()) | {"buffer_bytes": 20000}
    config.write_text(json.dumps(keys))
    trainer = Trainer(config, 3, pause=1.5)
    trainer.wait_for_steps(1)
    checker = Checker(tmp_path / "out", port=port)
    digest, text = trainer.end()
    assert digest == unchecked
    status, answer = checker.end()
    assert status == 1, answer
    dropped = int(text.split(" records, ")[1].split(" dropped")[0])
    assert dropped > 0
    assert f"; {dropped} records dropped by the training, 0 lost here" in answer
    assert rows_of(tmp_path / "out")[-1] == [
        "(not checked)", "SKIP", "SKIP",
        f"missing-data: {dropped} records were dropped by the training"]


def test_full_disk_of_the_server_is_told(tmp_path: Path, unchecked: str) -> None:
    """A file system that cannot keep one step: what is lost is counted, the training goes on."""
    out = tmp_path / "disk"
    out.mkdir()
    wrap = ("unshare", "-rm", "sh", "-c", MOUNT, "sh", str(out), "48k")
    if subprocess.run([*wrap, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    checker = Checker(out, "--idle_timeout", "40", wrap=wrap)
    digest, text = Trainer(online(tmp_path, checker.port, None), 3).end()
    assert digest == unchecked
    lost = int(text.split(" unsent, ")[1].split(" lost")[0])
    assert lost > 0
    assert "the other machine cannot keep records (is its disk full?)" in text
    assert sum("cannot be kept is not checked" in line for line in checker.lines) == 1
    status, answer = checker.end()
    assert status == 1
    assert f"{lost} lost here" in answer
    assert answer.startswith("nothing was judged") or "others were not checked" in answer


def test_wrong_settings_are_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    for section, expected in (
        ({"is_online": True}, 'host: is "" (expected the IPv4 address'),
        ({"is_online": True, "host": "gpu-7", "port": 1}, 'host: is "gpu-7"'),
        ({"is_online": True, "host": "127.0.0.1"}, "port: is missing"),
        ({"is_online": False}, "-api_info: is missing"),
    ):
        config.write_text(json.dumps({"run_ut": section}))
        ended = subprocess.run(
            [PLUMB, "msprobe", "-f", "pytorch", "run_ut", "-config", str(config), "--python",
             sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert expected in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
