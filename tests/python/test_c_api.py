"""`plumbline/c_api.h` beside CANN's header of the callback, and the program that the documents
show. tests/data/cann has the part of CANN's header that it needs.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import test_chunk_receiver as chunks

ROOT = Path(__file__).resolve().parents[2]
INCLUDES = ["-I", ROOT / "include", "-isystem", ROOT / "tests" / "data" / "cann"]
CANN, OWN = '#include "acl/acl_dump.h"', '#include "plumbline/c_api.h"'
COMPILERS = [["gcc", "-std=c99", "-xc"], ["gcc", "-std=c17", "-xc"], ["g++", "-std=c++11", "-xc++"],
             ["g++", "-std=c++20", "-xc++"]]
USE = """
int32_t Deliver(const acldumpChunk* chunk) { return plumbline_dump_chunk(chunk, 0); }
int Register(void) { return acldumpRegCallback(plumbline_dump_chunk, 0); }
"""
# The runtime, which hands a file of two pieces to whoever registers.
RUNTIME = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "acl/acl_dump.h"
aclError acldumpRegCallback(int32_t (*const callback)(const acldumpChunk*, int32_t), int32_t flag) {
  static unsigned char bytes[1 << 16];
  FILE* file = fopen("whole", "rb");
  size_t size = fread(bytes, 1, sizeof(bytes), file), half = size / 2;
  fclose(file);
  for (int i = 0; i < 2; ++i) {
    size_t from = i == 0 ? 0 : half, length = i == 0 ? half : size - half;
    acldumpChunk* chunk = calloc(1, sizeof(acldumpChunk) + length);
    strcpy(chunk->fileName, "dump/NAME");
    chunk->bufLen = (uint32_t)length;
    chunk->isLastChunk = i == 1;
    chunk->offset = -1;
    chunk->flag = flag;
    memcpy(chunk->dataBuf, bytes + from, length);
    if (callback(chunk, (int32_t)(sizeof(acldumpChunk) + length)) != 0) abort();
    free(chunk);
  }
  return 0;
}
void acldumpUnregCallback() {}
"""


def documented() -> str:
    """The program of docs/formats/acl_dump.md."""
    [program] = re.findall(r"^```c\n(.*?)^```$", (ROOT / "docs/formats/acl_dump.md").read_text(),
                           re.MULTILINE | re.DOTALL)
    return program


def compiled(compiler: list[str], text: str, *more: object) -> None:
    """Fails with the compiler's words where it has any."""
    done = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", *map(str, INCLUDES), "-",
                           *map(str, more)], input=text, text=True, capture_output=True,
                          check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda words: words[1])
@pytest.mark.parametrize("headers", [[CANN, OWN], [OWN, CANN], [OWN, CANN, OWN]],
                         ids=["cann-first", "own-first", "own-twice"])
def test_compiles_beside_the_header_of_cann(compiler, headers):
    compiled(compiler, "\n".join(headers) + USE, "-fsyntax-only")


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda words: words[1])
def test_compiles_alone(compiler):
    compiled([*compiler, "-Wpedantic"], f"{OWN}\nint Open(void) {{ return "
             'plumbline_dump_open("dump") + plumbline_dump_close(); }\n', "-fsyntax-only")


def test_the_documented_program_runs(tmp_path):
    """With a runtime that sends a file in two pieces, from the layout that CANN's header gives."""
    name = chunks.name_of(1)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    (tmp_path / "whole").write_bytes(chunks.plain_dump(values))
    (tmp_path / "dump").mkdir()
    compiled(["gcc", "-std=gnu17", "-xc"], RUNTIME.replace("NAME", name), "-c", "-o",
             tmp_path / "runtime.o")
    compiled(["gcc", "-std=c99", "-xc"], documented(), "-xnone", tmp_path / "runtime.o",
             chunks.LIBRARY, "-o", tmp_path / "program")
    done = subprocess.run([tmp_path / "program"], cwd=tmp_path, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    [array] = (tmp_path / "dump").glob("*.npy")
    np.testing.assert_array_equal(np.load(array), values)
