// Dumps of MindSpore's static graphs, whichever release wrote them: .npy files or statistic.csv.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/tensor_file.h"
#include "load/graph_index.h"
#include "load/name_mapping.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "watch/points/graph_trace.h"
#include "watch/points/recording.h"

namespace plumbline::watch {
namespace {

class HeldArray : public HeldTensor {
 public:
  explicit HeldArray(TensorFile file) : file_(std::move(file)) {}
  [[nodiscard]] TensorView view() const override { return file_.view(); }

 private:
  TensorFile file_;
};

// A name as the kinds look at it: lower case, '/' between its parts whichever form it has.
std::string PlainKernel(std::string_view name) {
  std::string plain = LowerCase(name);
  if (plain.find('/') == std::string::npos) std::ranges::replace(plain, '_', '/');
  return plain;
}

// What a device tells of an operator that overflowed; its task and its stream follow.
constexpr std::string_view kOpDebug = "Opdebug.Node_OpDebug.";

// How the moments of a weight are called, in front of its name.
constexpr std::array<std::string_view, 6> kMoments = {"accum.",   "moment1.", "moment2.",
                                                      "moments.", "exp.avg.", "exp.avg.sq."};

// The last part of a parameter's name with dots, whichever form it has.
std::string PlainParameter(std::string_view name) {
  std::string plain = LowerCase(name.substr(name.rfind('/') + 1));
  std::ranges::replace(plain, '_', '.');
  return plain;
}

TensorKinds KindsOf(std::string_view kernel, std::string_view op_type) {
  const std::string name = PlainKernel(kernel);
  const bool is_parameter = op_type == "Parameter";
  const bool is_below_gradients =
      name.starts_with("gradients/") || name.find("/gradients/") != std::string::npos;
  TensorKinds kinds = kAnyTensor;
  const bool has_weight_name = name.ends_with(".weight") || name.ends_with(".bias") ||
                               name.ends_with("/weight") || name.ends_with("/bias");
  // Moments of an optimizer are called as the weights they are of.
  const bool is_of_optimizer = name.find("optimizer-") != std::string::npos ||
                               name.starts_with("accum") || name.starts_with("moment") ||
                               name.starts_with("exp_avg") || name.starts_with("exp/avg");
  if (is_parameter && has_weight_name && !is_of_optimizer && !is_below_gradients) kinds |= kWeight;
  const bool is_constant = LowerCase(op_type) == "constant";
  if (is_below_gradients && !is_parameter && !is_constant) kinds |= kGradient;
  if (!is_below_gradients && IsActivation(op_type)) kinds |= kActivation;
  return kinds;
}

std::optional<uint64_t> Natural(const std::optional<int64_t>& count) {
  return count ? std::optional(static_cast<uint64_t>(*count)) : std::nullopt;
}

// Numbers have six digits, unless the table was written with more. What integers have fewer of is
// exact.
double SlackOf(const std::optional<double>& value, std::optional<DType> dtype, bool is_extreme) {
  constexpr int kDigits = 6;
  constexpr double kExactBelow = 1e6;
  if (!value) return 0;
  const bool is_whole = dtype && InfoOf(*dtype).significand_bits == 0;
  if (is_extreme && is_whole && std::abs(*value) < kExactBelow) return 0;
  return PrintedSlack(*value, kDigits);
}

RecordedStatistics FromRow(const load::StatisticRow& row) {
  RecordedStatistics out;
  const TensorRecord& tensor = row.tensor;
  out.dtype = ParseDType(tensor.dtype_text);
  out.shape = tensor.shape;
  out.max = NumberOrTruth(tensor.max);
  out.min = NumberOrTruth(tensor.min);
  out.mean = NumberOrTruth(tensor.mean);
  out.norm = NumberOrTruth(tensor.norm);
  out.nan_count = Natural(row.counts.nan);
  out.inf_count = Natural(row.counts.inf);
  out.zero_count = Natural(row.counts.zero);
  out.negative_count = Natural(row.counts.negative);
  out.positive_count = Natural(row.counts.positive);
  out.digest = row.digest;
  out.relative_slack =
      std::max(SlackOf(out.max, out.dtype, true), SlackOf(out.min, out.dtype, true));
  out.mean_slack =
      std::max(SlackOf(out.mean, out.dtype, false), SlackOf(out.norm, out.dtype, false));
  return out;
}

// What all parts of one tree share: the names and places of kernels, and the compiled graphs.
struct Tree {
  // Of one rank: full names by what dumps may call them, several where they share a name.
  struct Kernels {
    std::unordered_map<std::string, std::vector<std::string>> names;
    std::unordered_map<std::string, int64_t> places;  // in the order of execution
  };
  std::map<int64_t, Kernels> kernels;
  GraphTrace trace;

  void Add(int64_t rank, const std::string& kernel) {
    Kernels& of = kernels[rank];
    if (!of.places.try_emplace(kernel, static_cast<int64_t>(of.places.size())).second) return;
    const std::string mangled = MangledKernel(kernel), last = kernel.substr(kernel.rfind('/') + 1);
    of.names[mangled].push_back(kernel);
    if (last != mangled) of.names[last].push_back(kernel);
  }
  // One name: that kernel. Several: all of them, in the order of execution. None: not known.
  [[nodiscard]] const std::vector<std::string>* Find(int64_t rank, const std::string& name) const {
    const auto of = kernels.find(rank);
    if (of == kernels.end()) return nullptr;
    const auto found = of->second.names.find(name);
    return found == of->second.names.end() ? nullptr : &found->second;
  }
};

class GraphPart : public StepPart {
 public:
  explicit GraphPart(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}

  void Add(load::GraphDirectory place, std::vector<std::string> names) {
    directories_.push_back({std::move(place), std::move(names)});
  }

  Result<std::vector<WatchedTensor>> Read() override {
    std::vector<WatchedTensor> all;
    Status first;
    for (const Directory& directory : directories_) {
      const Status read = ReadDirectory(directory, all);
      if (read) continue;
      notes.push_back(read.error().message());
      is_damaged = true;
      if (first) first = read;
    }
    if (all.empty() && !first) return first.error();
    NameKernels(all);
    KeepNewest(all);
    TellTrained(all);
    return all;
  }

  Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) override {
    PL_TRY_ASSIGN(TensorFile file, TensorFile::Open(tensor.file));
    return std::unique_ptr<HeldTensor>(std::make_unique<HeldArray>(std::move(file)));
  }

  std::vector<std::string> StackOf(const WatchedTensor& tensor) override {
    const TracedNode* node = tree_->trace.Find(rank, tensor.name);
    return node == nullptr ? std::vector<std::string>() : node->stack;
  }

 private:
  struct Directory {
    load::GraphDirectory place;
    std::vector<std::string> names;  // of files
  };

  Status ReadDirectory(const Directory& directory, std::vector<WatchedTensor>& all) {
    const size_t first = all.size();
    PL_TRY_ASSIGN(const load::GraphContent content,
                  load::ReadGraphContent(directory.place.path, directory.names,
                                         [&](load::StatisticRow row) {
                                           all.push_back(FromTable(directory.place, row));
                                         }));
    if (!content.problem.empty()) notes.push_back(content.problem);
    if (!content.has_tensors) return {};
    all.resize(first);
    return ReadFiles(directory, all);
  }

  Status ReadFiles(const Directory& directory, std::vector<WatchedTensor>& all) {
    PL_TRY_ASSIGN(const load::NameMapping mapping, load::NameMapping::Read(directory.place.path));
    uint64_t left_out = 0;
    const std::set<std::string> overflowed = OverflowsIn(directory.names);
    for (const std::string& name : directory.names) {
      if (!name.ends_with(".npy") || name.starts_with(kOpDebug)) continue;
      const std::string full = mapping.NameOf(name);
      const auto parts = load::ParseKernelFile(full);
      if (!parts) {
        ++left_out;
        continue;
      }
      WatchedTensor out = Named(directory.place, std::string(parts->op_name), parts->op_type);
      TakePlace(parts->is_output, parts->slot, parts->timestamp, out);
      out.dtype = parts->dtype;
      out.file = JoinPath(directory.place.path, name);
      out.statistics.dtype = ParseDType(parts->dtype);
      if (out.statistics.dtype) out.dtype = InfoOf(*out.statistics.dtype).name;
      // One output stands for its operator.
      if (parts->is_output && parts->slot == 0) out.kinds |= kOperator;
      if (!overflowed.empty()) {
        out.operator_overflowed = overflowed.contains(fmt::format("{}.{}", parts->task,
                                                                  parts->stream));
      }
      all.push_back(std::move(out));
    }
    if (left_out > 0) {
      notes.push_back(fmt::format("{}: {} with other names left out", directory.place.path,
                                  CountText(left_out, "file")));
    }
    return {};
  }

  // "{task}.{stream}" of the operators that a device told of.
  static std::set<std::string> OverflowsIn(const std::vector<std::string>& names) {
    std::set<std::string> found;
    for (const std::string_view name : names) {
      if (!name.starts_with(kOpDebug)) continue;
      const auto words = SplitAt(name.substr(kOpDebug.size()), '.');
      if (words.size() > 2) found.insert(fmt::format("{}.{}", words[0], words[1]));
    }
    return found;
  }

  WatchedTensor Named(const load::GraphDirectory& place, std::string name,
                      std::string_view op_type) const {
    WatchedTensor out;
    out.name = std::move(name);
    const std::vector<std::string>* kernels = tree_->Find(rank, out.name);
    if (kernels != nullptr && kernels->size() == 1) out.name = kernels->front();
    out.op = op_type;
    if (place.graph) out.graph = std::to_string(*place.graph);
    out.kinds = KindsOf(out.name, op_type);
    return out;
  }

  static void TakePlace(bool is_output, int64_t slot, int64_t timestamp, WatchedTensor& out) {
    out.io = is_output ? "output" : "input";
    out.slot = std::to_string(slot);
    out.slot_number = slot;
    out.is_input = !is_output;
    out.place = timestamp;
  }

  WatchedTensor FromTable(const load::GraphDirectory& place, const load::StatisticRow& row) const {
    WatchedTensor out = Named(place, row.op_name, row.op_type);
    TakePlace(row.is_output, row.slot, row.timestamp, out);
    out.statistics = FromRow(row);
    out.dtype = row.tensor.dtype_text;
    out.shape = row.tensor.shape;
    out.has_shape = true;
    const RecordedStatistics& has = out.statistics;
    out.has_statistics = has.max || has.min || has.mean || has.norm || has.nan_count ||
                         has.zero_count || !has.digest.empty();
    return out;
  }

  // As many files of one name as there are kernels: the first file is of the first kernel.
  void NameKernels(std::vector<WatchedTensor>& all) const {
    std::map<std::string, std::vector<WatchedTensor*>> alike;
    for (WatchedTensor& tensor : all) {
      const std::vector<std::string>* kernels = tree_->Find(rank, tensor.name);
      if (kernels != nullptr && kernels->size() > 1) alike[tensor.Key()].push_back(&tensor);
    }
    for (auto& [key, tensors] : alike) {
      const std::vector<std::string>& kernels = *tree_->Find(rank, tensors.front()->name);
      if (tensors.size() != kernels.size()) continue;
      std::ranges::stable_sort(tensors, {}, &WatchedTensor::place);
      for (size_t i = 0; i < tensors.size(); ++i) tensors[i]->name = kernels[i];
    }
  }

  // Weights with a moment: "moment1.fc.weight" or "accum_fc_weight" of "fc.weight".
  static void TellTrained(std::vector<WatchedTensor>& all) {
    std::unordered_set<std::string> of_moments;
    for (const WatchedTensor& tensor : all) {
      const std::string name = PlainParameter(tensor.name);
      for (const std::string_view prefix : kMoments) {
        if (name.starts_with(prefix)) of_moments.insert(name.substr(prefix.size()));
      }
    }
    for (WatchedTensor& tensor : all) {
      if ((tensor.kinds & kWeight) == 0) continue;
      tensor.is_trained = of_moments.contains(PlainParameter(tensor.name));
    }
  }

  // Of one tensor in two files the newer counts, at the place of execution where that is known.
  void KeepNewest(std::vector<WatchedTensor>& all) const {
    std::unordered_map<std::string, size_t> newest;
    newest.reserve(all.size());
    std::vector<bool> is_old(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const auto [at, is_new] = newest.try_emplace(all[i].Key(), i);
      if (is_new) continue;
      const bool is_newer = all[i].place >= all[at->second].place;
      is_old[is_newer ? at->second : i] = true;
      if (is_newer) at->second = i;
    }
    const auto of = tree_->kernels.find(rank);
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_old[i]) continue;
      if (of != tree_->kernels.end()) {
        const auto place = of->second.places.find(all[i].name);
        if (place != of->second.places.end()) all[i].place = place->second;
      }
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
    all.resize(kept);
  }

  std::shared_ptr<const Tree> tree_;
  std::vector<Directory> directories_;
};

void TakeOrders(const std::vector<load::ExecutionOrder>& orders, Tree& tree,
                Recording& recording) {
  for (const load::ExecutionOrder& order : orders) {
    for (const std::string& kernel : order.kernels) tree.Add(order.rank, kernel);
    auto& history = recording.history[order.rank];
    history.insert(history.end(), order.history.begin(), order.history.end());
  }
  for (auto& [rank, history] : recording.history) {
    std::ranges::sort(history);
    history.erase(std::unique(history.begin(), history.end()), history.end());
  }
}

}  // namespace

Result<Recording> OpenGraphs(const std::string& path) {
  Recording recording;
  recording.kind = "static graphs";
  recording.tensors_advice = "dump with saved_data \"tensor\"";
  auto tree = std::make_shared<Tree>();
  tree->trace = GraphTrace::Read(path);
  recording.notes = tree->trace.notes();
  const auto orders = load::ReadExecutionOrders(path);
  if (!orders) recording.notes.push_back(orders.error().message());
  if (orders) TakeOrders(*orders, *tree, recording);
  // Gaps are known only where the steps that ran are.
  recording.counts_recorded =
      recording.history.empty() || std::ranges::any_of(recording.history, [](const auto& one) {
        return one.second.empty();
      });
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<GraphPart>> parts;
  load::VisitGraphDirectories(path, [&](load::GraphDirectory place,
                                        std::vector<std::string> names) {
    std::shared_ptr<GraphPart>& part = parts[{place.step, place.rank}];
    if (part == nullptr) {
      part = std::make_shared<GraphPart>(tree);
      part->step = place.step;
      part->rank = place.rank;
      part->path = place.path;
    }
    part->Add(std::move(place), std::move(names));
  });
  for (auto& [key, part] : parts) recording.parts.push_back(std::move(part));
  return recording;
}

}  // namespace plumbline::watch
