"""plumb view: pairs made by hand, their files, and the comparison that follows them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB
from view_client import Viewer, environment, row_of, viewer, write_rank

NAMES = ["Functional.linear.0.forward", "Module.fc.Linear.forward.0", "Module.top.Net.forward.0"]


@pytest.fixture
def unlike(tmp_path: Path) -> tuple[Path, Path]:
    """Two recordings of which a module is called otherwise."""
    other = [name.replace("fc.Linear", "dense.Dense") for name in NAMES]
    return write_rank(tmp_path / "new", NAMES), write_rank(tmp_path / "good", other)


def test_what_killed_programs_left_of_a_store_is_removed(unlike: tuple[Path, Path],
                                                         tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    kept = [tmp_path / f".kept.store.{os.getpid()}-0.tmp", tmp_path / f".other.{gone.pid}-0.tmp",
            tmp_path / ".kept.store.tmp", tmp_path / f".kept.store.{gone.pid}-0.txt"]
    for again in range(2):
        left = [tmp_path / f".kept.store.{gone.pid}-{again}.tmp",
                tmp_path / f".kept.store.key.{gone.pid}-1.tmp"]
        for path in left + kept:
            path.write_text("cut")
        subprocess.run([PLUMB, "view", *unlike, "--build-only", "--store", tmp_path / "kept.store"],
                       env=environment(tmp_path / "cache"), check=True, capture_output=True)
        assert not any(path.exists() for path in left) and all(path.exists() for path in kept)


def test_a_program_killed_at_any_time_does_not_block_its_store(tmp_path: Path) -> None:
    names = [f"Module.m{i}.Linear.forward.0" for i in range(2000)]
    write_rank(tmp_path / "new", names, 1.5)
    write_rank(tmp_path / "good", names)
    store = tmp_path / "kept.store"
    words = [PLUMB, "view", tmp_path / "new", tmp_path / "good", "--build-only", "--store", store]
    space = environment(tmp_path / "cache")
    running = subprocess.Popen(words, env=space, stdout=subprocess.DEVNULL)
    while not store.exists() and running.poll() is None:
        time.sleep(0.0001)
    running.kill()
    running.wait()
    assert store.exists() and store.with_name("kept.store.key").exists()
    said = subprocess.run(words, env=space, check=True, capture_output=True, text=True).stdout
    assert "first wrong call" in said and "found in" in said
    (tmp_path / "new" / "dump.json").write_text('{"cut')
    fresh = [*words[:-1], tmp_path / "fresh.store"]
    failed = subprocess.run(fresh, env=space, check=False, capture_output=True)
    assert failed.returncode != 0 and not list(tmp_path.glob("fresh*"))


def test_pairs_by_hand(unlike: tuple[Path, Path], tmp_path: Path) -> None:
    store = tmp_path / "kept.store"
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    before = {path: path.read_bytes() for side in unlike for path in side.iterdir()}
    with viewer(tmp_path / "cache", *unlike, "--store", store) as running:
        dataset = running.dataset()["id"]
        kept = store.read_bytes()
        assert running.get(f"d/{dataset}/matches") == {"pairs": [], "can_undo": False}
        got = running.post(f"d/{dataset}/match", {"pairs": [pair], "place": 0})
        assert got.json() == {"pairs": [pair], "can_undo": True}
        again = running.post(f"d/{dataset}/match", {"pairs": [pair], "place": 0})
        assert again.status == 400 and "counterpart already" in again.json()["error"]["message"]
        for wrong in ([["Module.none", pair[1]]], [["../../x", "y"]], [[pair[0]]], "x", [[1, 2]]):
            assert running.post(f"d/{dataset}/match", {"pairs": wrong}).status in (400, 404)
        mapping = running.get(f"d/{dataset}/mapping")
        assert mapping == {"yaml": "TopLayer:\n  fc: dense\n", "matched": 1, "unmatched": 0}
    written = json.loads((tmp_path / "kept.store.mpmatch.json").read_text())
    assert written[pair[0]] == pair[1] and written["plumbline"]["log"][0]["pairs"] == [pair]
    (tmp_path / "map.yaml").write_text(mapping["yaml"])
    said = subprocess.run([PLUMB, "compare", *unlike, "-lm", tmp_path / "map.yaml", "-o", tmp_path],
                          capture_output=True, text=True, check=True).stdout
    assert "3 of 3 calls" in said or "unmatched" not in said.split("\n")[0], said
    with viewer(tmp_path / "cache", *unlike, "--store", store) as running:
        dataset = running.dataset()["id"]
        assert running.get(f"d/{dataset}/matches")["pairs"] == [pair]
        assert running.post(f"d/{dataset}/undo", {}).json() == {"pairs": [], "can_undo": False}
        assert running.post(f"d/{dataset}/undo", {}).status == 404
    assert store.read_bytes() == kept
    assert {path: path.read_bytes() for path in before} == before


def renewed(running: Viewer, *known: str) -> dict[str, Any]:
    """The dataset once it was made anew."""
    for _ in range(300):
        found = running.dataset()
        if found["etag"] not in known:
            return found
        time.sleep(0.05)
    raise AssertionError("the dataset is not made anew within 15 seconds")


def settle(running: Viewer) -> None:
    """Waits until no job runs: a comparison that follows meets the files as they are then."""
    for _ in range(300):
        if all(job["state"] != "running" for job in running.get("jobs")["jobs"]):
            return
        time.sleep(0.05)
    raise AssertionError("a job still runs after 15 seconds")


def change_output(rank: Path, name: str, value: float) -> None:
    dump = json.loads((rank / "dump.json").read_text())
    dump["data"][name]["output"][0] |= {"Max": value, "Min": value, "Mean": value}
    (rank / "dump.json").write_text(json.dumps(dump))


def test_pairs_by_hand_are_compared(unlike: tuple[Path, Path], tmp_path: Path) -> None:
    """Level, partner, values, what is worst above and the first wrong call follow; undo takes all
    of it back."""
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    change_output(unlike[0], pair[0], 9.0)
    with viewer(tmp_path / "cache", *unlike) as running:
        dataset = running.dataset()
        at, etag = dataset["id"], dataset["etag"]
        assert running.get(f"d/{at}/meta")["first"] is None
        before = row_of(running, at, pair[0])
        assert (before["level"], before["partner"], before["flags"] & 128) == ("unmatched", -1, 0)
        running.post(f"d/{at}/match", {"pairs": [pair], "place": 0})
        assert renewed(running, etag)["id"] == at
        meta = running.get(f"d/{at}/meta")
        assert meta["first"]["name"] == pair[0]
        assert any(note.startswith("1 pair made by hand") for note in meta["notes"])
        row, other = row_of(running, at, pair[0]), row_of(running, at, pair[1], "golden")
        assert (row["level"], row["partner"], other["partner"]) == ("error", other["id"], row["id"])
        assert row["flags"] & 128 and other["flags"] & 128
        assert meta["places"][0]["counts"]["unmatched_target"] == 0
        assert row_of(running, at, NAMES[-1])["worst"] == "error"
        values = running.get(f"d/{at}/node", node=row["id"])["values"]
        (output,) = [each for each in values if each["name"] == "output.0"]
        assert (output["target"]["max"], output["golden"]["max"]) == (9, 1)
        assert output["verdict"] == "broken"
        assert running.post(f"d/{at}/undo", {}).status == 200
        assert renewed(running, meta["etag"])["etag"] == etag
        assert row_of(running, at, pair[0]) == before
    said = subprocess.run([PLUMB, "view", *unlike, "--build-only"], capture_output=True, text=True,
                          env=environment(tmp_path / "cache"), check=True).stdout
    assert said.startswith("no wrong call") or "first wrong call" not in said


@pytest.mark.parametrize("text", [
    '{"cut', "[]", '{"a": 1}', '{"plumbline": 1}', '{"plumbline": {"version": 99, "log": []}}',
    '{"plumbline": {"log": []}}', '{"plumbline": {"version": 1}}',
    '{"plumbline": {"version": 1, "log": [{"what": "else", "step": 0, "rank": 0, "pairs": []}]}}'])
def test_foreign_files_of_pairs_are_refused_and_kept(unlike: tuple[Path, Path], tmp_path: Path,
                                                     text: str) -> None:
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    pairs = tmp_path / "kept.store.mpmatch.json"
    pairs.write_text(text)
    with viewer(tmp_path / "cache", *unlike, "--store", tmp_path / "kept.store") as running:
        at = running.dataset()["id"]
        for got in (running.ask(f"/api/d/{at}/matches"),
                    running.post(f"d/{at}/match", {"pairs": [pair], "place": 0}),
                    running.post(f"d/{at}/undo", {})):
            assert got.status == 422 and str(pairs) in got.json()["error"]["message"]
    assert pairs.read_text() == text


def told_of(running: Viewer) -> tuple[str, str]:
    meta = running.get(f"d/{running.dataset()['id']}/meta")
    return meta["etag"], "\n".join(meta["notes"])


@pytest.mark.parametrize("fault", ["moved", "deleted", "cut"])
@pytest.mark.parametrize("options", [[], ["--no-cache"]])
def test_pairs_by_hand_where_a_recording_is_gone(unlike: tuple[Path, Path], tmp_path: Path,
                                                 fault: str, options: list[str]) -> None:
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    target, dump = unlike[0], unlike[0] / "dump.json"
    whole, before = dump.read_bytes(), sorted(tmp_path.rglob("*.json"))

    with viewer(tmp_path / "cache", *unlike, *options) as running:
        dataset = running.dataset()
        at, etag = dataset["id"], dataset["etag"]
        if fault == "cut":
            dump.write_text('{"cut')
        else:
            target.rename(tmp_path / "away")
        made = {"pairs": [pair], "can_undo": True}
        assert running.post(f"d/{at}/match", {"pairs": [pair], "place": 0}).json() == made
        told = renewed(running, etag)
        assert told["state"] == "ready" and running.get(f"d/{at}/matches") == made
        assert told_of(running)[0] == told["etag"]
        assert "was not compared again: " in told_of(running)[1]
        assert "count them" not in told_of(running)[1] and str(target) in told_of(running)[1]
        assert running.post(f"d/{at}/undo", {}).json() == {"pairs": [], "can_undo": False}
        settle(running)
        if fault == "moved":
            (tmp_path / "away").rename(target)
        elif fault == "cut":
            dump.write_bytes(whole)
        if fault != "deleted":
            assert running.post(f"d/{at}/match", {"pairs": [pair], "place": 0}).json() == made
            renewed(running, told["etag"], etag)
            assert "1 pair made by hand: the answer and the levels count" in told_of(running)[1]
            assert "not compared again" not in told_of(running)[1]
    if fault == "moved":
        with viewer(tmp_path / "cache", *unlike, *options) as running:
            kept = [] if options else [pair]
            assert running.get(f"d/{running.dataset()['id']}/matches")["pairs"] == kept
        left = set(tmp_path.rglob("*.json")) - set(before)
        assert {path.parent.parent.parent for path in left} <= {tmp_path / "cache"}
        assert bool(left) is not bool(options)


def test_pairs_of_calls_that_are_not_there_do_not_count(unlike: tuple[Path, Path],
                                                        tmp_path: Path) -> None:
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    subprocess.run([PLUMB, "graph", *unlike, "--file_type", "vis", "-o", tmp_path / "out"],
                   check=True, capture_output=True)
    (vis,) = (tmp_path / "out").glob("*.vis")
    for what, kept in (([*unlike, "--store", tmp_path / "kept.store"], tmp_path / "kept.store"),
                       ([vis], vis)):
        pairs = Path(f"{kept}.mpmatch.json")
        pairs.write_text(json.dumps({pair[0]: pair[1], "Module.gone": "Module.never"}))
        with viewer(tmp_path / "cache", *what) as running:
            notes = running.get(f"d/{running.dataset()['id']}/meta")["notes"]
            assert any(note.startswith("1 pair made by hand") for note in notes), notes
            assert any("not counted" in note and "Module.gone and Module.never" in note
                       for note in notes), notes


def test_pairs_by_hand_of_ranks(tmp_path: Path) -> None:
    """Those of one rank are those of this rank alone."""
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    for rank in ("rank0", "rank1"):
        write_rank(tmp_path / "new" / rank, NAMES)
        write_rank(tmp_path / "good" / rank, [name.replace("fc.Linear", "dense.Dense")
                                              for name in NAMES])
    with viewer(tmp_path / "cache", tmp_path / "new", tmp_path / "good") as running:
        dataset = running.dataset()
        running.post(f"d/{dataset['id']}/match", {"pairs": [pair], "place": 1})
        renewed(running, dataset["etag"])
        counts = [place["counts"] for place in running.get(f"d/{dataset['id']}/meta")["places"]]
        assert [each["unmatched_target"] for each in counts] == [1, 0]
        assert [each["pass"] for each in counts] == [2, 3]


def test_pairs_by_hand_of_a_file(unlike: tuple[Path, Path], tmp_path: Path) -> None:
    """A file for viewers says no level of such a pair, and none is made up."""
    subprocess.run([PLUMB, "graph", *unlike, "--file_type", "vis", "-o", tmp_path / "out"],
                   check=True, capture_output=True)
    (vis,) = (tmp_path / "out").glob("*.vis")
    kept = vis.read_bytes()
    pair = ["Module.fc.Linear.forward.0", "Module.dense.Dense.forward.0"]
    with viewer(tmp_path / "cache", vis) as running:
        dataset = running.dataset()
        running.post(f"d/{dataset['id']}/match", {"pairs": [pair], "place": 0})
        renewed(running, dataset["etag"])
        row = row_of(running, dataset["id"], pair[0])
        assert row["partner"] >= 0 and row["flags"] & 128 and row["level"] == "none"
        values = running.get(f"d/{dataset['id']}/node", node=row["id"])["values"]
        assert values[0]["golden"]["max"] == 1
    assert vis.read_bytes() == kept and vis.with_name(vis.name + ".mpmatch.json").exists()


def test_nothing_is_paired_where_it_is_read_only(unlike: tuple[Path, Path], tmp_path: Path) -> None:
    with viewer(tmp_path / "cache", *unlike, "--read-only") as running:
        dataset = running.dataset()["id"]
        assert running.get("datasets")["read_only"] is True
        got = running.post(f"d/{dataset}/match", {"pairs": [["a", "b"]]})
        assert got.status == 403 and got.json()["error"]["code"] == "read-only"
