"""A server that speaks S3, and a link to it that can be cut."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "objects" / "bin" / "python"  # tools/bootstrap.sh objects
START_LIMIT_S = 60
# Of somebody who may do all: the signature is not looked at.
HEADERS = {"Content-Type": "application/octet-stream",
           "Authorization": "AWS4-HMAC-SHA256 Credential=plumb/20260101/us-east-1/s3/aws4_request, "
                            "SignedHeaders=host, Signature=0"}


class Server:
    """moto in a process of its own."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen([PYTHON, "-m", "moto.server", "-p", str(self.port)],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(OSError):
                self._ask("GET", "")
                return
            assert time.monotonic() < limit and self._process.poll() is None
            time.sleep(0.05)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        url = f"{self.url}/{quote(path, safe='/?&=')}"
        request = urllib.request.Request(url, data, HEADERS, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            read: bytes = answer.read()
            return read

    def make_bucket(self, name: str) -> None:
        self._ask("PUT", name)

    def put(self, path: str, data: bytes) -> None:
        """Path: bucket and key."""
        self._ask("PUT", path, data)

    def get(self, path: str) -> bytes:
        return self._ask("GET", path)

    def upload(self, directory: Path, where: str, last: str = "") -> None:
        """All files below a directory; those of the name `last` in the end."""
        files = [path for path in directory.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.name == last):
            self.put(f"{where}/{path.relative_to(directory)}", path.read_bytes())

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        """Keys below a prefix."""
        text = self._ask("GET", f"{bucket}?list-type=2&max-keys=1000&prefix={prefix}")
        return [element.text or "" for element in ElementTree.fromstring(text).iter()
                if element.tag.rpartition("}")[2] == "Key"]


class Link:
    """Passes connections on; counts what goes through, and breaks answers off."""

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self.cuts_left = 0
        self.cut_after = 0  # bytes of an answer
        self.asked: list[str] = []  # first lines of requests, with the range behind
        self.when_asked: Callable[[str], None] = lambda line: None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(self._to)
                for one, other, back in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass, args=(one, other, back),
                                     daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, is_answer: bool) -> None:
        sent = 0
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                if not is_answer:
                    self._note(data)
                    sent = 0
                elif self.cuts_left > 0 and sent + len(data) > self.cut_after:
                    self.cuts_left -= 1
                    other.sendall(data[:max(0, self.cut_after - sent)])
                    break
                other.sendall(data)
                sent += len(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _note(self, data: bytes) -> None:
        lines = data.split(b"\r\n")
        if lines[0].endswith(b"HTTP/1.1"):
            ranges = [line for line in lines if line.lower().startswith(b"range:")]
            self.asked.append(b" ".join([lines[0], *ranges]).decode(errors="replace"))
            self.when_asked(self.asked[-1])


def environment(url: str, **more: str) -> dict[str, str]:
    """Of a program that finds this server."""
    own = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "plumb", "AWS_SECRET_ACCESS_KEY": "line",
           "AWS_DEFAULT_REGION": "us-east-1", "PLUMBLINE_PYTHON": str(PYTHON)}
    return os.environ | own | more


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """A server that ends with the block."""
    server = Server()
    try:
        yield server
    finally:
        server.close()
