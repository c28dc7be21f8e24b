#include "pipeline/operators/rule_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "load/operator_slices.h"
#include "pipeline/operators/fusion_groups.h"
#include "record/graph_name.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
