#include "view/store/build_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "compare/compare_runs.h"
#include "load/run_reader.h"
#include "plumbline/c_api.h"
#include "ranks/compare_ranks.h"
#include "record/run_files.h"
#include "report/result_json.h"
#include "tree/read_tree.h"
#include "view/store/fill_place.h"
#include "view/store/store_writer.h"

namespace plumbline::view {
namespace {

using json::Value;

constexpr std::string_view kOfStructure = "structure", kOfTensors = "tensor";

Error WasCancelled() { return {ErrorCode::kNotFound, "cancelled"}; }

Value LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : SplitAt(text, '\n')) lines.emplace_back(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return Value(lines);
}

Value FactsOfCall(const FirstWrongCall& call, size_t place) {
  Value facts = Value::Object();
  facts.Put("place", Value(static_cast<int64_t>(place)));
  report::VisitMembers(call, [&]<class T>(std::string_view key, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      facts.Put(key, Value(std::string_view(value)));
    } else {
      facts.Put(key, Value(value));
    }
  });
  return facts;
}

// The tree of one recording, with notes on what construct.json lacks.
Result<ModelGraph> TreeOf(const Run& run, tree::ForEachCall calls) {
  tree::TreeSource source;
  const std::string& main_file = run.dump_json_path();
  const bool is_log = !run.header().log_form.empty();
  const bool may_have_modules = !run.header().of_graphs && !run.header().holds_saves();
  const dump_json::CallTree& known = load::CallTreeOf(run);
  if (may_have_modules && (is_log ? known.has_parents() : !known.rows.empty())) {
    source.known = &known;
  } else if (may_have_modules && !is_log) {
    source.directory = DirectoryOf(main_file);  // says what is wrong with construct.json
  }
  source.calls = std::move(calls);
  source.frames = [&run](const ModelGraph&) {
    return [&run](std::string_view name) -> const std::vector<std::string>* {
      const Shared<std::vector<std::string>>& frames = run.StackOf(name);
      return frames.empty() ? nullptr : &*frames;
    };
  };
  source.is_mindspore = run.header().framework == "mindspore";
  source.groups_lacked = true;
  PL_TRY_ASSIGN(tree::RecordedTree tree, tree::ReadTree(source));
  std::vector<std::string>& notes = tree.graph.notes;
  if (may_have_modules && !tree.has_modules) {
    notes.push_back(fmt::format(
        "{}: no modules; calls are shown as a list. Record with {} to see the model",
        is_log ? main_file : JoinPath(DirectoryOf(main_file), run_files::kConstructJson),
        is_log ? "DebugMode(record_nn_module=True)" : "level L0 or mix"));
  }
  if (tree.has_modules && tree.lacked > 0) {
    notes.push_back(fmt::format("dump.json: {} that construct.json lacks; shown on the top level",
                                CountText(tree.lacked, "call")));
  }
  return std::move(tree.graph);
}

std::string FirstLineOf(const std::string& text) { return text.substr(0, text.find('\n')); }

// What was seen of both sides of one rank, and where its place is.
struct SeenRank {
  SeenSide target, golden;
  std::optional<size_t> place;  // index in the writer
};

// Builds one store. Ranks are put in by several threads.
class StoreBuild {
 public:
  StoreBuild(StoreWriter& writer, const StoreOptions& options)
      : writer_(writer), options_(options) {}

  Status Check() const {
    const bool is_stopped = options_.is_cancelled != nullptr && options_.is_cancelled->load();
    return is_stopped ? Status(WasCancelled()) : Status();
  }

  // --- a comparison ---

  // One rank that was judged: its trees with what the comparison says.
  Status AddPair(const load::RankPair& pair, const compare::RunPair& runs, SeenRank& seen) {
    PL_TRY(Check());
    const Comparison& comparison = runs.comparison();
    PlaceSide sides[2] = {{&runs.target(), &seen.target, {}, {}},
                          {&runs.golden(), &seen.golden, {}, {}}};
    const auto names_of = [&](Text ComparedCall::*name) {
      return [&, name](const std::function<void(std::string_view)>& visit) {
        for (const ComparedCall& call : comparison.calls) {
          if (!(call.*name).empty()) visit(call.*name);
        }
      };
    };
    Result<ModelGraph> target = ModelGraph(), golden = ModelGraph();
    RunBoth([&] { target = TreeOf(runs.target(), names_of(&ComparedCall::target_name)); },
            [&] { golden = TreeOf(runs.golden(), names_of(&ComparedCall::golden_name)); });
    PL_TRY_ASSIGN(sides[0].graph, std::move(target));
    PL_TRY_ASSIGN(sides[1].graph, std::move(golden));
    Value facts = Value::Object();
    const std::string answer = SummaryText(comparison);
    facts.Put("answer", Value(std::string_view(FirstLineOf(answer))));
    facts.Put("first", Value(std::string_view(
                           comparison.first_wrong_call ? comparison.first_wrong_call->name : "")));
    if (comparison.mode == CompareMode::kTensor) {
      PutTensors("target_tensors", runs.target(), facts);
      PutTensors("golden_tensors", runs.golden(), facts);
    }
    return Add(pair, sides, &comparison, std::move(facts), seen);
  }

  // One rank that was not compared: what was recorded of it alone.
  Status AddAlone(const load::RankPair& pair, std::string_view answer, SeenRank& seen) {
    PL_TRY(Check());
    std::optional<Recorded> target, golden;
    if (pair.target) {
      PL_TRY_ASSIGN(target, Read(pair.target->path, seen.target));
    }
    if (pair.golden) {
      PL_TRY_ASSIGN(golden, Read(pair.golden->path, seen.golden));
    }
    PlaceSide sides[2];
    if (target) sides[0] = {&target->run, &seen.target, target->calls, std::move(target->graph)};
    if (golden) sides[1] = {&golden->run, &seen.golden, golden->calls, std::move(golden->graph)};
    Value facts = Value::Object();
    facts.Put("answer", Value(answer));
    facts.Put("first", Value(""));
    if (target) PutTensors("target_tensors", target->run, facts);
    if (golden) PutTensors("golden_tensors", golden->run, facts);
    return Add(pair, sides, nullptr, std::move(facts), seen);
  }

  [[nodiscard]] match::TextPairs PairsByHand(const load::RankPair& pair) const {
    if (!options_.by_hand) return {};
    return options_.by_hand(pair.step.value_or(0), pair.rank().value_or(0));
  }

  // --- the whole ---

  void Note(std::string note) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
  }
  [[nodiscard]] bool has_tensors() const { return has_tensors_; }
  [[nodiscard]] const std::string& task() const { return task_; }

  // Calls of different ranks that belong together, per step and side.
  Status AddLinks(const std::map<int64_t, std::vector<const SeenRank*>>& steps) {
    for (const auto& [step, ranks] : steps) {
      for (const bool is_golden : {false, true}) AddLinksOf(ranks, is_golden);
    }
    return Check();
  }

  Status Finish(Value facts) {
    PL_TRY(Check());
    facts.Put("source", Value("plumbline"));
    facts.Put("overflow_check", Value(options_.grades_overflow));
    facts.Put("has_tensors", Value(has_tensors_));
    by_hand_.AddNotes(": the answer and the levels count them as found", notes_);
    facts.Put("notes", Value(notes_));
    return writer_.Finish(facts, place_facts_);
  }

 private:
  struct Recorded {
    Run run;
    std::vector<match::CallItems> calls;
    ModelGraph graph;
  };

  Result<Recorded> Read(const std::string& path, SeenSide& seen) const {
    seen = {};
    std::vector<match::CallItems> calls;
    match::Expander expander;
    Status expanded;
    const auto take = [&](Call& call, const RunHeader& header) {
      seen.Take(call, options_.grades_overflow);
      Result<match::CallItems> items = header.holds_saves()
                                           ? expander.ExpandSave(call)
                                           : expander.ExpandCall(call, !header.of_graphs);
      if (items) {
        calls.push_back(std::move(*items));
      } else if (expanded) {
        expanded = items.error();
      }
      return false;
    };
    PL_TRY_ASSIGN(Run run, Run::Open(path, {.salvage = options_.compare.salvage, .keep = take}));
    PL_TRY(std::move(expanded));
    const auto names = [&](const std::function<void(std::string_view)>& visit) {
      for (const match::CallItems& call : calls) visit(call.name);
    };
    PL_TRY_ASSIGN(ModelGraph graph, TreeOf(run, names));
    return Recorded{std::move(run), std::move(calls), std::move(graph)};
  }

  static void PutTensors(std::string_view key, const Run& run, Value& facts) {
    if (run.header().task != kOfTensors || run.header().of_graphs) return;
    facts.Put(key, Value(DirectoryOf(run.TensorPath("x"))));
  }

  Status Add(const load::RankPair& pair, PlaceSide (&sides)[2], const Comparison* comparison,
             Value facts, SeenRank& seen) {
    auto& [target, golden] = sides;
    PlaceBuilder place = writer_.Begin(pair.step.value_or(0), pair.rank().value_or(0));
    const auto by_hand = PairsByHand(pair);
    auto counted = FillPlace(target, golden, comparison, by_hand, place);
    if (comparison == nullptr) counted.clear();
    const bool has_tensors = facts.Find("target_tensors") != nullptr;
    for (const PlaceSide* side : {&target, &golden}) {
      for (const std::string& note : side->graph.notes) {
        Note(fmt::format("{}: {}{}", pair.label(), side == &golden ? "golden: " : "", note));
      }
    }
    PL_TRY(Check());
    const std::lock_guard lock(mutex_);
    if (!seen.place) by_hand_.Add(by_hand, counted);
    has_tensors_ |= has_tensors;
    if (target.run != nullptr) task_ = target.run->header().task;
    if (seen.place) {
      PL_TRY(writer_.Replace(*seen.place, std::move(place)));
    } else {
      PL_TRY_ASSIGN(seen.place, writer_.Add(std::move(place)));
    }
    if (place_facts_.size() <= *seen.place) place_facts_.resize(*seen.place + 1);
    place_facts_[*seen.place] = std::move(facts);
    seen.target.communication.scan.directory.rank = pair.rank();
    seen.golden.communication.scan.directory.rank = pair.rank();
    return {};
  }

  void AddLinksOf(const std::vector<const SeenRank*>& ranks, bool is_golden) {
    std::vector<RankCommunication> communication;
    std::vector<size_t> places;
    for (const SeenRank* const rank : ranks) {
      if (!rank->place) continue;
      communication.push_back((is_golden ? rank->golden : rank->target).communication);
      places.push_back(*rank->place);
    }
    if (communication.size() < 2) return;
    std::map<std::string, uint64_t> numbers;
    for (const RankLink& link : LinkRanks(communication)) {
      std::vector<int64_t> members;
      LinkRecord record{link.api, link.is_message, link.layer, {}};
      for (const LinkEnd& end : link.ends) {
        const RankScan& scan = communication[end.node.rank].scan;
        const auto at =
            writer_.Find(places[end.node.rank], is_golden, scan.calls[end.node.call].name);
        if (!at) continue;
        members.push_back(scan.directory.rank.value_or(0));
        record.ends.push_back({*at, static_cast<StoredRole>(end.role), end.mismatch});
      }
      if (record.ends.size() < 2) continue;
      for (const int64_t member : members)
        record.key += fmt::format("{}{}", &member == members.data() ? " " : ",", member);
      record.key += fmt::format(" {}", numbers[record.key]++);
      writer_.AddLink(std::move(record));
    }
  }

  StoreWriter& writer_;
  const StoreOptions& options_;
  std::mutex mutex_;  // of all below, and of the writer
  std::vector<Value> place_facts_;
  std::vector<std::string> notes_;
  std::string task_;
  HandPairCount by_hand_;
  bool has_tensors_ = false;
};

Status PutPaths(const std::string& target, const std::string& golden, Value& facts) {
  PL_TRY_ASSIGN(const std::string target_path, AbsolutePath(target));
  facts.Put("target", Value(std::string_view(target_path)));
  std::string golden_path;
  if (!golden.empty()) {
    PL_TRY_ASSIGN(golden_path, AbsolutePath(golden));
  }
  facts.Put("golden", Value(std::string_view(golden_path)));
  Value more = Value::Object();
  more.Put("tool", Value("plumbline " PLUMBLINE_VERSION));
  more.Put("status", Value("complete"));
  facts.Put("facts", std::move(more));
  return {};
}

void PutAnswer(std::string_view kind, std::string_view mode, Value& facts) {
  facts.Put("kind", Value(kind));
  facts.Put("mode", Value(mode));
  facts.Put("answer", Value(std::vector<std::string>()));
  facts.Put("complete", Value(true));
  facts.Put("first", Value());
}

// One recording, rank by rank.
Status BuildAlone(const std::string& target, const StoreOptions& options, StoreBuild& build) {
  PL_TRY_ASSIGN(const load::RankPairs found, load::FindRankPairs(target, target, options.filter));
  for (const std::string& note : found.notes) build.Note(note);
  std::vector<SeenRank> seen(found.pairs.size());
  std::map<int64_t, std::vector<const SeenRank*>> steps;
  for (size_t i = 0; i < found.pairs.size(); ++i) {
    if (!found.pairs[i].target) continue;
    const load::RankPair alone{found.pairs[i].step, found.pairs[i].target, {}};
    PL_TRY(build.AddAlone(alone, "", seen[i]));
    steps[alone.step.value_or(0)].push_back(&seen[i]);
    if (options.progress) options.progress(i + 1, found.pairs.size());
  }
  PL_TRY(build.AddLinks(steps));
  Value facts = Value::Object();
  PL_TRY(PutPaths(target, "", facts));
  PutAnswer("build", "", facts);
  return build.Finish(std::move(facts));
}

// One pair of recordings.
Status BuildPair(const load::RankPair& pair, const StoreOptions& options, Value facts,
                 StoreBuild& build) {
  SeenRank seen;
  compare::Pairing pairing;
  pairing.by_hand = build.PairsByHand(pair);
  pairing.see = [&](const Call& call, bool of_target) {
    (of_target ? seen.target : seen.golden).Take(call, options.grades_overflow);
  };
  Result<compare::RunPair> runs =
      compare::JudgePaired(pair.target->path, pair.golden->path, options.compare, pairing);
  if (!runs) {
    // Recordings of the structure alone pair by name.
    PL_TRY(build.AddAlone(pair, "", seen));
    if (build.task() != kOfStructure) return runs.error();
    PutAnswer("compare", kOfStructure, facts);
    return build.Finish(std::move(facts));
  }
  PL_TRY(build.AddPair(pair, *runs, seen));
  const Comparison& comparison = runs->comparison();
  PutAnswer("compare", CompareModeName(comparison.mode), facts);
  facts.Put("answer", LinesOf(SummaryText(comparison)));
  facts.Put("complete", Value(comparison.is_complete()));
  if (comparison.first_wrong_call) {
    facts.Put("first", FactsOfCall(*comparison.first_wrong_call, *seen.place));
  }
  if (options.progress) options.progress(1, 1);
  return build.Finish(std::move(facts));
}

// Several ranks or steps of both sides.
Status BuildRanks(const std::string& target, const std::string& golden, const StoreOptions& options,
                  Value facts, StoreBuild& build) {
  std::vector<SeenRank> seen;
  std::vector<load::RankPair> pairs;
  std::mutex mutex;
  std::set<size_t> done;
  ranks::CompareRanksOptions asked;
  asked.compare = options.compare;
  asked.compare.output_dir.clear();
  asked.filter = options.filter;
  asked.watch.is_cancelled = options.is_cancelled;
  asked.watch.begin = [&](const ranks::RanksReport& report) {
    seen.resize(report.ranks.size());
    for (const ranks::ComparedRank& rank : report.ranks) pairs.push_back(rank.pair);
  };
  asked.watch.see = [&](size_t rank, const Call& call, bool of_target) {
    (of_target ? seen[rank].target : seen[rank].golden).Take(call, options.grades_overflow);
  };
  asked.watch.by_hand = [&](size_t rank) { return build.PairsByHand(pairs[rank]); };
  asked.watch.judged = [&](size_t rank, const compare::RunPair& runs) -> Status {
    PL_TRY(build.AddPair(pairs[rank], runs, seen[rank]));
    const std::lock_guard lock(mutex);
    done.insert(rank);
    if (options.progress) options.progress(done.size(), seen.size());
    return {};
  };
  PL_TRY_ASSIGN(const ranks::RanksReport report, ranks::CompareRanks(target, golden, asked));
  PL_TRY(build.Check());
  CompareMode mode = CompareMode::kTensor;
  std::map<int64_t, std::vector<const SeenRank*>> steps;
  bool is_any_compared = false;
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const ranks::ComparedRank& rank = report.ranks[i];
    if (rank.outcome) {
      mode = is_any_compared ? std::min(mode, rank.outcome->mode) : rank.outcome->mode;
      is_any_compared = true;
    } else {
      const std::string answer =
          rank.error ? "failed: " + rank.error->message()
                     : fmt::format("only the {} has it", rank.pair.target ? "target" : "golden");
      const Status added = build.AddAlone(rank.pair, answer, seen[i]);
      if (!added) build.Note(fmt::format("{}: {}", rank.pair.label(), added.error().message()));
    }
    steps[rank.pair.step.value_or(0)].push_back(&seen[i]);
  }
  PL_TRY(build.AddLinks(steps));
  if (!is_any_compared && build.task() == kOfStructure) {
    PutAnswer("compare", kOfStructure, facts);
    return build.Finish(std::move(facts));
  }
  PutAnswer("compare", CompareModeName(mode), facts);
  facts.Put("answer", LinesOf(ranks::RanksSummaryText(report)));
  facts.Put("complete", Value(report.is_complete()));
  for (const std::string& note : report.notes) build.Note(note);
  if (!report.origins.empty()) {
    const std::optional<size_t> place = seen[report.origins.front().rank].place;
    if (place) facts.Put("first", FactsOfCall(ranks::AnswerCall(report), *place));
  }
  return build.Finish(std::move(facts));
}

}  // namespace

Status BuildStore(const std::string& target, const std::string& golden,
                  const std::string& store_path, const StoreOptions& options) {
  PL_TRY_ASSIGN(StoreWriter writer, StoreWriter::Create(store_path));
  StoreBuild build(writer, options);
  Status built;
  const bool is_pair = !golden.empty();
  Value facts = Value::Object();
  if (is_pair) PL_TRY(PutPaths(target, golden, facts));
  const bool are_ranks = is_pair && load::HoldRanks(target, golden, 2);
  const auto work = [&]() -> Status {
    if (!is_pair) return BuildAlone(target, options, build);
    if (are_ranks) return BuildRanks(target, golden, options, std::move(facts), build);
    PL_TRY_ASSIGN(const load::RankPairs found, load::FindRankPairs(target, golden, options.filter));
    return BuildPair(found.pairs.front(), options, std::move(facts), build);
  };
  RunWithThreads(options.compare.threads, [&] { built = work(); });
  return built;
}

}  // namespace plumbline::view
