"""Compares two recordings and acts on the answer.

python examples/compare_from_python.py TARGET GOLDEN

`plumb compare --json` prints one object, so that a script needs no parsing of text.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

plumb = str(Path(sys.executable).with_name("plumb"))
target, golden = sys.argv[1:3]
done = subprocess.run([plumb, "compare", target, golden, "-o", "build/examples/compare",
                       "--format", "csv", "--json"], text=True, stdout=subprocess.PIPE, check=True)
answer = json.loads(done.stdout)
print(json.dumps(answer, indent=1)[:1500])
if answer.get("first_wrong_call"):
    print(f"stop here: {answer['first_wrong_call']}")
