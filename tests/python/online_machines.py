"""Both machines of an online pre-check on loopback, certificates, and a link that breaks."""

from __future__ import annotations

import contextlib
import csv
import json
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from device_server import device_environment
from recording import PLUMB

TRAINING = Path(__file__).with_name("online_training.py")


def make_certificates(folder: Path, days: int = 2, name: str = "ca") -> Path:
    """A folder with a new authority's ca.crt and keys and certificates of both sides."""
    folder.mkdir()

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", f"/CN={name}")
    for side in ("server", "client"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                f"{side}.key", "-out", f"{side}.csr", "-subj", f"/CN={side}")
        openssl("x509", "-req", "-in", f"{side}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                "-CAcreateserial", "-out", f"{side}.crt", "-days", str(days))
    return folder


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Checker:
    """`plumb precheck --online` as a process; `lines` is what it says meanwhile."""

    def __init__(self, output: Path, *words: str, port: int = 0, tls: Path | None = None,
                 shared: Path | None = None, wrap: tuple[str, ...] = ()) -> None:
        place = ["--host", "127.0.0.1", "--port", str(port), "--tls_path", str(tls or "")]
        if shared is not None:
            place = ["--nfs_path", str(shared)]
        command = [*wrap, PLUMB, "precheck", "--online", "-o", str(output), "--python",
                   sys.executable, "-j", "2", *place, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.lines: list[str] = []
        self.port = port
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(60), self.lines

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if found := re.search(r"waiting for trainings at [\d.]+:(\d+)", line):
                self.port = int(found.group(1))
            if "waiting for" in line:
                self._ready.set()
        self._ready.set()

    def interrupt(self) -> tuple[int, str]:
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, limit: float = 90) -> tuple[int, str]:
        """Its status and answer."""
        assert self.process.stdout is not None
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("\n".join(self.lines)) from None
        self._reader.join(10)
        return self.process.returncode, self.process.stdout.read()


def write_config(path: Path, **keys: Any) -> Path:
    path.write_text(json.dumps({
        "task": "tensor", "level": "L1", "rank": [], "step": [],
        "dump_path": str(path.parent / "dumps"),
        "tensor": {"online_run_ut": True, "scope": [], "list": [], **keys}}))
    return path


class Trainer:
    """The training as a process."""

    def __init__(self, config: Path | str, steps: int, device: str = "cpu", pause: float = 0,
                 **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(TRAINING), str(config), str(steps), device, str(pause)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=device_environment(**environment))

    def end(self, limit: float = 120) -> tuple[str, str]:
        """The digest of its parameters and everything it said."""
        text, _ = self.process.communicate(timeout=limit)
        assert self.process.returncode == 0, text
        digests = [line for line in text.splitlines() if re.fullmatch(r"[0-9a-f]{64}", line)]
        return digests[0], text

    def wait_for_steps(self, count: int) -> None:
        assert self.process.stdout is not None
        while count > 0:
            line = self.process.stdout.readline()
            assert line
            count -= line == "step\n"


def rows_of(output: Path, kind: str = "result", rank: int = 0,
            name: str = "accuracy_checking") -> list[list[str]]:
    """Rows of a result file without its header."""
    (path,) = output.glob(f"{name}_{kind}_*_rank{rank}.csv")
    assert re.fullmatch(rf"{name}_{kind}_\d{{14}}_rank{rank}\.csv", path.name)
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))[1:]


def calls_of(output: Path, rank: int = 0,
             name: str = "accuracy_checking") -> Counter[tuple[str, str]]:
    """How often each call of each step has a row."""
    return Counter((row[0], row[-1].splitlines()[-1])
                   for row in rows_of(output, rank=rank, name=name)
                   if row[0] != "(not checked)")


class BreakingLink:
    """A port that passes bytes on and cuts each of the first connections at a random byte."""

    def __init__(self, target: int, cuts: int, seed: int = 3) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._cuts = cuts
        self.cut = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                near, _ = self._listener.accept()
                limit = self._random.randrange(1, 8000) if self.cut < self._cuts else None
                with near, socket.create_connection(("127.0.0.1", self._target)) as far:
                    self._pass(near, far, limit)

    def _pass(self, near: socket.socket, far: socket.socket, limit: int | None) -> None:
        passed = 0
        while True:
            ready, _, _ = select.select([near, far], [], [])
            for source in ready:
                data = source.recv(1 << 16)
                if not data:
                    return
                if limit is not None and passed + len(data) >= limit:
                    data = data[: limit - passed]
                    (far if source is near else near).sendall(data)
                    self.cut += 1
                    return
                passed += len(data)
                (far if source is near else near).sendall(data)


def wait_until(condition: Any, limit: float = 60) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
