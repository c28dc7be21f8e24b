"""Compares two recordings and acts on the answer.

python examples/compare_from_python.py TARGET GOLDEN [OUTPUT_DIR]

Without OUTPUT_DIR the table goes into a new temporary directory.
"""

from __future__ import annotations

import sys
import tempfile

import plumbline

target, golden = sys.argv[1:3]
output = sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="plumbline-")
result = plumbline.compare(target, golden, output, formats="csv")
print(result.answer)
print(f"rows: {result.counts}")
print(f"written: {result.files}")

worst = [row for row in result.rows if row["verdict"] in ("suspicious", "broken")]
for row in worst[:5]:
    print(f"{row['verdict']}: {row['call']}, error {row['error']}")

if result.details:
    print(f"stop here: {result.details['what']}")
    print(f"called at: {result.details['stack_line']}")
elif result.exit_code:
    print("no call is wrong, but not everything could be judged")
