#include "graphs/compare_torchair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "formats/acl/acl_dump.h"
#include "formats/array/npy.h"
#include "match/expand.h"
#include "measure/tensor_metrics.h"

namespace plumbline::graphs {

namespace {

using Against = OperatorPair::Against;
using Opened = Result<acl::DumpFile>;

// What upstream's column says where only one side was dumped.
std::string MissingText(bool only_target) {
  return only_target ? "golden data is missing." : "my data is missing.";
}

measure::ArrayVerdict OneSided(bool only_target) {
  return measure::NotComparable(only_target ? "only-target" : "only-golden");
}

// Where the elements of one side are; nothing: none were dumped.
struct Source {
  const acl::DumpedTensor* dumped = nullptr;
  std::string npy_path;
  std::string cell;  // what the report calls it
  std::string operator_type;
  [[nodiscard]] bool exists() const { return dumped != nullptr || !npy_path.empty(); }
};

// Contiguous elements of a source.
class Elements {
 public:
  explicit Elements(const Source& source) {
    if (source.dumped != nullptr) {
      Result<acl::Elements> decoded = acl::ElementsOf(*source.dumped);
      if (!decoded) {
        problem_ = decoded.error().message();
        return;
      }
      decoded_ = std::move(*decoded);
      decoded_.Align();
      view_ = decoded_.view();
      return;
    }
    Result<npy::NpyFile> file = npy::NpyFile::Open(source.npy_path);
    if (!file) {
      problem_ = file.error().message();
      return;
    }
    file_.emplace(std::move(*file));
    view_ = file_->view();
    if (view_.is_contiguous()) return;
    Result<Tensor> copy = Tensor::Copy(view_);
    if (!copy) {
      problem_ = copy.error().message();
      return;
    }
    copy_ = std::move(*copy);
    view_ = copy_.view();
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const TensorView& view() const { return view_; }

 private:
  acl::Elements decoded_;
  std::optional<npy::NpyFile> file_;
  Tensor copy_;
  TensorView view_;
  std::string problem_;
};

// Fills the cells of one side; whether all elements are finite.
bool Describe(const TensorView& view, TorchairTensor& tensor) {
  tensor.dtype = InfoOf(view.dtype).torch_name;
  tensor.shape = match::ShapeText(view.sizes);
  if (view.element_count() == 0) return true;
  const measure::FloatStatistics statistics = measure::StatisticsAsFloat(view);
  tensor.statistics = {PythonFloat(statistics.max), PythonFloat(statistics.min),
                       PythonFloat(statistics.mean)};
  return statistics.all_finite;
}

void AddReason(std::string_view reason, TorchairRow& row) {
  if (!row.fail_reason.empty()) row.fail_reason += ' ';
  row.fail_reason += reason;
}

// Both sides hold equally many elements, at least one.
void Measure(const TensorView& target, const TensorView& golden, TorchairRow& row) {
  const Shape sizes{golden.element_count()}, strides{1};
  const TensorView a{target.dtype, target.data, sizes, strides};
  const TensorView b{golden.dtype, golden.data, sizes, strides};
  if (row.fail_reason.empty()) row.metrics = measure::MeasureAsTorchair(a, b);
  const auto sums = measure::SumPairs(a, b);
  if (!sums) {
    AddReason(sums.error().message(), row);
    row.judged.verdict = measure::NotComparable("unreadable");
    return;
  }
  row.judged.verdict = measure::JudgeElements(*sums, a, b);
  if ((a.dtype == DType::kInt8) == (b.dtype == DType::kInt8)) return;
  AddReason("one side is quantised (int8).", row);
  row.judged.paired = false;
  row.judged.verdict = measure::NotComparable("dtype-differs");
}

void FillRow(const Source& target, const Source& golden, TorchairRow& row) {
  row.target.path = target.cell;
  row.target.operator_type = target.operator_type;
  row.golden.path = golden.cell;
  row.golden.operator_type = golden.operator_type;
  if (!target.exists() || !golden.exists()) {
    row.fail_reason = MissingText(target.exists());
    row.judged.paired = false;
    row.judged.verdict = OneSided(target.exists());
    return;
  }
  const Elements a(target), b(golden);
  if (!a.problem().empty()) AddReason(a.problem(), row);
  if (!b.problem().empty()) AddReason(b.problem(), row);
  if (!row.fail_reason.empty()) {
    row.judged.verdict = measure::NotComparable("unreadable");
    return;
  }
  const bool golden_finite = Describe(b.view(), row.golden);
  const bool target_finite = Describe(a.view(), row.target);
  const bool same_count = a.view().element_count() == b.view().element_count();
  if (!same_count) AddReason("data shape doesn't match.", row);
  if (!golden_finite) AddReason("golden_data includes NAN or inf.", row);
  if (!target_finite) AddReason("my_data includes NAN or inf.", row);
  if (!same_count) {
    // The device may pad: no proof of a fault, and no counterpart either.
    row.judged.paired = false;
    row.judged.verdict = measure::NotComparable("shape-differs");
  } else if (a.view().element_count() == 0) {
    row.judged.verdict = measure::NotComparable("empty");
  } else {
    Measure(a.view(), b.view(), row);
  }
}

std::vector<Source> SourcesOf(const std::vector<acl::DumpedTensor>& tensors,
                              const std::string& path, std::string_view side) {
  std::vector<Source> sources;
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const std::string type(name.substr(0, name.find('.')));
  for (size_t i = 0; i < tensors.size(); ++i) {
    sources.push_back({&tensors[i], {}, fmt::format("{},{},{}", path, side, i), type});
  }
  return sources;
}

std::vector<Source> SourcesOf(const std::map<int64_t, std::string>& files) {
  std::vector<Source> sources;
  for (const auto& [position, path] : files) {
    sources.resize(static_cast<size_t>(std::min<int64_t>(position, 4096)));  // gaps stay gaps
    sources.push_back({nullptr, path, path, {}});
  }
  return sources;
}

class PairRows {
 public:
  explicit PairRows(const OperatorPair& pair) : pair_(pair), target_(Open(pair.target.path)) {}

  std::vector<TorchairRow> Make() {
    if (pair_.against == Against::kNothing || !target_) {
      TorchairRow& row = Add(true, 0);
      row.target.path = pair_.target.path;
      row.target.operator_type = pair_.target.type;
      row.fail_reason = target_ ? MissingText(true) : target_.error().message();
      row.judged.paired = pair_.against != Against::kNothing;
      row.judged.verdict = measure::NotComparable(target_ ? "only-target" : "unreadable");
      return std::move(rows_);
    }
    const auto inputs = SourcesOf(target_->message().inputs, pair_.target.path, "inputs");
    const auto outputs = SourcesOf(target_->message().outputs, pair_.target.path, "outputs");
    if (pair_.against == Against::kItself) {
      AddRows(outputs, inputs, true, std::min(inputs.size(), outputs.size()));
    } else if (pair_.against == Against::kFx) {
      AgainstFx(inputs, outputs);
    } else {
      AgainstGe(inputs, outputs);
    }
    return std::move(rows_);
  }

 private:
  static Opened Open(const std::string& path) { return acl::DumpFile::Open(path); }

  TorchairRow& Add(bool is_output, size_t position) {
    TorchairRow& row = rows_.emplace_back();
    row.token = pair_.token;
    row.judged.operation = pair_.operation;
    row.judged.is_output = is_output;
    row.judged.name =
        fmt::format("{}.{}.{}", pair_.operation, is_output ? "output" : "input", position);
    row.order = {pair_.target.time, is_output, position};
    return row;
  }
  void AddRows(const std::vector<Source>& target, const std::vector<Source>& golden, bool is_output,
               size_t count) {
    static const Source kNone;
    for (size_t i = 0; i < count; ++i) {
      FillRow(i < target.size() ? target[i] : kNone, i < golden.size() ? golden[i] : kNone,
              Add(is_output, i));
    }
  }
  // A compiled operator takes more inputs than the one it stands for; a result that only one side
  // has is a row.
  void AddBoth(const std::vector<Source>& inputs, const std::vector<Source>& golden_inputs,
               const std::vector<Source>& outputs, const std::vector<Source>& golden_outputs) {
    AddRows(inputs, golden_inputs, false, std::min(inputs.size(), golden_inputs.size()));
    AddRows(outputs, golden_outputs, true, std::max(outputs.size(), golden_outputs.size()));
  }
  void AgainstFx(const std::vector<Source>& inputs, const std::vector<Source>& outputs) {
    static const load::FxOperator kNone;
    const load::FxOperator& first = pair_.fx_inputs != nullptr ? *pair_.fx_inputs : kNone;
    const load::FxOperator& last = pair_.fx_outputs != nullptr ? *pair_.fx_outputs : kNone;
    AddBoth(inputs, SourcesOf(first.inputs), outputs, SourcesOf(last.outputs));
  }
  void AgainstGe(const std::vector<Source>& inputs, const std::vector<Source>& outputs) {
    std::set<std::string_view> inside;
    if (pair_.is_fused) {
      for (const GoldenPart& part : pair_.parts) inside.insert(part.name);
    }
    golden_.reserve(pair_.parts.size());
    std::vector<Source> golden_inputs, golden_outputs;
    for (const GoldenPart& part : pair_.parts) {
      std::vector<Source> fed(part.feeds.size());  // of a part that was not dumped
      if (!part.path.empty()) {
        const Opened& opened = golden_.emplace_back(Open(part.path));
        if (!opened) return AddUnreadable(opened.error());
        fed = SourcesOf(opened->message().inputs, part.path, "inputs");
        golden_outputs = SourcesOf(opened->message().outputs, part.path, "outputs");
      } else {
        golden_outputs.clear();
      }
      for (size_t i = 0; i < fed.size(); ++i) {
        const bool known = i < part.feeds.size();
        if (pair_.is_fused && (!known || inside.contains(part.feeds[i]))) continue;
        golden_inputs.push_back(std::move(fed[i]));
      }
    }
    AddBoth(inputs, golden_inputs, outputs, golden_outputs);
  }
  void AddUnreadable(const Error& error) {
    TorchairRow& row = Add(true, 0);
    row.target.path = pair_.target.path;
    row.target.operator_type = pair_.target.type;
    row.fail_reason = error.message();
    row.judged.verdict = measure::NotComparable("unreadable");
  }

  const OperatorPair& pair_;
  Opened target_;
  std::vector<Opened> golden_;
  std::vector<TorchairRow> rows_;
};

// Tokens of one graph. One that a side lacks is one row.
template <typename GoldenTokens, typename PairOperators>
void PairTokens(const std::map<int64_t, load::GeOperators>& target, const GoldenTokens& golden,
                const PairOperators& pair_operators, std::vector<TorchairRow>& rows) {
  const auto add_alone = [&](int64_t token, bool is_target) {
    TorchairRow& row = rows.emplace_back();
    row.token = token;
    row.fail_reason = MissingText(is_target);
    row.judged = {fmt::format("token {}", token), fmt::format("token {}", token), true, false,
                  OneSided(is_target)};
    row.order = {std::numeric_limits<int64_t>::max(), true, 0};
  };
  for (const auto& [token, operators] : target) {
    const auto found = golden.find(token);
    if (found == golden.end()) {
      add_alone(token, true);
    } else {
      pair_operators(operators, found->second, token);
    }
  }
  for (const auto& one : golden) {
    if (!target.contains(one.first)) add_alone(one.first, false);
  }
}

struct RankPaths {
  std::optional<int64_t> rank;
  std::string target, golden;       // where the data is
  std::vector<std::string> graphs;  // texts of the target
  bool is_golden_fx = false;
};

uint64_t FilesOf(const std::map<int64_t, load::GeOperators>& tokens) {
  uint64_t count = 0;
  for (const auto& one : tokens) count += one.second.size();
  return count;
}

// What could not be used.
template <typename GoldenDump>
Result<uint64_t> PairGraphs(const RankPaths& paths, const load::GeDump& target,
                            const GoldenDump& golden, OperatorPairs& pairs,
                            std::vector<TorchairRow>& rows) {
  uint64_t left_out = target.left_out + golden.left_out;
  const size_t count = std::max({target.graphs.size(), golden.graphs.size(), paths.graphs.size()});
  for (size_t i = 0; i < count; ++i) {
    static const std::map<int64_t, load::GeOperators> kNoTarget;
    static const typename decltype(golden.graphs)::value_type kNoGolden;
    if (i >= paths.graphs.size()) {  // nothing says what these operators are
      if (i < target.graphs.size()) left_out += FilesOf(target.graphs[i]);
      continue;
    }
    PL_TRY_ASSIGN(const load::OperatorGraph graph, load::ReadGraphText(paths.graphs[i]));
    PairTokens(
        i < target.graphs.size() ? target.graphs[i] : kNoTarget,
        i < golden.graphs.size() ? golden.graphs[i] : kNoGolden,
        [&](const load::GeOperators& mine, const auto& theirs, int64_t token) {
          if constexpr (std::is_same_v<GoldenDump, load::FxDump>) {
            PairWithFx(graph, mine, theirs, token, pairs);
          } else {
            PairWithGe(graph, mine, theirs, token, pairs);
          }
        },
        rows);
  }
  return left_out;
}

void MeasurePairs(const OperatorPairs& pairs, int threads, std::vector<TorchairRow>& rows) {
  std::vector<std::vector<TorchairRow>> found(pairs.pairs.size());
  RunWithThreads(threads, [&] {
    ParallelFor(found.size(), [&](size_t i) { found[i] = PairRows(pairs.pairs[i]).Make(); });
  });
  for (std::vector<TorchairRow>& some : found) std::ranges::move(some, std::back_inserter(rows));
  std::ranges::stable_sort(rows, {}, &TorchairRow::order);
}

Result<TorchairComparison> CompareRank(const RankPaths& paths, int threads) {
  TorchairComparison comparison;
  comparison.rank = paths.rank;
  comparison.is_golden_fx = paths.is_golden_fx;
  PL_TRY_ASSIGN(const load::GeDump target, load::ReadGeDump(paths.target));
  OperatorPairs pairs;
  uint64_t left_out = 0;
  load::FxDump fx;  // the pairs refer to it
  if (paths.is_golden_fx) {
    PL_TRY_ASSIGN(fx, load::ReadFxDump(paths.golden, paths.rank.has_value()));
    PL_TRY_ASSIGN(left_out, PairGraphs(paths, target, fx, pairs, comparison.rows));
  } else {
    PL_TRY_ASSIGN(const load::GeDump golden, load::ReadGeDump(paths.golden));
    PL_TRY_ASSIGN(left_out, PairGraphs(paths, target, golden, pairs, comparison.rows));
  }
  MeasurePairs(pairs, threads, comparison.rows);
  comparison.without_name = pairs.without_name;
  std::vector<report::JudgedTensor> judged;
  for (const TorchairRow& row : comparison.rows) judged.push_back(row.judged);
  comparison.answer = report::AnswerOf(judged, left_out);
  return comparison;
}

struct Ranks {
  std::vector<RankPaths> common;                // to be compared; empty: the dumps have none
  std::vector<std::pair<int64_t, bool>> alone;  // of one side; true: of the target
};

Result<Ranks> RanksOf(const TorchairRequest& request) {
  PL_TRY_ASSIGN(auto target, load::ListTorchairRanks(request.target));
  PL_TRY_ASSIGN(auto golden, load::ListTorchairRanks(request.golden));
  Ranks ranks;
  if (target.empty()) {
    if (request.ranks.empty()) return ranks;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds no ranks (expected worldsize*rank{}). Leave out --rank",
                             request.target, request.ranks.front()));
  }
  std::set<int64_t> wanted(request.ranks.begin(), request.ranks.end());
  if (wanted.empty()) {
    for (const auto& one : target) wanted.insert(one.first);
    for (const auto& one : golden) wanted.insert(one.first);
  }
  for (const int64_t rank : wanted) {
    if (target.contains(rank) && golden.contains(rank)) {
      ranks.common.push_back({rank, target[rank], golden[rank], {}, false});
    } else if (target.contains(rank) || golden.contains(rank)) {
      ranks.alone.emplace_back(rank, target.contains(rank));
    } else {
      return Error(ErrorCode::kNotFound, fmt::format("{}: holds no rank {} (expected worldsize*"
                                                     "rank{})",
                                                     request.target, rank, rank));
    }
  }
  if (!ranks.common.empty()) return ranks;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no rank in common with {} (expected worldsize*rankN in both)",
                           request.target, request.golden));
}

TorchairComparison RankAlone(int64_t rank, bool of_target) {
  TorchairComparison comparison;
  comparison.rank = rank;
  TorchairRow& row = comparison.rows.emplace_back();
  row.fail_reason = MissingText(of_target);
  const std::string name = fmt::format("rank {}", rank);
  row.judged = {name, name, true, false, OneSided(of_target)};
  comparison.answer = report::AnswerOf(std::span(&row.judged, 1), 0);
  return comparison;
}

}  // namespace

Result<std::vector<TorchairComparison>> CompareTorchair(const TorchairRequest& asked) {
  TorchairRequest request = asked;
  PL_TRY_ASSIGN(request.target, RealPath(asked.target));
  PL_TRY_ASSIGN(request.golden, RealPath(asked.golden));
  PL_TRY_ASSIGN(const auto golden_graphs, load::FindGraphTexts(request.golden, std::nullopt));
  PL_TRY_ASSIGN(Ranks ranks, RanksOf(request));
  if (ranks.common.empty()) {
    ranks.common.push_back({std::nullopt, request.target, request.golden, {}, false});
  }
  std::vector<TorchairComparison> comparisons;
  for (RankPaths& paths : ranks.common) {
    PL_TRY_ASSIGN(paths.graphs, load::FindGraphTexts(request.target, paths.rank));
    if (paths.graphs.empty()) {
      return Error(
          ErrorCode::kNotFound,
          fmt::format("{}: no graph text below it (expected dynamo_original_graph_*{}.txt)",
                      request.target, paths.rank ? fmt::format("rank_{}_*", *paths.rank) : ""));
    }
    paths.is_golden_fx = golden_graphs.empty();
    PL_TRY_ASSIGN(TorchairComparison comparison, CompareRank(paths, request.threads));
    comparisons.push_back(std::move(comparison));
  }
  for (const auto& [rank, of_target] : ranks.alone) {
    comparisons.push_back(RankAlone(rank, of_target));
  }
  return comparisons;
}

std::string TorchairText(const TorchairComparison& comparison) {
  std::string text;
  if (comparison.rank) text = fmt::format("rank {}\n", *comparison.rank);
  text += report::AnswerText(comparison.answer, "files");
  if (comparison.without_name > 0) {
    text += fmt::format("operators that the compiler added: {}\n", comparison.without_name);
  }
  return text;
}

namespace {

using load::FxOperator;
using load::GeOperators;
using load::GraphOperator;
using load::OperatorGraph;

constexpr std::string_view kFusedType = "AutomaticBufferFusionOp";

// A fused operator is called by the names of its parts in a row. A longer beginning that was dumped
// without being in the graph says that the cut would be wrong.
std::vector<std::string> PartsOf(std::string_view name, const OperatorGraph& graph,
                                 const GeOperators& target, const GeOperators& golden) {
  std::vector<std::string> parts;
  while (!name.empty()) {
    size_t length = name.size();
    while (length > 0 && !graph.contains(name.substr(0, length))) {
      const std::string_view start = name.substr(0, length);
      const bool whole = length == name.size();
      if (!whole && (target.contains(start) || golden.contains(start))) return parts;
      --length;
    }
    if (length == 0) return parts;
    parts.emplace_back(name.substr(0, length));
    name.remove_prefix(length);
  }
  return parts;
}

// The operator of the uncompiled run that made the last dumped one of these tensors.
const FxOperator* FxOf(const GraphOperator& one, const load::FxOperators& golden) {
  const FxOperator* found = nullptr;
  for (const std::string& name : one.fx_tensors) {
    const auto at = golden.find(name);
    if (at != golden.end()) found = &at->second;
  }
  return found;
}

bool MovesValues(std::string_view type) {
  return type.find("Cast") != type.npos || type.find("TransData") != type.npos;
}

}  // namespace

void PairWithFx(const OperatorGraph& graph, const GeOperators& target,
                const load::FxOperators& golden, int64_t token, OperatorPairs& result) {
  for (const auto& [name, file] : target) {
    OperatorPair pair{token, name, file, OperatorPair::Against::kFx, nullptr, nullptr, {}, false};
    const std::vector<std::string> parts = PartsOf(name, graph, target, target);
    if (parts.empty()) {
      if (!MovesValues(file.type)) {
        ++result.without_name;
        continue;
      }
      pair.against = OperatorPair::Against::kItself;
      result.pairs.push_back(std::move(pair));
      continue;
    }
    const GraphOperator& first = graph.find(parts.front())->second;
    const GraphOperator& last = graph.find(parts.back())->second;
    if (first.fx_tensors.empty() && last.fx_tensors.empty()) {
      ++result.without_name;
      continue;
    }
    pair.fx_inputs = FxOf(first, golden);
    pair.fx_outputs = FxOf(last, golden);
    if (pair.fx_inputs == nullptr && pair.fx_outputs == nullptr) {
      pair.against = OperatorPair::Against::kNothing;
    }
    result.pairs.push_back(std::move(pair));
  }
}

void PairWithGe(const OperatorGraph& graph, const GeOperators& target, const GeOperators& golden,
                int64_t token, OperatorPairs& result) {
  for (const auto& [name, file] : target) {
    OperatorPair pair{token,   name,    file, OperatorPair::Against::kNothing,
                      nullptr, nullptr, {},   false};
    pair.is_fused = file.type.starts_with(kFusedType);
    std::vector<std::string> parts{name};
    if (pair.is_fused) parts = PartsOf(name, graph, target, golden);
    bool any = false;
    for (const std::string& part : parts) {
      GoldenPart& one = pair.parts.emplace_back();
      one.name = part;
      if (const auto at = golden.find(part); at != golden.end()) one.path = at->second.path;
      if (const auto at = graph.find(part); at != graph.end()) one.feeds = at->second.inputs;
      any = any || !one.path.empty();
    }
    if (any) pair.against = OperatorPair::Against::kGe;
    result.pairs.push_back(std::move(pair));
  }
}

}  // namespace plumbline::graphs
