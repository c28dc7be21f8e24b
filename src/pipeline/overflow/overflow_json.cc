#include "pipeline/overflow/overflow_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "formats/json_document.h"

namespace plumbline {
namespace {

using json::Document;

std::string_view KindName(const OverflowOrigin& origin) {
  return origin.is_communication ? "communication" : "compute";
}

std::string_view PhaseName(OverflowPhase phase) {
  switch (phase) {
    case OverflowPhase::kBefore:
      return "before communication";
    case OverflowPhase::kDuring:
      return "during communication";
    case OverflowPhase::kAfter:
      return "after communication";
  }
  return "before communication";
}

void AddBad(const BadValue& bad, Document& out) {
  out.Open('{');
  out.Member("path", bad.path);
  out.Member("value", bad.what);
  if (!bad.max.empty()) {
    out.Member("Max", bad.max);
    out.Member("Min", bad.min);
  }
  out.Close('}');
}

void AddOptionalBad(std::string_view key, const std::optional<BadValue>& bad, Document& out) {
  out.Key(key);
  if (bad) {
    AddBad(*bad, out);
  } else {
    out.Raw("null");
  }
}

// The members that are plumbline's own.
void AddFacts(const OverflowOrigin& origin, Document& out) {
  out.Member("kind", KindName(origin));
  out.Member("phase", PhaseName(origin.phase));
  out.Number("layer", origin.layer);
  out.Number("sub_layer", origin.place.sub_layer);
  out.Number("index", origin.place.index);
  out.Member("reason", OverflowReasonName(origin.reason));
  out.Truth("minor", origin.is_minor);
  out.Key("evidence");
  AddBad(origin.value, out);
  if (!origin.argument.empty()) out.Member("argument", origin.argument);
}

// Upstream's key of a rank: rank_0.
std::string RankKey(const load::RankDirectory& directory) {
  return directory.rank ? fmt::format("rank_{}", *directory.rank) : directory.name;
}

void AddDetails(const OverflowReport& report, const OverflowDetails& details, Document& out) {
  const OverflowOrigin& origin = report.analysis.origins[details.origin];
  out.Open('{');
  out.Member("op_name", origin.name);
  out.Key("data_info");
  out.Raw(details.data);
  out.Texts("construct_info", details.hierarchy);
  if (details.stack.empty()) {
    out.Key("stack_info");
    out.Raw("{}");
  } else {
    out.Texts("stack_info", details.stack);
  }
  AddFacts(origin, out);
  out.Close('}');
}

void AddNode(const OverflowReport& report, const CommNode& node, Document& out) {
  const RankScan& scan = report.ranks[node.rank];
  const CommCall& call = scan.calls[node.call];
  out.Open('{');
  out.Member("rank", RankKey(scan.directory));
  out.Member("op_name", call.name);
  out.Number("layer", report.analysis.graph.layers[node.rank][node.call]);
  AddOptionalBad("input", call.bad_input, out);
  AddOptionalBad("output", call.bad_output, out);
  out.Truth("complete", call.has_output);
  out.Close('}');
}

// Only the ends that are bad: a collective call of a thousand ranks has a thousand others.
void AddEnds(const OverflowReport& report, std::string_view key, const std::vector<CommNode>& nodes,
             bool inputs, Document& out) {
  out.Key(key);
  out.Open('[');
  for (const CommNode& node : nodes) {
    const CommCall& call = report.ranks[node.rank].calls[node.call];
    if (inputs ? call.bad_input.has_value() : call.bad_output || !call.has_output) {
      AddNode(report, node, out);
    }
  }
  out.Close(']');
}

bool CarriesBadValues(const OverflowReport& report, const CommLink& link) {
  const auto call = [&](const CommNode& node) -> const CommCall& {
    return report.ranks[node.rank].calls[node.call];
  };
  return std::any_of(link.from.begin(), link.from.end(),
                     [&](const CommNode& node) { return call(node).bad_input.has_value(); }) ||
         std::any_of(link.to.begin(), link.to.end(),
                     [&](const CommNode& node) { return call(node).bad_output.has_value(); });
}

std::vector<const CommLink*> BadLinks(const OverflowReport& report) {
  std::vector<const CommLink*> links;
  for (const CommLink& link : report.analysis.graph.links) {
    if (CarriesBadValues(report, link)) links.push_back(&link);
  }
  const auto first_of = [](const CommLink* link) {
    return link->from.empty() ? link->to.front() : link->from.front();
  };
  const auto& layers = report.analysis.graph.layers;
  std::stable_sort(links.begin(), links.end(), [&](const CommLink* a, const CommLink* b) {
    const CommNode x = first_of(a), y = first_of(b);
    return std::tie(layers[x.rank][x.call], x) < std::tie(layers[y.rank][y.call], y);
  });
  return links;
}

void AddOrigins(const OverflowReport& report, Document& out) {
  out.Key("origins");
  out.Open('[');
  for (const OverflowOrigin& origin : report.analysis.origins) {
    out.Open('{');
    out.Member("rank", RankKey(report.ranks[origin.rank].directory));
    out.Member("op_name", origin.name);
    AddFacts(origin, out);
    out.Close('}');
  }
  out.Close(']');
}

void AddCounts(const OverflowReport& report, Document& out) {
  out.Member("step", report.step_directory);
  out.Number("steps", report.steps);
  out.Number("ranks", report.rank_count);
  out.Number("ranks_not_judged", report.ranks_not_judged);
  out.Number("entries", report.entries);
  out.Number("bad_entries", report.bad_entries);
  out.Number("tensors", report.tensors);
  out.Number("tensors_not_judged", report.tensors_not_judged);
  out.Texts("not_judged", report.not_judged);
}

}  // namespace

Result<std::string> FormatAnomalies(const OverflowReport& report) {
  Document out;
  out.Open('{');
  for (const OverflowDetails& details : report.details) {
    const OverflowOrigin& origin = report.analysis.origins[details.origin];
    out.Key(RankKey(report.ranks[origin.rank].directory));
    out.Open('[');
    AddDetails(report, details, out);
    out.Close(']');
  }
  out.Close('}');
  return out.Finish();
}

Result<std::string> FormatOverflowTrace(const OverflowReport& report) {
  Document out;
  out.Open('{');
  AddCounts(report, out);
  AddOrigins(report, out);
  out.Key("transfers");
  out.Open('[');
  for (const CommLink* link : BadLinks(report)) {
    out.Open('{');
    out.Member("api", link->api);
    AddEnds(report, "from", link->from, true, out);
    AddEnds(report, "to", link->to, false, out);
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
  return out.Finish();
}

Result<std::string> FormatOverflowResult(const OverflowReport& report) {
  Document out;
  out.Open('{');
  out.Member("answer", OverflowAnswer(report));
  out.Truth("found", report.found());
  out.Key("first");
  if (report.found()) {
    const auto first = std::find_if(report.details.begin(), report.details.end(),
                                    [](const OverflowDetails& d) { return d.origin == 0; });
    AddDetails(report, *first, out);
  } else {
    out.Raw("null");
  }
  AddOrigins(report, out);
  AddCounts(report, out);
  out.Texts("files", report.files);
  out.Close('}');
  return out.Finish();
}

}  // namespace plumbline
