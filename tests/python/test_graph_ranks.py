"""plumb graph of several ranks: links between their communication calls, and runs that go on where
an earlier one was stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from graph_dumps_for_viewers import everything, graph, only, read_db, write
from rank_dumps import Entry, forward, number, tensor
from recording import PLUMB

ID = "533cb5e1"


def group(*ranks: int) -> dict[str, Any]:
    """A process group as recorders describe it."""
    return {"type": "torch.ProcessGroup", "group_ranks": list(ranks), "group_id": ID + str(ranks)}


def p2p(op: str, peer: int, value: float) -> dict[str, Any]:
    """One transfer of a batch."""
    return {"class_type": "torch.distributed.P2POp", "op": op, "peer": peer, "tag": 0,
            "group_id": ID, "tensor": tensor(value)}


def recorded(entries: list[Entry]) -> dict[str, Any]:
    """One module with these calls in it."""
    top = "Module.net.Net.forward.0"
    data = {**dict(entries), top: dict([forward(top, [tensor()], [tensor()])])[top]}
    return {"construct.json": {**{name: top for name, _ in entries}, top: None},
            "stack.json": {name: ["File /w/a.py, line 1, in forward, \n f()"] for name in data},
            "dump.json": {"task": "statistics", "level": "mix", "framework": "pytorch",
                          "dump_data_dir": None, "data": data}}


def calls(rank: int, received: float = 3.0) -> dict[str, Any]:
    """Rank `rank` of two with every kind of call. `received`: of the last message, 3 was sent."""
    other, both = 1 - rank, group(0, 1)
    isend = forward("Distributed.isend.0.forward", [tensor(1.0 + rank)], [None], dst=number(other))
    irecv = forward("Distributed.irecv.0.forward", [None], [tensor(1.0 + other)],
                    src=number(other))
    total = forward("Distributed.all_reduce.0.forward", [tensor()], [tensor(2.0)], group=both)
    place = forward("Distributed.broadcast.0.forward", [tensor(), number(0)],
                    [tensor(5.0), number(0)], group=both)
    word = forward("Distributed.broadcast.1.forward", [tensor()], [tensor(5.0)], src=number(1),
                   group=both)
    one = [p2p("irecv" if rank else "isend", other, 1.0)]
    three = ([p2p("irecv", other, 1.0), p2p("isend", other, 2.0), p2p("irecv", other, received)]
             if rank else
             [p2p("isend", other, 1.0), p2p("irecv", other, 2.0), p2p("isend", other, 3.0)])
    batches = [forward(f"Distributed.batch_isend_irecv.{i}.forward", [ops], [ops])
               for i, ops in enumerate((one, three))]
    return recorded([isend, irecv, total, place, word, *batches])


def linked(root: Path, ranks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """matched_distributed of each rank's calls; .vis must say the same as .vis.db."""
    for rank, files in enumerate(ranks):
        write(root / "in" / f"rank{rank}", files)
    assert graph(root / "in", "-o", root / "db").returncode == 0
    assert graph(root / "in", "-o", root / "vis", "--file_type", "vis").returncode == 0
    assert len(list((root / "vis").iterdir())) == len(ranks)  # nothing hidden is left
    found = []
    for rank in range(len(ranks)):
        nodes = read_db(only(root / "db", "*.vis.db"), rank=rank)
        links = {name: json.loads(node["matched_distributed"]) for name, node in nodes.items()}
        links = {name: link for name, link in links.items() if link}
        document = json.loads(only(root / "vis", f"build_rank{rank}_*.vis").read_text())
        assert links == {name: node["matched_distributed"] for name, node in
                         document["node"].items() if "matched_distributed" in node}
        found.append(links)
    return found


def link(role: str, rank: int, name: str) -> dict[str, Any]:
    return {"communications_type": role, "nodes_info": {str(rank): ["Nan", name]}}


def test_every_kind_of_call_is_linked_both_ways(tmp_path):
    found = linked(tmp_path, [calls(0), calls(1)])
    names = {rank: set(links) for rank, links in enumerate(found)}
    assert names[0] == names[1] and len(names[0]) == 7
    for rank, links in enumerate(found):
        other = 1 - rank
        isend, irecv = (f"Distributed.{api}.0.forward" for api in ("isend", "irecv"))
        assert links[isend] == link("send", other, irecv)
        assert links[irecv] == link("receive", other, isend)
        total = "Distributed.all_reduce.0.forward"
        assert links[total] == link("send_receive", other, total)
        for count, root in ((0, 0), (1, 1)):  # by position, by keyword
            name = f"Distributed.broadcast.{count}.forward"
            assert links[name] == link("send" if rank == root else "receive", other, name)
        one, three = (f"Distributed.batch_isend_irecv.{count}.forward" for count in (0, 1))
        roles = ["receive", "send", "receive"] if rank else ["send", "receive", "send"]
        assert links[one] == link(roles[0], other, one)
        assert links[three] == [link(role, other, three) for role in roles]


def test_a_message_that_changed_on_its_way_is_linked_and_flagged(tmp_path):
    found = linked(tmp_path, [calls(0), calls(1, received=3.5)])
    name = "Distributed.batch_isend_irecv.1.forward"
    for links in found:
        assert [part.get("mismatch") for part in links[name]] == [
            None, None, "rank 0 sent Max 3.0, rank 1 received 3.5"]


def test_groups_name_ranks_of_the_whole_run(tmp_path):
    def rank(own: int) -> dict[str, Any]:
        members = group(1, 3) if own % 2 else group(0, 2)
        name = "Distributed.all_gather.0.forward"
        # Rank 3 got something else than rank 1.
        got = tensor(9.0 if own == 3 else 1.0)
        reduce = forward("Distributed.reduce.0.forward", [tensor()], [tensor(2.0)],
                         group_dst=number(1), group=members)
        return recorded([forward(name, [[None, None], tensor()], [[got, got], tensor()],
                                 group=members), reduce])

    found = linked(tmp_path, [rank(own) for own in range(4)])
    gather, reduce = "Distributed.all_gather.0.forward", "Distributed.reduce.0.forward"
    for own, other in ((0, 2), (2, 0), (1, 3), (3, 1)):
        assert found[own][gather]["nodes_info"] == {str(other): ["Nan", gather]}
        role = "receive" if own in (2, 3) else "send"  # the second rank of each group
        assert found[own][reduce] == link(role, other, reduce)
    flagged = [own for own in range(4) if "mismatch" in found[own][gather]]
    assert flagged == [3]
    assert found[3][gather]["mismatch"] == "rank 1 has Max 1.0, rank 3 9.0"


def test_a_link_says_the_level_of_the_other_end(tmp_path):
    for side in ("a", "b"):
        for rank in range(2):
            files = calls(rank)
            if side == "a" and rank == 1:
                files["dump.json"]["data"]["Distributed.irecv.0.forward"]["output"] = [tensor(7.0)]
            write(tmp_path / side / f"rank{rank}", files)
    assert graph(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out").returncode == 0
    path = only(tmp_path / "out", "*.vis.db")
    sent = json.loads(read_db(path)["Distributed.isend.0.forward"]["matched_distributed"])
    wrong = read_db(path, rank=1)["Distributed.irecv.0.forward"]
    assert wrong["precision_index"] == 1
    assert sent["nodes_info"]["1"][0] == "1" and "received 7.0" in sent["mismatch"]
    golden = read_db(path, "Bench")["Distributed.isend.0.forward"]
    assert json.loads(golden["matched_distributed"])["nodes_info"]["1"][0] == "Nan"


def contents(out: Path, ranks: int) -> list[Any]:
    """Everything that the one database of `out` has of its ranks."""
    return [read_db(only(out, "*.vis.db"), rank=rank) for rank in range(ranks)]


def many(root: Path, count: int) -> Path:
    """So many equal ranks."""
    write(root / "rank0", everything())
    for rank in range(1, count):
        shutil.copytree(root / "rank0", root / f"rank{rank}")
    return root


@pytest.mark.parametrize("form", ["db", "vis"])
def test_a_killed_run_is_resumed(tmp_path, form):
    source, out = many(tmp_path / "in", 64), tmp_path / "out"
    words = [PLUMB, "graph", str(source), str(source), "-o", str(out), "--file_type", form,
             "--resume"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    parts: list[Path] = []
    until = time.monotonic() + 60
    while len(parts) < 5 and process.poll() is None and time.monotonic() < until:
        parts = list(out.glob(".*.part")) if out.exists() else []
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert [path for path in out.iterdir() if not path.name.startswith(".")] == []
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    reused = int(done.stdout.split(" as an earlier run made it")[0].rsplit("; ", 1)[1].split()[0])
    assert reused >= 5
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []
    shutil.rmtree(tmp_path / "again", ignore_errors=True)
    words[words.index(str(out))] = str(tmp_path / "again")
    assert subprocess.run(words, capture_output=True, check=False, timeout=120).returncode == 0
    if form == "db":
        assert contents(out, 64) == contents(tmp_path / "again", 64)
    else:
        for path in out.glob("compare_rank*.vis"):
            [other] = (tmp_path / "again").glob(path.name.split("_20")[0] + "_20*.vis")
            assert json.loads(path.read_text()) == json.loads(other.read_text())


def test_a_finished_result_is_taken_as_it_is(tmp_path):
    source, out = many(tmp_path / "in", 3), tmp_path / "out"
    first = graph(source, "-o", out)
    assert first.returncode == 0
    path = only(out, "*.vis.db")
    before = path.read_bytes()
    again = graph(source, "-o", out, "--resume")
    assert again.returncode == 0 and "3 ranks as an earlier run made it" in again.stdout
    assert only(out, "*.vis.db").read_bytes() == before  # and no second file
    files = everything()
    files["dump.json"]["data"]["Functional.c.0.forward"]["output"] = [tensor(77.0)]
    write(source / "rank1", files)
    third = graph(source, "-o", out, "--resume")
    assert third.returncode == 0 and "2 ranks as an earlier run made it" in third.stdout
    [newer] = [each for each in out.glob("*.vis.db") if each != path]
    shown = read_db(newer, rank=1)["Functional.c.0.forward"]["output_data"]
    assert shown["Functional.c.0.forward.output.0"]["Max"] == "77.0"


def test_other_options_resume_nothing(tmp_path):
    source, out = many(tmp_path / "in", 2), tmp_path / "out"
    assert graph(source, "-o", out).returncode == 0
    for words in (("-oc",), ("--stack", "none"), ("--file_type", "vis")):
        done = graph(source, "-o", out, "--resume", *words)
        assert done.returncode == 0 and "as an earlier run made it" not in done.stdout
