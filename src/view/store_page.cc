#include "view/store_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/scratch_directory.h"
#include "base/text/json.h"
#include "plumbline/compare.h"
#include "report/page_files.h"
#include "report/page_part.h"
#include "tree/read_tree.h"
#include "view/store/call_details.h"

namespace plumbline::view {
namespace {

using tree::ModelGraph;
using tree::Node;

// Where a file says no verdict of plumb compare, its level stands for one.
Verdict VerdictOfLevel(NodeLevel level) {
  switch (level) {
    case NodeLevel::kPass:
      return Verdict::kWithinNoise;
    case NodeLevel::kWarning:
      return Verdict::kSuspicious;
    case NodeLevel::kError:
      return Verdict::kBroken;
    case NodeLevel::kNone:
    case NodeLevel::kUnmatched:
      break;
  }
  return Verdict::kNotComparable;
}

Verdict VerdictOfWord(std::string_view word) {
  if (const auto verdict = VerdictNamed(word)) return *verdict;
  if (word == "pass") return Verdict::kWithinNoise;
  if (word == "warning") return Verdict::kSuspicious;
  return word == "error" || word == "Different" ? Verdict::kBroken : Verdict::kNotComparable;
}

ItemRole ItemRoleOf(ValueRole role) {
  constexpr ItemRole kRoles[] = {ItemRole::kInput, ItemRole::kParameter, ItemRole::kOutput,
                                 ItemRole::kBuffer, ItemRole::kParameterGrad};
  return kRoles[static_cast<size_t>(role)];
}

TensorMetrics MetricsOf(const StoredValue& value) {
  TensorMetrics metrics;
  const std::pair<std::string_view, Metric*> places[] = {
      {"cosine", &metrics.cosine},
      {"max_abs_error", &metrics.max_abs_error},
      {"max_relative_error", &metrics.max_relative_error},
      {"below_thousandth_ratio", &metrics.below_thousandth_ratio},
      {"below_five_thousandths_ratio", &metrics.below_five_thousandths_ratio},
      {"relative_l2", &metrics.relative_l2},
      {"max_ulp", &metrics.max_ulp}};
  for (const auto& [name, number] : value.metrics) {
    for (const auto& [known, metric] : places) {
      if (name == known) *metric = number;
    }
    if (name == "element_count") metrics.element_count = static_cast<uint64_t>(number);
    if (name == "mismatch_count") metrics.mismatch_count = static_cast<uint64_t>(number);
  }
  return metrics;
}

std::string TextFact(const json::Value& object, std::string_view key) {
  const json::Value* const member = object.Find(key);
  const std::string* const text = member == nullptr ? nullptr : member->AsText();
  return text == nullptr ? std::string() : *text;
}

std::vector<std::string> TextsFact(const json::Value& object, std::string_view key) {
  std::vector<std::string> texts;
  const json::Value* const member = object.Find(key);
  if (member == nullptr || member->AsList() == nullptr) return texts;
  for (const json::Value& text : *member->AsList()) {
    if (text.AsText() != nullptr) texts.push_back(*text.AsText());
  }
  return texts;
}

// One place of a store as what a page is made of: a comparison and its trees.
class StoredPlacePart {
 public:
  StoredPlacePart(const ResultStore& store, size_t place)
      : store_(store), place_(store.places()[place]), index_(place) {}

  Status Make() {
    comparison_.mode = ModeOfStore();
    comparison_.target_path = TextFact(store_.facts(), "target");
    comparison_.golden_path = TextFact(store_.facts(), "golden");
    if (index_ == 0) comparison_.warnings = TextsFact(store_.facts(), "notes");
    AddNodes(false);
    AddNodes(true);
    for (uint32_t i = 0; i < place_.target_count; ++i) {
      const uint32_t partner = store_.nodes().partner[place_.target + i];
      if (partner == kNoNode) continue;
      nodes_[0][i]->partner = nodes_[1][partner - place_.golden];
      nodes_[1][partner - place_.golden]->partner = nodes_[0][i];
    }
    const std::span<const uint32_t> order = store_.by_order();
    for (uint32_t i = place_.target; i < place_.target + place_.target_count; ++i) {
      PL_TRY(AddCallOf(order[i]));
    }
    for (uint32_t i = 0; i < place_.golden_count; ++i) {
      const uint32_t node = order[place_.golden + i];
      if (nodes_[1][node - place_.golden]->partner == nullptr) PL_TRY(AddCallOf(node));
    }
    known_.trees.counts = tree::CountNodes(known_.trees.target, known_.trees.golden);
    AddFirstCall();
    return {};
  }

  std::string Data(bool has_many, size_t most_bytes) {
    report::HtmlPart part{.label = {}, .comparison = &comparison_, .evidence = nullptr};
    if (has_many) {
      part.label = fmt::format("step {} rank {}", place_.step, place_.rank);
      part.step = place_.step;
      part.rank = place_.rank;
    }
    known_.answer = TextsFact(store_.facts(), "answer");
    const json::Value* const places = store_.facts().Find("places");
    const json::Value::List* const list = places == nullptr ? nullptr : places->AsList();
    if (has_many && list != nullptr && index_ < list->size()) {
      known_.answer = {TextFact((*list)[index_], "answer")};
    }
    return report::HtmlPartData(part, std::move(known_), most_bytes);
  }

 private:
  [[nodiscard]] CompareMode ModeOfStore() const {
    const std::string mode = TextFact(store_.facts(), "mode");
    for (const CompareMode known : {CompareMode::kTensor, CompareMode::kDigest}) {
      if (mode == CompareModeName(known)) return known;
    }
    return CompareMode::kStatistics;
  }

  [[nodiscard]] ModelGraph& Graph(bool is_golden) {
    return is_golden ? known_.trees.golden : known_.trees.target;
  }

  // In pre-order, parents first.
  void AddNodes(bool is_golden) {
    ModelGraph& graph = Graph(is_golden);
    const NodeColumns& columns = store_.nodes();
    const uint32_t begin = is_golden ? place_.golden : place_.target;
    const uint32_t count = is_golden ? place_.golden_count : place_.target_count;
    if (count == 0) graph.Obtain(tree::kRootName);
    constexpr tree::NodeType kTypes[] = {tree::NodeType::kModule, tree::NodeType::kApi,
                                         tree::NodeType::kFused, tree::NodeType::kCollection,
                                         tree::NodeType::kModule};
    for (uint32_t i = begin; i < begin + count; ++i) {
      Node& node = graph.Obtain(store_.Name(i));
      node.type = kTypes[columns.type[i]];
      node.micro_step = columns.micro_step[i];
      node.is_recomputed = (columns.flags[i] & node_flag::kRecomputed) != 0;
      node.is_repaired = (columns.flags[i] & node_flag::kRepaired) != 0;
      const auto level = static_cast<NodeLevel>(columns.level[i]);
      if (!is_golden && level >= NodeLevel::kPass && level <= NodeLevel::kError) {
        node.level = static_cast<vis::Level>(static_cast<int>(level) - 1);
      }
      if (i > begin) {
        node.parent = nodes_[is_golden ? 1 : 0][columns.parent[i] - begin];
        node.parent->children.push_back(&node);
      }
      graph.micro_steps = std::max(graph.micro_steps, node.micro_step + 1);
      nodes_[is_golden ? 1 : 0].push_back(&node);
    }
    (void)tree::NodesInOrder(graph);
  }

  Status AddCallOf(uint32_t node) {
    const bool is_golden = store_.IsGolden(node);
    const auto type = static_cast<StoredType>(store_.nodes().type[node]);
    if (type == StoredType::kRoot || type == StoredType::kGroup) return {};
    PL_TRY_ASSIGN(const NodeDetail detail, store_.Detail(node));
    const uint32_t partner = store_.nodes().partner[node];
    const bool is_alone = partner == kNoNode && place_.golden_count > 0;
    ComparedCall call;
    (is_golden ? call.golden_name : call.target_name) = store_.Name(node);
    if (partner != kNoNode) call.golden_name = store_.Name(partner);
    call.verdict = detail.verdict.empty()
                       ? VerdictOfLevel(static_cast<NodeLevel>(store_.nodes().level[node]))
                       : VerdictOfWord(detail.verdict);
    if (is_alone || !detail.reason.empty()) {
      call.unmatched_reason = detail.reason;
      if (call.unmatched_reason.empty()) {
        call.unmatched_reason = is_golden ? "no-target" : "no-golden";
      }
    }
    call.pairing = detail.pairing;
    call.first_row = static_cast<uint32_t>(comparison_.rows.size());
    call.row_count = static_cast<uint32_t>(detail.values.size());
    const auto number = static_cast<uint32_t>(comparison_.calls.size());
    for (const StoredValue& value : detail.values) AddRow(call, value, number);
    if (is_golden && is_alone) ++comparison_.counts.unmatched_golden;
    if (!is_golden) ++(is_alone ? comparison_.counts.unmatched_target : comparison_.counts.calls);
    comparison_.calls.push_back(std::move(call));
    std::vector<std::string> frames;
    for (const std::string_view frame : store_.Stack(node)) frames.emplace_back(frame);
    comparison_.stacks.emplace_back(std::move(frames));
    tree::CallNodes at;
    if (is_golden) {
      at.golden = nodes_[1][node - place_.golden];
    } else {
      at.target = nodes_[0][node - place_.target];
      at.golden = at.target->partner;
    }
    known_.trees.calls.push_back(at);
    return {};
  }

  void AddRow(const ComparedCall& call, const StoredValue& value, uint32_t number) {
    ComparedRow& row = comparison_.rows.emplace_back();
    row.call = number;
    row.verdict = VerdictOfWord(value.verdict);
    if (value.target) row.target = ItemOf(call.target_name, value, *value.target);
    if (value.golden) {
      row.golden = ItemOf(value.target ? call.target_name : call.golden_name, value, *value.golden);
    }
    if (comparison_.mode == CompareMode::kTensor) row.tensor = MetricsOf(value);
    const bool is_own = row.verdict != Verdict::kNotComparable || value.verdict.empty() ||
                        value.verdict == VerdictName(row.verdict);
    if (!is_own) row.result = value.verdict;
    row.reason = value.reason;
    row.error = value.error;
    row.expected = value.explained;
    for (const std::string_view note : value.notes) row.AddNote({"", std::string(note)});
    if (!value.reason_text.empty() && value.reason.empty()) {
      row.AddNote({"", std::string(value.reason_text)});
    }
    ++comparison_.counts.rows[static_cast<size_t>(row.verdict)];
  }

  static Item ItemOf(const std::string& call, const StoredValue& value, const ValueSide& side) {
    Item item = ItemOfSide(side);
    item.name = fmt::format("{}.{}", call, value.name);
    item.role = ItemRoleOf(value.role);
    item.is_tensor = std::holds_alternative<std::monostate>(side.value);
    if (!side.dtype.empty()) item.dtype = Text(side.dtype);
    if (!side.shape.empty()) item.shape_text = Text(side.shape);
    item.requires_grad = side.requires_grad;
    item.digest = side.md5;
    item.has_recorded_digest = !side.md5.empty();
    item.data_name = side.data_name;
    return item;
  }

  void AddFirstCall() {
    const json::Value* const first = store_.facts().Find("first");
    const json::Value* const place = first == nullptr ? nullptr : first->Find("place");
    if (place == nullptr || place->AsNatural() != index_) return;
    FirstWrongCall& call = comparison_.first_wrong_call.emplace();
    for (const auto& [key, text] : {std::pair{"name", &call.name},
                                    {"what", &call.what},
                                    {"item", &call.item},
                                    {"stack_line", &call.stack_line},
                                    {"cause", &call.cause},
                                    {"cause_text", &call.cause_text},
                                    {"confidence", &call.confidence}}) {
      *text = TextFact(*first, key);
    }
    call.stack = TextsFact(*first, "stack");
    call.module_path = TextsFact(*first, "module_path");
  }

  const ResultStore& store_;
  const StorePlace place_;
  const size_t index_;
  Comparison comparison_;
  report::KnownPart known_;
  std::array<std::vector<Node*>, 2> nodes_;  // target, golden: by id from the place's first on
};

}  // namespace

Result<std::string> WriteStorePage(const ResultStore& store, const std::string& path) {
  if (!report::IsPageBuilt()) {
    return Error(ErrorCode::kUnsupported, path + ": " + std::string(report::kPageNotBuilt));
  }
  PL_TRY_ASSIGN(const std::unique_ptr<ScratchDirectory> scratch,
                ScratchDirectory::Make("plumb-view"));
  const size_t count = store.places().size();
  report::HtmlOverview page;
  for (size_t i = 0; i < count; ++i) {
    StoredPlacePart part(store, i);
    PL_TRY(part.Make());
    page.parts.push_back(JoinPath(scratch->path(), fmt::format("part-{}", i)));
    PL_TRY(WriteFileAtomically(page.parts.back(), part.Data(count > 1, report::HtmlShare(count)),
                               /*durable=*/false));
  }
  for (const std::string& line : TextsFact(store.facts(), "answer")) page.text += line + "\n";
  PL_TRY(report::WriteHtmlOverview(page, path));
  return page.text;
}

}  // namespace plumbline::view
