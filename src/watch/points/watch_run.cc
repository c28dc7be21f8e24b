#include "watch/points/watch_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "record/run_files.h"
#include "watch/points/recording.h"
#include "watch/rules/watch_row_record.h"

namespace plumbline::watch {
namespace {

// What a rank of a step came to: what one process hands to another.
struct PartAnswer {
  std::vector<std::string> notes;  // of reading it
  bool is_read = true;
  ErrorCode code = ErrorCode::kCorrupt;  // why it is not
  std::string problem;
  bool is_damaged = false;
  std::vector<std::string> other_notes;  // of the other run
  StepAnswer answer;                     // of a part that is judged
};

void VisitRecord(auto& archive, json::RecordOf<PartAnswer> auto& part) {
  archive(part.notes, part.is_read);
  archive.Choice(part.code, ErrorCode::kInternal);
  archive(part.problem, part.is_damaged, part.other_notes, part.answer);
}

// One rank of one step, read.
struct ReadPart {
  size_t number = 0;  // of the part
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
    PL_TRY(Begin());
    PL_TRY(RunSteps());
    return End();
  }

  // Only what falls to one of several processes.
  Status RunPart(const ShardPlace& place, ShardPart& out) {
    PL_TRY(Begin());
    out.state = StateOf();
    out.all = recording_.parts.size();
    LeaveOthers(place);
    for (const size_t number : numbers_) out.items[number] = "null";
    kept_ = &out;
    return RunSteps();
  }

  // What all processes have come to. `items`: PartAnswer, or null where none was needed.
  Status RunMerged(const std::string& state, std::span<const json::Value> items) {
    PL_TRY(Begin());
    if (items.size() != recording_.parts.size() || state != StateOf()) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: has changed since it was read. Run all shards again", options_.path));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      const StepPart& part = *recording_.parts[i];
      StopBehindHit(part);
      if (report_.stopped) break;
      PartAnswer answer;
      if (!json::ReadRecord(items[i], answer) || !IsSound(answer)) {
        return Error(ErrorCode::kCorrupt,
                     fmt::format("{}: its shards are damaged. Run them again", options_.path));
      }
      Count(part, std::move(answer));
    }
    return End();
  }

 private:
  // What there is, and which of it is looked at.
  Status Begin() {
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
    for (size_t i = 0; i < recording_.parts.size(); ++i) numbers_.push_back(i);
    is_sole_part_ = recording_.parts.size() == 1;
    return {};
  }

  Status End() {
    if (read_ == 0 && first_error_) return *first_error_;
    PL_TRY(CheckMatches());
    Finish();
    return {};
  }

  // What the recording is, for other processes.
  [[nodiscard]] std::string StateOf() const {
    std::string facts;
    for (const auto& part : recording_.parts) {
      facts += fmt::format("{} {} {} {} {}\n", part->step, part->rank, part->path,
                           StampOfFile(part->path),
                           StampOfFile(JoinPath(part->path, run_files::kDumpJson)));
    }
    return DigestOfText(facts);
  }

  // Without a history every part stands by itself, else every rank.
  void LeaveOthers(const ShardPlace& place) {
    std::map<int64_t, uint64_t> ranks;
    for (const auto& part : recording_.parts) ranks.emplace(part->rank, 0);
    uint64_t count = 0;
    for (auto& [rank, number] : ranks) number = count++;
    std::vector<std::shared_ptr<StepPart>> own;
    numbers_.clear();
    for (size_t i = 0; i < recording_.parts.size(); ++i) {
      const auto& part = recording_.parts[i];
      if (!place.Has(step_watch_.needs_history() ? ranks[part->rank] : i)) continue;
      own.push_back(part);
      numbers_.push_back(i);
    }
    recording_.parts = std::move(own);
  }

  [[nodiscard]] bool IsSound(const PartAnswer& part) const {
    const auto& counts = part.answer.counts;
    return (counts.empty() || counts.size() == rules_.size()) &&
           std::ranges::all_of(part.answer.rows,
                               [&](const WatchRow& row) { return row.rule < rules_.size(); });
  }

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
    return {};
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
    ParallelFor(some.size(), [&](size_t i) {
      some[i].number = numbers_[from + i];
      ReadOne(parts[from + i], some[i]);
    });
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
      PartAnswer answer = AnswerOf(one);
      if (kept_ != nullptr) {
        kept_->items[one.number] = json::RecordText(answer);
        answer.answer.rows.clear();
      }
      Count(*one.part, std::move(answer));
    }
    return {};
  }

  PartAnswer AnswerOf(ReadPart& one) {
    PartAnswer out;
    out.notes = one.part->notes;
    if (one.error) {
      out.is_read = false;
      out.code = one.error->code();
      out.problem = one.error->message();
      return out;
    }
    out.is_damaged = one.part->is_damaged;
    if (!IsChosen(*one.part)) {
      step_watch_.Pass(one.part, std::move(one.tensors));
      return out;
    }
    const auto before = BeforeFrom(*one.part, out.other_notes);
    out.answer = step_watch_.Judge(one.part, std::move(one.tensors), before.get());
    return out;
  }

  void Count(const StepPart& part, PartAnswer one) {
    report_.notes.insert(report_.notes.end(), one.notes.begin(), one.notes.end());
    if (!one.is_read) {
      if (!first_error_) first_error_ = Error(one.code, one.problem);
      report_.notes.push_back(std::move(one.problem));
      if (IsChosen(part)) ++report_.unreadable_parts;
      return;
    }
    ++read_;
    if (!IsChosen(part)) return;
    if (one.is_damaged) ++report_.unreadable_parts;
    report_.unreadable_parts += one.other_notes.size();
    report_.notes.insert(report_.notes.end(), one.other_notes.begin(), one.other_notes.end());
    CountAnswer(part, std::move(one.answer));
  }

  void StopBehindHit(const StepPart& part) {
    const bool is_new = last_step_ && part.step != *last_step_;
    last_step_ = part.step;
    if (!is_new || !options_.only_first) return;
    for (const RuleCounts& counts : report_.counts) {
      report_.stopped = report_.stopped || counts.hits > 0;
    }
  }

  // The values of the other run by key, of the same rank and step, or of its only step.
  [[nodiscard]] std::shared_ptr<EarlierTensors> BeforeFrom(const StepPart& part,
                                                           std::vector<std::string>& notes) const {
    if (options_.against.empty()) return nullptr;
    const auto& others = against_.parts;
    const bool is_sole = others.size() == 1 && is_sole_part_;
    const auto found = std::ranges::find_if(others, [&](const auto& other) {
      return is_sole || (other->step == part.step && other->rank == part.rank);
    });
    auto values = std::make_shared<EarlierTensors>();
    if (found == others.end()) return values;
    Result<std::vector<WatchedTensor>> tensors = (*found)->Read();
    if (!tensors) {
      notes.push_back(tensors.error().message());
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

  void CountAnswer(const StepPart& part, StepAnswer answer) {
    steps_.insert(part.step);
    report_.has_first_step = report_.has_first_step || part.step == step_watch_.first_step();
    ranks_.insert(part.rank);
    report_.tensors += answer.tensors;
    report_.read_bytes += answer.read_bytes;
    report_.seen_kinds = static_cast<TensorKinds>(report_.seen_kinds | answer.seen_kinds);
    report_.has_trained = report_.has_trained || answer.has_trained;
    matched_ += answer.matched;
    if (other_names_.empty()) other_names_ = std::move(answer.other_names);
    std::ranges::move(answer.rows, std::back_inserter(report_.rows));
    for (size_t i = 0; i < answer.counts.size(); ++i) {
      if (answer.counts[i].selected == 0) continue;
      report_.counts[i] += answer.counts[i];
      report_.cases.push_back({i, part.step, part.rank, answer.counts[i]});
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
  std::vector<size_t> numbers_;  // of recording_.parts among all that are looked at
  bool is_sole_part_ = false;
  ShardPart* kept_ = nullptr;        // of RunPart()
  uint64_t read_ = 0, matched_ = 0;  // parts; tensors with an earlier value
  std::vector<std::string> other_names_;
  std::set<int64_t> steps_, ranks_;
};

int ThreadsOf(const WatchOptions& options) {
  constexpr uint64_t kOfOneThread = uint64_t{1} << 20;
  if (options.memory == 0) return options.threads;
  const uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const uint64_t wanted = options.threads == 0 ? cores : static_cast<uint64_t>(options.threads);
  return static_cast<int>(std::clamp<uint64_t>(options.memory / kOfOneThread, 1, wanted));
}

}  // namespace

Result<WatchReport> WatchRecording(const WatchOptions& options) {
  WatchReport report;
  Status status;
  RunWithThreads(ThreadsOf(options), [&] { status = Watcher(options, report).Run(); });
  if (!status) return status.error();
  return report;
}

Result<ShardPart> WatchPart(const WatchOptions& options, const ShardPlace& place) {
  WatchReport report;
  ShardPart part;
  Status status;
  RunWithThreads(ThreadsOf(options),
                 [&] { status = Watcher(options, report).RunPart(place, part); });
  if (!status) return status.error();
  return part;
}

Result<WatchReport> WatchMerged(const WatchOptions& options, const std::string& state,
                                std::span<const json::Value> items) {
  WatchReport report;
  PL_TRY(Watcher(options, report).RunMerged(state, items));
  return report;
}

}  // namespace plumbline::watch
