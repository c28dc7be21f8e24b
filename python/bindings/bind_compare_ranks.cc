#include "bind_compare_ranks.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "kernels/cpu_target.h"
#include "load/graph_dump.h"
#include "match/training_match.h"
#include "ranks/compare_ranks.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// The machine form, the text, and whether a condition is met.
using Answer = std::tuple<std::string, TextWithPaths, bool>;

struct RankOptions {
  load::RankFilter filter;
  bool resume = true;
  bool diff_analyze = false;
  bool check_collectives = false;
  std::optional<match::TrainingRules> training;
  std::vector<std::string> fail_on;
};

Result<Answer> CompareUnlocked(const std::string& target, const std::string& golden,
                               const CompareOptions& options, const RankOptions& ranks) {
  const nb::gil_scoped_release release;
  PL_TRY(kernels::ChooseTarget());
  const ranks::CompareRanksOptions all{
      .compare = options,
      .filter = ranks.filter,
      .resume = ranks.resume,
      .of_graphs = load::IsGraphDump(target) || load::IsGraphDump(golden),
      .training = ranks.training,
      .diff_analyze = ranks.diff_analyze,
      .check_collectives = ranks.check_collectives};
  PL_TRY_ASSIGN(const ranks::RanksReport report, ranks::CompareRanks(target, golden, all));
  if (report.unwritten) return *report.unwritten;
  PL_TRY_ASSIGN(std::string machine, ranks::RanksSummaryJson(report));
  PL_TRY_ASSIGN(const bool fails, ranks::FailsOn(report, ranks.fail_on));
  return Answer(std::move(machine), TextWithPaths{ranks::RanksSummaryText(report)}, fails);
}

}  // namespace

void BindCompareRanks(nb::module_& m) {
  nb::class_<RankOptions>(m, "RankOptions", "Which ranks and steps compare_ranks looks at.")
      .def(nb::init<>())
      .def_prop_rw(
          "ranks", [](const RankOptions& self) { return self.filter.ranks; },
          [](RankOptions& self, std::vector<int64_t> v) { self.filter.ranks = std::move(v); })
      .def_prop_rw(
          "steps", [](const RankOptions& self) { return self.filter.steps; },
          [](RankOptions& self, std::vector<int64_t> v) { self.filter.steps = std::move(v); })
      .def_rw("resume", &RankOptions::resume)
      .def_rw("diff_analyze", &RankOptions::diff_analyze)
      .def_rw("check_collectives", &RankOptions::check_collectives)
      .def_rw("fail_on", &RankOptions::fail_on)
      .def(
          "pair_training",
          [](RankOptions& self, const match::TrainingRules& rules) { self.training = rules; },
          nb::arg("rules"), "The target is a training, the golden side an inference.");
  m.def(
      "compare_ranks",
      [](const FilePath& target, const FilePath& golden, const CompareOptions& options,
         const RankOptions& ranks) {
        return ValueOrRaise(CompareUnlocked(target.bytes, golden.bytes, options, ranks));
      },
      nb::arg("target"), nb::arg("golden"), nb::arg("options"), nb::arg("ranks"),
      "Compares all ranks and writes their files: JSON, text, whether a condition is met.");
}

}  // namespace plumbline::python
