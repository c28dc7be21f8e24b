#include "view/describe_vis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/text/number_text.h"
#include "formats/json/json_feed.h"
#include "view/imported_place.h"

namespace plumbline::view {
namespace {

// One rank of one step of a file.
struct PlaceSummary {
  vis::GraphPlace place;
  uint64_t nodes = 0, golden_nodes = 0;
  NodeCounts counts;
  std::string answer, first;
};

struct VisSummary {
  std::string path, tool, task;
  bool is_pair = false;
  std::vector<PlaceSummary> places;
  std::vector<std::string> notes;
};

Result<VisSummary> Summarize(const std::string& path) {
  PL_TRY_ASSIGN(const auto source, OpenVisFile(path));
  VisSummary summary{.path = path,
                     .tool = std::string(source->head().Fact("tool")),
                     .task = source->head().task,
                     .is_pair = source->head().is_pair,
                     .places = {},
                     .notes = source->head().notes};
  for (const vis::GraphPlace& where : PlacesOf(*source)) {
    PL_TRY_ASSIGN(const ImportedPlace place, ReadPlace(*source, where));
    PlaceSummary& row = summary.places.emplace_back();
    row.place = where;
    row.nodes = place.target.size() - std::min<size_t>(place.target.size(), 1);
    row.golden_nodes = place.golden.size() - std::min<size_t>(place.golden.size(), 1);
    row.counts = place.counts;
    row.answer = AnswerOf(place);
    if (place.first != kNowhere) row.first = place.target[place.first].row.name;
    summary.notes.insert(summary.notes.end(), place.notes.begin(), place.notes.end());
  }
  return summary;
}

}  // namespace

bool IsVisName(std::string_view path) {
  return path.ends_with(".vis") || path.ends_with(".vis.db");
}

Result<std::string> DescribeVis(const std::string& path) {
  PL_TRY_ASSIGN(const VisSummary summary, Summarize(path));
  uint64_t nodes = 0, golden_nodes = 0;
  std::set<int64_t> steps, ranks;
  for (const PlaceSummary& place : summary.places) {
    nodes += place.nodes;
    golden_nodes += place.golden_nodes;
    steps.insert(place.place.step);
    ranks.insert(place.place.rank);
  }
  std::string text = fmt::format("{}\n", summary.path);
  text += summary.is_pair ? fmt::format("  comparison, task {}: {} and {} nodes", summary.task,
                                        nodes, golden_nodes)
                          : fmt::format("  one recording: {}", CountText(nodes, "node"));
  text +=
      fmt::format(", {}, {}, written by {}\n", CountText(ranks.size(), "rank"),
                  CountText(steps.size(), "step"), summary.tool.empty() ? "msprobe" : summary.tool);
  for (const PlaceSummary& place : summary.places) {
    const std::string label =
        summary.places.size() > 1
            ? fmt::format("step {} rank {}: ", place.place.step, place.place.rank)
            : std::string();
    if (!summary.is_pair) continue;
    text += fmt::format("  {}{}\n", label, place.answer);
    text += fmt::format("  {}{}\n", label, CountsText(place.counts));
  }
  for (const std::string& note : summary.notes) text += fmt::format("  {}\n", note);
  return text;
}

Result<std::string> DescribeVisAsJson(const std::string& path) {
  PL_TRY_ASSIGN(const VisSummary summary, Summarize(path));
  json::Document out;
  out.Open('{');
  out.Member("path", summary.path);
  out.Member("tool", summary.tool.empty() ? "msprobe" : summary.tool);
  out.Member("kind", summary.is_pair ? "compare" : "build");
  out.Member("task", summary.task);
  out.Key("ranks");
  out.Open('[');
  for (const PlaceSummary& place : summary.places) {
    out.Open('{');
    out.Key("step");
    out.Raw(std::to_string(place.place.step));
    out.Key("rank");
    out.Raw(std::to_string(place.place.rank));
    out.Number("nodes", place.nodes);
    out.Number("golden_nodes", place.golden_nodes);
    VisitCounts(place.counts,
                [&](std::string_view name, uint64_t number) { out.Number(name, number); });
    out.Member("answer", place.answer);
    out.Member("first_wrong_call", place.first);
    out.Close('}');
  }
  out.Close(']');
  out.Texts("notes", summary.notes);
  out.Close('}');
  return out.Finish();
}

}  // namespace plumbline::view
