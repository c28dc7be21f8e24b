"""Cases of the network for pictures."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, through
from cases_plain import both, nothing, put
from fault_cases import Case, Setup, fault, noise


def epsilon(s: Setup) -> None:
    s.model.stages[1].norm1.eps = 1e-2


def evaluated_norm(s: Setup) -> None:
    s.model.stages[1].norm2.eval()


def dropped_bias(s: Setup) -> None:
    s.model.stem.bias = None


def shifted_picture(s: Setup) -> None:
    s.changes["convolution:4"] = afterwards(lambda y: y.roll(1, -1))


def missing_shortcut(s: Setup) -> None:
    s.model.stages[1].joined = lambda values, change: change


def zeroed_channels(s: Setup) -> None:
    s.changes["convolution:3"] = afterwards(lambda y: put(y, (slice(None), slice(4, 8)), 0.0))


def infinite_channel(s: Setup) -> None:
    s.changes["native_batch_norm:2"] = afterwards(lambda y: put(y, (slice(None), 5), torch.inf))


def weight_gradient_twice(s: Setup) -> None:
    def doubled(kernel: Any, args: Any, kwargs: Any) -> Any:
        inputs, weight, bias = kernel(*args, **kwargs)
        return inputs, 2 * weight, bias
    s.changes["convolution_backward:2"] = doubled


def half_convolution(s: Setup) -> None:
    s.changes["convolution:4"] = through(torch.float16)


def transposed_filters(s: Setup) -> None:
    weight = s.model.stages[1].conv2.weight
    weight.data = weight.data.transpose(0, 1).contiguous()


def scaled_backward(s: Setup) -> None:
    s.changes["native_batch_norm_backward:2"] = afterwards(lambda y: y * 1.5)


def no_mkldnn(s: Setup) -> None:
    s.stack.enter_context(torch.backends.mkldnn.flags(enabled=False))


def all_wide(s: Setup) -> None:
    kernels = ("convolution", "convolution_backward", "native_batch_norm", "addmm", "mm",
               "native_batch_norm_backward")
    s.changes.update(dict.fromkeys(kernels, through(torch.float64)))


def channels_last(s: Setup) -> None:
    s.model.to(memory_format=torch.channels_last)


CASES: list[Case] = [
    fault("conv-wrong-epsilon", "batch_norm.2", "argument", epsilon),
    fault("conv-evaluated-norm", "add_.3 batch_norm.3", "", evaluated_norm),
    fault("conv-dropped-bias", "conv2d.0", "missing-addend", dropped_bias),
    fault("conv-shifted-picture", "conv2d.4", "shifted", shifted_picture),
    fault("conv-missing-shortcut", "__add__.1 relu.3", "missing-addend", missing_shortcut),
    fault("conv-zeroed-channels", "conv2d.3", "zeroed-block", zeroed_channels),
    fault("conv-infinite-channel", "batch_norm.2", "nonfinite", infinite_channel),
    fault("conv-weight-gradient-twice", "conv2d.4<", "scale", weight_gradient_twice),
    fault("conv-half-convolution", "conv2d.4", "narrowed", half_convolution),
    fault("conv-transposed-filters", "conv2d.4", "transposed", transposed_filters),
    fault("conv-scaled-backward", "batch_norm.3<", "scale", scaled_backward),
    fault("conv-wide-and-twice", "conv2d.4<", "scale", both(all_wide, weight_gradient_twice)),
    fault("conv-other-kernels-and-half", "conv2d.4", "narrowed", both(no_mkldnn, half_convolution)),
    noise("conv-no-mkldnn", no_mkldnn),
    noise("conv-all-wide", all_wide),
    noise("conv-channels-last", channels_last),
    noise("conv-baseline-kernels", nothing, environment=(("ATEN_CPU_CAPABILITY", "default"),)),
]
