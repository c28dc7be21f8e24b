#include "watch/data_to_db.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "formats/json/dump_json.h"
#include "formats/json/json_feed.h"
#include "formats/sqlite/trend_db.h"
#include "load/detect.h"
#include "load/rank_directories.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/run_files.h"

namespace plumbline {

namespace {

// The entry of the forward call that belongs to `name`; `name` itself if it is of no known form.
// Parameter gradients without a number belong to the first call.
std::string ForwardOf(std::string_view name) {
  std::optional<CallName> parts = ParseCallName(name);
  if (!parts) return std::string(name);
  if (parts->form == CallName::Form::kGradients) parts->form = CallName::Form::kModule;
  parts->kind = CallKind::kForward;
  parts->number = parts->number.value_or(0);
  return BuildCallName(*parts);
}

bool IsForward(std::string_view name) {
  const std::optional<CallName> parts = ParseCallName(name);
  return !parts || (parts->kind == CallKind::kForward);
}

// The same for all calls of one module or API.
std::string WithoutNumber(CallName parts) {
  parts.number = 0;
  return BuildCallName(parts);
}

// The parts of a row that is a root, borrowed from its name.
std::optional<CallName> RootParts(const dump_json::CallTree::Row& row) {
  if (!row.parent.empty()) return std::nullopt;
  std::optional<CallName> parts = ParseCallName(row.name);
  if (!parts || parts->form != CallName::Form::kModule || parts->kind != CallKind::kForward) {
    return std::nullopt;
  }
  parts->number = 0;
  return parts;
}

bool Encloses(const CallName& outer, const CallName& inner) {
  return inner.path.size() > outer.path.size() && inner.path.starts_with(outer.path) &&
         inner.path[outer.path.size()] == '.';
}

}  // namespace

std::vector<std::string> RootNames(const dump_json::CallTree& tree) {
  std::vector<CallName> roots;
  for (const auto& row : tree.rows) {
    const std::optional<CallName> root = RootParts(row);
    if (!root || std::find(roots.begin(), roots.end(), *root) != roots.end()) continue;
    roots.push_back(*root);
  }
  std::vector<std::string> names;
  for (const CallName& root : roots) {
    const bool inner = std::any_of(roots.begin(), roots.end(),
                                   [&](const CallName& outer) { return Encloses(outer, root); });
    if (!inner) names.push_back(BuildCallName(root));
  }
  return names;
}

Result<MicroSteps> MicroSteps::Derive(const dump_json::CallTree& tree,
                                      const std::vector<std::string>& names) {
  MicroSteps steps;
  if (tree.has_micro_steps) {
    PL_TRY(steps.TakeCounted(tree));
  } else {
    steps.FollowRoots(tree);
  }
  steps.PlaceOthers(names);
  if (steps.renumbers_) steps.Renumber();
  return steps;
}

Status MicroSteps::TakeCounted(const dump_json::CallTree& tree) {
  renumbers_ = true;
  int64_t last = tree.last_micro_step;
  bool valid = last >= 0;
  // Backward entries do not overrule the forward call, wherever they stand.
  for (const bool forward : {true, false}) {
    for (const auto& row : tree.rows) {
      valid = valid && row.micro_step >= 0;
      if (IsForward(row.name) != forward) continue;
      entries_.try_emplace(ForwardOf(row.name), Entry{row.micro_step, 0});
      last = std::max(last, row.micro_step);
    }
  }
  if (!valid) {
    return Error(ErrorCode::kCorrupt,
                 "a micro step is no count (expected 0 or more). Leave them out with "
                 "--micro_step false.");
  }
  count_ = last + 1;
  return {};
}

void MicroSteps::FollowRoots(const dump_json::CallTree& tree) {
  const std::vector<std::string> roots = RootNames(tree);
  if (roots.empty()) return;
  int64_t current = -1;
  std::unordered_map<std::string_view, std::string_view> parents;
  for (const auto& row : tree.rows) {
    parents.emplace(row.name, row.parent);
    const std::optional<CallName> root = RootParts(row);
    if (!root) continue;
    if (BuildCallName(*root) == roots.front()) ++current;
    entries_.try_emplace(row.name, Entry{std::max<int64_t>(current, 0), 0});
  }
  renumbers_ = true;
  count_ = current + 1;
  for (const auto& row : tree.rows) {
    if (!IsForward(row.name)) continue;
    std::string_view at = row.name;
    // As many steps as there are rows, in case the file has a cycle.
    for (size_t i = 0; i < tree.rows.size() && !entries_.contains(std::string(at)); ++i) {
      const auto parent = parents.find(at);
      if (parent == parents.end() || parent->second.empty()) break;
      at = parent->second;
    }
    const auto root = entries_.find(std::string(at));
    if (root != entries_.end()) entries_.try_emplace(row.name, Entry{root->second.micro_step, 0});
  }
}

void MicroSteps::PlaceOthers(const std::vector<std::string>& names) {
  int64_t current = 0;
  for (const std::string& name : names) {
    const auto [at, is_new] = entries_.try_emplace(ForwardOf(name), Entry{current, 0});
    // Backward entries come when later forward calls may have been made.
    if (!is_new && IsForward(name)) current = at->second.micro_step;
  }
}

void MicroSteps::Renumber() {
  std::unordered_map<std::string, std::vector<std::pair<uint64_t, Entry*>>> calls;
  for (auto& [name, entry] : entries_) {
    const std::optional<CallName> parts = ParseCallName(name);
    if (!parts) continue;
    calls[fmt::format("{}\n{}", entry.micro_step, WithoutNumber(*parts))].emplace_back(
        parts->number.value_or(0), &entry);
  }
  for (auto& [key, same] : calls) {
    std::sort(same.begin(), same.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < same.size(); ++i) same[i].second->number = i;
  }
}

MicroSteps::Place MicroSteps::Of(std::string_view name) const {
  Place place{0, std::string(name)};
  const auto entry = entries_.find(ForwardOf(name));
  if (entry == entries_.end()) return place;
  place.micro_step = entry->second.micro_step;
  std::optional<CallName> parts = ParseCallName(name);
  if (!renumbers_ || !parts || !parts->number) return place;
  parts->number = entry->second.number;
  place.name = BuildCallName(*parts);
  return place;
}

namespace {

using trend_db::Row;
using trend_db::Tag;
using Parts = std::vector<std::string_view>;

constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";
constexpr std::string_view kParametersGrad = "parameters_grad";
constexpr std::string_view kModule = "Module";
constexpr std::string_view kCell = "Cell";
// Components between the name of a call and its tensors.
constexpr std::string_view kInputPart = "input";
constexpr std::string_view kKeywordPart = "kwargs";
constexpr double kLargest = 1e9;

std::string Join(std::span<const std::string_view> parts) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), "."));
}

// The direction stands last but for a number, or (APIs of odd mappings) anywhere: the last counts,
// because a module may be called "forward".
std::optional<size_t> DirectionAt(const Parts& parts) {
  for (size_t i = parts.size(); i-- > 1;) {
    if (parts[i] == kForward || parts[i] == kBackward) return i;
    if (parts[i] == kParametersGrad && i + 2 >= parts.size()) return i;
  }
  return std::nullopt;
}

bool IsTrue(const Value* value) {
  const bool* truth = value == nullptr ? nullptr : value->As<bool>();
  return truth != nullptr && *truth;
}

bool IsFrameworkTensor(const TensorRecord& tensor) {
  return tensor.type == "torch.Tensor" || tensor.type == "mindspore.Tensor" ||
         tensor.type == "mindtorch.Tensor";
}

// Collects the rows of one call.
class RowMaker {
 public:
  RowMaker(DumpMetric metric, std::string target, int64_t micro_step)
      : metric_(static_cast<size_t>(metric)), target_(std::move(target)), micro_step_(micro_step) {}

  // Every tensor in `value`; `tail` is its path below the call.
  void AddAll(const Value& value, const std::string& tail) {
    if (const auto* tensor = value.As<TensorRecord>()) {
      Add(*tensor, tail);
    } else if (const auto* list = value.As<ValueList>()) {
      for (size_t i = 0; i < list->size(); ++i) AddAll((*list)[i], fmt::format("{}.{}", tail, i));
    } else if (const auto* map = value.As<ValueMap>()) {
      for (const auto& [key, member] : *map) AddAll(member, fmt::format("{}.{}", tail, key));
    }
  }

  void AddMember(const Call& call, std::string_view member, std::string_view part) {
    const Value* value = call.Find(member);
    if (value != nullptr) AddAll(*value, std::string(part));
  }

  // A parameter: its tensor, or a list that holds it.
  void AddParameter(const Value& value, const std::string& tail) {
    const auto* list = value.As<ValueList>();
    AddAll(list != nullptr && list->size() == 1 ? list->front() : value, tail);
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  void Add(const TensorRecord& tensor, const std::string& tail) {
    if (!IsFrameworkTensor(tensor)) return;
    Row row;
    row.metric = metric_;
    row.target = fmt::format("{}.{}", target_, tail);
    row.tail_parts =
        std::max<size_t>(2, static_cast<size_t>(std::count(tail.begin(), tail.end(), '.')) + 1);
    row.micro_step = micro_step_;
    row.values = {TrendValue(tensor.norm), TrendValue(tensor.max), TrendValue(tensor.min),
                  TrendValue(tensor.mean)};
    rows_.push_back(std::move(row));
  }

  size_t metric_;
  std::string target_;
  int64_t micro_step_;
  std::vector<Row> rows_;
};

void AddModuleTags(const Parts& names, std::vector<Tag>& tags) {
  size_t begin = 0;          // of the text that has no tag yet
  bool after_layer = false;  // the component before is the number of a layer
  for (size_t i = 0; i < names.size(); ++i) {
    const bool number = IsDigits(names[i]);
    if (number && (i == 0 || after_layer)) {
      begin = i + 1;  // a number without a name, such as the position in a list of models
      after_layer = true;
      continue;
    }
    after_layer = number;
    if (!number) continue;
    tags.push_back({fmt::format("{}.{}", names[i - 1], names[i]), "layer"});
    const auto between = std::span(names).subspan(begin, i - 1 - begin);
    if (!between.empty()) tags.push_back({Join(between), "module"});
    begin = i + 1;
  }
  if (begin < names.size()) tags.push_back({Join(std::span(names).subspan(begin)), "module"});
}

}  // namespace

std::string MapName(std::string name, const NameMapping& mapping) {
  for (const auto& [old_text, new_text] : mapping) {
    for (size_t at = name.find(old_text); at != std::string::npos;
         at = name.find(old_text, at + new_text.size())) {
      name.replace(at, old_text.size(), new_text);
    }
  }
  return name;
}

std::optional<double> TrendValue(const Statistic& statistic) {
  const std::optional<double> value = NumberOrTruth(statistic);
  return value ? trend_db::ValueOf(*value) : std::nullopt;
}

std::vector<Row> TrendRows(const Call& call) {
  Parts parts = SplitAt(call.name, '.');
  const std::optional<size_t> at = DirectionAt(parts);
  if (!at) return {};
  const std::string_view direction = parts[*at];
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*at));
  const std::optional<int64_t> number = ParseNatural(parts.back());
  if (number && parts.size() > 1) parts.pop_back();
  const auto maker = [&](DumpMetric metric) {
    return RowMaker(metric, Join(parts), parts.empty() ? 0 : number.value_or(0));
  };
  if (direction == kParametersGrad) {
    RowMaker rows = maker(DumpMetric::kParametersGrad);
    for (const auto& [name, value] : call.members) rows.AddParameter(value, name);
    return rows.Take();
  }
  if (direction == kBackward) {
    RowMaker rows = maker(DumpMetric::kBackward);
    rows.AddMember(call, dump_json::kInput, kInputPart);
    rows.AddMember(call, dump_json::kOutput, dump_json::kOutput);
    return rows.Take();
  }
  RowMaker rows = maker(IsTrue(call.Find(dump_json::kIsRecompute)) ? DumpMetric::kRecompute
                                                                   : DumpMetric::kForward);
  rows.AddMember(call, dump_json::kInputArgs, kInputPart);
  rows.AddMember(call, dump_json::kInputKwargs, kKeywordPart);
  rows.AddMember(call, dump_json::kOutput, dump_json::kOutput);
  const Value* parameters = call.Find(dump_json::kParameters);
  const auto* map = parameters == nullptr ? nullptr : parameters->As<ValueMap>();
  if (map != nullptr) {
    for (const auto& [name, value] : *map) {
      rows.AddParameter(value, fmt::format("{}.{}", dump_json::kParameters, name));
    }
  }
  return rows.Take();
}

std::vector<Tag> TrendTags(const Row& row) {
  const Parts parts = SplitAt(row.target, '.');
  if (parts.size() < 3 || parts.size() <= row.tail_parts) return {};
  const auto all = std::span(parts);
  const auto tail = all.last(row.tail_parts);
  std::vector<Tag> tags = {{Join(tail), "index"}};
  if (tail.front() == dump_json::kParameters) {
    tags.push_back({std::string(dump_json::kParameters), "default"});
  }
  Parts names;
  bool is_module = false;
  for (const std::string_view part : all.first(parts.size() - row.tail_parts)) {
    if (part != kModule && part != kCell) {
      names.push_back(part);
      continue;
    }
    is_module = true;
    Tag tag{std::string(part), "default"};
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(std::move(tag));
  }
  if (names.empty()) return {};
  if (is_module) {
    AddModuleTags(names, tags);
  } else {
    tags.push_back({Join(names), "function"});
  }
  return tags;
}

namespace {

constexpr std::string_view kDatabase = "dump_data.trend.db";

trend_db::Form DumpForm() {
  trend_db::Form form;
  form.metrics = {"forward", "backward", "recompute", "parameters_grad"};
  form.statistics = {"norm", "max", "min", "mean"};
  form.statistics_of.assign(form.metrics.size(), "norm,max,min,mean");
  return form;
}

constexpr std::string_view kProcess = "proc";

struct RankFiles {
  int64_t rank = 0;
  std::string dump_path, construct_path;
};

struct StepFiles {
  int64_t step = 0;
  std::vector<RankFiles> ranks;
};

uint64_t ProcessId(std::string_view name) {
  uint64_t pid = 0;
  std::from_chars(name.data() + kProcess.size(), name.data() + name.size(), pid);
  return pid;
}

// Finds the files, before anything is written.
class Scanner {
 public:
  explicit Scanner(DataToDbReport& report) : report_(report) {}

  Result<std::vector<StepFiles>> Run(const std::string& data) {
    if (KindOf(data) != PathKind::kDirectory) {
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", data));
    }
    PL_TRY_ASSIGN(const auto directories, load::ListStepDirectories(data));
    if (directories.empty()) return NoSteps(data);
    std::vector<StepFiles> steps;
    for (const load::StepDirectory& directory : directories) {
      PL_TRY_ASSIGN(StepFiles step, ScanStep(directory));
      if (!step.ranks.empty()) steps.push_back(std::move(step));
    }
    if (steps.empty()) {
      for (std::string& warning : report_.warnings) why_ += " " + std::move(warning) + ".";
      return Error(ErrorCode::kNotFound,
                   fmt::format("{}: no step directory holds a dump.json.{}", data, why_));
    }
    return steps;
  }

 private:
  static Error NoSteps(const std::string& data) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no step directory (expected names such as step0, or "
                             "Dec03_21-34-40-rank0-3f9c1a2b of a monitor). Name the "
                             "directory that holds them.",
                             data));
  }

  Result<StepFiles> ScanStep(const load::StepDirectory& directory) {
    StepFiles step{directory.step, {}};
    PL_TRY_ASSIGN(const auto found, load::ListRankDirectories(directory.path));
    std::vector<load::RankDirectory> processes;
    for (const load::RankDirectory& rank : found) {
      if (!HasDump(rank.path)) continue;
      if (rank.name.starts_with(kProcess)) {
        processes.push_back(rank);
      } else if (rank.rank) {
        Add(step, *rank.rank, rank.path);
      } else {
        report_.warnings.push_back(
            fmt::format("{}: left out, another process has its rank", rank.path));
      }
    }
    if (found.empty()) NoteNoRanks(directory.path);
    std::sort(processes.begin(), processes.end(),
              [](const auto& a, const auto& b) { return ProcessId(a.name) < ProcessId(b.name); });
    for (const load::RankDirectory& process : processes) {
      const int64_t rank = step.ranks.empty() ? 0 : step.ranks.back().rank + 1;
      report_.notes.push_back(fmt::format("step {}: {} is rank {}", step.step, process.name, rank));
      Add(step, rank, process.path);
    }
    return step;
  }

  bool HasDump(const std::string& path) {
    const bool unfinished = load::StateOf(path).unfinished;
    const bool there = KindOf(JoinPath(path, run_files::kDumpJson)) == PathKind::kFile;
    if (!there) report_.warnings.push_back(fmt::format("{}: no dump.json", path));
    if (unfinished) {
      report_.warnings.push_back(fmt::format(
          "{}: unfinished, calls are missing; `plumb recover` completes a killed run", path));
    }
    return there;
  }

  static void Add(StepFiles& step, int64_t rank, const std::string& path) {
    step.ranks.push_back(
        {rank, JoinPath(path, run_files::kDumpJson), JoinPath(path, run_files::kConstructJson)});
  }

  void NoteNoRanks(const std::string& path) {
    const auto names = ListDirectory(path);
    const std::string others = names ? fmt::format("{}", fmt::join(*names, ", ")) : "";
    report_.warnings.push_back(fmt::format("{}: no rank directory (there is: {})", path,
                                           others.empty() ? "nothing" : others));
  }

  DataToDbReport& report_;
  std::string why_;
};

Result<dump_json::CallTree> ReadTree(const std::string& path) {
  auto tree = dump_json::ReadCallTree(path);
  if (!tree && tree.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: missing, and it tells the micro steps. Import whole steps with "
                             "--micro_step false.",
                             path));
  }
  return tree;
}

// Whether the modules of every file have one root, or Megatron counted.
Result<bool> CanTellMicroSteps(const std::vector<StepFiles>& steps, DataToDbReport& report) {
  for (const StepFiles& step : steps) {
    for (const RankFiles& rank : step.ranks) {
      PL_TRY_ASSIGN(const dump_json::CallTree tree, ReadTree(rank.construct_path));
      if (tree.has_micro_steps) continue;
      const std::vector<std::string> roots = RootNames(tree);
      if (roots.size() < 2) continue;
      report.notes.push_back(fmt::format(
          "{}: {} outermost modules ({}, {}{}), so micro steps are not told apart; --micro_step "
          "true starts one at each call of the first",
          rank.construct_path, roots.size(), roots[0], roots[1], roots.size() > 2 ? ", ..." : ""));
      return false;
    }
  }
  return true;
}

// `text` is that of dump.json.
Result<std::unique_ptr<const MicroSteps>> DeriveMicroSteps(const RankFiles& files,
                                                           std::string_view text) {
  PL_TRY_ASSIGN(const dump_json::CallTree tree, ReadTree(files.construct_path));
  const auto names = dump_json::ParseNames(text);
  if (!names) return names.error().In(files.dump_path);
  auto steps = MicroSteps::Derive(tree, *names);
  if (!steps) return steps.error().In(files.construct_path);
  return std::make_unique<const MicroSteps>(*std::move(steps));
}

// Writes the rows of all files.
class Importer {
 public:
  Importer(trend_db::Writer& writer, const NameMapping& mapping, DataToDbReport& report)
      : writer_(writer), mapping_(mapping), report_(report) {}

  // `start`: row step of the file's first micro step. The result is the number of micro steps.
  Result<int64_t> Import(const RankFiles& files, int64_t start) {
    PL_TRY_ASSIGN(const auto mapped, MappedFile::Open(files.dump_path));
    const auto bytes = mapped->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::unique_ptr<const MicroSteps> micro_steps;
    if (report_.micro_steps) {
      PL_TRY_ASSIGN(micro_steps, DeriveMicroSteps(files, text));
    }
    PL_TRY(writer_.Begin());
    Status status;
    const auto visited =
        dump_json::VisitDump(text, /*salvage=*/false, [&](dump_json::VisitedCall&& visit) {
          if (!status) return;
          int64_t step = start;
          if (micro_steps) {
            MicroSteps::Place place = micro_steps->Of(visit.call.name);
            visit.call.name = std::move(place.name);
            step += place.micro_step;
          }
          status = Add(visit.call, files.rank, step);
        });
    PL_TRY(status);
    if (!visited) return visited.error().In(files.dump_path);
    PL_TRY(writer_.Commit());
    return micro_steps ? micro_steps->count() : 1;
  }

 private:
  Status Add(Call& call, int64_t rank, int64_t step) {
    call.name = MapName(std::move(call.name), mapping_);
    for (trend_db::Row& row : TrendRows(call)) {
      row.rank = rank;
      row.step = step;
      PL_TRY_ASSIGN(const bool added, writer_.Add(row));
      ++(added ? report_.rows[row.metric] : report_.left_out);
    }
    return {};
  }

  trend_db::Writer& writer_;
  const NameMapping& mapping_;
  DataToDbReport& report_;
};

Status ImportAll(const std::vector<StepFiles>& steps, Importer& importer,
                 const DataToDbOptions& options, DataToDbReport& report) {
  uint64_t all = 0, done = 0;
  for (const StepFiles& step : steps) all += step.ranks.size();
  int64_t start = 0;
  for (const StepFiles& step : steps) {
    int64_t longest = 0;
    for (const RankFiles& rank : step.ranks) {
      if (options.progress) options.progress(done++, all);
      PL_TRY_ASSIGN(const int64_t count,
                    importer.Import(rank, report.micro_steps ? start : step.step));
      longest = std::max(longest, count);
      report.max_rank = std::max(report.max_rank, rank.rank);
    }
    start += longest;
  }
  if (options.progress) options.progress(all, all);
  report.steps = steps.size();
  report.min_step = report.micro_steps ? 0 : steps.front().step;
  report.max_step = report.micro_steps ? start - 1 : steps.back().step;
  return {};
}

}  // namespace

Result<NameMapping> ReadMapping(const std::string& path) {
  NameMapping mapping;
  if (path.empty()) return mapping;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const auto wrong = [&](std::string_view problem) {
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: {} (expected {{\"old text\": \"new text\", ...}})", path, problem));
  };
  json::Reader in(text);
  if (in.Peek() != json::Kind::kObject) return wrong("no JSON object");
  std::string_view key, value;
  in.EnterObject();
  while (in.NextMember(key)) {
    std::string old_text(key);
    if (old_text.empty()) return wrong("an old text is empty");
    if (in.Peek() != json::Kind::kString) {
      return wrong(fmt::format("the new text of \"{}\" is no text", old_text));
    }
    if (!in.ReadString(value)) break;
    mapping.emplace_back(std::move(old_text), value);
  }
  if (in.failed() || !in.ReadEnd()) return in.error().In(path);
  KeepLastOfEach(mapping, [](const auto& row) -> const std::string& { return row.first; });
  return mapping;
}

Result<NewTrendDb> NewDatabase(const std::string& output, std::string_view name,
                               trend_db::Form form, trend_db::TagsOf tags_of) {
  PL_TRY(MakeDirectories(output));
  const std::string path = JoinPath(output, name);
  const PathKind old = KindOf(path);
  if (old == PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: a directory (expected a file or nothing)", path));
  }
  PL_TRY_ASSIGN(trend_db::Writer writer, trend_db::Writer::Create(path, std::move(form), tags_of));
  return NewTrendDb{std::move(writer), path, old != PathKind::kMissing};
}

Result<DataToDbReport> DataToDb(const std::string& data, const std::string& output,
                                const DataToDbOptions& options) {
  DataToDbReport report;
  PL_TRY_ASSIGN(const NameMapping mapping, ReadMapping(options.mapping_path));
  PL_TRY_ASSIGN(const std::vector<StepFiles> steps, Scanner(report).Run(data));
  if (options.micro_steps) {
    report.micro_steps = *options.micro_steps;
  } else {
    PL_TRY_ASSIGN(report.micro_steps, CanTellMicroSteps(steps, report));
  }
  trend_db::Form form = DumpForm();
  report.metrics = form.metrics;
  report.rows.resize(form.metrics.size());
  PL_TRY_ASSIGN(NewTrendDb database, NewDatabase(output, kDatabase, std::move(form), &TrendTags));
  report.path = database.path;
  Importer importer(database.writer, mapping, report);
  PL_TRY(ImportAll(steps, importer, options, report));
  report.targets = database.writer.target_count();
  if (report.targets == 0) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: no recorded tensor in any dump.json, so there is no trend", data));
  }
  PL_TRY(database.writer.Finish({report.max_rank, report.min_step, report.max_step}));
  if (database.is_replacement) {
    report.warnings.push_back(fmt::format("{}: the existing database was replaced", report.path));
  }
  return report;
}

}  // namespace plumbline
