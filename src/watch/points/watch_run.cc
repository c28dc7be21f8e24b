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
#include <utility>

#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "watch/points/recording.h"

namespace plumbline::watch {
namespace {

// One rank of one step, read.
struct ReadPart {
  std::shared_ptr<StepPart> part;
  std::vector<WatchedTensor> tensors;
  std::optional<Error> error;
};

// Holds the rules against the parts of a recording, in order.
class Watcher {
 public:
  Watcher(const WatchOptions& options, WatchReport& report)
      : options_(options),
        rules_(options.rules.list()),
        report_(report),
        needs_previous_(options.rules.needs_previous()),
        step_watch_(options.rules, {options.side, options.nodes, options.code, options.keeps_all,
                                     !options.against.empty(), options.selects,
                                     [this](int64_t rank, int64_t from, int64_t to) {
                                       return GapOf(rank, from, to);
                                     },
                                     ParallelFor}) {
    report_.rules = rules_;
    report_.counts.resize(rules_.size());
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
    if (!parts.empty()) step_watch_.set_first_step(parts.front()->step);
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

  // The values of the other run by key, of the same rank and step, or of its only step.
  [[nodiscard]] std::shared_ptr<EarlierTensors> BeforeFrom(const StepPart& part) {
    if (options_.against.empty() || !IsChosen(part)) return nullptr;
    const auto& others = against_.parts;
    const bool is_sole = others.size() == 1 && recording_.parts.size() == 1;
    const auto found = std::ranges::find_if(others, [&](const auto& other) {
      return is_sole || (other->step == part.step && other->rank == part.rank);
    });
    auto values = std::make_shared<EarlierTensors>();
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

  void JudgePart(ReadPart& one) {
    if (!IsChosen(*one.part)) return step_watch_.Pass(one.part, std::move(one.tensors));
    steps_.insert(one.part->step);
    report_.has_first_step =
        report_.has_first_step || one.part->step == step_watch_.first_step();
    ranks_.insert(one.part->rank);
    const auto before = BeforeFrom(*one.part);
    StepAnswer answer = step_watch_.Judge(one.part, std::move(one.tensors), before.get());
    report_.tensors += answer.tensors;
    report_.read_bytes += answer.read_bytes;
    report_.seen_kinds = static_cast<TensorKinds>(report_.seen_kinds | answer.seen_kinds);
    report_.has_trained = report_.has_trained || answer.has_trained;
    matched_ += answer.matched;
    if (other_names_.empty()) other_names_ = std::move(answer.other_names);
    std::ranges::move(answer.rows, std::back_inserter(report_.rows));
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (answer.counts[i].selected == 0) continue;
      report_.counts[i] += answer.counts[i];
      report_.cases.push_back({i, one.part->step, one.part->rank, answer.counts[i]});
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
  bool needs_previous_;
  StepWatch step_watch_;
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
