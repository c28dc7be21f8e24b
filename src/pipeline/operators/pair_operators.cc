#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "formats/fusion_rule.h"
#include "load/operator_dumps.h"
#include "load/operator_slices.h"
#include "pipeline/operators/compare_operators.h"
#include "pipeline/operators/name_pairs.h"
#include "pipeline/operators/rule_pairs.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
