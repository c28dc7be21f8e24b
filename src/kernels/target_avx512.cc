// The kernels for x86-64 CPUs with AVX-512 F, BW, DQ and VL. Everything between push and pop is
// compiled for them; all includes stand before, so that no inline function of a library is.

#include "kernels/target_tables.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/deviation_sums.h"
#include "kernels/kernel_table.h"
#include "kernels/magnitude_sums.h"
#include "kernels/output_sums.h"
#include "kernels/panel_product.h"
#include "kernels/rotary_row.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                    \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl"))), \
    apply_to = function)
#else
// g++ 12 sees the undefined register that its own intrinsics start from.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target( \
    "avx2,fma,f16c,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define PL_TARGET avx512
#define PL_WIDTH 64  // bytes of a vector
namespace plumbline::kernels::PL_TARGET {
namespace {
// In the order of use.
// clang-format off
#include "kernels/vector.inl"
#include "kernels/convert.inl"
#include "kernels/moments.inl"
#include "kernels/pairwise.inl"
#include "kernels/logarithm.inl"
#include "kernels/deviation_sums.inl"
#include "kernels/magnitude_sums.inl"
#include "kernels/likeness.inl"
#include "kernels/panel_product.inl"
#include "kernels/rotary_row.inl"
#include "kernels/output_pairs.inl"
// clang-format on
}  // namespace
}  // namespace plumbline::kernels::PL_TARGET
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace plumbline::kernels {
const KernelTable kAvx512Table = {CpuTarget::kAvx512,   avx512::MomentsPart, avx512::PairwisePart,
                                  avx512::WidenToFloat, avx512::Deviations,  avx512::Spreads,
                                  avx512::LikenessOf,   avx512::MultiplyPanels, avx512::AddRotaryRow,
                                  avx512::OutputPart,   avx512::CountBelow,  avx512::Magnitudes,
                                  avx512::CountRangeOf, avx512::Changes,     avx512::GradientPart};
}  // namespace plumbline::kernels

#endif  // defined(__x86_64__)
