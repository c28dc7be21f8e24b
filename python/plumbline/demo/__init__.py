"""What `plumb demo` does: trains a small Llama twice, the second time with a defect, and compares.

Both runs are recorded by the program train.py, which is left beside the recordings. The second has
a wrong epsilon in one norm, and `plumb compare` has to name a call inside that norm.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

RIGHT_EPSILON, WRONG_EPSILON = 1e-6, 1e-5
_MODULE = "blocks.2.post_attention_norm"  # as train.py names it


def find_defect(root: Path, module: str, record: Sequence[str], plumb: str) -> int:
    """Records both runs and compares their first steps; 0 if a call inside the module is named.

    Args:
        root: an empty directory.
        module: whose epsilon is wrong in the second run.
        record: program and arguments that record a run; a directory and an epsilon follow.
        plumb: the native program.
    """
    for name, epsilon in (("good", RIGHT_EPSILON), ("wrong", WRONG_EPSILON)):
        print(f"training two steps of a small Llama, {module}.epsilon = {epsilon:g}", flush=True)
        # A recorder is one per process, so each run has its own.
        subprocess.run([*record, str(root / name), str(epsilon)], check=True)
    command = [plumb, "compare", str(root / "wrong/step0"), str(root / "good/step0"),
               "-o", str(root / "result")]
    print("\n$", shlex.join(command), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False)
    print(done.stdout, flush=True)
    answer = re.match(r"first wrong call: (\S+)", done.stdout)
    named = answer.group(1).rstrip(",;:") if answer else "none"
    inside = any(f".{module}." in name for name in _modules_around(root / "wrong/step0", named))
    print(f"injected: {module}.epsilon = {WRONG_EPSILON:g} instead of {RIGHT_EPSILON:g}")
    print(f"first wrong call: {named} ({'in' if inside else 'NOT in'} {module})")
    print("\nsee it in a page:\n$", shlex.join([plumb, "view", str(root / "wrong"),
                                                str(root / "good")]))
    return 0 if inside and done.returncode == 0 else 1


def _modules_around(recording: Path, call: str) -> list[str]:
    """Names of the modules that the call ran in, innermost first, from construct.json."""
    [construct] = recording.glob("*/construct.json")
    parents = json.loads(construct.read_text())
    found = [call]
    while found[-1] in parents and len(found) < 100:
        parent = parents[found[-1]]
        parent = parent[0] if isinstance(parent, list) else parent
        if not parent:
            break
        found.append(parent)
    return found


def _problem(root: Path) -> str | None:
    """Why the demonstration cannot run; None: it can."""
    if importlib.util.find_spec("torch") is None:
        return (f"no PyTorch in {sys.executable} (pip install 'plumbline-numerics[pytorch]', or "
                "name another Python with --python)")
    if not re.fullmatch(r"[A-Za-z0-9_./-]+", str(root.absolute())):  # as of dump_path
        return (f"{root.absolute()}: recordings need a path of letters, digits and _./- (name "
                "another directory)")
    if root.exists() and not root.is_dir():
        return f"{root}: is a file (expected a new directory)"
    if root.exists() and any(root.iterdir()):
        return f"{root}: is not empty (expected a new directory; name another one, or remove it)"
    return None


def main() -> int:
    """The program; its exit status. 2: it cannot run here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("plumb")
    options = parser.parse_args()
    root: Path = options.directory
    found = shutil.which("plumb")
    if found is not None and Path(found).resolve() == Path(options.plumb).resolve():
        options.plumb = "plumb"  # as the user calls it, so that lines can be copied
    try:
        problem = _problem(root)
        if problem is None:
            root.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(__file__).with_name("train.py"), root / "train.py")
            record = [sys.executable, "-W", "ignore", str(root / "train.py")]
            return find_defect(root, _MODULE, record, options.plumb)
    except OSError as error:
        problem = f"{error.filename or root}: {error.strerror}"
    except subprocess.CalledProcessError as error:
        problem = f"{root / 'train.py'} ended with {error.returncode}; what it printed is above"
    except KeyboardInterrupt:
        return 130
    print(f"plumb demo: {problem}", file=sys.stderr)
    return 2
