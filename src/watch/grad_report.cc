// The files of watch/grad_similarity.h, and its answer in words.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "store/run_layout.h"
#include "watch/grad_similarity.h"
#include "watch/line_plot.h"

namespace plumbline {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

void AppendExactRow(const std::vector<std::string>& cells, std::string& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += ',';
    csv::AppendExactly(cells[i], out);
  }
  out += "\r\n";
}

std::vector<std::string> CellsOf(const SimilarityRow& row) {
  std::vector<std::string> cells = {row.parameter};
  for (size_t i = 0; i < row.values.size(); ++i) {
    const bool is_empty = row.values[i] && row.elements[i] == 0;
    cells.push_back(is_empty ? "0" : row.values[i] ? PythonFloat(*row.values[i]) : "");
  }
  return cells;
}

std::string SimilarityTable(const RankSimilarity& rank) {
  std::vector<std::string> header = {"step"};
  for (const int64_t step : rank.steps) header.push_back(std::to_string(step));
  std::string text(kUtf8Mark);
  AppendExactRow(header, text);
  for (const SimilarityRow& row : rank.rows) AppendExactRow(CellsOf(row), text);
  AppendExactRow(CellsOf(rank.summary), text);
  return text;
}

// `with_rank`: over several ranks.
std::string SuspectTable(const std::vector<const SimilaritySuspect*>& suspects, bool with_rank) {
  std::vector<std::string> header = {"parameter", "step", "value", "rule"};
  if (with_rank) header.emplace_back("rank");
  std::string text(kUtf8Mark);
  AppendExactRow(header, text);
  for (const SimilaritySuspect* suspect : suspects) {
    std::vector<std::string> cells = {suspect->parameter, std::to_string(suspect->step),
                                      PythonFloat(suspect->value), suspect->rule};
    if (with_rank) cells.push_back(std::to_string(suspect->rank));
    AppendExactRow(cells, text);
  }
  return text;
}

struct Picture {
  const SimilarityRow* row;
  std::string path;
};

Status WritePicture(const Picture& picture, const std::vector<int64_t>& steps,
                    SimilarityPlot plot) {
  const LinePlot drawn{.title = picture.row->parameter + "_similarities",
                       .x_label = "steps",
                       .y_label = "similarities",
                       .x = steps,
                       .y = picture.row->values};
  if (plot == SimilarityPlot::kSvg) {
    return WriteFileAtomically(picture.path, SvgOf(drawn), /*durable=*/false);
  }
  PL_TRY_ASSIGN(const std::string bytes, PngOf(drawn));
  return WriteFileAtomically(picture.path, bytes, /*durable=*/false);
}

Status WritePictures(const RankSimilarity& rank, const std::string& output,
                     const GradCompareOptions& options) {
  if (options.plot == SimilarityPlot::kNone) return {};
  const std::string directory = JoinPath(output, "similarities_picture");
  PL_TRY(MakeDirectories(directory));
  run_layout::TensorNames names(options.plot == SimilarityPlot::kSvg ? ".svg" : ".png");
  std::vector<Picture> pictures;
  const auto add = [&](const SimilarityRow& row) {
    pictures.push_back(
        {&row, JoinPath(directory, names.Reserve(row.parameter + "_similarities"))});
  };
  for (const SimilarityRow& row : rank.rows) add(row);
  add(rank.summary);
  std::vector<Status> written(pictures.size());
  RunWithThreads(options.threads, [&] {
    ParallelFor(pictures.size(), [&](size_t i) {
      written[i] = WritePicture(pictures[i], rank.steps, options.plot);
    });
  });
  for (Status& status : written) PL_TRY(std::move(status));
  return {};
}

std::vector<const SimilaritySuspect*> PointersTo(const std::vector<SimilaritySuspect>& suspects) {
  std::vector<const SimilaritySuspect*> pointers;
  for (const SimilaritySuspect& suspect : suspects) pointers.push_back(&suspect);
  return pointers;
}

constexpr std::string_view kSuspectFile = "first_suspect.csv";

Status WriteRank(const RankSimilarity& rank, const std::string& output,
                 const GradCompareOptions& options) {
  PL_TRY(MakeDirectories(output));
  PL_TRY(WriteFileAtomically(JoinPath(output, "similarities.csv"), SimilarityTable(rank),
                             /*durable=*/false));
  PL_TRY(WriteFileAtomically(JoinPath(output, kSuspectFile),
                             SuspectTable(PointersTo(rank.suspects), /*with_rank=*/false),
                             /*durable=*/false));
  return WritePictures(rank, output, options);
}

Status WriteAllSuspects(const GradComparison& comparison, const std::string& output) {
  std::vector<const SimilaritySuspect*> all;
  for (const RankSimilarity& rank : comparison.ranks) {
    for (const SimilaritySuspect& suspect : rank.suspects) all.push_back(&suspect);
  }
  std::ranges::stable_sort(all, [](const SimilaritySuspect* a, const SimilaritySuspect* b) {
    return std::pair(a->step, a->value) < std::pair(b->step, b->value);
  });
  return WriteFileAtomically(JoinPath(output, kSuspectFile), SuspectTable(all, /*with_rank=*/true),
                             /*durable=*/false);
}

std::string Percent(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}

// Of a rank: how far the trainings agree on the whole.
std::string SummaryLine(const RankSimilarity& rank) {
  double least = 2;
  int64_t step = 0;
  for (size_t i = 0; i < rank.steps.size(); ++i) {
    if (rank.summary.elements[i] == 0 || *rank.summary.values[i] >= least) continue;
    least = *rank.summary.values[i];
    step = rank.steps[i];
  }
  const std::string name = rank.rank ? fmt::format("rank {}: ", *rank.rank) : std::string();
  std::string text = fmt::format("  {}{} in {}", name, CountText(rank.rows.size(), "parameter"),
                                 CountText(rank.steps.size(), "step"));
  if (least <= 1) {
    text += fmt::format("; of all signs at least {} agree (step {})", Percent(least), step);
  }
  if (rank.missing > 0) {
    text += fmt::format("; {} not compared", CountText(rank.missing, "gradient"));
  }
  return text + "\n";
}

// What one side alone has: "1 gradient, 2 steps"; empty: nothing.
std::string Uncompared(const GradComparison& comparison) {
  uint64_t gradients = 0, steps = 0;
  for (const RankSimilarity& rank : comparison.ranks) {
    gradients += rank.missing;
    steps += rank.lonely_steps;
  }
  std::string text;
  for (const auto& [count, word] : {std::pair(gradients, "gradient"), std::pair(steps, "step"),
                                    std::pair(comparison.lonely_ranks, "rank")}) {
    if (count > 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", CountText(count, word));
  }
  return text;
}

std::string OfRank(const GradComparison& comparison, int64_t rank) {
  return comparison.is_distributed ? fmt::format(" of rank {}", rank) : std::string();
}

std::string SuspectLine(const GradComparison& comparison) {
  uint64_t elements = 0;
  for (const RankSimilarity& rank : comparison.ranks) {
    for (const uint64_t count : rank.summary.elements) elements += count;
  }
  if (comparison.first) {
    const SimilaritySuspect& first = *comparison.first;
    return fmt::format("first suspect: {}{} at step {}: {} of its signs agree, {}",
                       OneLine(first.parameter), OfRank(comparison, first.rank), first.step,
                       Percent(first.value), first.rule);
  }
  if (elements == 0) return "nothing compared: no gradient has signs on both sides";
  const std::string uncompared = Uncompared(comparison);
  if (uncompared.empty()) return "no suspect: signs agree in every step as the rules ask";
  return fmt::format("not certain: no suspect in what both sides have; not compared: {}",
                     uncompared);
}

// Empty: all are finite.
std::string NonfiniteLine(const GradComparison& comparison) {
  if (!comparison.first_nonfinite) return {};
  uint64_t count = 0;
  for (const RankSimilarity& rank : comparison.ranks) count += rank.nonfinite;
  const NonfiniteGradient& first = *comparison.first_nonfinite;
  return fmt::format("first NaN or infinity of {}: {}{} at step {}, {}",
                     CountText(count, "gradient"), OneLine(first.parameter),
                     OfRank(comparison, first.rank), first.step,
                     first.side == "both" ? "on both sides" : "in " + first.side);
}

}  // namespace

Status WriteGradComparison(GradComparison& comparison, const std::string& output,
                           const GradCompareOptions& options) {
  PL_TRY(MakeDirectories(output));
  for (const RankSimilarity& rank : comparison.ranks) {
    const std::string directory =
        comparison.is_distributed ? JoinPath(output, fmt::format("rank{}", rank.rank.value_or(0)))
                                  : output;
    PL_TRY(WriteRank(rank, directory, options));
  }
  if (comparison.is_distributed) PL_TRY(WriteAllSuspects(comparison, output));
  comparison.page = JoinPath(output, "grad_compare.html");
  return WriteGradPage(comparison, comparison.page);
}

std::string GradComparisonText(const GradComparison& comparison) {
  const std::string suspect = SuspectLine(comparison), nonfinite = NonfiniteLine(comparison);
  const bool is_first = comparison.first_nonfinite &&
                        (!comparison.first ||
                         comparison.first_nonfinite->step <= comparison.first->step);
  std::string text = is_first ? nonfinite + "\n  " + suspect : suspect;
  if (!is_first && !nonfinite.empty()) text += "\n  " + nonfinite;
  text += "\n";
  uint64_t suspects = 0;
  for (const RankSimilarity& rank : comparison.ranks) suspects += rank.suspects.size();
  if (suspects > 0) text += fmt::format("  {} in all\n", CountText(suspects, "suspect parameter"));
  for (const RankSimilarity& rank : comparison.ranks) text += SummaryLine(rank);
  return text;
}

std::vector<std::string> WarningsOf(const GradComparison& comparison) {
  constexpr size_t kMostWarnings = 10;  // of a rank
  std::vector<std::string> warnings = comparison.warnings;
  for (const RankSimilarity& rank : comparison.ranks) {
    const std::string name = rank.rank ? fmt::format("rank {}: ", *rank.rank) : std::string();
    for (size_t i = 0; i < rank.warnings.size(); ++i) {
      if (i == kMostWarnings) {
        warnings.push_back(
            fmt::format("{}and {} more", name,
                        CountText(rank.warnings.size() - kMostWarnings, "such warning")));
        break;
      }
      warnings.push_back(name + rank.warnings[i]);
    }
  }
  return warnings;
}

}  // namespace plumbline
