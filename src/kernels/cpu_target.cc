#include "kernels/cpu_target.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace plumbline::kernels {
namespace {

constexpr CpuTarget kAllTargets[] = {CpuTarget::kAvx512, CpuTarget::kAvx2, CpuTarget::kNeon,
                                     CpuTarget::kBaseline};

bool Usable(CpuTarget target) {
  switch (target) {
    case CpuTarget::kBaseline:
      return true;
      // The builtin also asks the operating system (XGETBV) whether the registers are saved.
#if defined(__x86_64__)
    case CpuTarget::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    case CpuTarget::kAvx512:
      return Usable(CpuTarget::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case CpuTarget::kNeon:
      return false;
#elif defined(__aarch64__)
    case CpuTarget::kNeon:
      return true;  // part of the base architecture
    case CpuTarget::kAvx2:
    case CpuTarget::kAvx512:
      return false;
#else
    default:
      return false;
#endif
  }
  return false;
}

std::string UsableNames() {
  std::string names;
  for (const CpuTarget target : UsableTargets()) {
    if (!names.empty()) names += ", ";
    names += CpuTargetName(target);
  }
  return names;
}

}  // namespace

std::string_view CpuTargetName(CpuTarget target) {
  switch (target) {
    case CpuTarget::kBaseline:
      return "baseline";
    case CpuTarget::kAvx2:
      return "avx2";
    case CpuTarget::kAvx512:
      return "avx512";
    case CpuTarget::kNeon:
      return "neon";
  }
  return "baseline";
}

std::vector<CpuTarget> UsableTargets() {
  std::vector<CpuTarget> usable;
  for (const CpuTarget target : kAllTargets) {
    if (Usable(target)) usable.push_back(target);
  }
  return usable;
}

Result<CpuTarget> ChooseTarget() {
  const char* wanted = std::getenv("PLUMBLINE_CPU_TARGET");
  if (wanted == nullptr || *wanted == '\0') return UsableTargets().front();
  for (const CpuTarget target : kAllTargets) {
    if (CpuTargetName(target) != wanted) continue;
    if (Usable(target)) return target;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("PLUMBLINE_CPU_TARGET: this machine cannot run {} (expected one of "
                             "{}). Unset the variable to use the best one.",
                             wanted, UsableNames()));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("PLUMBLINE_CPU_TARGET: unknown target (expected one of {}, got {}). "
                           "Unset the variable to use the best one.",
                           UsableNames(), wanted));
}

}  // namespace plumbline::kernels
