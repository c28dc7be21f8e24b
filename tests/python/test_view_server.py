"""plumb view as a server: who may ask, what can be read, and what becomes of it when things go
wrong. The page itself has tests of its own."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from recording import PLUMB
from view_client import TOKEN, Viewer, environment, row_of, viewer, write_rank

NAMES = ["Functional.linear.0.forward", "Module.fc.Linear.forward.0", "Module.top.Net.forward.0"]
HOSTILE = ["Module.<script>alert(1)</script>.Net.forward.0", "Module.\u202eevil.Net.forward.0",
           "Module." + "x" * 4096 + ".Net.forward.0", "Module.\U0001f600\u4e2d.Net.forward.0",
           "Module.'\"&\\.Net.forward.0"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings beside each other, and things beside them that are nobody's business."""
    top = tmp_path_factory.mktemp("view")
    write_rank(top / "runs" / "new" / "step0" / "rank0", NAMES, 1.5)
    write_rank(top / "runs" / "good" / "step0" / "rank0", NAMES)
    write_rank(top / "runs" / "hostile +", HOSTILE)
    (top / "runs" / "train.py").write_text("first\nsecond <b>\nthird\n")
    (top / "secret").mkdir()
    (top / "secret" / "key").write_text("nobody may read this")
    (top / "runs-beside").mkdir()
    (top / "runs-beside" / "key").write_text("nobody may read this")
    (top / "runs" / "way-out").symlink_to(top / "secret")
    (top / "runs" / "key-out").symlink_to(top / "secret" / "key")
    return top


@pytest.fixture(scope="module")
def served(runs: Path) -> Iterator[Viewer]:
    with viewer(runs / "cache", runs / "runs" / "new", runs / "runs" / "good",
                "--root", runs / "runs") as running:
        yield running


def test_the_answer_comes_first_and_the_address_behind_it(served: Viewer) -> None:
    assert served.lines[0] == "first wrong call: Functional.linear.0.forward"
    assert f"  http://127.0.0.1:{served.port}/?token={TOKEN}" in served.lines


# ---- Who may ask

def test_the_token_lets_in_and_leaves_the_address(served: Viewer) -> None:
    got = served.ask(f"/g/abc?q=a%20b&token={TOKEN}&node=x&node=y", token=None)
    assert got.status == 302 and got.headers["location"] == "/g/abc?q=a%20b&node=x&node=y"
    cookie, *attributes = got.headers["set-cookie"].split("; ")
    assert cookie == f"plumb_view_{served.port}={TOKEN}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert served.ask("/api/datasets", token=None, Cookie=f"a=b; {cookie}").status == 200
    assert served.ask(f"//evil.example/?token={TOKEN}", token=None).headers["location"][:2] != "//"


@pytest.mark.parametrize("headers", [
    {}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"},
    {"Cookie": "plumb_view=x"}, {"Cookie": f"plumb_view_1={TOKEN}"},
    {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": "Bearer "}])
@pytest.mark.parametrize("path", ["/", "/api/datasets", "/api/nothing", "/page.js"])
def test_without_the_token_nothing_is_said(served: Viewer, path: str,
                                           headers: dict[str, str]) -> None:
    got = served.ask(path, token=None, **headers)
    assert got.status == 401 and b"token" in got.body and b"rank0" not in got.body


def test_a_wrong_token_in_the_address(served: Viewer) -> None:
    assert served.ask("/?token=wrong", token=None).status == 401
    assert served.ask("/?token=", token=None).status == 401


@pytest.mark.parametrize(("host", "status"), [
    ("localhost", 200), ("localhost:1", 200), ("127.0.0.1:9999", 200), ("[::1]:80", 200),
    ("evil.example", 421), ("evil.example:80", 421), ("127.0.0.1.evil.example", 421),
    ("localhost.evil.example", 421), ("10.0.0.1", 421), ("", 421), ("localhost:80:80", 421),
    ("127.0.0.1@evil.example", 421)])
def test_hosts(served: Viewer, host: str, status: int) -> None:
    assert served.ask("/api/datasets", Host=host).status == status


@pytest.mark.parametrize(("origin", "status"), [
    ("http://evil.example", 403), ("null", 403), ("https://127.0.0.1", 403),
    ("http://127.0.0.1:1", 403), ("own", 404), (None, 404)])
def test_origins_of_changes(served: Viewer, origin: str | None, status: int) -> None:
    own = f"127.0.0.1:{served.port}"
    headers = {} if origin is None else {"Origin": f"http://{own}" if origin == "own" else origin}
    assert served.ask("/api/jobs/none", "DELETE", **headers).status == status
    assert served.post("d/none/undo", {}, **headers).status == status


def test_other_sites_do_not_ask(served: Viewer) -> None:
    assert served.ask("/api/datasets", Sec_Fetch_Site="cross-site").status == 403
    assert served.ask("/api/datasets", Sec_Fetch_Site="same-origin").status == 200


@pytest.mark.parametrize(("headers", "status"), [
    ({"Content_Type": "text/plain"}, 415), ({"Content_Type": "application/jsonx"}, 415),
    ({"Content_Type": "application/json; charset=utf-8"}, 404),
    ({"Content_Encoding": "gzip"}, 415), ({"Transfer_Encoding": "chunked"}, 411),
    ({"Content_Length": "99999999"}, 413), ({"Content_Length": "-1"}, 400),
    ({"Content_Length": "x"}, 400)])
def test_bodies(served: Viewer, headers: dict[str, str], status: int) -> None:
    assert served.post("d/none/match", {"pairs": []}, **headers).status == status


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_methods(served: Viewer, method: str) -> None:
    assert served.ask("/api/datasets", method).status in (400, 405)
    assert served.ask("/api/datasets", "DELETE").status == 405


def test_a_body_that_is_not_read_is_no_request(served: Viewer) -> None:
    """What stands behind a refused request belongs to it."""
    inner = ("GET /api/datasets HTTP/1.1\r\nHost: localhost\r\n"
             f"Authorization: Bearer {TOKEN}\r\n\r\n")
    head = ("POST /api/open HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(inner)}\r\n\r\n")
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as peer:
        peer.sendall((head + inner).encode())
        got = b""
        while piece := peer.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 421") and got.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100_000,
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
    b"\x00" * 5000, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n"])
def test_heads_without_end_or_sense(served: Viewer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as peer:
        try:
            peer.sendall(sent)
            peer.shutdown(socket.SHUT_WR)
            got = peer.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            got = b""
    assert got == b"" or got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
    assert served.ask("/api/datasets").status == 200


def test_headers_of_every_answer(served: Viewer) -> None:
    for path, token in (("/", TOKEN), ("/api/datasets", TOKEN), ("/api/x", TOKEN), ("/", None)):
        headers = served.ask(path, token=token).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self';" in policy and "unsafe" not in policy, path
        assert "frame-ancestors 'none'" in policy and headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


# ---- What can be read

def attacks(top: Path) -> list[str]:
    secret = str(top / "secret" / "key")
    return ["../secret/key", "new/../../secret/key", f"{top}/runs/../secret/key", secret,
            "way-out/key", f"{top}/runs/way-out/key", f"{top}/runs/key-out", "key-out",
            "/etc/passwd", "//etc/passwd", "/proc/self/environ", "file:///etc/passwd",
            f"{top}/runs/\x00/../../secret/key", "x\x00", "../..", f"{top}",
            f"{top}/runs-beside/key",
            "a/" * 5000, "a" * 100_000, "%2e%2e/secret/key", "..%2fsecret%2fkey",
            "..\\secret\\key", "~/x", "", " ", f"{top}/runs/../runs-beside", "/dev/zero",
            "/proc/self/fd/0", "new/step0/../../../secret/key"]


def test_nothing_outside_of_the_roots_is_read(runs: Path, served: Viewer) -> None:
    dataset = served.dataset()["id"]
    for path in attacks(runs):
        for target in (f"/api/recordings?path={quote(path, safe='')}",
                       f"/api/d/{dataset}/source?line=1&file={quote(path, safe='')}",
                       f"/api/d/{dataset}/source?line=1&file={path.replace(chr(0), '%00')}"):
            if any(c in target for c in " \\") or target.endswith("path="):
                continue
            got = served.ask(target)
            assert got.status in (400, 404, 414, 431), (target[:200], got.status, got.body[:200])
            assert b"nobody may" not in got.body and b"root:" not in got.body
        if path:
            got = served.post("open", {"target": path, "golden": ""})
            assert got.status in (400, 404), (path[:100], got.status)
    assert served.ask("/api/datasets").status == 200


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/../etc",
                                  "/api/d/../../x", "/api/jobs/..%2f..%2fx/file", "/etc/passwd",
                                  "/%00", "/" + "a" * 3000])
def test_addresses_are_no_paths(served: Viewer, path: str) -> None:
    got = served.ask(path)
    assert got.status in (404, 414, 503) and b"root:" not in got.body


def test_long_addresses_are_refused_with_their_limit(served: Viewer) -> None:
    for target in ("/api/datasets?q=" + "a" * 9000, "/" + "a" * 9000):
        got = served.ask(target)
        assert got.status == 414 and got.headers["content-type"].startswith("application/json")
        assert "8192 bytes" in got.json()["error"]["message"]


@pytest.mark.parametrize("is_empty", [True, False])
def test_databases_of_something_else_end_alike(tmp_path: Path, is_empty: bool) -> None:
    for name in ("a.vis.db", "a.trend.db"):
        (tmp_path / name).write_bytes(b"")
        if not is_empty:
            with sqlite3.connect(tmp_path / name) as database:
                database.execute("CREATE TABLE notes (text)")
        done = subprocess.run([PLUMB, "view", tmp_path / name], capture_output=True, text=True,
                              env=environment(tmp_path / "cache"), timeout=30)
        assert done.returncode == 4 and done.stderr.count("\n") == 1, (name, done.stderr)


def test_lists_of_recordings(runs: Path, served: Viewer) -> None:
    entries = served.get("recordings", path=runs / "runs")["entries"]
    found = {entry["name"]: entry for entry in entries}
    assert set(found) == {"good", "hostile +", "new"}
    assert (found["new"]["kind"], found["new"]["ranks"], found["new"]["steps"]) == (
        "recording", 1, 1)
    assert (found["new"]["task"], found["new"]["level"]) == ("statistics", "mix")
    size = (runs / "runs" / "new" / "step0" / "rank0" / "dump.json").stat().st_size
    assert found["new"]["size"] == size
    roots = served.get("recordings")["entries"]
    assert {entry["path"] for entry in roots} == set(served.get("datasets")["roots"])


def test_lines_of_a_source(runs: Path, served: Viewer) -> None:
    dataset = served.dataset()["id"]
    got = served.get(f"d/{dataset}/source", file=runs / "runs" / "train.py", line=2)
    assert got["first"] == 1 and got["lines"][:3] == ["first", "second <b>", "third"]
    far = served.ask(f"/api/d/{dataset}/source?file={runs}/runs/train.py&line=99")
    assert far.status == 404 and "no line 99" in far.json()["error"]["message"]


# ---- How it is answered

def test_what_is_known_is_not_sent_again(served: Viewer) -> None:
    path = f"/api/d/{served.dataset()['id']}/meta"
    first = served.ask(path)
    etag = first.headers["etag"]
    again = served.ask(path, If_None_Match=f'"x", {etag}')
    assert again.status == 304 and again.body == b"" and again.headers["etag"] == etag
    assert served.ask(path, If_None_Match='"x"').status == 200


@pytest.mark.parametrize(("accept", "is_packed"), [
    ("gzip", True), ("br, gzip;q=0.5", True), ("*", True), ("gzip;q=0", False), ("br", False),
    ("identity", False), ("", False)])
def test_answers_are_packed(served: Viewer, accept: str, is_packed: bool) -> None:
    path = f"/api/d/{served.dataset()['id']}/meta"
    plain = served.ask(path)
    got = served.ask(path, Accept_Encoding=accept)
    assert ("gzip" == got.headers.get("content-encoding")) is is_packed
    assert (gzip.decompress(got.body) if is_packed else got.body) == plain.body


def events(port: int, seconds: float) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {TOKEN}"})
    stream = connection.getresponse()
    assert stream.status == 200 and stream.getheader("Content-Type") == "text/event-stream"
    text, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and text.count(b"\n\n") < 2:
        text += stream.read1(65536)
    connection.close()
    return text.decode()


def test_events(served: Viewer) -> None:
    served.dataset()
    blocks = events(served.port, 5).split("\n\n")
    kinds = [block.split("\n")[0] for block in blocks if block]
    assert kinds == ["event: datasets", "event: jobs"]
    assert json.loads(blocks[0].split("\n")[1].removeprefix("data: ")) == served.get("datasets")


def test_an_unknown_question_is_told(served: Viewer) -> None:
    dataset = served.dataset()["id"]
    for path in ("nothing", "d/none/meta", f"d/{dataset}/nothing", "d//meta", f"d/{dataset}"):
        got = served.ask(f"/api/{path}")
        assert got.status == 404 and got.json()["error"]["code"] == "not-found", path
        assert got.json()["error"]["message"]


def test_two_clients_at_once(runs: Path, served: Viewer) -> None:
    """1,000 questions each about two datasets get what they get one after the other."""
    opened = served.post("open", {"target": str(runs / "runs" / "hostile +"), "golden": ""}).json()
    one = served.dataset()["id"]
    assert served.dataset(1)["id"] == opened["id"]
    chance = random.Random(7)
    questions = ["meta", "children?node=0", "first", "find?q=Linear", "path?name=Module.x&place=0"
                 "&side=target", "nothing", "node?node=1", "node?node=99999999999"]
    plans = [[f"/api/d/{dataset}/{chance.choice(questions)}" for _ in range(1000)]
             for dataset in (one, opened["id"])]
    expected = {path: served.ask(path).body for plan in plans for path in set(plan)}

    def all_answers(plan: list[str]) -> list[bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        answers = []
        for path in plan:
            connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
            answers.append(connection.getresponse().read())
        connection.close()
        return answers

    with ThreadPoolExecutor(2) as threads:
        for plan, answers in zip(plans, threads.map(all_answers, plans), strict=True):
            assert answers == [expected[path] for path in plan]


def test_hostile_names_come_verbatim(runs: Path, served: Viewer) -> None:
    dataset = served.post("open", {"target": str(runs / "runs" / "hostile +"),
                                   "golden": ""}).json()["id"]
    while served.ask(f"/api/d/{dataset}/meta").status != 200:
        time.sleep(0.05)
    rows = served.get(f"d/{dataset}/find", q="", limit=100)["rows"]
    at = rows["fields"].index("name")
    assert set(HOSTILE) <= {row[at] for row in rows["rows"]}


def test_exports(served: Viewer) -> None:
    dataset = served.dataset()["id"]
    job = served.post(f"d/{dataset}/export", {"format": "csv", "q": "", "place": -1}).json()["job"]
    assert served.job(job)["state"] == "done"
    got = served.ask(f"/api/jobs/{job}/file")
    assert got.headers["content-disposition"].startswith('attachment; filename="new_against_good')
    assert NAMES[0] in got.body.decode() and got.body.decode().startswith("step,rank,counterpart")
    job = served.post(f"d/{dataset}/export", {"format": "vis.db"}).json()["job"]
    assert served.job(job)["state"] == "done"
    assert served.ask(f"/api/jobs/{job}/file").body.startswith(b"SQLite format 3")
    before = served.get("jobs")["jobs"]
    for what in ({"format": "exe"}, {"format": ""}, {"format": 1}, {}):
        got = served.post(f"d/{dataset}/export", what)
        assert got.status == 400 and "expected csv" in got.json()["error"]["message"], what
    assert served.get("jobs")["jobs"] == before
    assert served.ask("/api/jobs/999/file").status == 404


def test_vis_of_ranks_is_an_archive(tmp_path: Path) -> None:
    """A file each, named as plumb graph names them."""
    for side, value in (("new", 2.0), ("good", 1.0)):
        for rank in ("rank0", "rank1"):
            write_rank(tmp_path / side / "step0" / rank, NAMES, value)
    with viewer(tmp_path / "cache", tmp_path / "new", tmp_path / "good") as running:
        dataset = running.dataset()["id"]
        job = running.post(f"d/{dataset}/export", {"format": "vis"}).json()["job"]
        assert running.job(job)["state"] == "done"
        got = running.ask(f"/api/jobs/{job}/file")
        assert '.vis.zip"' in got.headers["content-disposition"]
        (tmp_path / "all.zip").write_bytes(got.body)
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.testzip() is None
        names = sorted(name.rsplit("_", 1)[0] for name in archive.namelist())
        assert names == ["compare_step0_rank0", "compare_step0_rank1"]
        for name in archive.namelist():
            assert NAMES[0] in json.loads(archive.read(name))["NPU"]["node"]


def test_the_picture_of_a_layout(served: Viewer) -> None:
    got = served.get("layout", world=8, layers=16, tp=2, pp=2)
    assert got["svg"].startswith("<svg") and "Ranks0-1" in got["svg"] and got["title"]
    for wrong in ("world=8&layers=16&tp=3&pp=2", "world=0&layers=1", "world=x"):
        assert served.ask(f"/api/layout?{wrong}").status == 400


# ---- When things go wrong

def stored(cache: Path) -> list[Path]:
    return sorted((cache / "plumbline" / "view").glob("*"))


def test_a_store_is_made_once(runs: Path, tmp_path: Path) -> None:
    words = [PLUMB, "view", runs / "runs" / "new", runs / "runs" / "good", "--build-only"]
    outputs = [subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True,
                              check=True).stdout.split("\n") for _ in range(2)]
    assert outputs[0][0] == outputs[1][0] == "first wrong call: Functional.linear.0.forward"
    assert "made in" in outputs[0][-2] and "found in" in outputs[1][-2]
    (store,) = stored(tmp_path)
    store.write_bytes(store.read_bytes()[:-100])  # cut: made again
    again = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True,
                           check=True).stdout
    assert again.split("\n")[0] == outputs[0][0] and "made in" in again


def test_no_cache_leaves_nothing(runs: Path, tmp_path: Path) -> None:
    subprocess.run([PLUMB, "view", runs / "runs" / "new", "--build-only", "--no-cache"], check=True,
                   env=environment(tmp_path / "cache", TMPDIR=str(tmp_path)), capture_output=True)
    assert not list(tmp_path.iterdir())


def test_a_named_store(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("letter")
    words = [PLUMB, "view", runs / "runs" / "new", "--build-only", "--store"]
    done = subprocess.run([*words, tmp_path / "mine"], capture_output=True, text=True)
    assert done.returncode == 2 and "no store that plumb view made" in done.stderr
    assert (tmp_path / "mine").read_text() == "letter"
    for _ in range(2):
        subprocess.run([*words, tmp_path / "new.store"], check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "new.store", "new.store.key"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_in_order(runs: Path, tmp_path: Path, number: signal.Signals) -> None:
    with viewer(tmp_path / "cache", runs / "runs" / "new", TMPDIR=str(tmp_path)) as running:
        with socket.create_connection(("127.0.0.1", running.port)):  # one that says nothing
            connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
            connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {TOKEN}"})
            connection.getresponse()
            start = time.monotonic()
            assert running.stop(number) == 0
            assert time.monotonic() - start < 5
            connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    assert all(path.suffix == ".store" for path in stored(tmp_path / "cache"))


def test_an_interrupt_ends_long_answers(tmp_path: Path) -> None:
    """A histogram of 64 GiB would keep the program for a minute."""
    count, name = 2**34, "Functional.linear.0.forward"
    file = f"{name}.output.0.npy"
    tensor = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [count], "Max": 0.0,
              "Min": 0.0, "Mean": 0.0, "Norm": 0.0, "data_name": file}
    rank = write_rank(tmp_path / "rank0", NAMES)
    dump = json.loads((rank / "dump.json").read_text())
    dump |= {"task": "tensor", "framework": "mindspore",
             "dump_data_dir": str(rank / "dump_tensor_data"),
             "data": {name: {"input_args": [], "input_kwargs": {}, "output": [tensor]}}}
    (rank / "dump.json").write_text(json.dumps(dump))
    (rank / "dump_tensor_data").mkdir()
    with (rank / "dump_tensor_data" / file).open("wb") as stream:
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}".ljust(117)
        stream.write(b"\x93NUMPY\x01\x00\x76\x00" + head.encode() + b"\n")
        stream.truncate(128 + 4 * count)
    with viewer(tmp_path / "cache", rank) as running, ThreadPoolExecutor(1) as threads:
        dataset = running.dataset()["id"]
        node = row_of(running, dataset, name)["id"]
        question = f"/api/d/{dataset}/values?node={node}&value=output.0&what=histogram"
        asked = threads.submit(running.ask, question)
        time.sleep(0.5)
        assert not asked.done(), asked.result().body[:300]
        assert running.stop() == 0  # within 20 seconds
        assert asked.exception() is not None or asked.result().status != 200


def test_a_kill_leaves_no_half_store(tmp_path: Path) -> None:
    names = [f"Module.layer{i}.Linear.forward.0" for i in range(4000)]
    for side, value in (("new", 1.5), ("good", 1.0)):
        write_rank(tmp_path / side, names[:1], value)
        flat = json.dumps(dict.fromkeys(names))
        (tmp_path / side / "construct.json").write_text(flat)
        dump = json.loads((tmp_path / side / "dump.json").read_text())
        dump["data"] = dict.fromkeys(names, dump["data"][names[0]])
        (tmp_path / side / "dump.json").write_text(json.dumps(dump))
    words = [PLUMB, "view", tmp_path / "new", tmp_path / "good", "--build-only"]
    for delay in (0.02, 0.05, 0.1, 0.15):
        process = subprocess.Popen(words, env=environment(tmp_path / "cache"),
                                   stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
        for store in (tmp_path / "cache" / "plumbline" / "view").glob("[!.]*.store"):
            store.unlink()  # made before the kill
    done = subprocess.run(words, env=environment(tmp_path / "cache"), capture_output=True,
                          text=True, check=True)
    assert "first wrong call: Module.layer0" in done.stdout and "made in" in done.stdout


def test_two_make_one_store(runs: Path, tmp_path: Path) -> None:
    words = [PLUMB, "view", runs / "runs" / "new", runs / "runs" / "good", "--build-only"]
    both = [subprocess.Popen(words, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
            for _ in range(4)]
    said = [process.communicate()[0].split("\n")[0] for process in both]
    assert set(said) == {"first wrong call: Functional.linear.0.forward"}
    assert len(stored(tmp_path)) == 1


def test_a_port_in_use(runs: Path, served: Viewer, tmp_path: Path) -> None:
    done = subprocess.run([PLUMB, "view", runs / "runs" / "new", "--port", str(served.port)],
                          env=environment(tmp_path), capture_output=True, text=True, timeout=30)
    assert done.returncode == 6 and f"127.0.0.1:{served.port}: cannot listen" in done.stderr


@pytest.mark.parametrize(("words", "status", "said"), [
    (["--host", "0.0.0.0"], 2, "--token"), (["--token", "short"], 2, "8 to 128"),
    (["--token", "with blank in it"], 2, "8 to 128"), (["--port", "99999"], 2, "99999"),
    (["--root", "/nowhere/at/all"], 3, "/nowhere/at/all"),
    (["--host", "no.such.host.invalid", "--token", TOKEN], 6, "cannot listen")])
def test_wrong_words(runs: Path, tmp_path: Path, words: list[str], status: int, said: str) -> None:
    done = subprocess.run([PLUMB, "view", runs / "runs" / "new", *words],
                          env=environment(tmp_path), capture_output=True, text=True, timeout=30)
    assert done.returncode == status and said in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


def test_what_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("x")
    foreign = tmp_path / "foreign.vis.db"
    with sqlite3.connect(foreign) as database:
        database.execute("create table t (a)")
    cut = write_rank(tmp_path / "cut", NAMES)
    (cut / "dump.json").write_text((cut / "dump.json").read_text()[:200])
    trend = tmp_path / "x.trend.db"
    trend.write_bytes(foreign.read_bytes())
    for path in (tmp_path / "none", tmp_path / "empty", tmp_path / "a.txt", foreign, cut, trend):
        done = subprocess.run([PLUMB, "view", path], env=environment(tmp_path / "cache"),
                              capture_output=True, text=True, timeout=30)
        assert done.returncode in (3, 4, 5), (path, done.stderr)
        assert done.stderr.count("\n") == 1 and path.name in done.stderr, done.stderr


def test_what_is_removed_while_served(runs: Path, tmp_path: Path) -> None:
    for side, value in (("new", 1.5), ("good", 1.0)):
        write_rank(tmp_path / side, NAMES, value)
    with viewer(tmp_path / "cache", tmp_path / "new", tmp_path / "good") as running:
        dataset = running.dataset()
        (store,) = stored(tmp_path / "cache")
        for path in [*(tmp_path / "new").iterdir(), store]:
            path.unlink()
        running.get(f"d/{dataset['id']}/meta")  # it is held open
        got = running.post("open", {"target": dataset["target"], "golden": ""})
        failed = running.dataset(1)
        assert got.status == 200 and failed["state"] == "failed" and "new" in failed["error"]
        got = running.ask(f"/api/d/{failed['id']}/meta")
        assert got.status in (404, 422) and got.json()["error"]["message"] == failed["error"]
        assert running.ask("/api/datasets").status == 200


def test_a_store_that_is_cut_while_served(runs: Path, tmp_path: Path) -> None:
    with viewer(tmp_path / "cache", runs / "runs" / "new", runs / "runs" / "good") as running:
        dataset = running.dataset()["id"]
        (store,) = stored(tmp_path / "cache")
        os.truncate(store, 0)
        statuses = {running.ask(f"/api/d/{dataset}/{question}").status
                    for question in ("meta", "node?node=1", "find?q=Linear", "children?node=0")}
        assert statuses <= {200, 404, 422, 500}
        assert running.ask("/api/datasets").status == 200


def test_a_frame_is_allowed_on_demand(runs: Path, tmp_path: Path) -> None:
    with viewer(tmp_path, runs / "runs" / "new", "--frame=https://hub.example") as running:
        got = running.ask(f"/?token={TOKEN}", token=None)
        assert "SameSite=None; Secure; Partitioned" in got.headers["set-cookie"]
        policy = running.ask("/").headers["content-security-policy"]
        assert "frame-ancestors 'self' http://localhost:*" in policy
        assert "https://hub.example" in policy


def test_the_way_from_another_machine(runs: Path, tmp_path: Path) -> None:
    with viewer(tmp_path, runs / "runs" / "new", SSH_CONNECTION="10.0.0.9 5000 10.0.0.5 2222",
                USER="me") as running:
        (line,) = [line for line in running.lines if "ssh" in line]
        port = running.port
        assert line.endswith(f"ssh -p 2222 -L {port}:127.0.0.1:{port} me@10.0.0.5")


# ---- Pairs by hand
