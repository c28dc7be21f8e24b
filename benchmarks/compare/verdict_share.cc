// What the verdict engine adds to a comparison: the same pair of runs with and without it.
//
//     verdict_share TARGET GOLDEN OUT_DIRECTORY [REPEATS [FORMAT]]
//
// Runs the stages of a comparison up to the result file, in turn without and with the verdicts and
// the explanation of the first wrong call, and prints one JSON line: the least seconds and CPU
// seconds of each, and what the verdicts add to both. Exits with 1 when the verdicts found nothing.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "compare/compare_runs.h"
#include "plumbline/compare.h"

namespace plumbline {
namespace {

struct Cost {
  double seconds = std::numeric_limits<double>::infinity();
  double cpu_seconds = std::numeric_limits<double>::infinity();
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Compares and writes once; whether a wrong call was found.
Result<bool> Once(const std::string& target, const std::string& golden,
                  const CompareOptions& options, bool with_verdicts) {
  PL_TRY_ASSIGN(compare::RunPair pair, compare::RunPair::Load(target, golden, options));
  pair.FillTable();
  if (with_verdicts) {
    PL_TRY(pair.Judge());
    PL_TRY(pair.Explain());
  }
  Comparison comparison = std::move(pair).Take();
  PL_TRY(WriteComparison(comparison, options));
  for (const std::string& path : comparison.files) std::remove(path.c_str());
  return comparison.first_wrong_call.has_value();
}

Result<int> MeasureShare(const std::vector<std::string>& words) {
  CompareOptions options;
  options.output_dir = words[2];
  const int repeats = words.size() > 3 ? std::stoi(words[3]) : 5;
  PL_TRY_ASSIGN(options.formats, ReportFormatsOf({words.size() > 4 ? words[4] : "xlsx"}));
  Cost without, with;
  bool found = true;
  for (int i = 0; i < repeats; ++i) {
    for (Cost* cost : {&without, &with}) {
      const auto began = std::chrono::steady_clock::now();
      const double cpu_began = CpuSeconds();
      PL_TRY_ASSIGN(const bool wrong, Once(words[0], words[1], options, cost == &with));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      cost->seconds = std::min(cost->seconds, took.count());
      cost->cpu_seconds = std::min(cost->cpu_seconds, CpuSeconds() - cpu_began);
      found = found && wrong == (cost == &with);
    }
  }
  fmt::print(
      "{{\"benchmark\": \"verdict_share\", \"without_s\": {:.4f}, \"with_s\": {:.4f}, "
      "\"without_cpu_s\": {:.4f}, \"with_cpu_s\": {:.4f}, \"adds\": {:.3f}, \"adds_cpu\": "
      "{:.3f}}}\n",
      without.seconds, with.seconds, without.cpu_seconds, with.cpu_seconds,
      with.seconds / without.seconds - 1, with.cpu_seconds / without.cpu_seconds - 1);
  return found ? 0 : 1;
}

}  // namespace
}  // namespace plumbline

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.size() < 3) {
    std::fputs("usage: verdict_share TARGET GOLDEN OUT_DIRECTORY [REPEATS [FORMAT]]\n", stderr);
    return 2;
  }
  const plumbline::Result<int> status = plumbline::MeasureShare(words);
  if (status) return *status;
  std::fprintf(stderr, "verdict_share: %s\n", status.error().message().c_str());
  return 2;
}
