#include "operators/pair_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/process/parallel.h"
#include "formats/acl/fusion_rule.h"
#include "load/operator_dumps.h"
#include "load/operator_slices.h"
#include "operators/compare_operators.h"
#include "record/call_name.h"

namespace plumbline::operators {

namespace {

// Name, thread and, of arrays, the output.
struct Key {
  std::string_view name;
  int64_t thread, output;

  explicit Key(const load::OperatorDump& dump)
      : name(dump.op_name), thread(dump.thread_id.value_or(-1)), output(dump.output.value_or(-1)) {}
  bool operator==(const Key&) const = default;
};

struct HashOfKey {
  size_t operator()(const Key& key) const {
    const size_t numbers = static_cast<size_t>(key.thread) * 31 + static_cast<size_t>(key.output);
    return std::hash<std::string_view>()(key.name) ^ numbers * 0x9E3779B97F4A7C15;
  }
};

// Files without a counterpart so far, by key; those of one key in the order of the list.
class Waiting {
 public:
  // Borrows the names.
  explicit Waiting(const std::vector<load::OperatorDump>& files) : next_(files.size(), kNone) {
    queues_.reserve(files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      const auto [at, is_new] = queues_.try_emplace(Key(files[i]), Queue{i, i});
      if (is_new) continue;
      next_[at->second.last] = i;
      at->second.last = i;
    }
  }
  // The first one; kNone: there is none left.
  size_t Take(const load::OperatorDump& dump) {
    const auto found = queues_.find(Key(dump));
    if (found == queues_.end() || found->second.first == kNone) return kNone;
    return std::exchange(found->second.first, next_[found->second.first]);
  }

  static constexpr size_t kNone = SIZE_MAX;

 private:
  struct Queue {
    size_t first, last;
  };
  std::unordered_map<Key, Queue, HashOfKey> queues_;
  std::vector<size_t> next_;
};

// All but the name, which may be borrowed.
void TakeGoldenFile(load::OperatorDump& theirs, PairedOperator& pair) {
  pair.golden_path = std::move(theirs.path);
  pair.golden_slices = std::move(theirs.slices);
  pair.golden_file_name = std::move(theirs.file_name);
}

}  // namespace

std::vector<PairedOperator> PairByName(load::OperatorDumps target, load::OperatorDumps golden) {
  Waiting waiting(golden.files);
  std::vector<bool> is_paired(golden.files.size());
  std::vector<PairedOperator> pairs;
  pairs.reserve(target.files.size());
  for (load::OperatorDump& mine : target.files) {
    PairedOperator& pair = pairs.emplace_back();
    pair.index = pairs.size() - 1;
    const size_t found = waiting.Take(mine);
    if (found == Waiting::kNone) {
      pair.reason = "There is no the ground truth dump file for the op " + mine.op_name + ".";
    } else {
      is_paired[found] = true;
      pair.golden_name = mine.op_name;
      TakeGoldenFile(golden.files[found], pair);
    }
    pair.op_type = std::move(mine.op_type);
    pair.target_name = std::move(mine.op_name);
    pair.target_path = std::move(mine.path);
    pair.target_slices = std::move(mine.slices);
    pair.target_file_name = std::move(mine.file_name);
  }
  for (size_t i = 0; i < golden.files.size(); ++i) {
    if (is_paired[i]) continue;
    load::OperatorDump& theirs = golden.files[i];
    PairedOperator& pair = pairs.emplace_back();
    pair.index = pairs.size() - 1;
    pair.reason = "There is no the my output dump file for the op " + theirs.op_name + ".";
    pair.op_type = std::move(theirs.op_type);
    pair.golden_name = std::move(theirs.op_name);
    TakeGoldenFile(theirs, pair);
  }
  return pairs;
}

namespace {

// A chain of producers is followed this far; longer ones are circles.
constexpr int kLongestChain = 64;

bool HasAny(std::string_view text, std::initializer_list<std::string_view> markers) {
  return std::any_of(markers.begin(), markers.end(), [&](std::string_view marker) {
    return text.find(marker) != std::string_view::npos;
  });
}

bool GivesType(const fusion::Operator& op, std::string_view dtype) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [&](const fusion::OutputDesc& output) { return output.dtype == dtype; });
}

bool OnlyMovesData(const fusion::Operator& op) {
  return op.type == "Cast" || op.type == "TransData";
}

// Names that say which group an operator belongs to.
std::string KeyOf(const fusion::Operator& op) {
  if (!op.l1_group.empty()) return "L1 " + op.l1_group;
  if (!op.original_names) return "op " + op.name;
  const std::vector<std::string>& names = *op.original_names;
  if (names.size() == 1) return "op " + (names[0].empty() ? op.name : names[0]);
  std::string key = "ops";
  for (const std::string& name : names) key += '\n' + name;
  return key;
}

FusionRelation RelationOf(const std::vector<const fusion::Operator*>& operators) {
  const fusion::Operator& first = *operators[0];
  const size_t originals = first.original_names ? first.original_names->size() : 1;
  if (operators.size() == 1) {
    return originals == 1 ? FusionRelation::kOneToOne : FusionRelation::kMultiToOne;
  }
  if (!first.l1_group.empty()) return FusionRelation::kL1Fusion;
  return originals == 1 ? FusionRelation::kOneToMulti : FusionRelation::kMultiToMulti;
}

}  // namespace

bool Quantises(const fusion::Operator& op) {
  return GivesType(op, "DT_INT8") &&
         HasAny(op.name,
                {"_quant_layer", "/AscendQuant", "/AscendWeightQuant", ".quant", ".weight_quant"});
}

bool Dequantises(const fusion::Operator& op) {
  return GivesType(op, "DT_FLOAT16") &&
         HasAny(op.name, {"_dequant_layer", "_anti_quant_layer", "/AscendDequant", "/AntiQuant",
                          ".dequant", ".anti_quant"});
}

std::vector<FusionGroup> GroupsOf(const fusion::Rule& rule) {
  std::vector<FusionGroup> groups;
  std::map<std::string, size_t> known;
  for (const fusion::Operator& op : rule.operators) {
    const auto [entry, is_new] = known.try_emplace(KeyOf(op), groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].operators.push_back(&op);
  }
  for (FusionGroup& group : groups) group.relation = RelationOf(group.operators);
  return groups;
}

RuleIndex::RuleIndex(const fusion::Rule& rule) {
  for (const fusion::Operator& op : rule.operators) {
    by_name_.try_emplace(op.name, &op);
    for (const fusion::InputRef& input : op.inputs) users_[input.producer].push_back(&op);
    if (OnlyMovesData(op)) continue;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (const auto origin = OriginOf(op, i)) {
        holders_.try_emplace({origin->name, origin->index}, &op, i);
      }
    }
  }
}

const fusion::Operator* RuleIndex::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::optional<OriginalOutput> RuleIndex::OriginOf(const fusion::Operator& op, size_t output) {
  OriginalOutput origin;
  origin.index = output;
  if (output < op.outputs.size()) {
    const fusion::OutputDesc& desc = op.outputs[output];
    origin.index = desc.origin_index;
    origin.format = desc.origin_format;
    origin.shape = desc.origin_shape;
    origin.name = desc.origin_name.value_or("");
  }
  if (!origin.name.empty()) return origin;
  if (op.original_names && op.original_names->size() != 1) return std::nullopt;
  origin.name = op.original_names ? op.original_names->front() : op.name;
  if (origin.name.empty()) return std::nullopt;
  return origin;
}

std::optional<OriginalOutput> RuleIndex::OriginOf(const fusion::InputRef& input) const {
  const fusion::InputRef* at = &input;
  for (int i = 0; i < kLongestChain; ++i) {
    const fusion::Operator* producer = Find(at->producer);
    if (producer == nullptr) return OriginalOutput{at->producer, at->index, "", {}};
    if (!OnlyMovesData(*producer) || producer->inputs.empty()) {
      return OriginOf(*producer, at->index);
    }
    at = &producer->inputs[0];
  }
  return std::nullopt;
}

std::optional<std::pair<const fusion::Operator*, size_t>> RuleIndex::HolderOf(
    const std::string& original, size_t index) const {
  const auto found = holders_.find({original, index});
  if (found == holders_.end()) return std::nullopt;
  return found->second;
}

bool RuleIndex::FeedsOnly(const fusion::Operator& op,
                          const std::set<std::string_view>& names) const {
  const auto found = users_.find(op.name);
  if (found == users_.end()) return false;
  return std::all_of(found->second.begin(), found->second.end(),
                     [&](const fusion::Operator* user) { return names.contains(user->name); });
}

bool RuleIndex::IsBetweenQuantAndDequant(const fusion::Operator& op) const {
  if (Quantises(op) || Dequantises(op)) return false;
  std::vector<const fusion::Operator*> open = {&op};
  std::set<std::string_view> seen = {op.name};
  while (!open.empty()) {
    const fusion::Operator* at = open.back();
    open.pop_back();
    for (const fusion::InputRef& input : at->inputs) {
      const fusion::Operator* producer = Find(input.producer);
      if (producer == nullptr || Dequantises(*producer)) continue;
      if (Quantises(*producer)) return true;
      if (seen.insert(producer->name).second) open.push_back(producer);
    }
  }
  return false;
}

namespace {

// The newest file of each operator, or of each of its outputs.
class NewestFiles {
 public:
  explicit NewestFiles(const load::OperatorDumps& dumps)
      : is_array_(dumps.kind != load::OperatorDumpKind::kOffline) {
    for (const load::OperatorDump& dump : dumps.files) {  // oldest first
      files_[{dump.op_name, dump.output.value_or(0)}] = &dump;
    }
  }

  [[nodiscard]] bool is_array() const { return is_array_; }
  [[nodiscard]] const load::OperatorDump* Find(const std::string& name, size_t output) const {
    const int64_t index = is_array_ ? static_cast<int64_t>(output) : 0;
    auto found = files_.find({MangledKernel(name), index});
    if (found == files_.end()) found = files_.find({load::NameInModel(MangledKernel(name)), index});
    return found == files_.end() ? nullptr : found->second;
  }

 private:
  bool is_array_;
  std::map<std::pair<std::string, int64_t>, const load::OperatorDump*> files_;
};

// Whether the compiler put the operator in: it has no original, and the file says so.
bool StandsForNothing(const fusion::Operator& op) {
  return op.original_names == std::vector<std::string>{""};
}

class RulePairer {
 public:
  explicit RulePairer(const RuleInputs& inputs)
      : inputs_(inputs), rule_(inputs.rule), mine_(inputs.target), golden_(inputs.golden) {
    if (inputs.quant_rule != nullptr) quant_.emplace(*inputs.quant_rule);
    if (inputs.unfused_rule != nullptr) unfused_.emplace(*inputs.unfused_rule);
  }

  RulePairs Run();

 private:
  void AddGroup(const FusionGroup& group, size_t index);
  // My files whose operators the rule file does not have, as rows from `index` on.
  void AddUnknown(size_t index);
  // Tensors of an operator of a group: which ones, and what they are compared with.
  std::vector<TensorTask> TasksOf(const fusion::Operator& op, const FusionGroup& group) const;
  bool WantsInput(const fusion::Operator& op, size_t input, const FusionGroup& group) const;
  bool WantsOutputs(const fusion::Operator& op, const FusionGroup& group) const;
  [[nodiscard]] TensorTask TaskFor(const TensorPlace& place,
                                   std::optional<OriginalOutput> origin) const;
  [[nodiscard]] std::optional<OriginalOutput> BeforeQuantising(
      std::optional<OriginalOutput> origin) const;
  [[nodiscard]] std::string OriginalNames(const fusion::Operator& op) const;

  const RuleInputs& inputs_;
  RuleIndex rule_;
  std::optional<RuleIndex> quant_, unfused_;
  NewestFiles mine_, golden_;
  RulePairs result_;
};

std::optional<OriginalOutput> RulePairer::BeforeQuantising(
    std::optional<OriginalOutput> origin) const {
  if (!origin || !quant_) return origin;
  const fusion::Operator* quantised = quant_->Find(origin->name);
  if (quantised == nullptr) return origin;
  return RuleIndex::OriginOf(*quantised, origin->index);
}

TensorTask RulePairer::TaskFor(const TensorPlace& place,
                               std::optional<OriginalOutput> origin) const {
  TensorTask task{place, std::nullopt, ""};
  origin = BeforeQuantising(std::move(origin));
  if (!origin) {
    task.missing = "The rule file names no original of this tensor.";
    return task;
  }
  std::string name = origin->name;
  size_t output = origin->index;
  if (unfused_) {
    if (const auto holder = unfused_->HolderOf(name, output)) {
      name = holder->first->name;
      output = holder->second;
    }
  }
  const load::OperatorDump* file = golden_.Find(name, output);
  if (file == nullptr) {
    task.missing =
        fmt::format("There is no the ground truth dump file for the op {}:{}.", name, output);
    return task;
  }
  task.golden = GoldenTensor{file->path,         file->file_name, file->slices, name,
                             golden_.is_array(), {false, output}, {},           {}};
  task.golden->format = ParseDeviceFormat(origin->format);
  task.golden->sizes = origin->shape;
  return task;
}

bool RulePairer::WantsInput(const fusion::Operator& op, size_t input,
                            const FusionGroup& group) const {
  if (Dequantises(op)) return false;
  if (group.relation != FusionRelation::kMultiToMulti) return true;
  const auto is_producer = [&](const fusion::Operator* other) {
    return other->name == op.inputs[input].producer;
  };
  return std::none_of(group.operators.begin(), group.operators.end(), is_producer);
}

bool RulePairer::WantsOutputs(const fusion::Operator& op, const FusionGroup& group) const {
  if (op.type == "AscendQuant") return false;
  if (group.relation != FusionRelation::kMultiToMulti) return true;
  std::set<std::string_view> names;
  for (const fusion::Operator* other : group.operators) names.insert(other->name);
  return !rule_.FeedsOnly(op, names);
}

std::vector<TensorTask> RulePairer::TasksOf(const fusion::Operator& op,
                                            const FusionGroup& group) const {
  std::vector<TensorTask> tasks;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (WantsInput(op, i, group)) tasks.push_back(TaskFor({true, i}, rule_.OriginOf(op.inputs[i])));
  }
  if (!WantsOutputs(op, group)) return tasks;
  for (size_t i = 0; i < std::max<size_t>(1, op.outputs.size()); ++i) {
    tasks.push_back(TaskFor({false, i}, RuleIndex::OriginOf(op, i)));
    tasks.back().stands_for_nothing = !tasks.back().golden && StandsForNothing(op);
  }
  return tasks;
}

std::string RulePairer::OriginalNames(const fusion::Operator& op) const {
  if (!op.original_names) return op.name;
  std::string names;
  for (const std::string& name : *op.original_names) {
    if (!name.empty()) names += (names.empty() ? "" : ",") + name;
  }
  return names.empty() ? "*" : names;
}

// The operators of an L1 fusion that are compared: the first one that ran for its inputs, the last
// one for its outputs.
std::pair<const fusion::Operator*, const fusion::Operator*> EndsOf(const FusionGroup& group,
                                                                   const NewestFiles& files) {
  const fusion::Operator *first = nullptr, *last = nullptr;
  uint64_t oldest = 0, newest = 0;
  for (const fusion::Operator* op : group.operators) {
    const load::OperatorDump* file = files.Find(op->name, 0);
    if (file == nullptr) continue;
    if (first == nullptr || file->timestamp < oldest) {
      first = op;
      oldest = file->timestamp;
    }
    if (last == nullptr || file->timestamp >= newest) {
      last = op;
      newest = file->timestamp;
    }
  }
  return {first, last};
}

void RulePairer::AddGroup(const FusionGroup& group, size_t index) {
  const bool is_l1 = group.relation == FusionRelation::kL1Fusion;
  const auto [first, last] = is_l1 ? EndsOf(group, mine_) : std::pair{nullptr, nullptr};
  const bool skips_quantised = inputs_.golden.kind == load::OperatorDumpKind::kStandard;
  for (const fusion::Operator* op : group.operators) {
    if (is_l1 && op != first && op != last) continue;
    if (skips_quantised && rule_.IsBetweenQuantAndDequant(*op)) {
      result_.notes.push_back(op->name + ": computes with quantised values; left out");
      continue;
    }
    PairedOperator pair;
    pair.index = index;
    pair.sequence = op->id;
    pair.op_type = op->type;
    pair.target_name = op->name;
    pair.golden_name = OriginalNames(*op);
    std::vector<TensorTask> tasks = TasksOf(*op, group);
    if (is_l1 && first != last) {
      std::erase_if(tasks, [&, at = op, only = first](const TensorTask& task) {
        return task.target.is_input != (at == only);
      });
    }
    const load::OperatorDump* file = mine_.Find(op->name, 0);
    if (file != nullptr) {
      result_.has_target_file = true;
      pair.target_path = file->path;
      pair.target_slices = file->slices;
      pair.target_file_name = file->file_name;
      if (!tasks.empty()) {
        pair.tasks = std::move(tasks);
        result_.pairs.push_back(std::move(pair));
      }
      continue;
    }
    const bool has_golden = std::any_of(tasks.begin(), tasks.end(), [](const TensorTask& task) {
      return task.golden && !task.target.is_input;
    });
    if (!has_golden || op->type == "Data") continue;
    pair.reason = "There is no the my output dump file for the op " + op->name + ".";
    result_.pairs.push_back(std::move(pair));
  }
}

void RulePairer::AddUnknown(size_t index) {
  std::set<std::string> known;
  for (const fusion::Operator& op : inputs_.rule.operators) {
    known.insert(MangledKernel(op.name));
    known.insert(load::NameInModel(MangledKernel(op.name)));
  }
  for (const load::OperatorDump& dump : inputs_.target.files) {
    if (!known.insert(dump.op_name).second) continue;
    PairedOperator pair;
    pair.index = index++;
    pair.op_type = dump.op_type;
    pair.target_name = dump.op_name;
    pair.target_path = dump.path;
    pair.reason = "The rule file has no operator " + dump.op_name + ".";
    result_.pairs.push_back(std::move(pair));
  }
}

RulePairs RulePairer::Run() {
  const std::vector<FusionGroup> groups = GroupsOf(inputs_.rule);
  for (size_t i = 0; i < groups.size(); ++i) AddGroup(groups[i], i);
  AddUnknown(groups.size());
  for (const fusion::Operator& op : inputs_.rule.operators) {
    if (op.type == "Data") result_.input_nodes.push_back(op.name);
  }
  return std::move(result_);
}

}  // namespace

RulePairs PairByRule(const RuleInputs& inputs) { return RulePairer(inputs).Run(); }

namespace {

using load::OperatorDumpKind;
using load::OperatorDumps;

Error WrongOption(const OperatorDumps& target, const OperatorDumps& golden, std::string_view what) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("When the left side is {}{} and the right side is {}{}, {}.",
                      OperatorDumpKindName(target.kind), target.is_quantised ? " (quantised)" : "",
                      OperatorDumpKindName(golden.kind), golden.is_quantised ? " (quantised)" : "",
                      what)};
}

// Which rule files the two kinds of recordings need or refuse.
Status CheckKinds(const OperatorRequest& request, const OperatorDumps& target,
                  const OperatorDumps& golden) {
  const bool f = !request.fusion_rule.empty();
  const bool q = !request.quant_rule.empty();
  const bool cf = !request.unfused_rule.empty();
  const auto wrong = [&](std::string_view what) { return WrongOption(target, golden, what); };
  if (target.kind == OperatorDumpKind::kOffline && golden.kind == OperatorDumpKind::kOffline) {
    if (q) return wrong("-q is not allowed");
    if (f != cf) return wrong("-f and -cf must be given both or none");
    if (target.is_quantised != golden.is_quantised) {
      return wrong("both sides must be quantised or none");
    }
    return {};
  }
  if (target.kind == OperatorDumpKind::kOffline) {
    if (cf) return wrong("-cf is not allowed");
    if (!f) return wrong("-f is required");
    const bool needs_q = target.is_quantised && golden.kind == OperatorDumpKind::kStandard;
    if (q && !needs_q) return wrong("-q is not allowed");
    if (!q && needs_q) return wrong("-q is required");
    if (golden.kind == OperatorDumpKind::kQuant && !target.is_quantised) {
      return wrong("the left side must be quantised");
    }
    return {};
  }
  if (target.kind == OperatorDumpKind::kQuant && golden.kind == OperatorDumpKind::kStandard) {
    if (f || cf) return wrong("-f and -cf are not allowed");
    if (!q) return wrong("-q is required");
    return {};
  }
  return wrong("this scenario cannot be compared");
}

Result<std::optional<fusion::Rule>> ReadIfGiven(const std::string& path) {
  if (path.empty()) return std::optional<fusion::Rule>();
  PL_TRY_ASSIGN(fusion::Rule rule, fusion::Read(path));
  return std::optional<fusion::Rule>(std::move(rule));
}

// Gives operators of a rule file without execution numbers their place in the file.
void NumberOperators(fusion::Rule& rule) {
  const bool has_ids = std::any_of(rule.operators.begin(), rule.operators.end(),
                                   [](const fusion::Operator& op) { return op.id != 0; });
  if (has_ids) return;
  for (size_t i = 0; i < rule.operators.size(); ++i) {
    rule.operators[i].id = static_cast<int64_t>(i) + 1;
  }
}

// Gives the parts of an operator that was cut by hand the name of the whole, and leaves one of
// them.
void JoinSlicedOperators(fusion::Rule& rule) {
  const auto join = [](std::string& name) {
    const std::optional<load::SliceName> slice = load::ParseSliceName(name);
    if (slice) name = slice->whole;
    return slice.has_value();
  };
  std::set<std::string> joined;
  std::erase_if(rule.operators, [&](fusion::Operator& op) {
    for (fusion::InputRef& input : op.inputs) join(input.producer);
    return join(op.name) && !joined.insert(op.name).second;
  });
}

Status CheckSpan(std::array<int64_t, 3>& span, int64_t count) {
  auto& [start, end, step] = span;
  if (end == -1) end = count;
  if (start < 1 || start > count || end < start || end > count || step < 1 ||
      (step >= count && count > 1)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("-r {},{},{}: out of the network (expected 1 <= start <= end <= {} "
                             "and a step from 1 to {})",
                             start, end, step, count, count - 1));
  }
  return {};
}

// Keeps the pairs of a range.
Status Select(const OperatorRange& range, int64_t count, OperatorComparison& comparison) {
  if (!range.is_set()) return {};
  comparison.has_sequence = true;
  std::set<int64_t> wanted;
  if (range.span) {
    auto span = *range.span;
    PL_TRY(CheckSpan(span, count));
    for (int64_t at = span[0]; at <= span[1]; at += span[2]) wanted.insert(at);
    wanted.insert(span[1]);
  }
  for (const int64_t at : range.chosen) {
    if (at >= 1 && at <= count) {
      wanted.insert(at);
    } else {
      comparison.notes.push_back(
          fmt::format("-s {}: there is no such operator (expected 1 to {})", at, count));
    }
  }
  if (wanted.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("-s: no operator has one of these numbers (expected 1 to {})", count));
  }
  std::erase_if(comparison.pairs,
                [&](const PairedOperator& pair) { return !wanted.contains(pair.sequence); });
  return {};
}

Status PairWithRule(const OperatorRequest& request, const OperatorDumps& target,
                    const OperatorDumps& golden, OperatorComparison& comparison) {
  PL_TRY_ASSIGN(std::optional<fusion::Rule> rule, ReadIfGiven(request.fusion_rule));
  PL_TRY_ASSIGN(std::optional<fusion::Rule> quant, ReadIfGiven(request.quant_rule));
  PL_TRY_ASSIGN(const std::optional<fusion::Rule> unfused, ReadIfGiven(request.unfused_rule));
  if (!rule) rule = std::exchange(quant, std::nullopt);  // the quantised model is my side
  NumberOperators(*rule);
  if (!request.slice_by_slice) JoinSlicedOperators(*rule);
  RulePairs found =
      PairByRule({*rule, quant ? &*quant : nullptr, unfused ? &*unfused : nullptr, target, golden});
  if (!found.has_target_file) {
    return Error(ErrorCode::kNotFound,
                 "The model does not match the dump data, please check the model and the dump data "
                 "again.");
  }
  comparison.pairs = std::move(found.pairs);
  comparison.input_nodes = std::move(found.input_nodes);
  std::move(found.notes.begin(), found.notes.end(), std::back_inserter(comparison.notes));
  int64_t count = 0;
  for (const fusion::Operator& op : rule->operators) count = std::max(count, op.id);
  return Select(request.range, count, comparison);
}

}  // namespace

Result<OperatorComparison> PairOperators(const OperatorRequest& request) {
  OperatorComparison comparison;
  for (const measure::DumpAlgorithm algorithm : request.algorithms) {
    comparison.algorithms.emplace_back(measure::DumpAlgorithmName(algorithm));
  }
  const std::vector<std::string>& own = request.own.algorithms;
  comparison.algorithms.insert(comparison.algorithms.end(), own.begin(), own.end());
  const auto read = [&request](const std::string& directory) {
    Result<OperatorDumps> dumps = load::ReadOperatorDumps(directory);
    if (!dumps) return dumps;
    if (request.slice_by_slice) {
      load::CountSlices(*dumps);
    } else {
      load::JoinSlices(*dumps);
    }
    return dumps;
  };
  Result<OperatorDumps> target_read, golden_read;
  RunWithThreads(request.threads, [&] {
    RunBoth([&] { target_read = read(request.target); },
            [&] { golden_read = read(request.golden); });
  });
  PL_TRY_ASSIGN(OperatorDumps target, std::move(target_read));
  PL_TRY_ASSIGN(OperatorDumps golden, std::move(golden_read));
  PL_TRY(CheckKinds(request, target, golden));
  if (request.most_elements > 0) {
    comparison.notes.push_back(fmt::format(
        "only the first {} elements of each tensor were compared", request.most_elements));
  }
  comparison.is_target_array = target.kind != OperatorDumpKind::kOffline;
  comparison.is_golden_array = golden.kind != OperatorDumpKind::kOffline;
  for (OperatorDumps* dumps : {&target, &golden}) {
    std::move(dumps->notes.begin(), dumps->notes.end(), std::back_inserter(comparison.notes));
    comparison.unnamed += dumps->unnamed;
  }
  if (!request.fusion_rule.empty() || !request.quant_rule.empty()) {
    PL_TRY(PairWithRule(request, target, golden, comparison));
    return comparison;
  }
  if (request.range.is_set()) {
    return Error(ErrorCode::kInvalidArgument, "-r and -s take effect only when the -f exists.");
  }
  comparison.pairs = PairByName(std::move(target), std::move(golden));
  return comparison;
}

}  // namespace plumbline::operators
