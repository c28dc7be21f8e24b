#include "pipeline/default_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "measure/compared_row.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/row_verdict.h"
#include "plumbline/tensor.h"

namespace plumbline::pipeline {
namespace {

using match::CallItems;
using match::CallPair;

// Whether it holds arguments of one side alone, of the pair before it.
bool IsDefault(const CallPair& pair) { return pair.reason == CallPair::kDefault; }

// "eps=1e-06", or "input.1=0.2" where it has a place only.
std::string ArgumentText(const Item& item, std::string_view call_name) {
  constexpr std::string_view kInput = "input.";
  std::string_view name = measure::ShortName(item, call_name);
  const bool has_keyword = name.starts_with(kInput) && name.size() > kInput.size() &&
                           (name[kInput.size()] < '0' || name[kInput.size()] > '9');
  if (has_keyword) name.remove_prefix(kInput.size());
  return fmt::format("{}={}", name, ShownValue(item.statistics[0]));
}

std::string DetailOf(const DefaultArguments& arguments, std::string_view call_name) {
  std::string list;
  for (const Item& item : arguments.items) {
    if (!list.empty()) list += ", ";
    list += ArgumentText(item, call_name);
  }
  return arguments.of_target
             ? fmt::format("only the target passes {}, which golden leaves to its default", list)
             : fmt::format("only golden passes {}, which the target leaves to its default", list);
}

// What calls of one side alone read and return: what is done there may stand for the argument.
class LoneValues {
 public:
  LoneValues(const std::vector<CallItems>& target, const std::vector<CallItems>& golden)
      : target_(target), golden_(golden) {}

  void AddCallsOf(const CallPair& pair) {
    if (pair.target != CallPair::kNone) Add(target_[pair.target], of_target_);
    if (pair.golden != CallPair::kNone) Add(golden_[pair.golden], of_golden_);
  }
  // Whether the pair reads what such a call made, or makes what one reads.
  [[nodiscard]] bool Meet(const CallPair& pair) const {
    return Meets(target_[pair.target], of_target_) || Meets(golden_[pair.golden], of_golden_);
  }

 private:
  struct Side {
    std::unordered_set<ContentKey, ContentKeyHash> read, made;
  };

  static void Add(const CallItems& call, Side& side) {
    if (call.kind != CallKind::kForward) return;
    for (const Item& item : call.items) {
      const auto key = item.is_tensor && IsTelling(item) ? KeyOf(item) : std::nullopt;
      if (key) (measure::IsInput(item) ? side.read : side.made).insert(*key);
    }
  }
  static bool Meets(const CallItems& call, const Side& side) {
    return std::ranges::any_of(call.items, [&](const Item& item) {
      const auto key = item.is_tensor && IsTelling(item) ? KeyOf(item) : std::nullopt;
      return key && (measure::IsInput(item) ? side.made : side.read).contains(*key);
    });
  }

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  Side of_target_, of_golden_;
};

// Parts a pair whose arguments are the next entry, into calls of another form.
CallPair Part(const CallItems& target, const CallItems& golden, CallPair& pair,
              CallPair& arguments) {
  const bool of_target = arguments.target != CallPair::kNone;
  const auto& [a, b] = arguments.links.front();
  const Item& first = of_target ? target.items[a] : golden.items[b];
  CallPair other;
  other.golden = pair.golden;
  other.counterpart = pair.target;
  pair.counterpart = pair.golden;
  pair.golden = CallPair::kNone;
  pair.rule = {};
  pair.links.clear();
  for (CallPair* each : {&pair, &other}) {
    each->reason = "structure-differs";
    each->detail = fmt::format("only {} has {}", of_target ? "target" : "golden", first.name);
    each->role = first.role;
  }
  return other;
}

// Pairs beside which one side makes calls of its own are parted: a sum instead of a mean is divided
// there, say.
void PartOtherWays(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
                   std::vector<CallPair>& pairs) {
  LoneValues lone(target, golden);
  for (const CallPair& pair : pairs) {
    if (!pair.paired() && !IsDefault(pair) && pair.reason != "recomputed") lone.AddCallsOf(pair);
  }
  std::vector<CallPair> alone;
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 1; i < pairs.size(); ++i) {
      CallPair& pair = pairs[i - 1];
      if (!IsDefault(pairs[i]) || !pair.paired() || !lone.Meet(pair)) continue;
      alone.push_back(Part(target[pair.target], golden[pair.golden], pair, pairs[i]));
      lone.AddCallsOf(pair);
      lone.AddCallsOf(alone.back());
      again = true;
    }
  }
  pairs.insert(pairs.end(), std::make_move_iterator(alone.begin()),
               std::make_move_iterator(alone.end()));
}

// The call of the arguments alone.
ComparedCall CallOf(const DefaultArguments& arguments, const ComparedCall& pair) {
  ComparedCall call;
  (arguments.of_target ? call.target_name : call.golden_name) =
      arguments.of_target ? pair.target_name : pair.golden_name;
  call.unmatched_reason = CallPair::kDefault;
  return call;
}

ComparedRow RowOf(const Item& item, bool of_target, CompareMode mode) {
  ComparedRow row;
  (of_target ? row.target : row.golden) = Item(item);
  row.result = mode == CompareMode::kTensor ? "None" : "N/A";
  row.reason = CallPair::kDefault;
  row.notes.push_back({std::string(CallPair::kDefault),
                       "Only this side passes the argument; the other leaves it to its default."});
  return row;
}

std::vector<ComparedRow> RowsOf(const DefaultArguments& arguments, CompareMode mode) {
  std::vector<ComparedRow> rows;
  for (const Item& item : arguments.items) rows.push_back(RowOf(item, arguments.of_target, mode));
  return rows;
}

// Whether equal inputs give results that are not equal, be it by rounding, or statistics of narrow
// types cannot tell: then the argument may be another than the default, whose effect is as small.
bool MayDifferByItself(std::span<const ComparedRow> rows, CompareMode mode) {
  bool differs = false;
  for (const ComparedRow& row : rows) {
    if (!measure::HasTensors(row)) continue;
    const bool is_rounded = row.verdict == Verdict::kWithinNoise;
    if (is_rounded && measure::IsInput(row)) return false;
    const bool is_coarse =
        mode == CompareMode::kStatistics &&
        measure::RoundoffOf(*row.golden, *row.golden) > UnitRoundoff(DType::kFloat32);
    differs = differs || (!measure::IsInput(row) && (is_rounded || is_coarse));
  }
  return differs;
}

// How many of the arguments of a judged pair may act although nothing is wrong in what it returns.
size_t CountThatMayAct(const DefaultArguments& arguments, const ComparedCall& pair,
                       std::span<const ComparedRow> rows, CompareMode mode) {
  if (MayDifferByItself(rows, mode)) return arguments.items.size();
  return static_cast<size_t>(std::ranges::count_if(arguments.items, [&](const Item& item) {
    const ComparedRow row = RowOf(item, arguments.of_target, CompareMode::kStatistics);
    return MayActUnseen(row, measure::NameOn(pair, arguments.of_target), rows);
  }));
}

void WarnOf(const std::vector<std::string>& unsure, Comparison& comparison) {
  constexpr size_t kMostNamed = 5;
  for (size_t i = 0; i < std::min(unsure.size(), kMostNamed); ++i) {
    comparison.warnings.push_back(unsure[i] + "; what it does cannot be told from rounding");
  }
  if (unsure.size() > kMostNamed) {
    comparison.warnings.push_back(fmt::format("{} more calls take such arguments on one side alone",
                                              unsure.size() - kMostNamed));
  }
}

}  // namespace

std::vector<DefaultArguments> TakeDefaultArguments(std::vector<CallPair>& pairs,
                                                   const std::vector<CallItems>& target,
                                                   const std::vector<CallItems>& golden) {
  if (std::ranges::none_of(pairs, IsDefault)) return {};
  PartOtherWays(target, golden, pairs);
  std::vector<DefaultArguments> taken;
  size_t kept = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    CallPair& pair = pairs[i];
    if (!IsDefault(pair) || kept == 0) {
      if (kept != i) pairs[kept] = std::move(pair);
      ++kept;
      continue;
    }
    if (!pairs[kept - 1].paired()) continue;
    DefaultArguments& arguments = taken.emplace_back();
    arguments.call = static_cast<uint32_t>(kept - 1);
    arguments.of_target = pair.target != CallPair::kNone;
    const CallItems& call = arguments.of_target ? target[pair.target] : golden[pair.golden];
    for (const auto& [a, b] : pair.links) {
      arguments.items.push_back(call.items[arguments.of_target ? a : b]);
    }
    pairs[kept - 1].detail = DetailOf(arguments, call.name);
  }
  pairs.resize(kept);
  return taken;
}

void AddDefaultArguments(std::vector<DefaultArguments> arguments, Comparison& comparison) {
  if (arguments.empty()) return;
  std::vector<ComparedCall> calls;
  std::vector<ComparedRow> rows;
  calls.reserve(comparison.calls.size() + arguments.size());
  const auto add = [&](ComparedCall call, auto begin, auto end) {
    call.first_row = static_cast<uint32_t>(rows.size());
    call.row_count = static_cast<uint32_t>(end - begin);
    rows.insert(rows.end(), std::move_iterator(begin), std::move_iterator(end));
    for (ComparedRow& row : std::span(rows).last(call.row_count)) {
      row.call = static_cast<uint32_t>(calls.size());
    }
    calls.push_back(std::move(call));
  };
  std::vector<std::string> unsure;
  auto next = arguments.begin();
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& pair = comparison.calls[i];
    for (auto each = next; each != arguments.end() && each->call == i; ++each) {
      const auto own = measure::RowsOf(comparison, pair);
      const size_t count = CountThatMayAct(*each, pair, own, comparison.mode);
      comparison.counts.missing_values += count;
      if (count > 0) unsure.push_back(pair.name() + ": " + pair.unmatched_detail);
    }
    const auto own = comparison.rows.begin() + pair.first_row;
    add(pair, own, own + pair.row_count);
    for (; next != arguments.end() && next->call == i; ++next) {
      std::vector<ComparedRow> alone = RowsOf(*next, comparison.mode);
      add(CallOf(*next, pair), alone.begin(), alone.end());
    }
  }
  comparison.calls = std::move(calls);
  comparison.rows = std::move(rows);
  WarnOf(unsure, comparison);
}

}  // namespace plumbline::pipeline
