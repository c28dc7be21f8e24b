"""-lm against the data mapping that release 1.2.2 makes of the same rules and dumps."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import HERE, ROOT, run, upstream_python

sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

X = ([1.0, 2.0], [2])
RULES = "TopLayer:\n  network: module\nGPT:\n  encoder: decoder\nLayer:\n  mlp.dense: linear\n"
FRAMEWORK = "File /opt/site-packages/{0}/nn.py, line 3, in {1}, \n return f(x)"
USER = "File /home/user/model.py, line 9, in {0}, \n f(x)"


def model(directory: Path, mindspore: bool) -> None:
    """Two layers of a pipeline stage with APIs, a called-twice module, backward and gradients."""
    out = make_dumps.Recording(str(directory))
    kind, root, first = ("Cell", "network", 4) if mindspore else ("Module", "module", 0)
    stack = "encoder" if mindspore else "decoder"
    dense = "mlp.dense.Dense" if mindspore else "linear.Linear"
    api = "Mint" if mindspore else "Torch"
    framework, user = ("mindspore", "construct") if mindspore else ("torch", "forward")
    for layer in range(2):
        base = f"{kind}.{root}.{stack}.layers.{first + layer}"
        parent = f"{base}.Layer.forward.0"
        name = f"{api}.add.{layer}.forward"
        out.call(name, [X, 2.0], [X], parent)
        out.stack[name] = [FRAMEWORK.format(framework, "norm"), USER.format(user)]
        plain = f"{api}.mul.{layer}.forward"
        out.call(plain, [X], [X], parent)
        out.stack[plain] = [USER.format(user)]
        for call in range(2):
            out.call(f"{base}.{dense}.forward.{call}", [X], [X], parent)
            out.call(f"{base}.{dense}.backward.{call}", [X], [X], None)
        out.call(parent, [X], [X], f"{kind}.{root}.{stack}.ParallelTransformer.forward.0")
    out.call(f"{kind}.{root}.{stack}.ParallelTransformer.forward.0", [X], [X])
    out.call(f"{kind}.{root}.GPT.forward.0", [X], [X])
    out.call(f"{api}.exp.0.forward", [X], [X])
    if mindspore:
        out.call("Mint.sin.0.forward", [X], [X])
    out.write()
    if mindspore:
        path = directory / "dump.json"
        text = path.read_text().replace("torch.Tensor", "mindspore.Tensor")
        text = text.replace("torch.float32", "Float32")
        path.write_text(text.replace('"pytorch"', '"mindspore"'))


@pytest.mark.parametrize("rules", [RULES, "TopLayer:\n  network: module\n"])
def test_same_values_pair(plumb: Path, tmp_path: Path, rules: str) -> None:
    yaml = pytest.importorskip("yaml")
    python = upstream_python()
    for name in ("target", "golden"):
        model(tmp_path / name, name == "target")
    (tmp_path / "rules.yaml").write_text(rules)
    dumps = [tmp_path / name / "dump.json" for name in ("target", "golden")]
    done = run([python, "-W", "ignore", HERE / "run_upstream_layers.py", *dumps,
                tmp_path / "rules.yaml", tmp_path / "theirs.json"], timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    done = run([plumb, "compare", *dumps, "-lm", tmp_path / "rules.yaml", "-o", tmp_path / "out",
                "--format", "csv"], timeout=60)
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "out").glob("data_mapping_*.yaml")
    ours = yaml.safe_load(path.read_text())
    theirs = json.loads((tmp_path / "theirs.json").read_text())
    assert len(ours) > 30
    assert ours == theirs
    paired = sum(value != "N/A" for value in ours.values())
    assert paired > 15 if rules == RULES else paired < len(ours)
