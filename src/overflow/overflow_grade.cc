#include "overflow/overflow_grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>
#include <variant>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/json/dump_json.h"
#include "formats/json/json_feed.h"
#include "load/rank_scan.h"
#include "overflow/steps_to_check.h"
#include "record/recorded_number.h"
#include "record/run_files.h"

namespace plumbline {
namespace {

// A tensor in any nesting. Depth is bounded by the reader.
bool HasBadMean(const Value& value) {
  if (const auto* tensor = value.As<TensorRecord>()) return !BadKindOf(tensor->mean).empty();
  if (const auto* list = value.As<ValueList>()) {
    return std::any_of(list->begin(), list->end(), HasBadMean);
  }
  const auto* map = value.As<ValueMap>();
  return map != nullptr && std::any_of(map->begin(), map->end(), [](const auto& member) {
           return HasBadMean(member.second);
         });
}

bool HasAnomaly(const Value& value) {
  ValueJudgement judgement;
  Judge(value, {}, judgement);
  return judgement.bad || HasBadMean(value);
}

// Where anomalies are: members of a list by index, of keywords by name.
struct AnomalousPlaces {
  std::vector<size_t> inputs, outputs;
  std::vector<std::string_view> keywords;

  [[nodiscard]] bool in_inputs() const { return !inputs.empty() || !keywords.empty(); }
  [[nodiscard]] bool in_outputs() const { return !outputs.empty(); }
};

void AddPlaces(const Value* value, std::vector<size_t>& places) {
  if (value == nullptr) return;
  const auto* list = value->As<ValueList>();
  if (list == nullptr) {
    if (HasAnomaly(*value)) places.push_back(0);
    return;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    if (HasAnomaly((*list)[i])) places.push_back(i);
  }
}

const Value* InputsOf(const Call& call) {
  const Value* const arguments = call.Find(dump_json::kInputArgs);
  return arguments != nullptr ? arguments : call.Find(dump_json::kInput);
}

AnomalousPlaces PlacesIn(const Call& call) {
  AnomalousPlaces places;
  AddPlaces(InputsOf(call), places.inputs);
  AddPlaces(call.Find(dump_json::kOutput), places.outputs);
  const Value* const keywords = call.Find(dump_json::kInputKwargs);
  const auto* const named = keywords == nullptr ? nullptr : keywords->As<ValueMap>();
  if (named == nullptr) return places;
  for (const auto& [name, value] : *named) {
    if (HasAnomaly(value)) places.keywords.push_back(name);
  }
  return places;
}

// The largest Norm that is a number among the tensors of `value` and its direct members.
std::optional<double> LargestNorm(const Value* value) {
  std::optional<double> largest;
  const auto take = [&](const Value& member) {
    const auto* tensor = member.As<TensorRecord>();
    if (tensor == nullptr) return;
    if (tensor->type != "torch.Tensor" && tensor->type != "mindspore.Tensor") return;
    const std::optional<double> norm = NumberOf(tensor->norm);
    if (norm && !std::isnan(*norm)) largest = std::max(largest.value_or(*norm), *norm);
  };
  if (value == nullptr) return largest;
  take(*value);
  if (const auto* list = value->As<ValueList>()) std::for_each(list->begin(), list->end(), take);
  if (const auto* map = value->As<ValueMap>()) {
    for (const auto& member : *map) take(member.second);
  }
  return largest;
}

bool NormJumps(const Call& call, double largest_ratio) {
  const std::optional<double> out = LargestNorm(call.Find(dump_json::kOutput));
  std::optional<double> in = LargestNorm(InputsOf(call));
  const std::optional<double> named = LargestNorm(call.Find(dump_json::kInputKwargs));
  if (named) in = std::max(in.value_or(*named), *named);
  if (!in || !out) return false;
  return *in == 0 ? *out > largest_ratio : *out / *in > largest_ratio;
}

// Memory that a call only fills, or what it is asked to fill with, may hold anything.
struct ExpectedAnomaly {
  std::string_view api;  // first two parts of the name, lower case
  std::optional<size_t> input = {}, output = {};
  std::string_view keyword = {};
};
constexpr ExpectedAnomaly kExpected[] = {
    {.api = "torch.empty", .output = 0},
    {.api = "torch.empty_like", .output = 0},
    {.api = "torch.empty_strided", .output = 0},
    {.api = "distributed.recv", .input = 0, .keyword = "tensor"},
    {.api = "distributed.all_gather", .input = 0},
    {.api = "distributed.all_gather_into_tensor", .input = 0},
    {.api = "distributed.reduce_scatter", .input = 0, .keyword = "output"},
    {.api = "distributed._reduce_scatter_base", .input = 0},
    {.api = "distributed.reduce_scatter_tensor", .input = 0},
    {.api = "tensor.masked_fill_", .input = 0},
};

std::string ApiOf(std::string_view name) {
  const size_t first = name.find('.');
  const size_t second = first == name.npos ? name.npos : name.find('.', first + 1);
  return LowerCase(name.substr(0, second));
}

template <class Place>
bool IsAllAt(const std::vector<Place>& places, const Place& expected) {
  return std::all_of(places.begin(), places.end(),
                     [&](const Place& place) { return place == expected; });
}

bool IsExpected(std::string_view name, const AnomalousPlaces& places) {
  const std::string api = ApiOf(name);
  const auto* const rule = std::find_if(std::begin(kExpected), std::end(kExpected),
                                        [&](const ExpectedAnomaly& one) { return one.api == api; });
  if (rule == std::end(kExpected)) return false;
  if (rule->input && !IsAllAt(places.inputs, *rule->input)) return false;
  if (!rule->keyword.empty() && !IsAllAt(places.keywords, rule->keyword)) return false;
  if (rule->output) return IsAllAt(places.outputs, *rule->output);
  // What came out does not come from memory that was only filled, unless another input explains it.
  const bool is_explained = rule->keyword.empty() && !places.keywords.empty();
  return !places.in_outputs() || is_explained;
}

OverflowLevel LevelOf(OverflowScene scene) {
  switch (scene) {
    case OverflowScene::kProduced:
      return OverflowLevel::kCritical;
    case OverflowScene::kSwallowed:
      return OverflowLevel::kMedium;
    case OverflowScene::kHandedOn:
    case OverflowScene::kNormJumped:
      break;
  }
  return OverflowLevel::kHigh;
}

std::optional<OverflowScene> SceneOf(const Call& call, const AnomalousPlaces& places,
                                     double largest_ratio) {
  if (places.in_outputs()) {
    return places.in_inputs() ? OverflowScene::kHandedOn : OverflowScene::kProduced;
  }
  if (places.in_inputs()) return OverflowScene::kSwallowed;
  return NormJumps(call, largest_ratio) ? std::optional(OverflowScene::kNormJumped) : std::nullopt;
}

// Depth first; only what may hold NaN and has no statistics counts as not judged.
void CountTensors(const Call& call, RankGrades& rank) {
  ValueJudgement judgement;
  for (const auto& [key, value] : call.members) Judge(value, key, judgement);
  rank.tensors += judgement.tensors;
  rank.tensors_not_judged += judgement.not_judged;
}

// What was read of a rank, with notes on what could not be.
struct GradedRank {
  RankGrades grades;
  std::vector<std::string> notes;
};

Result<GradedRank> GradeRank(const load::RankDirectory& directory) {
  GradedRank rank;
  RankGrades& grades = rank.grades;
  grades.directory = directory;
  const std::string path = JoinPath(directory.path, run_files::kDumpJson);
  uint64_t unread = 0;
  const auto file =
      dump_json::VisitDumpFile(path, /*salvage=*/true, [&](dump_json::VisitedCall&& visited) {
        ++grades.entries;
        unread += visited.problem.empty() ? 0 : 1;
        CountTensors(visited.call, grades);
        const std::optional<OverflowGrade> grade = GradeOfCall(visited.call);
        if (!grade) return;
        ++grades.counts[static_cast<size_t>(grade->level)];
        grades.calls.push_back({std::move(visited.call.name), *grade});
      });
  if (!file) return file.error().In(path);
  if (file->loss.truncated) {
    rank.notes.push_back(fmt::format("{}: cut or damaged at byte {}, {} complete entries were read",
                                     path, file->loss.byte_offset, grades.entries));
  }
  if (unread > 0) {
    rank.notes.push_back(fmt::format("{}: {} entries cannot be read", path, unread));
  }
  if (grades.tensors_not_judged > 0) {
    rank.notes.push_back(fmt::format("{}: {} of {} tensors have no Max and Min", path,
                                     grades.tensors_not_judged, grades.tensors));
  }
  if (grades.tensors == 0) rank.notes.push_back(fmt::format("{}: no tensors recorded", path));
  return rank;
}

Status GradeStep(const StepToCheck& step, int threads, GradeReport& report) {
  std::vector<std::optional<Result<GradedRank>>> results(step.ranks.size());
  RunWithThreads(threads, [&] {
    ParallelFor(step.ranks.size(), [&](size_t i) { results[i] = GradeRank(step.ranks[i]); });
  });
  StepGrades grades;
  grades.path = step.path;
  std::optional<Error> first;
  for (auto& result : results) {
    if (!*result) {
      report.not_judged.push_back(result->error().message());
      if (!first) first = result->error();
      continue;
    }
    GradedRank& rank = **result;
    report.not_judged.insert(report.not_judged.end(), rank.notes.begin(), rank.notes.end());
    for (size_t i = 0; i < kOverflowLevels; ++i) report.counts[i] += rank.grades.counts[i];
    report.entries += rank.grades.entries;
    ++report.ranks;
    grades.ranks.push_back(std::move(rank.grades));
  }
  if (grades.ranks.empty() && first) return *first;
  report.steps.push_back(std::move(grades));
  return {};
}

std::string KeyOf(const load::RankDirectory& directory) {
  return directory.rank ? fmt::format("rank_{}", *directory.rank) : directory.name;
}

void AddLevelCounts(const std::array<uint64_t, kOverflowLevels>& counts, json::Document& out) {
  out.Key("counts");
  out.Open('{');
  for (size_t i = kOverflowLevels; i-- > 0;) {
    out.Number(OverflowLevelName(static_cast<OverflowLevel>(i)), counts[i]);
  }
  out.Close('}');
}

void AddRankGrades(const RankGrades& rank, json::Document& out) {
  out.Key(KeyOf(rank.directory));
  out.Open('{');
  out.Number("entries", rank.entries);
  AddLevelCounts(rank.counts, out);
  out.Key("overflow_level");
  out.Open('{');
  for (const GradedCall& call : rank.calls) {
    out.Member(call.name, OverflowLevelName(call.grade.level));
  }
  out.Close('}');
  out.Close('}');
}

}  // namespace

std::string_view OverflowSceneText(OverflowScene scene) {
  switch (scene) {
    case OverflowScene::kProduced:
      return "inputs clean, outputs not";
    case OverflowScene::kHandedOn:
      return "inputs and outputs not clean";
    case OverflowScene::kSwallowed:
      return "inputs not clean, outputs are";
    case OverflowScene::kNormJumped:
      break;
  }
  return "the outputs' Norm is more than 100 times the inputs'";
}

std::optional<OverflowGrade> GradeOfCall(const Call& call, double largest_norm_ratio) {
  const AnomalousPlaces places = PlacesIn(call);
  const std::optional<OverflowScene> scene = SceneOf(call, places, largest_norm_ratio);
  if (!scene || IsExpected(call.name, places)) return std::nullopt;
  return OverflowGrade{LevelOf(*scene), *scene};
}

Result<GradeReport> GradeOverflows(const std::string& path, const std::string& directory,
                                   int threads) {
  PL_TRY_ASSIGN(const std::vector<StepToCheck> steps, StepsToCheck(path));
  GradeReport report;
  for (const StepToCheck& step : steps) PL_TRY(GradeStep(step, threads, report));
  if (!report.found()) return report;
  PL_TRY(MakeDirectories(directory));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto clock = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  report.file = JoinPath(directory, fmt::format("overflow_levels_{}.json", clock));
  PL_TRY_ASSIGN(const std::string text, FormatGrades(report));
  PL_TRY(WriteFileAtomically(report.file, text, /*durable=*/false));
  return report;
}

std::string GradeAnswer(const GradeReport& report) {
  const std::string where = fmt::format("{} of {}", CountText(report.entries, "entry", "entries"),
                                        CountText(report.ranks, "rank"));
  if (report.found()) {
    return fmt::format("overflow levels: {} critical, {} high, {} medium of {}", report.counts[2],
                       report.counts[1], report.counts[0], where);
  }
  if (report.not_judged.empty()) return fmt::format("no anomaly: {} graded", where);
  return fmt::format("no anomaly found, but not everything could be judged: {}; {}", where,
                     report.not_judged.front());
}

Result<std::string> FormatGrades(const GradeReport& report) {
  json::Document out;
  out.Open('{');
  out.Member("answer", GradeAnswer(report));
  AddLevelCounts(report.counts, out);
  out.Texts("not_judged", report.not_judged);
  out.Key("steps");
  out.Open('[');
  for (const StepGrades& step : report.steps) {
    out.Open('{');
    out.Member("step", step.path);
    out.Key("ranks");
    out.Open('{');
    for (const RankGrades& rank : step.ranks) AddRankGrades(rank, out);
    out.Close('}');
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
  return out.Finish();
}

}  // namespace plumbline
