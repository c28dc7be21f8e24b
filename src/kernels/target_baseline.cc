// The kernels for the lowest CPU of this architecture.

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/deviation_sums.h"
#include "kernels/kernel_table.h"
#include "kernels/magnitude_sums.h"
#include "kernels/output_sums.h"
#include "kernels/panel_product.h"
#include "kernels/rotary_row.h"
#include "kernels/target_tables.h"

#define PL_TARGET baseline
#define PL_WIDTH 16  // bytes of a vector
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

namespace plumbline::kernels {
const KernelTable kBaselineTable = {
    CpuTarget::kBaseline, baseline::MomentsPart, baseline::PairwisePart, baseline::WidenToFloat,
    baseline::Deviations, baseline::Spreads,     baseline::LikenessOf,
    baseline::MultiplyPanels, baseline::AddRotaryRow,
    baseline::OutputPart,   baseline::CountBelow,  baseline::Magnitudes,
    baseline::CountRangeOf, baseline::Changes,     baseline::GradientPart};
}  // namespace plumbline::kernels
