"""Installs a wheel into a fresh environment and uses it as a user does who has nothing else.

    python tests/wheel/check_wheel.py WHEEL [--borrow SITE_PACKAGES]

As root it goes on as `nobody`, without any right to the checkout: runs the demonstration, records,
compares, pre-checks, watches and views, each with the installed files alone. --borrow: where torch
and numpy are, which are not installed once more; plumbline must not come from there. Prints what it
does; the last line is `wheel: N checks passed`. Exit status 1 with the first check that fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

NOBODY = 65534

RECORD = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger, seed_all

seed_all(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="mix", step=[0])
debugger.start(model=net)
data = torch.randn(4, 8)
hidden = net(data)
hidden = torch.nn.functional.layer_norm(hidden, (2,), eps=float(sys.argv[2]))
(hidden * hidden).sum().backward()
debugger.stop()
debugger.step()
"""

WATCH = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
from plumbline.pytorch import TrainerMon

net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
monitor = TrainerMon(sys.argv[1], params_have_main_grad=False)
monitor.set_monitor(net, grad_acc_steps=1, optimizer=optimizer)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
"""


class Account:
    """A user with an own directory, an environment in it and no rights elsewhere."""

    def __init__(self, home: Path, python: str, borrowed: Path | None) -> None:
        self.home = home
        self.environment = {"HOME": str(home), "PATH": f"{home}/venv/bin:/usr/bin:/bin",
                            "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        self._as_nobody = os.geteuid() == 0
        if self._as_nobody:
            os.chown(home, NOBODY, NOBODY)
            self._as_nobody = self._may_use(python, borrowed)
        self.run(python, "-m", "venv", "venv")
        self.python = home / "venv/bin/python"

    def _may_use(self, python: str, borrowed: Path | None) -> bool:
        """Whether `nobody` may run the interpreter and read what is borrowed."""
        try:
            self.run(python, "-c", "import os, sys; os.listdir(sys.argv[1])", borrowed or self.home)
        except (PermissionError, SystemExit):
            print(f"wheel: {python} or {borrowed} is closed to nobody: goes on as root", flush=True)
            return False
        return True

    def start(self, *words: str | Path, **options: object) -> subprocess.Popen[str]:
        """A program in the user's directory, with the user's rights."""
        if self._as_nobody:
            options |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        return subprocess.Popen([str(word) for word in words], cwd=self.home, text=True,
                                env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, **options)  # type: ignore[call-overload]

    def run(self, *words: str | Path, expected: int = 0) -> str:
        """What a program printed; it must end with `expected`."""
        child = self.start(*words)
        text, _ = child.communicate(timeout=300)
        if child.returncode != expected:
            raise SystemExit(f"wheel: {' '.join(map(str, words))}: exit status {child.returncode} "
                             f"(expected {expected})\n{text}")
        return text


def require(holds: object, what: str, text: str = "") -> None:
    """Ends the program with `what` unless it holds."""
    if not holds:
        raise SystemExit(f"wheel: {what}\n{text}")


def starts(user: Account) -> None:
    """The program and the package are those of the environment."""
    require(user.run("plumb", "--version").startswith("plumb "), "plumb has no version")
    where = user.run(user.python, "-c", "import plumbline; print(plumbline.__file__)")
    require(where.startswith(str(user.home)), "another plumbline was imported", where)
    require((user.home / "venv/share/man/man1/plumb.1").exists(), "no manual page")


def demonstrates(user: Account) -> None:
    """The first minute: the demonstration names its own line of code."""
    text = user.run("plumb", "demo", "demo")
    require("first wrong call: Tensor.__add__." in text and
            "demo/train.py, line" in text, "the demonstration names another call", text)
    require("(in blocks.2.post_attention_norm)" in text, "another module is named", text)


def records_and_compares(user: Account) -> None:
    """Two recordings, one with a wrong epsilon: it is named."""
    (user.home / "record.py").write_text(RECORD)
    user.run(user.python, "record.py", "good", "1e-5")
    user.run(user.python, "record.py", "wrong", "1e-2")
    same = user.run("plumb", "compare", "good/step0", "good/step0", "-o", "same")
    require(same.startswith("no wrong call"), "a recording differs from itself", same)
    found = user.run("plumb", "compare", "wrong/step0", "good/step0", "-o", "result")
    require(found.startswith("first wrong call: Functional.layer_norm.0.forward"),
            "the wrong call is not named", found)


def prechecks(user: Account) -> None:
    """Every recorded call runs again."""
    text = user.run("plumb", "precheck", "good/step0", "--device_type", "cpu", "-o", "precheck")
    found = list((user.home / "precheck").rglob("*result*.csv"))
    require(found, "no result of the pre-check", text)


def watches(user: Account) -> None:
    """Gradients of three steps, and their picture."""
    (user.home / "monitor.json").write_text(json.dumps(
        {"targets": {}, "wg_distribution": True, "format": "csv", "ops": ["norm"]}))
    (user.home / "watch.py").write_text(WATCH)
    user.environment["MONITOR_OUTPUT_DIR"] = str(user.home / "monitor")
    text = user.run(user.python, "watch.py", "monitor.json")
    require(list((user.home / "monitor").rglob("grad_*.csv")), "the monitor wrote nothing", text)


def views(user: Account) -> None:
    """The page comes from the program; HDF5 and the page are modules of it."""
    server = user.start("plumb", "view", "wrong", "good", "--until-eof", stdin=subprocess.PIPE)
    try:
        assert server.stdout is not None
        address, printed = None, ""
        while address is None:
            line = server.stdout.readline()
            require(line, "plumb view ended", printed)
            printed += line
            address = re.search(r"http://\S+", line)
        keeping = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with keeping.open(address.group(), timeout=60) as answer:
            page = answer.read().decode()
        require("<script" in page and "plumbline" in page, "that is no page", page[:500])
    finally:
        server.communicate("")
    made = user.run("plumb", "view", "wrong", "good", "--html", "page.html")
    size = (user.home / "page.html").stat().st_size
    require(size > 50_000, "the file of the page is small", made)


def interpreter() -> str:
    """The machine's Python where it is of this version, since everybody may run it."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return shutil.which(f"python{version}", path="/usr/bin") or os.path.realpath(sys.executable)


CHECKS: list[Callable[[Account], None]] = [starts, demonstrates, records_and_compares, prechecks,
                                           watches, views]


def main() -> None:
    """Makes the account, installs, checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--borrow", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wheel") as folder:
        Path(folder).chmod(0o755)
        user = Account(Path(folder), interpreter(), options.borrow)
        wheel = Path(shutil.copy(options.wheel, folder))
        user.run(user.python, "-m", "pip", "install", "-q", "--no-index", "--no-deps",
                 "--disable-pip-version-check", wheel)
        if options.borrow is not None:
            place = user.run(user.python, "-c",
                             "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
            Path(place, "borrowed.pth").write_text(f"{options.borrow}\n")
        for check in CHECKS:
            print(f"wheel: {check.__name__.replace('_', ' ')}", flush=True)
            check(user)
        print(f"wheel: {len(CHECKS)} checks passed")


if __name__ == "__main__":
    main()
