"""When a case was written: cases of one group are counted together.

The first cases were written with the rules. Those of a group here were written when the rules
stood, to see how the rules carry over, and were counted once before anything was mended: README.md.
"""

from __future__ import annotations

import functools

from fault_cases import fault, noise

held_out = functools.partial(fault, held_out=True)
held_out_noise = functools.partial(noise, held_out=True)
unseen = functools.partial(fault, group="unseen")
unseen_noise = functools.partial(noise, group="unseen")
second = functools.partial(fault, group="second")
second_noise = functools.partial(noise, group="second")
third = functools.partial(fault, group="third")
third_noise = functools.partial(noise, group="third")
fourth = functools.partial(fault, group="fourth")
fourth_noise = functools.partial(noise, group="fourth")
fifth = functools.partial(fault, group="fifth")
fifth_noise = functools.partial(noise, group="fifth")
sixth = functools.partial(fault, group="sixth")
sixth_noise = functools.partial(noise, group="sixth")
