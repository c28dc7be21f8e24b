"""Recordings and results in an object store: `plumb compare s3://bucket/new s3://bucket/good`.

The program `plumb` runs on a directory of this machine in which each object below the paths of the
command has a file of its name and size that takes no space. It asks for the bytes of a file when it
is about to read it; they come by ranges, several at a time, and each range is asked for again when
its connection breaks. What the program wrote or changed is stored when it has ended.
fsspec reaches the store; it is imported when there is work.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

DIRECTORY = "PLUMBLINE_OBJECTS"  # environment: where the program finds the files
LISTED = "PLUMBLINE_OBJECTS_LISTED"  # environment: the paths below which they are, a line each
# Those of src/base/file/object_store.cc: paths with others are of this machine.
SCHEMES = frozenset({"abfs", "abfss", "adl", "az", "gcs", "gs", "hdfs", "oci", "oss", "s3", "s3a",
                     "smb", "sftp", "swift", "tos", "webhdfs"})
SOCKET = ".fetch"  # there: who is asked for bytes
PIECE_BYTES = 8 << 20  # of one range request
CONNECTIONS = 8
ATTEMPTS = 3  # each with those of the store's driver
FIRST_PAUSE_S = 0.2  # doubled after each attempt
AHEAD_FILES, AHEAD_BYTES = 16, 64 << 20  # fetched before they are asked for, in the order of calls
LEAST_DROPPED = 1 << 20  # smaller files stay: what they take is little
LEAST_KEPT = 4  # files that may be in use
SPACE_SHARE = 0.5  # of what is free at the start
IO_FAILED, UNSUPPORTED = 6, 4  # exit statuses of plumb
JOURNAL, MAIN_FILES = ".dump.journal", ("dump.json", "debug.json")
NEEDS_FSSPEC = ("paths in a store need fsspec and s3fs in {python}. Install them with: "
                "pip install 'plumbline-numerics[objects]'")
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


def is_named_by(path: str) -> bool:
    """Whether it is a path of a store, as the program takes it."""
    scheme, mark, _ = path.partition("://")
    return mark != "" and scheme in SCHEMES


def _store_of(url: str) -> Any:
    """What reaches its store, of fsspec: the same each time.

    Raises:
        StoreError: there is no such driver, or it has no settings.
    """
    try:
        from fsspec.core import url_to_fs

        return url_to_fs(url)[0]
    except ImportError as error:
        message = NEEDS_FSSPEC.format(python=sys.executable)
        raise StoreError(f"{url}: {message} ({_line(error)})", UNSUPPORTED) from None
    except Exception as error:  # of the driver, about its settings
        raise StoreError(f"{url}: {_line(error)}") from None


def read(path: str) -> bytes:
    """The bytes of a file or an object.

    Raises:
        OSError: the file cannot be read.
        StoreError: the store did not give them.
    """
    if not is_named_by(path):
        return Path(path).read_bytes()
    store = _store_of(path)
    got: bytes = _insist(f"{path}: cannot be read",
                         lambda: store.cat_file(store._strip_protocol(path)))
    return got


def remove(urls: Sequence[str]) -> None:
    """Removes objects.

    Raises:
        StoreError: the store did not do it.
    """
    for url in urls:
        store = _store_of(url)
        _insist(f"{url}: cannot be removed", partial(store.rm_file, store._strip_protocol(url)))


def follower(number: signal.Signals) -> Callable[[], None]:
    """What a new child calls first, to get this signal when its parent, the caller, ends."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def follow() -> None:
        libc.prctl(1, number)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return follow


class _Patience:
    """How long to go on with a store whose answers do not come."""

    def __init__(self) -> None:
        self._failures = 0  # objects in a row
        self.has_ended = False  # nobody waits for an answer any more

    @property
    def attempts(self) -> int:
        """Of the next object; 0: none, the store is gone."""
        return 0 if self._failures >= 3 or self.has_ended else 1 if self._failures else ATTEMPTS

    def note(self, did_come: bool) -> None:
        """An object came, or its attempts were in vain."""
        self._failures = 0 if did_come else self._failures + 1


def _insist(what: str, work: Callable[[], _Value], patience: _Patience | None = None) -> _Value:
    """Does it again after what may pass: a cut connection, a busy server.

    Raises:
        StoreError: it cannot be done, or not in so many attempts.
    """
    patience = patience or _Patience()
    attempts = patience.attempts
    problem = StoreError(f"{what}: its store does not answer any more")
    for attempt in range(attempts):
        if attempt > 0:
            time.sleep(FIRST_PAUSE_S * 2**attempt)
        try:
            done = work()
        except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError,
                ImportError) as error:
            raise StoreError(f"{what}: {_line(error)}") from None
        except Exception as error:  # whatever the driver of this store raises
            problem = StoreError(f"{what}: {_line(error)}")
        else:
            patience.note(did_come=True)
            return done
    patience.note(did_come=False)
    raise problem


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
        self._refused: set[str] = set()  # paths of objects that have no file here
        self._patience = _Patience()
        self._pieces = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)
        self._ahead = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)
        self._schemes: set[str] = set()
        self._made = 0
        self.failures: list[StoreError] = []  # of what the program asked for
        (root / ".parts").mkdir()

    def close(self) -> None:
        """Fetches no more; waits for what is under way."""
        self.end()
        self._ahead.shutdown(cancel_futures=True)
        self._pieces.shutdown(cancel_futures=True)

    def end(self) -> None:
        """Nobody waits for bytes any more."""
        self._patience.has_ended = True

    def add(self, url: str) -> None:
        """Lists what is below a path, or beside it where it is one object.

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
        files = {f"{url}/{key[len(base):].lstrip('/')}": key for key, info in found.items()
                 if info.get("type") == "file" and not key.endswith("/")}
        for place, key in files.items():
            self._place(store, key, place, found[key])
        for place in files:
            if place.endswith(f"/{JOURNAL}") and str(self._local(place)) in self._objects:
                self._keep_unfinished(self._local(place))

    def fetch(self, path: str) -> bool:
        """Brings the bytes of a file; whether it is an object, and none of the program's own.

        Raises:
            StoreError: the store did not give them.
        """
        path = os.path.normpath(path)
        if path not in self._objects:
            return False
        with self._lock_of(path):
            if not self._is_known(Path(path)):
                return False
        self._fetch(path)
        self._look_ahead(path)
        return True

    def store_changes(self) -> None:
        """Stores files that are new or have changed.

        Raises:
            StoreError: the store did not take one of them.
        """
        hollow = {one.file: one for one in self._objects.values() if not one.fetched and one.size}
        changed = [path for path in self._written() if not self._is_known(path)]
        for path in changed:
            if str(path) in self._refused:
                raise StoreError(f"{self._url(path)}: cannot be stored: there is another one, "
                                 "which had no place on this machine")
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

    def remove_journals(self) -> None:
        """Removes those whose file is gone, beside a dump.json that has what they had.

        Raises:
            StoreError: the store did not do it.
        """
        for name, one in self._objects.items():
            path = Path(name)
            is_final = any(path.with_name(main_file).exists() for main_file in MAIN_FILES)
            if path.name == JOURNAL and is_final and not os.path.lexists(path):
                _insist(f"{one.url}: cannot be removed", partial(one.store.rm_file, one.key))

    def _written(self) -> Iterator[Path]:
        for scheme in sorted(self._schemes):
            for path in sorted((self.root / scheme).rglob("*")):
                is_temporary = path.name.startswith(".") and path.name.endswith(".tmp")
                if not is_temporary and stat.S_ISREG(path.lstat().st_mode):
                    yield path

    def _is_known(self, path: Path) -> bool:
        one = self._objects.get(str(path))
        return one is not None and path.exists() and one.file == _facts(path)

    def _store(self, url: str) -> Any:
        self._schemes.add(url.partition("://")[0])
        return _store_of(url)

    def _list(self, store: Any, url: str, listed: Callable[..., Any]) -> dict[str, Any]:
        try:
            found = listed(store._strip_protocol(url), detail=True)
            return found if isinstance(found, dict) else {one["name"]: one for one in found}
        except FileNotFoundError:
            return {}
        except Exception as error:  # of the driver, after attempts of its own
            raise StoreError(f"{url}: cannot be listed: {_line(error)}") from None

    def _local(self, url: str) -> Path:
        scheme, _, rest = url.partition("://")
        return self.root / scheme / rest

    def _url(self, path: Path) -> str:
        scheme, _, rest = str(path.relative_to(self.root)).partition("/")
        return f"{scheme}://{rest}"

    def _place(self, store: Any, key: str, url: str, info: dict[str, Any]) -> None:
        """A file of the object's size without bytes, where its name can be one."""
        path = self._local(url)
        if any(part in ("", ".", "..") for part in url.partition("://")[2].split("/")):
            print(f"{url}: left out: its name is no path of a file", file=sys.stderr)
            return
        if str(path) in self._objects:
            return
        size = int(info.get("size") or 0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_empty(path, size, _seconds(info))
        except OSError as error:
            self._refused.add(str(path))
            print(f"{url}: left out: {error.strerror}", file=sys.stderr)
            return
        self._objects[str(path)] = _Object(store, key, url, size, _mark(info), _facts(path))

    def _make_empty(self, path: Path, size: int, seconds: float) -> None:
        with open(path, "xb") as file:
            try:
                file.truncate(size)
                os.utime(path, (seconds, seconds))
            except OSError:
                path.unlink()
                raise

    def _keep_unfinished(self, journal: Path) -> None:
        """Stores have the times at which files came to them, not those of their last change."""
        times = [path.stat().st_mtime_ns for name in MAIN_FILES
                 if (path := journal.with_name(name)).exists()]
        newest = max([journal.stat().st_mtime_ns, *times])
        os.utime(journal, ns=(newest, newest))
        self._objects[str(journal)].file = _facts(journal)

    def _fetch(self, path: str) -> None:
        one = self._objects[path]
        if one.fetched or one.size == 0:
            return
        self._make_room(path, one.size)
        with self._lock_of(path):
            if one.fetched:
                return
            part = self._part()
            try:
                self._download(one, part)
                if part.stat().st_size != one.size:
                    raise StoreError(f"{one.url}: cannot be kept on this machine")
                modified = os.stat(path).st_mtime_ns
                os.utime(part, ns=(modified, modified))
                os.replace(part, path)
            except OSError as error:
                raise StoreError(f"{one.url}: cannot be kept on this machine: {error.strerror} "
                                 f"({self.root.parent}; TMPDIR names another place)") from None
            except concurrent.futures.CancelledError:
                raise StoreError(f"{one.url}: cannot be read: the command has ended") from None
            finally:
                part.unlink(missing_ok=True)
            one.file, one.fetched = _facts(Path(path)), True
        if path.endswith(MAIN_FILES):
            self._learn_order(Path(path))

    def _lock_of(self, path: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(path, threading.Lock())

    def _part(self) -> Path:
        with self._lock:
            self._made += 1
            return self.root / ".parts" / str(self._made)

    def _download(self, one: _Object, part: Path) -> None:
        what = f"{one.url}: cannot be read"

        def piece(descriptor: int, start: int) -> None:
            end = min(start + PIECE_BYTES, one.size)

            def get() -> bytes:
                got: bytes = one.store.cat_file(one.key, start=start, end=end)
                if len(got) != end - start:
                    raise OSError(f"gave {len(got)} of {end - start} bytes from {start} on")
                return got

            data, done = memoryview(_insist(what, get, self._patience)), 0
            while done < len(data):
                done += os.pwrite(descriptor, data[done:], start + done)

        with open(part, "xb") as file:
            if one.size <= PIECE_BYTES:
                return piece(file.fileno(), 0)
            pieces = [self._pieces.submit(piece, file.fileno(), start)
                      for start in range(0, one.size, PIECE_BYTES)]
            concurrent.futures.wait(pieces, return_when=concurrent.futures.FIRST_EXCEPTION)
            for future in pieces:
                future.cancel()
            concurrent.futures.wait(pieces)  # the file is theirs until then
            for future in pieces:
                future.result()
        one.store.invalidate_cache()
        now = _insist(what, lambda: one.store.info(one.key), self._patience)
        if _mark(now) != one.mark:
            raise StoreError(f"{one.url}: was replaced while it was read. Run the command again")
        return None

    def _learn_order(self, main_file: Path) -> None:
        names = [name.decode(errors="surrogateescape")
                 for name in _STORED_NAME.findall(main_file.read_bytes())]
        paths = [str(main_file.parent / "dump_tensor_data" / name) for name in names]
        self._next.update(itertools.pairwise(paths))

    def _look_ahead(self, path: str) -> None:
        room = min(AHEAD_BYTES, self._room // 4)
        for _ in range(AHEAD_FILES):
            path = self._next.get(path, "")
            one = self._objects.get(path)
            if one is None or one.size > room:
                return
            room -= one.size
            if not one.fetched:
                with contextlib.suppress(RuntimeError):  # closed
                    self._ahead.submit(self._try_fetch, path)

    def _try_fetch(self, path: str) -> None:
        with contextlib.suppress(StoreError):  # said when the program asks for it
            self._fetch(path)

    def _make_room(self, path: str, size: int) -> None:
        """For this file: drops the bytes of those that came first, where all take too much."""
        if size < LEAST_DROPPED:
            return
        with self._lock:
            self._kept[path] = size
            dropped = []
            while sum(self._kept.values()) > self._room and len(self._kept) > LEAST_KEPT:
                dropped.append(self._kept.popitem(last=False)[0])
        for one in dropped:
            with contextlib.suppress(OSError):
                self._drop(one)

    def _drop(self, path: str) -> None:
        one, lock = self._objects[path], self._lock_of(path)
        if not lock.acquire(blocking=False):
            return  # it is being fetched
        try:
            if not one.fetched or not os.path.exists(path) or one.file != _facts(Path(path)):
                return  # the program has changed it
            part = self._part()
            self._make_empty(part, one.size, 0)
            modified = os.stat(path).st_mtime_ns
            os.utime(part, ns=(modified, modified))
            one.fetched = False
            os.replace(part, path)
            one.file = _facts(Path(path))
        finally:
            lock.release()


class _Answers(socketserver.ThreadingUnixStreamServer):
    daemon_threads = False  # nothing is fetched any more when it is closed
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
        path = os.fsdecode(self.rfile.read())
        answer = ""
        try:
            answer = "ok" if self.server.mirror.fetch(path) else "own"
        except StoreError as error:
            self.server.mirror.failures.append(error)
            answer = str(error)
        with contextlib.suppress(OSError):  # the program has ended
            self.wfile.write(answer.encode(errors="surrogateescape"))


def _run(program: Sequence[str], root: Path, urls: Sequence[str]) -> int:
    """Runs it with this directory, passing on signals; returns its exit status."""
    own = {DIRECTORY: str(root), LISTED: "\n".join(url.rstrip("/") for url in urls)}
    child = subprocess.Popen(program, env=os.environ | own, preexec_fn=follower(signal.SIGTERM))

    def pass_on(number: int, *_: object) -> None:
        # A terminal sends an interrupt to both.
        wait = 0.5 if number == signal.SIGINT else 0.0
        threading.Timer(wait, child.send_signal, [number]).start()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, pass_on) for number in numbers]
    status = child.wait()
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def main() -> int:
    """Runs a command of `plumb` whose words name objects; returns its exit status.

    The words of the command line: "--", paths of stores, "--", the program and its words.
    """
    words = sys.argv[2:]
    middle = words.index("--")
    urls, program = words[:middle], words[middle + 1:]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        root = Path(os.path.realpath(tempfile.mkdtemp(prefix="plumbline-objects-")))
    except OSError as error:
        print(f"plumb {program[1]}: {error}", file=sys.stderr)
        return IO_FAILED
    left = ""
    try:
        mirror = Mirror(root)
        try:
            for url in urls:
                mirror.add(url)
            with _Answers(mirror) as server:
                threading.Thread(target=server.serve_forever, daemon=True).start()
                status = _run(program, root, urls)
                mirror.end()
                server.shutdown()
        finally:
            mirror.close()
        if mirror.failures:
            others = len(mirror.failures) - 1
            more = f" (and {others} more that could not be read)" if others else ""
            print(f"plumb {program[1]}: {mirror.failures[0]}{more}", file=sys.stderr)
        # Whoever started a part starts it again.
        is_part = any(word.startswith("--shard") for word in program)
        left = "" if is_part else f". What the command wrote is left in {root}"
        mirror.store_changes()
        if program[1] == "recover":  # no other command removes what it was given
            mirror.remove_journals()
        left = ""
        return status
    except StoreError as error:
        print(f"plumb {program[1]}: {error}{left}", file=sys.stderr)
        return error.status
    except OSError as error:
        print(f"plumb {program[1]}: {root}: {error.strerror} (TMPDIR names another place){left}",
              file=sys.stderr)
        return IO_FAILED
    except KeyboardInterrupt:
        if left:
            print(f"plumb {program[1]}: interrupted{left}", file=sys.stderr)
        return 128 + signal.SIGINT
    finally:
        if not left:
            shutil.rmtree(root, ignore_errors=True)
