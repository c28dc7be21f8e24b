#!/usr/bin/env python3
"""Writes src/match/api_pairs.cc from the table of MindSpore and PyTorch APIs.

    tools/make_api_pairs.py src/match/ms_to_pt_api.yaml > src/match/api_pairs.cc

The table is a flat YAML mapping, `Functional.dense: Functional.linear`, one pair a line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LINE = re.compile(r"^([A-Za-z_][\w.]*):\s*([A-Za-z_][\w.]*)\s*$")


def main() -> int:
    lines = Path(sys.argv[1]).read_text(encoding="ascii").splitlines()
    pairs = [match.groups() for line in lines if (match := LINE.match(line))]
    unread = [line for line in lines if line.strip() and line[0] != "#" and not LINE.match(line)]
    if not pairs or unread or len(dict(pairs)) != len(pairs):
        print(f"{sys.argv[1]}: not the table (unread or double lines: {unread})", file=sys.stderr)
        return 1
    print('// Made by tools/make_api_pairs.py from ms_to_pt_api.yaml; do not edit.\n\n'
          '#include <string_view>\n\n#include "match/mapping_file.h"\n\n'
          'namespace plumbline::match {\nnamespace {\n\n'
          'using ApiPair = std::pair<std::string_view, std::string_view>;\n'
          '// clang-format off\nconstexpr ApiPair kPairs[] = {')
    for target, golden in sorted(pairs):
        print(f'    {{"{target}", "{golden}"}},')
    print('};\n// clang-format on\n\n}  // namespace\n\n'
          'const TextPairs& BuiltInApis() {\n'
          '  static const TextPairs kTexts(std::begin(kPairs), std::end(kPairs));\n'
          '  return kTexts;\n}\n\n}  // namespace plumbline::match')
    return 0


if __name__ == "__main__":
    sys.exit(main())
