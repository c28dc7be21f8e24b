#include "view/rank_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "match/expand.h"
#include "record/call_name.h"
#include "record/run_files.h"

namespace plumbline::view {
namespace {

// Barriers move nothing, and still hold ranks together.
std::optional<std::string_view> LinkedApi(std::string_view name) {
  if (const auto api = CommunicationApi(name)) return api;
  const std::optional<CallName> parts = ParseCallName(name);
  if (!parts || parts->prefix != "Distributed" || parts->kind != CallKind::kForward) return {};
  return parts->path.ends_with("barrier") ? std::optional(parts->path) : std::nullopt;
}

// All tensors below `value`, in order. Depth is bounded by the reader.
void AppendTensors(const Value& value, std::vector<TensorRecord>& out) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    out.push_back(*tensor);
  } else if (const auto* list = value.As<ValueList>()) {
    for (const Value& item : *list) AppendTensors(item, out);
  } else if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, item] : *map) AppendTensors(item, out);
  }
}

// What a call gives away: the first argument that is a tensor, or holds some.
std::vector<TensorRecord> FirstTensors(const Call& call,
                                       std::initializer_list<std::string_view> members) {
  std::vector<TensorRecord> found;
  for (const std::string_view key : members) {
    const Value* const member = call.Find(key);
    if (member == nullptr) continue;
    const auto* const list = member->As<ValueList>();
    if (list == nullptr) AppendTensors(*member, found);
    for (size_t i = 0; list != nullptr && i < list->size() && found.empty(); ++i) {
      AppendTensors((*list)[i], found);
    }
    if (!found.empty()) break;
  }
  return found;
}

// The tensors of a batch, one for each transfer; an empty one where none was recorded.
std::vector<TensorRecord> BatchTensors(const Call& call, size_t transfers) {
  std::vector<TensorRecord> tensors(transfers);
  const Value* const output = call.Find(dump_json::kOutput);
  const auto* const results = output == nullptr ? nullptr : output->As<ValueList>();
  const auto* const operations =
      results == nullptr || results->empty() ? nullptr : results->front().As<ValueList>();
  if (operations == nullptr) return tensors;
  for (size_t i = 0; i < std::min(transfers, operations->size()); ++i) {
    const Value* const member = (*operations)[i].Find("tensor");
    const auto* const tensor = member == nullptr ? nullptr : member->As<TensorRecord>();
    if (tensor != nullptr) tensors[i] = *tensor;
  }
  return tensors;
}

// One property of two values that should be the same.
struct Difference {
  std::string_view property;
  std::string theirs, own;
};

std::optional<double> NumberOf(const Statistic& statistic) {
  if (const auto* real = std::get_if<double>(&statistic)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&statistic)) return static_cast<double>(*integer);
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? 1.0 : 0.0;
  return std::nullopt;
}

// Sums of one set of numbers, in whatever order a device adds them.
bool AreEqual(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

constexpr double kSumTolerance = 1e-6;

// How two records of what must be one value differ. Unknown properties agree with everything.
std::optional<Difference> DifferenceOf(const TensorRecord& theirs, const TensorRecord& own,
                                       bool is_copy) {
  if (theirs.type.empty() || own.type.empty()) return std::nullopt;
  if (theirs.dtype_text != own.dtype_text) {
    return Difference{"dtype", theirs.dtype_text, own.dtype_text};
  }
  if (theirs.shape != own.shape) {
    return Difference{"shape", match::ShapeText(theirs.shape), match::ShapeText(own.shape)};
  }
  const std::tuple<std::string_view, const Statistic*, const Statistic*, bool> statistics[] = {
      {dump_json::kMax, &theirs.max, &own.max, is_copy},
      {dump_json::kMin, &theirs.min, &own.min, is_copy},
      {dump_json::kMean, &theirs.mean, &own.mean, false},
      {dump_json::kNorm, &theirs.norm, &own.norm, false}};
  for (const auto& [name, first, second, is_exact] : statistics) {
    const std::optional<double> a = NumberOf(*first), b = NumberOf(*second);
    if (!a || !b || AreEqual(*a, *b, is_exact ? 0 : kSumTolerance)) continue;
    return Difference{name, PythonFloat(*a), PythonFloat(*b)};
  }
  return std::nullopt;
}

std::optional<Difference> DifferenceOf(const std::vector<TensorRecord>& theirs,
                                       const std::vector<TensorRecord>& own, bool is_copy) {
  for (size_t i = 0; i < std::min(theirs.size(), own.size()); ++i) {
    if (auto found = DifferenceOf(theirs[i], own[i], is_copy)) return found;
  }
  return std::nullopt;
}

// What is known of the values of a collective call.
enum class Agreement : uint8_t {
  kCopies,  // all get the same values, which nobody computes
  kSums,    // all get the same values, which each may have added up itself
  kTypes,   // all give values of one dtype
};

Agreement AgreementOf(std::string_view api) {
  if (api.starts_with("broadcast")) return Agreement::kCopies;
  if (api.find("all_gather") != std::string_view::npos) return Agreement::kCopies;
  return api.starts_with("all_reduce") ? Agreement::kSums : Agreement::kTypes;
}

class Linker {
 public:
  explicit Linker(std::span<const RankCommunication> ranks) : ranks_(ranks) {
    scans_.reserve(ranks.size());
    for (const RankCommunication& rank : ranks) scans_.push_back(rank.scan);
  }

  std::vector<RankLink> Link() {
    const CommGraph graph = BuildCommGraph(scans_);
    std::vector<RankLink> links;
    for (const CommLink& found : graph.links) {
      RankLink link = found.is_message ? Message(found) : Collective(found);
      if (link.ends.size() < 2) continue;
      link.api = found.api;
      link.is_message = found.is_message;
      for (const LinkEnd& end : link.ends) {
        link.layer = std::max(link.layer, graph.layers[end.node.rank][end.node.call]);
      }
      links.push_back(std::move(link));
    }
    std::ranges::stable_sort(links, {}, [](const RankLink& link) {
      return std::tuple(link.layer, link.ends.front().node);
    });
    return links;
  }

 private:
  [[nodiscard]] const CommCall& CallOf(const CommNode& node) const {
    return scans_[node.rank].calls[node.call];
  }
  [[nodiscard]] const MovedValues& ValuesOf(const CommNode& node) const {
    return ranks_[node.rank].values[node.call];
  }
  [[nodiscard]] int64_t NumberOf(const CommNode& node) const {
    return scans_[node.rank].directory.rank.value_or(0);
  }
  // Of a batch one tensor, of other calls all.
  [[nodiscard]] std::vector<TensorRecord> Part(const CommNode& node, size_t transfer,
                                               const std::vector<TensorRecord>& values) const {
    if (!CallOf(node).api.starts_with("batch_")) return values;
    if (transfer >= values.size()) return {};
    return {values[transfer]};
  }

  [[nodiscard]] RankLink Message(const CommLink& found) const {
    const CommNode sender = found.from.front(), receiver = found.to.front();
    RankLink link;
    link.ends = {{sender, LinkRole::kSend, found.from_transfer},
                 {receiver, LinkRole::kReceive, found.to_transfer}};
    const auto difference = DifferenceOf(
        Part(sender, found.from_transfer, ValuesOf(sender).sent),
        Part(receiver, found.to_transfer, ValuesOf(receiver).received), /*is_copy=*/true);
    if (!difference) return link;
    for (LinkEnd& end : link.ends) {
      end.mismatch = fmt::format("rank {} sent {} {}, rank {} received {}", NumberOf(sender),
                                 difference->property, difference->theirs, NumberOf(receiver),
                                 difference->own);
    }
    return link;
  }

  [[nodiscard]] RankLink Collective(const CommLink& found) const {
    RankLink link;
    std::vector<CommNode> nodes = found.from;
    nodes.insert(nodes.end(), found.to.begin(), found.to.end());
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const bool is_rooted = std::ranges::any_of(
        nodes, [&](const CommNode& node) { return CallOf(node).root.has_value(); });
    const LinkRole of_root = found.from.size() == 1 ? LinkRole::kSend : LinkRole::kReceive;
    const LinkRole of_others = of_root == LinkRole::kSend ? LinkRole::kReceive : LinkRole::kSend;
    for (const CommNode& node : nodes) {
      const bool is_root = is_rooted && CallOf(node).root == NumberOf(node);
      if (is_root) link.root = link.ends.size();
      const LinkRole role = is_root ? of_root : of_others;
      link.ends.push_back({node, is_rooted ? role : LinkRole::kSendReceive});
    }
    if (is_rooted && !link.root) return {};  // it was not recorded: the others see nobody
    Judge(AgreementOf(found.api), link);
    return link;
  }

  // Holds all ends against the root, or against the first one.
  void Judge(Agreement agreement, RankLink& link) const {
    const bool is_of_results = agreement != Agreement::kTypes;
    const auto values_of = [&](const LinkEnd& end) -> const std::vector<TensorRecord>& {
      const MovedValues& values = ValuesOf(end.node);
      return is_of_results ? values.received : values.sent;
    };
    const LinkEnd& reference = link.ends[link.root.value_or(0)];
    for (LinkEnd& end : link.ends) {
      const auto difference =
          DifferenceOf(values_of(reference), values_of(end), agreement == Agreement::kCopies);
      if (!difference || (!is_of_results && difference->property != "dtype")) continue;
      end.mismatch = fmt::format("rank {} {} {} {}, rank {} {}", NumberOf(reference.node),
                                 is_of_results ? "has" : "gave", difference->property,
                                 difference->theirs, NumberOf(end.node), difference->own);
    }
  }

  std::span<const RankCommunication> ranks_;
  std::vector<RankScan> scans_;  // as match/comm_graph takes them
};

// The links of all calls as files for viewers have them.
class TransferWriter {
 public:
  TransferWriter(std::span<const RankCommunication> ranks, const LevelOfCall& level_of)
      : ranks_(ranks), level_of_(level_of) {}

  void Add(const RankLink& link) {
    for (size_t i = 0; i < link.ends.size(); ++i) {
      const LinkEnd& end = link.ends[i];
      by_transfer_.try_emplace({end.node, end.transfer}, TextOf(link, i));
    }
  }

  // A batch of several transfers has a list, in their order.
  [[nodiscard]] std::vector<TransferTexts> Finish() const {
    std::vector<TransferTexts> texts(ranks_.size());
    for (auto at = by_transfer_.begin(); at != by_transfer_.end();) {
      const CommNode node = at->first.first;
      const CommCall& call = CallOf(node);
      std::string all;
      for (; at != by_transfer_.end() && at->first.first == node; ++at) {
        all += (all.empty() ? "" : ", ") + at->second;
      }
      texts[node.rank][call.name] = call.transfers.size() > 1 ? "[" + all + "]" : all;
    }
    return texts;
  }

 private:
  [[nodiscard]] const CommCall& CallOf(const CommNode& node) const {
    return ranks_[node.rank].scan.calls[node.call];
  }

  [[nodiscard]] std::string TextOf(const RankLink& link, size_t at) const {
    const LinkEnd& end = link.ends[at];
    std::string text = fmt::format("{{\"communications_type\": \"{}\", \"nodes_info\": {{",
                                   LinkRoleName(end.role));
    bool is_first = true;
    for (size_t i = 0; i < link.ends.size(); ++i) {
      if (!link.Joins(at, i)) continue;
      const CommNode other = link.ends[i].node;
      const std::string& name = CallOf(other).name;
      text += fmt::format("{}\"{}\": [", std::exchange(is_first, false) ? "" : ", ",
                          ranks_[other.rank].scan.directory.rank.value_or(0));
      json::AppendString(level_of_(other.rank, name), text);
      text += ", ";
      json::AppendString(name, text);
      text += ']';
    }
    text += '}';
    if (!end.mismatch.empty()) {
      text += ", \"mismatch\": ";
      json::AppendString(end.mismatch, text);
    }
    return text + "}";
  }

  std::span<const RankCommunication> ranks_;
  const LevelOfCall& level_of_;
  std::map<std::pair<CommNode, size_t>, std::string> by_transfer_;
};

}  // namespace

void TakeCommunication(const Call& call, RankCommunication& communication) {
  const auto api = LinkedApi(call.name);
  if (!api) return;
  RankScan& scan = communication.scan;
  CommCall found = ReadCommCall(call, *api, scan.groups);
  MovedValues values;
  if (api->starts_with("batch_")) {
    values.sent = values.received = BatchTensors(call, found.transfers.size());
  } else {
    values.sent = FirstTensors(call, {dump_json::kInputArgs, dump_json::kInputKwargs});
    values.received = FirstTensors(call, {dump_json::kOutput});
  }
  scan.calls.push_back(std::move(found));
  communication.values.push_back(std::move(values));
}

Result<RankCommunication> ReadCommunication(const std::string& directory, int64_t rank) {
  RankCommunication communication;
  communication.scan.directory.rank = rank;
  PL_TRY(dump_json::VisitDumpFile(JoinPath(directory, run_files::kDumpJson), /*salvage=*/false,
                                  [&](dump_json::VisitedCall&& visited) {
                                    if (visited.problem.empty())
                                      TakeCommunication(visited.call, communication);
                                  }));
  return communication;
}

std::string_view LinkRoleName(LinkRole role) {
  constexpr std::string_view kNames[] = {"send", "receive", "send_receive"};
  return kNames[static_cast<size_t>(role)];
}

bool RankLink::Joins(size_t end, size_t other) const {
  if (end == other) return false;
  return !root || end == *root || other == *root;
}

std::vector<RankLink> LinkRanks(std::span<const RankCommunication> ranks) {
  return Linker(ranks).Link();
}

std::vector<TransferTexts> TransfersJson(std::span<const RankCommunication> ranks,
                                         const std::vector<RankLink>& links,
                                         const LevelOfCall& level_of) {
  TransferWriter writer(ranks, level_of);
  for (const RankLink& link : links) writer.Add(link);
  return writer.Finish();
}

}  // namespace plumbline::view
