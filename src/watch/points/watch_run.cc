#include "watch/points/watch_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "record/call_stack.h"
#include "watch/points/recording.h"
#include "watch/rules/tensor_pass.h"

namespace plumbline::watch {
namespace {

// The latest value of a tensor, kept until the next step that has it.
struct Earlier {
  int64_t step = 0;
  const WatchedTensor* tensor = nullptr;
  std::shared_ptr<const std::vector<WatchedTensor>> all;  // owns it
  std::shared_ptr<StepPart> part;
};

// What is known of a tensor over the steps.
struct History {
  std::optional<Earlier> earlier;
  std::vector<int64_t> run_lengths;  // hits in a row, of each rule
};

using Histories = std::unordered_map<std::string, History>;

// One rank of one step, read.
struct ReadPart {
  std::shared_ptr<StepPart> part;
  std::vector<WatchedTensor> tensors;
  std::optional<Error> error;
};

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

// Holds the rules against the parts of a recording, in order.
class Watcher {
 public:
  Watcher(const WatchOptions& options, WatchReport& report)
      : options_(options), rules_(options.rules.list()), report_(report) {
    report_.rules = rules_;
    report_.counts.resize(rules_.size());
    for (const Rule& rule : rules_) {
      needs_history_ = needs_history_ || rule.for_steps > 1;
      needs_previous_ = needs_previous_ || rule.needs_previous;
    }
    needs_history_ = needs_history_ || needs_previous_;
  }

  Status Run() {
    PL_TRY_ASSIGN(recording_, OpenRecording(options_.path));
    if (!options_.against.empty()) {
      PL_TRY_ASSIGN(against_, OpenRecording(options_.against));
    }
    report_.path = options_.path;
    report_.kind = recording_.kind;
    report_.notes = recording_.notes;
    report_.unreadable_parts = recording_.damaged;
    report_.tensors_advice = recording_.tensors_advice;
    report_.orders_by_record = needs_previous_ && recording_.counts_recorded &&
                               options_.against.empty();
    report_.has_against = !options_.against.empty();
    report_.is_narrowed =
        !options_.nodes.empty() || !options_.steps.is_all() || !options_.ranks.is_all();
    PL_TRY(KeepChosen());
    PL_TRY(RunSteps());
    PL_TRY(CheckMatches());
    Finish();
    return {};
  }

 private:
  // Parts that are judged, and those before them, which may hold earlier values.
  Status KeepChosen() {
    auto& parts = recording_.parts;
    if (!parts.empty()) first_step_ = parts.front()->step;
    PL_TRY(CheckChoice());
    const bool keeps_earlier = needs_previous_ && options_.against.empty();
    int64_t last = INT64_MIN;
    for (const auto& part : parts) {
      if (IsChosen(*part)) last = std::max(last, part->step);
    }
    std::erase_if(parts, [&](const auto& part) {
      if (!options_.ranks.Holds(part->rank)) return true;
      return !IsChosen(*part) && !(keeps_earlier && part->step < last);
    });
    for (const auto& part : parts) recorded_steps_[part->rank].push_back(part->step);
    return {};
  }

  // Whether --steps and --ranks name what was recorded.
  Status CheckChoice() {
    const auto& parts = recording_.parts;
    if (parts.empty()) {
      report_.notes.emplace_back("nothing is recorded");
      return {};
    }
    std::set<int64_t> steps, ranks;
    for (const auto& part : parts) {
      steps.insert(part->step);
      ranks.insert(part->rank);
    }
    const std::string recorded =
        fmt::format("recorded are steps {} to {} of {}, ranks {} to {}", *steps.begin(),
                    *steps.rbegin(), CountText(ranks.size(), "rank"), *ranks.begin(),
                    *ranks.rbegin());
    const std::string no_step = options_.steps.MissingFrom(steps),
                      no_rank = options_.ranks.MissingFrom(ranks);
    const bool is_empty =
        std::ranges::none_of(parts, [&](const auto& part) { return IsChosen(*part); });
    const std::string missing =
        !no_step.empty()   ? fmt::format("--steps: {} was not recorded", no_step)
        : !no_rank.empty() ? fmt::format("--ranks: {} was not recorded", no_rank)
        : is_empty         ? "--steps, --ranks: none of these ranks has one of these steps"
                           : "";
    if (missing.empty()) return {};
    const std::string text = fmt::format("{}: {}; {}", options_.path, missing, recorded);
    if (is_empty) return Error(ErrorCode::kNotFound, text);
    report_.notes.push_back(text);
    return {};
  }

  // Whether --nodes and --against name anything that was recorded.
  Status CheckMatches() {
    if (read_ == 0) return {};
    if (!options_.nodes.empty() && report_.seen_kinds == 0) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("{}: --nodes {}: no tensor of such a name was recorded; there are "
                               "{}",
                               options_.path, options_.nodes,
                               other_names_.empty() ? "none" : fmt::format("{}, ...",
                                                       fmt::join(other_names_, ", "))));
    }
    if (options_.against.empty()) return {};
    uint64_t looking_back = 0;
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i].needs_previous) looking_back += report_.counts[i].selected;
    }
    if (!needs_previous_) report_.notes.emplace_back("--against: no rule looks at earlier values");
    if (looking_back == 0 || matched_ > 0) return {};
    return Error(ErrorCode::kNotFound,
                 fmt::format("--against {}: has no tensor of the same rank, step and name as one "
                             "of {} ({} there)",
                             options_.against, options_.path,
                             against_.parts.empty()
                                 ? std::string("no step")
                                 : fmt::format("steps {} to {} of {}", against_.parts.front()->step,
                                               against_.parts.back()->step, against_.kind)));
  }

  [[nodiscard]] bool IsChosen(const StepPart& part) const {
    return options_.steps.Holds(part.step) && options_.ranks.Holds(part.rank);
  }

  Status RunSteps() {
    const auto& parts = recording_.parts;
    const uint64_t all = parts.size();
    std::vector<ReadPart> next = ReadSome(0);
    size_t at = 0;
    while (at < parts.size()) {
      std::vector<ReadPart> now = std::move(next);
      const size_t behind = at + now.size();
      Status judged;
      // The next ones are read while these are judged.
      RunBoth([&] { judged = JudgeSome(now); }, [&] { next = ReadSome(behind); });
      PL_TRY(judged);
      at = behind;
      if (options_.progress) options_.progress(at, all);
      if (report_.stopped) break;
    }
    if (read_ > 0 || !first_error_) return {};
    return *first_error_;
  }

  // As many parts as there are threads, or the rest of a step where that is more.
  std::vector<ReadPart> ReadSome(size_t from) {
    constexpr size_t kAtOnce = 4;
    const auto& parts = recording_.parts;
    size_t end = std::min(parts.size(), from + kAtOnce);
    if (options_.only_first && from < parts.size()) {
      end = from + 1;
      while (end < parts.size() && parts[end]->step == parts[from]->step) ++end;
    }
    std::vector<ReadPart> some(end - std::min(from, end));
    ParallelFor(some.size(), [&](size_t i) { ReadOne(parts[from + i], some[i]); });
    return some;
  }

  void ReadOne(const std::shared_ptr<StepPart>& part, ReadPart& out) const {
    out.part = part;
    Result<std::vector<WatchedTensor>> tensors = part->Read();
    if (!tensors) {
      out.error = tensors.error();
      return;
    }
    out.tensors = *std::move(tensors);
  }

  Status JudgeSome(std::vector<ReadPart>& some) {
    for (ReadPart& one : some) {
      if (report_.stopped) return {};
      StopBehindHit(*one.part);
      if (report_.stopped) return {};
      report_.notes.insert(report_.notes.end(), one.part->notes.begin(), one.part->notes.end());
      if (one.error) {
        TellUnreadable(one);
        continue;
      }
      ++read_;
      if (one.part->is_damaged && IsChosen(*one.part)) ++report_.unreadable_parts;
      JudgePart(one);
    }
    return {};
  }

  void StopBehindHit(const StepPart& part) {
    const bool is_new = last_step_ && part.step != *last_step_;
    last_step_ = part.step;
    if (!is_new || !options_.only_first) return;
    for (const RuleCounts& counts : report_.counts) {
      report_.stopped = report_.stopped || counts.hits > 0;
    }
  }

  void TellUnreadable(const ReadPart& one) {
    if (!first_error_) first_error_ = one.error;
    report_.notes.push_back(one.error->message());
    if (IsChosen(*one.part)) ++report_.unreadable_parts;
  }

  // What a block of tensors came to; put together in order behind the parallel part.
  struct Judged {
    std::vector<WatchRow> rows;
    std::vector<RuleCounts> counts;  // one for each rule
    uint64_t read_bytes = 0, tensors = 0, matched = 0;
    TensorKinds seen_kinds = 0;
    bool has_trained = false;
    std::vector<std::string> other_names;  // that --nodes does not name, the first few
    // Memory that is used again from tensor to tensor.
    std::vector<size_t> selected;
    Outcome outcome;
    // Texts of the row before, which most rows share.
    Text graph, name, io, slot, dtype, shape, file;
  };

  static const Text& Shared(std::string_view text, Text& last) {
    if (last != text) last = Text(text);
    return last;
  }

  void JudgePart(ReadPart& one) {
    const bool is_chosen = IsChosen(*one.part);
    Histories& histories = histories_[one.part->rank];
    std::vector<History*> of;
    if (needs_history_) {
      for (const WatchedTensor& tensor : one.tensors) of.push_back(&histories[tensor.Key()]);
      DropRepeats(one.tensors, of);
    }
    const auto before = BeforeFrom(*one.part);
    if (is_chosen) {
      steps_.insert(one.part->step);
      report_.has_first_step = report_.has_first_step || one.part->step == first_step_;
      ranks_.insert(one.part->rank);
      constexpr size_t kBlock = 64;
      std::vector<Judged> judged((one.tensors.size() + kBlock - 1) / kBlock);
      ParallelFor(judged.size(), [&](size_t block) {
        Judged& out = judged[block];
        out.counts.resize(rules_.size());
        const size_t end = std::min(one.tensors.size(), (block + 1) * kBlock);
        for (size_t i = block * kBlock; i < end; ++i) {
          JudgeTensor(one, i, of.empty() ? nullptr : of[i], before, out);
        }
      });
      Collect(*one.part, judged);
    }
    if (!needs_previous_ || !options_.against.empty()) return;
    const auto all =
        std::make_shared<const std::vector<WatchedTensor>>(std::move(one.tensors));
    for (size_t i = 0; i < of.size(); ++i) {
      of[i]->earlier = Earlier{one.part->step, &(*all)[i], all, one.part};
    }
  }

  // Of tensors that are there twice the last one counts.
  static void DropRepeats(std::vector<WatchedTensor>& tensors, std::vector<History*>& of) {
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

  // The values of the other run by key, of the same rank and step, or of its only step.
  using Others = std::unordered_map<std::string, Earlier>;
  [[nodiscard]] std::shared_ptr<Others> BeforeFrom(const StepPart& part) {
    if (options_.against.empty() || !IsChosen(part)) return nullptr;
    const auto& others = against_.parts;
    const bool is_sole = others.size() == 1 && recording_.parts.size() == 1;
    const auto found = std::ranges::find_if(others, [&](const auto& other) {
      return is_sole || (other->step == part.step && other->rank == part.rank);
    });
    auto values = std::make_shared<Others>();
    if (found == others.end()) return values;
    Result<std::vector<WatchedTensor>> tensors = (*found)->Read();
    if (!tensors) {
      report_.notes.push_back(tensors.error().message());
      ++report_.unreadable_parts;
      return values;
    }
    const auto all = std::make_shared<const std::vector<WatchedTensor>>(*std::move(tensors));
    for (const WatchedTensor& tensor : *all) {
      values->insert_or_assign(tensor.Key(), Earlier{(*found)->step, &tensor, all, *found});
    }
    return values;
  }

  [[nodiscard]] bool MatchesSide(const Rule& rule, const WatchedTensor& tensor) const {
    const WatchedSide side = rule.on.side.value_or(options_.side);
    if (side == WatchedSide::kBoth) return true;
    return tensor.is_input == (side == WatchedSide::kInputs);
  }

  // The name of the call, or with the tensor's place in it: "fc1.forward.0.parameters.weight".
  [[nodiscard]] static bool MatchesName(const std::string& pattern, const WatchedTensor& tensor) {
    return pattern.empty() || MatchesPattern(pattern, tensor.name) ||
           MatchesPattern(pattern, tensor.name + "." + tensor.io + "." + tensor.slot);
  }
  [[nodiscard]] static bool MatchesAny(const std::vector<std::string>& patterns,
                                       const WatchedTensor& tensor) {
    return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& one) {
             return MatchesName(one, tensor);
           });
  }

  [[nodiscard]] static bool MatchesOp(const std::vector<std::string>& ops,
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

  [[nodiscard]] bool Selects(size_t number, const WatchedTensor& tensor, StepPart& part) const {
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

  static bool HasCode(const std::string& code, const WatchedTensor& tensor, StepPart& part) {
    if (code.empty()) return true;
    const std::vector<std::string> stack = part.StackOf(tensor);
    return std::ranges::any_of(
        stack, [&](const std::string& frame) { return frame.find(code) != std::string::npos; });
  }

  // Executed steps between two.
  [[nodiscard]] int64_t GapOf(int64_t rank, int64_t from, int64_t to) const {
    const auto between = [&](const std::vector<int64_t>& steps) {
      return static_cast<int64_t>(std::ranges::count_if(
          steps, [&](int64_t step) { return step > from && step <= to; }));
    };
    const auto history = recording_.history.find(rank);
    if (history != recording_.history.end() && !history->second.empty()) {
      return between(history->second);
    }
    if (!recording_.counts_recorded) return to - from;
    return between(recorded_steps_.at(rank));
  }

  // Whether --nodes leaves the tensor.
  [[nodiscard]] bool IsNamed(const WatchedTensor& tensor, Judged& out) const {
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

  void JudgeTensor(const ReadPart& one, size_t at, History* history,
                   const std::shared_ptr<Others>& others, Judged& out) const {
    const WatchedTensor& tensor = one.tensors[at];
    std::vector<size_t>& selected = out.selected;
    selected.clear();
    if (!IsNamed(tensor, out)) return;
    bool looks_back = false;
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (!Selects(i, tensor, *one.part)) continue;
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
        ReadValues(tensor, *one.part, earlier, options_.rules.wishes());
    out.read_bytes += values.read_bytes;
    out.matched += earlier != nullptr ? 1 : 0;
    Watched watched;
    watched.now = &values.now;
    watched.kinds = tensor.kinds;
    watched.is_first_step = one.part->step == first_step_;
    watched.operator_overflowed = tensor.operator_overflowed;
    if (earlier != nullptr) {
      watched.before = &values.before;
      watched.change = &values.change;
      watched.gap = others != nullptr ? 0 : GapOf(one.part->rank, earlier->step, one.part->step);
    }
    Outcome& outcome = out.outcome;
    for (const size_t number : selected) {
      Evaluate(rules_[number], watched, outcome);
      if (rules_[number].for_steps > 1) CountRun(number, *history, outcome);
      Keep({*one.part, tensor, values.now, earlier, watched.gap}, number, outcome, out);
    }
  }

  // A hit counts once it is the last of enough in a row.
  void CountRun(size_t number, History& history, Outcome& outcome) const {
    history.run_lengths.resize(rules_.size());
    int64_t& length = history.run_lengths[number];
    length = outcome.verdict == Truth::kTrue ? length + 1 : 0;
    if (outcome.verdict == Truth::kTrue && length < rules_[number].for_steps) {
      outcome.verdict = Truth::kFalse;
    }
  }

  struct Where {
    StepPart& part;
    const WatchedTensor& tensor;
    const TensorFacts& facts;
    const Earlier* earlier;
    int64_t gap;
  };

  void Keep(const Where& where, size_t number, const Outcome& outcome, Judged& out) const {
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

  static void Sum(const RuleCounts& one, RuleCounts& to) {
    to.selected += one.selected;
    to.hits += one.hits;
    to.passes += one.passes;
    to.unjudged += one.unjudged;
    for (size_t i = 0; i < kReasonCount; ++i) to.reasons[i] += one.reasons[i];
  }

  void Collect(const StepPart& part, std::vector<Judged>& judged) {
    std::vector<RuleCounts> of_part(rules_.size());
    for (Judged& one : judged) {
      report_.tensors += one.tensors;
      report_.read_bytes += one.read_bytes;
      report_.seen_kinds = static_cast<TensorKinds>(report_.seen_kinds | one.seen_kinds);
      report_.has_trained = report_.has_trained || one.has_trained;
      matched_ += one.matched;
      if (other_names_.empty()) other_names_ = std::move(one.other_names);
      for (size_t i = 0; i < rules_.size(); ++i) Sum(one.counts[i], of_part[i]);
      std::ranges::move(one.rows, std::back_inserter(report_.rows));
    }
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (of_part[i].selected == 0) continue;
      Sum(of_part[i], report_.counts[i]);
      report_.cases.push_back({i, part.step, part.rank, of_part[i]});
    }
  }

  void Finish() {
    report_.steps = steps_.size();
    report_.ranks = ranks_.size();
    const auto order = [](const WatchRow& row) {
      return std::tuple(row.step, row.place, row.rank, row.slot_number, row.rule);
    };
    if (!std::ranges::is_sorted(report_.rows, {}, order)) {
      std::ranges::stable_sort(report_.rows, {}, order);
    }
  }

  const WatchOptions& options_;
  const std::vector<Rule>& rules_;
  WatchReport& report_;
  Recording recording_, against_;
  bool needs_history_ = false, needs_previous_ = false;
  int64_t first_step_ = 0;
  std::map<int64_t, Histories> histories_;  // by rank
  std::map<int64_t, std::vector<int64_t>> recorded_steps_;
  std::optional<int64_t> last_step_;
  std::optional<Error> first_error_;
  uint64_t read_ = 0, matched_ = 0;  // parts; tensors with an earlier value
  std::vector<std::string> other_names_;
  std::set<int64_t> steps_, ranks_;
};

}  // namespace

Result<WatchReport> WatchRecording(const WatchOptions& options) {
  WatchReport report;
  Status status;
  constexpr uint64_t kOfOneThread = uint64_t{1} << 20;
  int threads = options.threads;
  if (options.memory > 0) {
    const uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
    const uint64_t wanted = threads == 0 ? cores : static_cast<uint64_t>(threads);
    threads = static_cast<int>(std::clamp<uint64_t>(options.memory / kOfOneThread, 1, wanted));
  }
  RunWithThreads(threads, [&] { status = Watcher(options, report).Run(); });
  if (!status) return status.error();
  return report;
}

}  // namespace plumbline::watch
