// Which instruction sets this CPU and operating system can run, and the choice among them.

#ifndef PLUMBLINE_KERNELS_CPU_TARGET_H_
#define PLUMBLINE_KERNELS_CPU_TARGET_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::kernels {

enum class CpuTarget : uint8_t { kBaseline, kAvx2, kAvx512, kNeon };
std::string_view CpuTargetName(CpuTarget target);  // "baseline", "avx2", "avx512", "neon"

// Usable targets, best first; kBaseline is always last. CPU bits and saved register state count.
std::vector<CpuTarget> UsableTargets();

// The target named by PLUMBLINE_CPU_TARGET, else the best usable one. kInvalidArgument for an
// unknown name or one this machine cannot run; never a silent fallback.
Result<CpuTarget> ChooseTarget();

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_CPU_TARGET_H_
