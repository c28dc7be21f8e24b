"""Programs that launch Triton kernels, on the real package's interpreter or on a stand-in."""

from __future__ import annotations

# What plumbline relies on of the package (3.x): classes of kernels whose `run` every launch
# `kernel[grid](...)` goes through, with `grid` and `warmup` by name; tuned kernels hold another in
# `fn`. A kernel here is called once for each program of the grid, with tensors for pointers.
STAND_IN = '''
import sys, types

class KernelInterface:
    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(grid=grid, warmup=False, *args, **kwargs)
    def warmup(self, *args, grid, **kwargs):
        return self.run(grid=grid, warmup=True, *args, **kwargs)

class JITFunction(KernelInterface):
    def __init__(self, fn):
        self.fn, self.__name__ = fn, fn.__name__
    def run(self, *args, grid, warmup, **kwargs):
        if warmup:
            return None
        for number in range(grid(kwargs)[0] if callable(grid) else grid[0]):
            self.fn(number, *args, **kwargs)
        return "launched"

class Autotuner(KernelInterface):
    def __init__(self, fn):
        self.fn = fn
    def run(self, *args, **kwargs):
        self.fn.run(*args, **kwargs)  # a trial
        return self.fn.run(*args, **kwargs)

for name in ("triton.runtime.jit", "triton.runtime.autotuner"):  # PyTorch asks for "triton"
    sys.modules[name] = types.ModuleType(name)
sys.modules["triton.runtime.jit"].JITFunction = JITFunction
sys.modules["triton.runtime.autotuner"].Autotuner = Autotuner

@JITFunction
def scale(number, x, out, n, BLOCK):
    part = slice(number * BLOCK, min(n, (number + 1) * BLOCK))
    out[part] = x[part] * 2

tuned = Autotuner(scale)
'''

REAL = '''
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

tuned = triton.heuristics({"BLOCK": lambda arguments: 8})(scale)
'''
