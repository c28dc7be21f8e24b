#include "watch/rules/step_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "record/call_stack.h"
#include "watch/rules/tensor_pass.h"

namespace plumbline::watch {
namespace {

// The values of one tensor that a rule looks at.
struct Values {
  TensorFacts now, before;
  ChangeFacts change;
  bool has_before = false;
  uint64_t read_bytes = 0;
};

uint64_t BytesOf(const TensorView& view) { return view.size_bytes(); }

TensorFacts FactsFromStatistics(const WatchedTensor& tensor) {
  TensorFacts facts = FactsOf(tensor.statistics);
  if (!facts.shape && tensor.has_shape) facts.shape = tensor.shape;
  if (!tensor.has_statistics) facts.doubt = tensor.is_unclear ? kNanOrNone : kMissing;
  if (!tensor.problem.empty()) facts.doubt = kUnreadable;
  return facts;
}

// Opens a tensor's elements; null where there are none, or they cannot be read, which its facts
// then say.
std::unique_ptr<HeldTensor> OpenElements(const WatchedTensor& tensor, StepPart& part,
                                         TensorFacts& facts) {
  if (tensor.file.empty() || !tensor.problem.empty()) return nullptr;
  Result<std::unique_ptr<HeldTensor>> held = part.Open(tensor);
  if (held) return *std::move(held);
  facts.doubt = held.error().code() == ErrorCode::kUnsupported ? kDType : kUnreadable;
  return nullptr;
}

Values ReadValues(const WatchedTensor& tensor, StepPart& part, const Earlier* earlier,
                  const ScanWishes& wishes) {
  Values values;
  values.now = FactsFromStatistics(tensor);
  const std::unique_ptr<HeldTensor> now = OpenElements(tensor, part, values.now);
  std::unique_ptr<HeldTensor> before;
  if (earlier != nullptr) {
    values.has_before = true;
    values.before = FactsFromStatistics(*earlier->tensor);
    before = OpenElements(*earlier->tensor, *earlier->part, values.before);
  }
  const bool has_change = now != nullptr && before != nullptr;
  if (now != nullptr) {
    const TensorView view = now->view();
    values.read_bytes += BytesOf(view);
    const TensorView before_view = has_change ? before->view() : TensorView();
    PassResult pass = ScanTensors(view, has_change ? &before_view : nullptr, wishes);
    values.now = std::move(pass.now);
    if (has_change) {
      values.read_bytes += BytesOf(before_view);
      values.before = std::move(pass.before);
      values.change = std::move(pass.change);
    }
  } else if (before != nullptr) {
    values.before = ScanTensors(before->view(), nullptr, wishes).now;
  }
  if (values.has_before && !has_change) {
    values.change = ChangeFromStatistics(values.now, values.before, wishes);
  }
  return values;
}

std::string ShapeText(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Of tensors that are there twice the last one counts.
template <class History>
void DropRepeats(std::vector<WatchedTensor>& tensors, std::vector<History*>& of) {
  std::unordered_set<const History*> seen;
  seen.reserve(of.size());
  std::vector<bool> is_repeat(of.size());
  bool has_repeats = false;
  for (size_t i = of.size(); i-- > 0;) {
    is_repeat[i] = !seen.insert(of[i]).second;
    has_repeats = has_repeats || is_repeat[i];
  }
  if (!has_repeats) return;
  size_t kept = 0;
  for (size_t i = 0; i < of.size(); ++i) {
    if (is_repeat[i]) continue;
    if (kept != i) tensors[kept] = std::move(tensors[i]);
    of[kept++] = of[i];
  }
  tensors.resize(kept);
  of.resize(kept);
}

// The name of the call, or with the tensor's place in it: "fc1.forward.0.parameters.weight".
bool MatchesName(const std::string& pattern, const WatchedTensor& tensor) {
  return pattern.empty() || MatchesPattern(pattern, tensor.name) ||
         MatchesPattern(pattern, tensor.name + "." + tensor.io + "." + tensor.slot);
}
bool MatchesAny(const std::vector<std::string>& patterns,
                                     const WatchedTensor& tensor) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& one) {
           return MatchesName(one, tensor);
         });
}

bool MatchesOp(const std::vector<std::string>& ops,
                                    const std::string& op) {
  if (ops.empty()) return true;
  const auto plain = [](std::string_view text) {
    std::string word;
    for (const char c : text.substr(text.rfind('.') + 1)) {
      if (c != '_') word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return word;
  };
  const std::string word = plain(op);
  return std::ranges::any_of(ops, [&](const std::string& one) { return plain(one) == word; });
}

bool HasCode(const std::string& code, const WatchedTensor& tensor, StepPart& part) {
  if (code.empty()) return true;
  const std::vector<std::string> stack = part.StackOf(tensor);
  return std::ranges::any_of(
      stack, [&](const std::string& frame) { return frame.find(code) != std::string::npos; });
}

const Text& Shared(std::string_view text, Text& last) {
  if (last != text) last = Text(text);
  return last;
}

// Executed steps between a part and an earlier value.
int64_t GapOf(const StepWatchOptions& options, const StepPart& part, const Earlier& earlier) {
  if (options.has_other_run) return 0;
  if (options.gap_of) return options.gap_of(part.rank, earlier.step, part.step);
  return part.step - earlier.step;
}

void Append(StepAnswer&& more, StepAnswer& to) {
  std::ranges::move(more.rows, std::back_inserter(to.rows));
  for (size_t i = 0; i < to.counts.size(); ++i) to.counts[i] += more.counts[i];
  to.tensors += more.tensors;
  to.read_bytes += more.read_bytes;
  to.matched += more.matched;
  to.seen_kinds = static_cast<TensorKinds>(to.seen_kinds | more.seen_kinds);
  to.has_trained = to.has_trained || more.has_trained;
  if (to.other_names.empty()) to.other_names = std::move(more.other_names);
}

}  // namespace

// What a block of tensors came to; put together in order behind the parallel part.
struct StepWatch::Block : StepAnswer {
  // Memory that is used again from tensor to tensor.
  std::vector<size_t> selected;
  Outcome outcome;
  // Texts of the row before, which most rows share.
  Text graph, name, io, slot, dtype, shape, file;
};

struct StepWatch::Where {
  StepPart& part;
  const WatchedTensor& tensor;
  const TensorFacts& facts;
  const Earlier* earlier;
  int64_t gap;
};

StepWatch::StepWatch(const Rules& rules, StepWatchOptions options)
    : all_(rules), rules_(rules.list()), options_(std::move(options)) {
  needs_history_ = rules.needs_previous();
  for (const Rule& rule : rules_) needs_history_ = needs_history_ || rule.for_steps > 1;
  if (!options_.each) {
    options_.each = [](size_t count, const std::function<void(size_t)>& body) {
      for (size_t i = 0; i < count; ++i) body(i);
    };
  }
}

StepAnswer StepWatch::Judge(const std::shared_ptr<StepPart>& part,
                            std::vector<WatchedTensor> tensors, const EarlierTensors* others) {
  const std::vector<History*> histories = HistoriesOf(part->rank, tensors);
  constexpr size_t kBlock = 64;
  const Step step{*part, tensors, histories, others};
  std::vector<Block> blocks((tensors.size() + kBlock - 1) / kBlock);
  options_.each(blocks.size(), [&](size_t number) {
    Block& block = blocks[number];
    block.counts.resize(rules_.size());
    const size_t end = std::min(tensors.size(), (number + 1) * kBlock);
    for (size_t i = number * kBlock; i < end; ++i) JudgeTensor(step, i, block);
  });
  StepAnswer answer;
  answer.counts.resize(rules_.size());
  for (Block& block : blocks) Append(std::move(block), answer);
  Remember(part, std::move(tensors), histories);
  return answer;
}

void StepWatch::Pass(const std::shared_ptr<StepPart>& part, std::vector<WatchedTensor> tensors) {
  const std::vector<History*> histories = HistoriesOf(part->rank, tensors);
  Remember(part, std::move(tensors), histories);
}

std::vector<StepWatch::History*> StepWatch::HistoriesOf(int64_t rank,
                                                        std::vector<WatchedTensor>& tensors) {
  std::vector<History*> of;
  if (!needs_history_) return of;
  auto& histories = histories_[rank];
  for (const WatchedTensor& tensor : tensors) of.push_back(&histories[tensor.Key()]);
  DropRepeats(tensors, of);
  return of;
}

void StepWatch::Remember(const std::shared_ptr<StepPart>& part,
                         std::vector<WatchedTensor> tensors,
                         const std::vector<History*>& histories) const {
  if (!all_.needs_previous() || options_.has_other_run) return;
  const auto all = std::make_shared<const std::vector<WatchedTensor>>(std::move(tensors));
  for (size_t i = 0; i < histories.size(); ++i) {
    histories[i]->earlier = Earlier{part->step, &(*all)[i], all, part};
  }
}

bool StepWatch::MatchesSide(const Rule& rule, const WatchedTensor& tensor) const {
  const WatchedSide side = rule.on.side.value_or(options_.side);
  if (side == WatchedSide::kBoth) return true;
  return tensor.is_input == (side == WatchedSide::kInputs);
}

bool StepWatch::Selects(size_t number, const WatchedTensor& tensor, StepPart& part) const {
  const Rule& rule = rules_[number];
  if (options_.selects) return options_.selects(number, tensor, part.step, part.rank);
  if (!IsFor(rule, tensor.kinds)) return false;
  if (rule.on.only_trained && !tensor.is_trained) return false;
  if (rule.at_first_step && part.step != first_step_) return false;
  const RuleScope& on = rule.on;
  if (!on.ranks.Holds(part.rank) || !on.steps.Holds(part.step)) return false;
  if (!MatchesSide(rule, tensor)) return false;
  if (!MatchesOp(on.ops, tensor.op)) return false;
  if (!MatchesAny(on.nodes, tensor)) return false;
  if (!on.slots.empty() && std::ranges::count(on.slots, tensor.slot_number) == 0) return false;
  return HasCode(options_.code, tensor, part) && HasCode(on.code, tensor, part);
}

bool StepWatch::IsNamed(const WatchedTensor& tensor, StepAnswer& out) const {
  constexpr size_t kMostNames = 3;
  if (!MatchesName(options_.nodes, tensor)) {
    const bool is_new = std::ranges::find(out.other_names, tensor.name) == out.other_names.end();
    if (is_new && out.other_names.size() < kMostNames) out.other_names.push_back(tensor.name);
    return false;
  }
  out.seen_kinds = static_cast<TensorKinds>(out.seen_kinds | tensor.kinds | kAnyTensor);
  out.has_trained = out.has_trained || tensor.is_trained;
  return true;
}

void StepWatch::JudgeTensor(const Step& step, size_t at, Block& out) const {
  const WatchedTensor& tensor = step.tensors[at];
  StepPart& part = step.part;
  History* const history = step.histories.empty() ? nullptr : step.histories[at];
  const EarlierTensors* const others = step.others;
  std::vector<size_t>& selected = out.selected;
  selected.clear();
  if (!IsNamed(tensor, out)) return;
  bool looks_back = false;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (!Selects(i, tensor, part)) continue;
    selected.push_back(i);
    looks_back = looks_back || rules_[i].needs_previous;
  }
  if (selected.empty()) return;
  ++out.tensors;
  const Earlier* earlier = nullptr;
  if (looks_back && others != nullptr) {
    const auto found = others->find(tensor.Key());
    if (found != others->end()) earlier = &found->second;
  } else if (looks_back && history != nullptr && history->earlier) {
    earlier = &*history->earlier;
  }
  const Values values =
      ReadValues(tensor, part, earlier, all_.wishes());
  out.read_bytes += values.read_bytes;
  out.matched += earlier != nullptr ? 1 : 0;
  Watched watched;
  watched.now = &values.now;
  watched.kinds = tensor.kinds;
  watched.is_first_step = part.step == first_step_;
  watched.operator_overflowed = tensor.operator_overflowed;
  if (earlier != nullptr) {
    watched.before = &values.before;
    watched.change = &values.change;
    watched.gap = GapOf(options_, part, *earlier);
  }
  Outcome& outcome = out.outcome;
  for (const size_t number : selected) {
    Evaluate(rules_[number], watched, outcome);
    if (rules_[number].for_steps > 1) CountRun(number, *history, outcome);
    Keep({part, tensor, values.now, earlier, watched.gap}, number, outcome, out);
  }
}

// A hit counts once it is the last of enough in a row.
void StepWatch::CountRun(size_t number, History& history, Outcome& outcome) const {
  history.run_lengths.resize(rules_.size());
  int64_t& length = history.run_lengths[number];
  length = outcome.verdict == Truth::kTrue ? length + 1 : 0;
  if (outcome.verdict == Truth::kTrue && length < rules_[number].for_steps) {
    outcome.verdict = Truth::kFalse;
  }
}

void StepWatch::Keep(const Where& where, size_t number, const Outcome& outcome,
                     Block& out) const {
  RuleCounts& counts = out.counts[number];
  ++counts.selected;
  counts.hits += outcome.verdict == Truth::kTrue ? 1 : 0;
  counts.passes += outcome.verdict == Truth::kFalse ? 1 : 0;
  counts.unjudged += outcome.verdict == Truth::kUnknown ? 1 : 0;
  for (size_t i = 0; i < kReasonCount && outcome.verdict == Truth::kUnknown; ++i) {
    counts.reasons[i] += outcome.reasons >> i & 1U;
  }
  if (outcome.verdict == Truth::kFalse && !options_.keeps_all) return;
  WatchRow row;
  row.rule = number;
  row.step = where.part.step;
  row.rank = where.part.rank;
  if (where.earlier != nullptr && rules_[number].needs_previous) {
    row.prev_step = where.earlier->step;
    row.gap = where.gap;
  }
  const WatchedTensor& tensor = where.tensor;
  row.graph = Shared(tensor.graph, out.graph);
  row.name = Shared(tensor.name, out.name);
  row.io = Shared(tensor.io, out.io);
  row.slot = Shared(tensor.slot, out.slot);
  const bool has_dtype = !tensor.dtype.empty() || !where.facts.dtype;
  row.dtype = Shared(has_dtype ? std::string_view(tensor.dtype) : InfoOf(*where.facts.dtype).name,
                     out.dtype);
  if (where.facts.shape) row.shape = Shared(ShapeText(*where.facts.shape), out.shape);
  row.file = Shared(tensor.file.empty() ? where.part.path : tensor.file, out.file);
  row.verdict = outcome.verdict;
  row.reasons = outcome.reasons;
  row.place = tensor.place;
  row.slot_number = tensor.slot_number;
  row.checks.reserve(outcome.checks.size());
  for (const CheckOutcome& one : outcome.checks) {
    row.checks.push_back({one.check->shown, one.check->relation,
                          one.check->threshold, one.truth, one.actual, one.reasons,
                          one.check->quantity});
  }
  if (outcome.verdict == Truth::kTrue) {
    const std::vector<std::string> stack = where.part.StackOf(tensor);
    if (!stack.empty()) row.source_line = UserFrame(stack);
  }
  out.rows.push_back(std::move(row));
}

}  // namespace plumbline::watch
