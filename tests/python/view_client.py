"""The program `plumb view` started for a test, and a client that asks it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from recording import PLUMB

TOKEN = "token-of-a-test"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Viewer:
    """A running server; `lines`: what it printed so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    port: int = 0

    def ask(self, target: str, method: str = "GET", body: bytes | None = None,
            token: str | None = TOKEN, **headers: str) -> Answer:
        """`target` goes out as it stands; names of headers have _ for -."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        try:
            connection.putrequest(method, target, skip_host="Host" in sent,
                                  skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None and "Content-Length" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            got = connection.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    def get(self, question: str, **parameters: object) -> Any:
        """The JSON of a question that must be answered."""
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        got = self.ask(f"/api/{question}{query}")
        assert got.status == 200, (question, got.status, got.body)
        return got.json()

    def post(self, path: str, what: object, **headers: str) -> Answer:
        headers.setdefault("Content_Type", "application/json")
        return self.ask(f"/api/{path}", "POST", json.dumps(what).encode(), **headers)

    def dataset(self, number: int = 0) -> dict[str, Any]:
        """Waits until it is made."""
        for _ in range(300):
            found: dict[str, Any] = self.get("datasets")["datasets"][number]
            if found["state"] != "building":
                return found
            time.sleep(0.05)
        raise AssertionError("the dataset is not made within 15 seconds")

    def job(self, job: str) -> dict[str, Any]:
        """Waits until it has ended."""
        for _ in range(300):
            found = {entry["id"]: entry for entry in self.get("jobs")["jobs"]}[job]
            if found["state"] != "running":
                return found
            time.sleep(0.05)
        raise AssertionError("the job does not end within 15 seconds")

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=20)


def environment(cache: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
    return kept | {"XDG_CACHE_HOME": str(cache)} | more


@contextmanager
def viewer(cache: Path, *words: object, token: str | None = TOKEN,
           **variables: str) -> Iterator[Viewer]:
    """Serves what `words` say until the block ends."""
    options = [] if token is None else ["--token", token]
    process = subprocess.Popen([PLUMB, "view", *map(str, words), *options],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment(cache, **variables))
    running = Viewer(process)
    known = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            running.lines.append(line.rstrip("\n"))
            if line.startswith("  http://"):
                running.port = urlsplit(line.strip()).port or 0
            if "Ctrl-C" in line:
                known.set()
        known.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert known.wait(60), "no address is printed"
        if process.poll() is not None or not running.port:
            process.wait(timeout=10)
            assert process.stderr is not None
            raise AssertionError(f"exit {process.returncode}: {process.stderr.read()}")
        yield running
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        reader.join(timeout=10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def write_rank(directory: Path, names: list[str], value: float = 1.0) -> Path:
    """A rank's recording with statistics: modules below each other, one in the other."""
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
              "Min": value, "Mean": value, "Norm": 2 * value, "requires_grad": False}
    directory.mkdir(parents=True)
    entries = {name: {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]}
               for name in names}
    (directory / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None,
         "data": entries}))
    parents = {name: names[i + 1] if i + 1 < len(names) else None for i, name in enumerate(names)}
    (directory / "construct.json").write_text(json.dumps(parents))
    (directory / "stack.json").write_text(json.dumps({name: ["File a.py, line 1"]
                                                      for name in names}))
    return directory


def row_of(running: Viewer, dataset: str, name: str, side: str = "target") -> dict[str, Any]:
    found = running.get(f"d/{dataset}/path", name=name, place=0, side=side)
    assert found["exact"] is True
    return dict(zip(found["rows"]["fields"], found["rows"]["rows"][-1], strict=True))
