// Automatic mixed precision: the same lists of operators as PyTorch's own accelerators.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

// PyTorch's lists name its types without a namespace.
namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

// The macros below are PyTorch's; they register with a library named m.
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define PL_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(PL_LOWER_PRECISION)
#define PL_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(PL_FLOAT32)
#define PL_FLOAT32_OPTION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(PL_FLOAT32_OPTION)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define PL_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(PL_PROMOTE)
}

}  // namespace
}  // namespace at::autocast
