#include "explain/next_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "measure/compared_row.h"
#include "record/call_name.h"
#include "record/value.h"
#include "verdict/cause_candidates.h"
#include "verdict/choose_culprit.h"

namespace plumbline::explain {
namespace {

constexpr size_t kMostListed = 24;

struct Plan {
  std::string task = "tensor", level;
  std::vector<std::string> scope, list;
};

std::string ListText(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names) {
    if (text.size() > 1) text += ", ";
    json::AppendString(name, text);
  }
  return text + "]";
}

const ComparedCall* CallNamed(const Comparison& comparison, std::string_view name) {
  const auto found = std::find_if(comparison.calls.begin(), comparison.calls.end(),
                                  [&](const ComparedCall& each) { return each.name() == name; });
  return found == comparison.calls.end() ? nullptr : &*found;
}

void AddName(const std::string& name, std::vector<std::string>& names) {
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  if (!name.empty() && !known && names.size() < kMostListed) names.push_back(name);
}

// The last row before `end` that shows an output of the contents of `wanted`.
std::optional<size_t> LastOutputOf(const Comparison& comparison, const Item& wanted, size_t end) {
  constexpr size_t kBlock = size_t{1} << 18, kShare = size_t{1} << 13;
  while (end > 0) {
    const size_t begin = end - std::min(end, kBlock);
    std::atomic<size_t> found = begin;  // behind it
    ParallelBlocks(end - begin, kShare, [&](size_t from, size_t to) {
      for (size_t j = begin + to; j > begin + from && j > found; --j) {
        const Item& item = comparison.rows[j - 1].item();
        if (item.role != ItemRole::kOutput || !verdict::HasSameContents(item, wanted)) continue;
        for (size_t last = found; last < j && !found.compare_exchange_weak(last, j);) {
        }
      }
    });
    if (found > begin) return found - 1;
    end = begin;
  }
  return std::nullopt;
}

// The call that made the contents of an input, on either side.
void AddProducers(const Comparison& comparison, const ComparedCall& call,
                  std::vector<std::string>& names) {
  for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
    const ComparedRow& row = comparison.rows[i];
    if (row.item().role != ItemRole::kInput) continue;
    if (const auto made = LastOutputOf(comparison, row.item(), i)) {
      AddName(comparison.calls[comparison.rows[*made].call].name(), names);
    }
    if (!row.target || !row.golden) continue;
    AddName(verdict::UnmatchedProducer(comparison, row, true), names);
    AddName(verdict::UnmatchedProducer(comparison, row, false), names);
  }
}

// The module of an entry of parameter gradients: "Module.fc.Linear." of its name.
std::string ModuleOfGradients(const std::string& name) {
  const size_t at = name.find("parameters_grad");
  return at == std::string::npos ? std::string() : name.substr(0, at);
}

// Names that make the recorder keep the call, what it came from and its forward call.
std::vector<std::string> NamesAround(const Comparison& comparison, const ComparedCall& call) {
  std::vector<std::string> names;
  const std::string module = ModuleOfGradients(call.name());
  AddName(module.empty() ? std::string(call.name()) : module, names);
  AddName(verdict::ForwardNameOf(call.name()), names);
  AddProducers(comparison, call, names);
  return names;
}

// Where rows differ and no call is named: those calls with their tensors, which would settle it.
std::optional<Plan> PlanForUnnamed(const Run& target, const Comparison& comparison) {
  if (comparison.mode == CompareMode::kTensor || comparison.of_saves) return std::nullopt;
  const std::string& level = target.header().level;
  Plan plan{"tensor", level.empty() ? "L1" : level, {}, {}};
  // What the sides call in another form may be where they part.
  for (const ComparedCall& call : comparison.calls) {
    if (call.unmatched_reason.ends_with("-differs")) AddName(call.target_name, plan.list);
  }
  const size_t forms = plan.list.size();
  for (const ComparedRow& row : comparison.rows) {
    if (!measure::IsBad(row.verdict) || row.reason == "inherited") continue;
    AddName(comparison.calls[row.call].name(), plan.list);
    AddName(verdict::ForwardNameOf(comparison.calls[row.call].name()), plan.list);
  }
  return plan.list.size() == forms ? std::nullopt : std::optional(plan);
}

// What is finer than the recording at hand; nothing when it is as fine as it gets.
std::optional<Plan> PlanFor(const Run& target, const Comparison& comparison) {
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  const std::string& level = target.header().level;
  if (comparison.of_saves) return Plan{"statistics", "mix", {}, {}};
  const ComparedCall* call = CallNamed(comparison, answer.name);
  if (call == nullptr) return std::nullopt;
  const bool is_module = answer.name.starts_with("Module.") || answer.name.starts_with("Cell.");
  if (is_module && level == "L0") {
    Plan plan{"tensor", "mix", {}, {}};
    if (verdict::ForwardNameOf(answer.name).empty() && ModuleOfGradients(answer.name).empty()) {
      plan.scope = {answer.name, answer.name};
    } else {
      plan.list = NamesAround(comparison, *call);
    }
    return plan;
  }
  if (comparison.mode != CompareMode::kTensor) {
    return Plan{"tensor", level.empty() ? "L1" : level, {}, NamesAround(comparison, *call)};
  }
  const bool is_settled = answer.confidence == "high" && answer.cause != "unexplained";
  const std::optional<CallName> name = ParseCallName(answer.name);
  const bool is_api = name && name->form == CallName::Form::kApi;
  if (is_settled || !is_api || level == "L2") return std::nullopt;
  return Plan{"tensor", "L2", {}, {answer.name}};
}

// Number in the last part of a path such as "step3"; nothing for other names.
std::string NumberIn(std::string_view path, std::string_view prefix) {
  const auto number = NaturalAfter(prefix, BaseName(path));
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

std::string NextConfigText(const Run& target, const Comparison& comparison) {
  const std::optional<Plan> plan = comparison.first_wrong_call ? PlanFor(target, comparison)
                                                               : PlanForUnnamed(target, comparison);
  if (!plan) return {};
  const Result<std::string> path = AbsolutePath(target.dump_json_path());
  const std::string_view rank_path = DirectoryOf(path ? *path : target.dump_json_path());
  const std::string rank = NumberIn(rank_path, "rank");
  const std::string step = NumberIn(DirectoryOf(rank_path), "step");
  std::string text = fmt::format(
      "{{\n  \"task\": \"{}\",\n  \"dump_path\": \"./dump_next\",\n  \"rank\": [{}],\n"
      "  \"step\": [{}],\n  \"level\": \"{}\",\n",
      plan->task, rank, step, plan->level);
  text += fmt::format(
      "  \"{}\": {{\n    \"scope\": {},\n    \"list\": {},\n"
      "    \"data_mode\": [\"all\"]\n  }}\n}}\n",
      plan->task, ListText(plan->scope), ListText(plan->list));
  return text;
}

Status WriteNextConfig(const std::string& path, Comparison& comparison) {
  if (comparison.next_config.empty()) {
    const bool differs = std::ranges::any_of(
        comparison.rows, [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
    comparison.warnings.push_back(fmt::format(
        "{}: not written, {}", path,
        comparison.first_wrong_call ? "the tensors of the first wrong call are recorded already"
        : differs                   ? "the tensors of the calls that differ are recorded already"
                                    : "no call is wrong"));
    return {};
  }
  PL_TRY(WriteFileAtomically(path, comparison.next_config, false));
  comparison.files.push_back(path);
  return {};
}

}  // namespace plumbline::explain
