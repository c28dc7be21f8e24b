"""Recordings and results in an object store: `plumb compare s3://bucket/new s3://bucket/good`.

The program `plumb` runs on a directory of this machine in which each object below the paths of the
command has a file of its name and size that takes no space. It asks for the bytes of a file when it
is about to read it; they come by ranges, several at a time, and each range is asked for again when
its connection breaks. What the program wrote, changed or removed is stored when it has ended.
fsspec reaches the store; it is imported when there is work.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import os
import re
import shutil
import signal
import socketserver
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

DIRECTORY = "PLUMBLINE_OBJECTS"  # environment: where the program finds the files
SOCKET = ".fetch"  # there: who is asked for bytes
PIECE_BYTES = 8 << 20  # of one range request
CONNECTIONS = 8
ATTEMPTS = 3  # each with those of the store's driver
FIRST_PAUSE_S = 0.2  # doubled after each attempt
AHEAD_FILES, AHEAD_BYTES = 16, 64 << 20  # fetched before they are asked for, in the order of calls
LEAST_DROPPED = 1 << 20  # smaller files stay: what they take is little
SPACE_SHARE = 0.5  # of what is free at the start
IO_FAILED, UNSUPPORTED = 6, 4  # exit statuses of plumb
JOURNAL, MAIN_FILES = ".dump.journal", ("dump.json", "debug.json")
NEEDS_FSSPEC = ("paths in a store need fsspec and s3fs in {python}. Install them with: "
                "pip install 'plumbline-numerics[objects]'")
_URL = re.compile(r"(?:-[^=]*=)?(([a-z][a-z0-9]+)://.*)", re.DOTALL)
_STORED_NAME = re.compile(rb'"data_name": ?"([^"\\]+)"')
_Value = TypeVar("_Value")


class StoreError(RuntimeError):
    """What a store did not do, in one line, and the exit status of `plumb` for it."""

    def __init__(self, message: str, status: int = IO_FAILED) -> None:
        super().__init__(message)
        self.status = status


def _line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return " ".join(text.split())


_has_given_up = threading.Event()  # an attempt was the last: no long waits for what comes after


def _insist(what: str, work: Callable[[], _Value], attempts: int = ATTEMPTS) -> _Value:
    """Does it again after what may pass: a cut connection, a busy server.

    Raises:
        StoreError: it cannot be done, or not in so many attempts.
    """
    for attempt in range(attempts):
        try:
            return work()
        except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError,
                ImportError) as error:
            raise StoreError(f"{what}: {_line(error)}") from None
        except Exception as error:  # whatever the driver of this store raises
            if attempt + 1 == attempts or _has_given_up.is_set():
                _has_given_up.set()
                raise StoreError(f"{what}: {_line(error)}") from None
        time.sleep(FIRST_PAUSE_S * 2**attempt)
    raise AssertionError


@dataclass
class _Object:
    """An object and the file that stands for it."""

    store: Any  # of fsspec
    key: str  # as fsspec names it
    url: str
    size: int
    mark: tuple[Any, ...]  # changes when the object does
    file: tuple[int, int, int]  # inode, size and time of the file that this module left
    fetched: bool = False


def _facts(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _seconds(info: dict[str, Any]) -> float:
    for name in ("LastModified", "last_modified", "mtime", "updated", "created"):
        when = info.get(name)
        if isinstance(when, datetime):
            return when.timestamp()
        if isinstance(when, (int, float)):
            return float(when)
    return 0.0


def _mark(info: dict[str, Any]) -> tuple[Any, ...]:
    # Lists and answers about one object may give times of different precision.
    tag = info.get("ETag") or info.get("etag")
    return info.get("size"), str(tag).strip('"') if tag else int(_seconds(info))


class Mirror:
    """The files that stand for the objects below some paths of stores.

    fetch() may be called by many threads; the rest by one.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._objects: dict[str, _Object] = {}  # by path of the file
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._next: dict[str, str] = {}  # the tensor file of the call after
        self._kept: OrderedDict[str, int] = OrderedDict()  # large files that are here
        self._room = int(shutil.disk_usage(root).free * SPACE_SHARE)
        self._pieces = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)
        self._ahead = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)
        self._schemes: set[str] = set()
        self._made = 0
        self.failures: list[StoreError] = []  # of what the program asked for
        (root / ".parts").mkdir()

    def close(self) -> None:
        """Fetches no more."""
        self._ahead.shutdown(cancel_futures=True)
        self._pieces.shutdown(cancel_futures=True)

    def add(self, url: str) -> int:
        """Lists what is below a path, or beside it where it is one object; returns how many.

        Raises:
            StoreError: the store cannot be reached.
        """
        store = self._store(url)
        url = url.rstrip("/")
        found = self._list(store, url, store.find)
        base = store._strip_protocol(url)
        if list(found) == [base]:
            url, _, name = url.rpartition("/")
            base = store._strip_protocol(url)
            if name in MAIN_FILES:
                found = self._list(store, url, store.find)
            else:
                found = self._list(store, url, store.ls)
        self._local(url).parent.mkdir(parents=True, exist_ok=True)
        journals = []
        for key, info in found.items():
            if info.get("type") != "file" or key.endswith("/"):
                continue
            name = key[len(base):].lstrip("/")
            path = self._place(store, key, f"{url}/{name}", info)
            if path is not None and path.name == JOURNAL:
                journals.append(path)
        for journal in journals:
            self._keep_unfinished(journal)
        return len(found)

    def fetch(self, path: str) -> None:
        """Brings the bytes of a file.

        Raises:
            StoreError: the store did not give them.
        """
        path = os.path.normpath(path)
        if path in self._objects:
            self._fetch(path)
            self._look_ahead(path)

    def store_changes(self) -> int:
        """Stores files that are new or have changed, removes objects whose file is gone.

        Returns:
            How many files were stored.

        Raises:
            StoreError: the store did not take one of them.
        """
        hollow = {one.file: one for one in self._objects.values() if not one.fetched and one.size}
        for name, one in list(self._objects.items()):
            if not os.path.lexists(name):
                _insist(f"{one.url}: cannot be removed", partial(one.store.rm_file, one.key))
                del self._objects[name]
        changed = [path for path in self._written() if not self._is_known(path)]
        for number, path in enumerate(changed):
            if sys.stderr.isatty():
                print(f"\rstoring file {number + 1} of {len(changed)}", end="", file=sys.stderr)
            url = self._url(path)
            store = self._store(url)
            key = store._strip_protocol(url)
            # Another name for an object. Inodes alone are used again when a file is removed.
            source = None if path.stat().st_blocks else hollow.get(_facts(path))
            put = (partial(store.put_file, str(path), key) if source is None
                   else partial(store.cp_file, source.key, key))
            _insist(f"{url}: cannot be stored", put)
        if changed and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)
        return len(changed)

    def _written(self) -> Iterator[Path]:
        for scheme in sorted(self._schemes):
            for path in sorted((self.root / scheme).rglob("*")):
                if not path.name.endswith(".tmp") and stat.S_ISREG(path.lstat().st_mode):
                    yield path

    def _is_known(self, path: Path) -> bool:
        one = self._objects.get(str(path))
        return one is not None and one.file == _facts(path)

    def _store(self, url: str) -> Any:
        self._schemes.add(url.partition("://")[0])
        try:
            from fsspec.core import url_to_fs

            return url_to_fs(url)[0]  # the same each time
        except ImportError as error:
            text = _line(error)
            message = NEEDS_FSSPEC.format(python=sys.executable)
            raise StoreError(f"{url}: {message} ({text})", UNSUPPORTED) from None
        except Exception as error:  # of the driver, about its settings
            raise StoreError(f"{url}: {_line(error)}") from None

    def _list(self, store: Any, url: str, listed: Callable[..., Any]) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            try:
                found = listed(store._strip_protocol(url), detail=True)
            except FileNotFoundError:
                return {}
            return found if isinstance(found, dict) else {one["name"]: one for one in found}

        return _insist(f"{url}: cannot be listed", work, attempts=1)

    def _local(self, url: str) -> Path:
        scheme, _, rest = url.partition("://")
        return self.root / scheme / rest

    def _url(self, path: Path) -> str:
        scheme, _, rest = str(path.relative_to(self.root)).partition("/")
        return f"{scheme}://{rest}"

    def _place(self, store: Any, key: str, url: str, info: dict[str, Any]) -> Path | None:
        """A file of the object's size without bytes; none where its name cannot be one."""
        path = self._local(url)
        if any(part in ("", ".", "..") for part in url.partition("://")[2].split("/")):
            print(f"{url}: left out: its name is no path of a file", file=sys.stderr)
            return None
        if str(path) in self._objects:
            return path
        size = int(info.get("size") or 0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_empty(path, size, _seconds(info))
        except OSError as error:
            print(f"{url}: left out: {error.strerror}", file=sys.stderr)
            return None
        self._objects[str(path)] = _Object(store, key, url, size, _mark(info), _facts(path))
        return path

    def _make_empty(self, path: Path, size: int, seconds: float) -> None:
        with open(path, "xb") as file:
            file.truncate(size)
        os.utime(path, (seconds, seconds))

    def _keep_unfinished(self, journal: Path) -> None:
        """Stores have the times at which files came to them, not those of their last change."""
        times = [path.stat().st_mtime_ns for name in MAIN_FILES
                 if (path := journal.with_name(name)).exists()]
        newest = max([journal.stat().st_mtime_ns, *times])
        os.utime(journal, ns=(newest, newest))
        self._objects[str(journal)].file = _facts(journal)

    def _fetch(self, path: str) -> None:
        with self._lock:
            lock = self._locks.setdefault(path, threading.Lock())
        with lock:
            one = self._objects[path]
            if one.fetched or one.size == 0:
                return
            part = self._part()
            try:
                self._download(one, part)
                modified = os.stat(path).st_mtime_ns
                os.utime(part, ns=(modified, modified))
                os.replace(part, path)
            except OSError as error:
                raise StoreError(f"{one.url}: cannot be kept on this machine: {error.strerror}: "
                                 f"{error.filename}. TMPDIR names another place") from None
            finally:
                part.unlink(missing_ok=True)
            one.file, one.fetched = _facts(Path(path)), True
        if path.endswith(MAIN_FILES):
            self._learn_order(Path(path))
        self._make_room(path, one.size)

    def _part(self) -> Path:
        with self._lock:
            self._made += 1
            return self.root / ".parts" / str(self._made)

    def _download(self, one: _Object, part: Path) -> None:
        def piece(start: int) -> None:
            end = min(start + PIECE_BYTES, one.size)

            def get() -> bytes:
                got: bytes = one.store.cat_file(one.key, start=start, end=end)
                if len(got) != end - start:
                    raise OSError(f"gave {len(got)} of {end - start} bytes from {start} on")
                return got

            os.pwrite(file.fileno(), _insist(f"{one.url}: cannot be read", get), start)

        with open(part, "xb") as file:
            if one.size <= PIECE_BYTES:
                return piece(0)
            list(self._pieces.map(piece, range(0, one.size, PIECE_BYTES)))
        one.store.invalidate_cache()
        now = _insist(f"{one.url}: cannot be read", lambda: one.store.info(one.key))
        if _mark(now) != one.mark:
            raise StoreError(f"{one.url}: was replaced while it was read. Run the command again")
        return None

    def _learn_order(self, main_file: Path) -> None:
        names = [name.decode(errors="surrogateescape")
                 for name in _STORED_NAME.findall(main_file.read_bytes())]
        paths = [str(main_file.parent / "dump_tensor_data" / name) for name in names]
        self._next.update(itertools.pairwise(paths))

    def _look_ahead(self, path: str) -> None:
        size = 0
        for _ in range(AHEAD_FILES):
            path = self._next.get(path, "")
            one = self._objects.get(path)
            if one is None or size > AHEAD_BYTES:
                return
            size += one.size
            if not one.fetched:
                with contextlib.suppress(RuntimeError):  # closed
                    self._ahead.submit(self._try_fetch, path)

    def _try_fetch(self, path: str) -> None:
        with contextlib.suppress(StoreError):  # said when the program asks for it
            self._fetch(path)

    def _make_room(self, path: str, size: int) -> None:
        """Drops the bytes of files that came first, where all take too much."""
        if size < LEAST_DROPPED:
            return
        with self._lock:
            self._kept[path] = size
            dropped = []
            while sum(self._kept.values()) > self._room and len(self._kept) > CONNECTIONS:
                dropped.append(self._kept.popitem(last=False)[0])
        for one in dropped:
            self._drop(one)

    def _drop(self, path: str) -> None:
        with self._locks[path]:
            one = self._objects[path]
            if not os.path.exists(path) or one.file != _facts(Path(path)):
                return  # the program has changed it
            part = self._part()
            self._make_empty(part, one.size, 0)
            modified = os.stat(path).st_mtime_ns
            os.utime(part, ns=(modified, modified))
            one.fetched = False
            os.replace(part, path)
            one.file = _facts(Path(path))


class _Answers(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        # Addresses of sockets are short; names of temporary directories need not be.
        descriptor = os.open(mirror.root, os.O_PATH | os.O_DIRECTORY)
        try:
            super().__init__(f"/proc/self/fd/{descriptor}/{SOCKET}", _Answer)
        finally:
            os.close(descriptor)


class _Answer(socketserver.StreamRequestHandler):
    server: _Answers

    def handle(self) -> None:
        path = self.rfile.readline().decode(errors="surrogateescape").removesuffix("\n")
        answer = "ok"
        try:
            self.server.mirror.fetch(path)
        except StoreError as error:
            self.server.mirror.failures.append(error)
            answer = str(error)
        with contextlib.suppress(OSError):  # the program has ended
            self.wfile.write(answer.encode(errors="surrogateescape"))


def urls_of(words: Iterable[str]) -> list[str]:
    """Paths of stores among the words of a command."""
    found = (_URL.fullmatch(word) for word in words)
    return [match[1] for match in found if match and match[2] not in ("file", "ray")]


def _run(program: Sequence[str], root: Path) -> int:
    """Runs it with this directory, passing on signals; returns its exit status."""
    child = subprocess.Popen(program, env=os.environ | {DIRECTORY: str(root)})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: child.send_signal(got))
    status = child.wait()
    return status if status >= 0 else 128 - status


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command of `plumb` whose words name objects.

    Args:
        words: the program and its words; by default those of the command line, after "--".

    Returns:
        The exit status.
    """
    program, *words = list(sys.argv[2:] if words is None else words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="plumbline-objects-")))
    mirror = Mirror(root)
    is_kept = False
    try:
        for url in urls_of(words):
            mirror.add(url)
        with _Answers(mirror) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            status = _run([program, *words], root)
            server.shutdown()
        if mirror.failures:
            others = len(mirror.failures) - 1
            more = f" (and {others} more that could not be read)" if others else ""
            print(f"plumb {words[0]}: {mirror.failures[0]}{more}", file=sys.stderr)
        is_kept = True
        mirror.close()
        mirror.store_changes()
        is_kept = False
        return status
    except StoreError as error:
        left = f". What the command wrote is left in {root}" if is_kept else ""
        print(f"plumb {words[0]}: {error}{left}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        mirror.close()
        if not is_kept:
            shutil.rmtree(root, ignore_errors=True)
