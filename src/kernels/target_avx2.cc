// The kernels for x86-64 CPUs with AVX2, FMA and F16C. Everything between push and pop is compiled
// for them; all includes stand before, so that no inline function of a library is.

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
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#endif
#define PL_TARGET avx2
#define PL_WIDTH 32  // bytes of a vector
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
const KernelTable kAvx2Table = {CpuTarget::kAvx2,   avx2::MomentsPart, avx2::PairwisePart,
                                avx2::WidenToFloat, avx2::Deviations,  avx2::Spreads,
                                avx2::LikenessOf,   avx2::MultiplyPanels, avx2::AddRotaryRow,
                                avx2::OutputPart,   avx2::CountBelow,  avx2::Magnitudes,
                                avx2::CountRangeOf, avx2::Changes,     avx2::GradientPart};
}  // namespace plumbline::kernels

#endif  // defined(__x86_64__)
