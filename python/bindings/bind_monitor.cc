#include "bind_monitor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "watch/grad_similarity.h"
#include "watch/monitor_to_tensorboard.h"
#include "watch/trend_sink.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

Result<TensorboardReport> ConvertUnlocked(const std::string& data, const std::string& output,
                                          const TensorboardOptions& options) {
  const nb::gil_scoped_release release;
  return MonitorToTensorboard(data, output, options);
}

// What a comparison of gradients gives to Python.
struct GradientsCompared {
  std::string text;
  std::vector<std::string> warnings;
};
Result<GradientsCompared> CompareGradientsUnlocked(const std::string& target,
                                                   const std::string& golden,
                                                   const std::string& output,
                                                   const GradCompareOptions& options) {
  const nb::gil_scoped_release release;
  PL_TRY_ASSIGN(GradComparison comparison, CompareGradients(target, golden, options));
  PL_TRY(WriteGradComparison(comparison, output, options));
  return GradientsCompared{GradComparisonText(comparison), WarningsOf(comparison)};
}

void BindGradients(nb::module_& m) {
  m.def(
      "compare_gradients",
      [](const FilePath& target, const FilePath& golden, const FilePath& output,
         const std::string& plot, int threads) {
        const GradCompareOptions options{.plot = plot == "png"   ? SimilarityPlot::kPng
                                                 : plot == "svg" ? SimilarityPlot::kSvg
                                                                 : SimilarityPlot::kNone,
                                         .threads = threads,
                                         .progress = {}};
        GradientsCompared compared = ValueOrRaise(
            CompareGradientsUnlocked(target.bytes, golden.bytes, output.bytes, options));
        std::vector<TextWithPaths> warnings;
        for (std::string& warning : compared.warnings) warnings.push_back({std::move(warning)});
        return std::tuple(TextWithPaths{std::move(compared.text)}, std::move(warnings));
      },
      nb::arg("target"), nb::arg("golden"), nb::arg("output"), nb::arg("plot"), nb::arg("threads"),
      "Writes the files of `plumb grad-compare`; the answer as text, and warnings.");
}

}  // namespace

void BindMonitor(nb::module_& m) {
  BindGradients(m);
  m.attr("_trend_output") = nb::capsule(&watch::kTrendModule, "plumbline.TrendModule");
  m.def(
      "monitor_to_tensorboard",
      [](const FilePath& data, const FilePath& output, std::string time_start, std::string time_end,
         std::vector<std::string> kinds, int threads) {
        const TensorboardOptions options{.time_start = std::move(time_start),
                                         .time_end = std::move(time_end),
                                         .kinds = std::move(kinds),
                                         .threads = threads,
                                         .progress = {}};
        TensorboardReport report = ValueOrRaise(ConvertUnlocked(data.bytes, output.bytes, options));
        std::vector<TextWithPaths> warnings;
        for (std::string& warning : report.warnings) warnings.push_back({std::move(warning)});
        return std::tuple(FilePath{std::move(report.path)}, std::move(warnings));
      },
      nb::arg("data"), nb::arg("output"), nb::arg("time_start"), nb::arg("time_end"),
      nb::arg("kinds"), nb::arg("threads"),
      "Writes event files; the directory that they are in, and warnings. Empty texts: the "
      "default.");
}

}  // namespace plumbline::python
