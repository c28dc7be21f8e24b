#include "view/imported_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text/number_text.h"
#include "formats/json/vis_json_reader.h"
#include "formats/sqlite/vis_db_reader.h"
#include "view/imported_values.h"
#include "view/model_graph.h"

namespace plumbline::view {
namespace {

using IndexByName = std::unordered_map<std::string_view, size_t>;

// How many were mended, and one of them.
struct Mended {
  uint64_t count = 0;
  std::string example;

  void Add(std::string_view name) {
    if (count++ == 0) example = name;
  }
  void Note(std::string_view what, std::vector<std::string>& notes) const {
    if (count == 0) return;
    notes.push_back(fmt::format("{} {} ({}{})", CountText(count, "node"), what, example,
                                count > 1 ? ", ..." : ""));
  }
};

// Puts the rows of one graph in order, the root first.
class SideBuilder {
 public:
  SideBuilder(std::vector<vis::NodeRow> rows, std::vector<std::string>& notes)
      : rows_(std::move(rows)), notes_(notes) {
    rows_.reserve(rows_.size() + 1);  // names are referred to, and one row may be added
  }

  std::vector<ImportedNode> Build() {
    IndexRows();
    FindRoot();
    FindParents();
    OrderChildren();
    BreakCircles();
    return InOrder();
  }

 private:
  // The last one of a name counts.
  void IndexRows() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto [slot, is_new] = by_name_.try_emplace(rows_[i].name, i);
      if (is_new) continue;
      is_left_out_.resize(rows_.size());
      is_left_out_[slot->second] = true;
      repeated_.Add(rows_[i].name);
      slot->second = i;
    }
    is_left_out_.resize(rows_.size());
    repeated_.Note("occur again; the last one counts", notes_);
  }

  // The node that stands for the model: of several without a parent the one that is called so, or
  // has the most children.
  void FindRoot() {
    root_ = kNowhere;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (is_left_out_[i] || !rows_[i].parent.empty()) continue;
      const bool is_better = root_ == kNowhere || rows_[i].name == kRootName ||
                             (rows_[root_].name != kRootName &&
                              rows_[i].children.size() > rows_[root_].children.size());
      if (is_better) root_ = i;
    }
    if (root_ != kNowhere) return;
    const auto named = by_name_.find(kRootName);
    if (named != by_name_.end()) {
      root_ = named->second;
      return;
    }
    notes_.push_back("no node stands for the model; one was added");
    root_ = rows_.size();
    rows_.push_back({.name = std::string(kRootName), .parent = {}, .place = -1});
    is_left_out_.push_back(false);
  }

  void FindParents() {
    parents_.assign(rows_.size(), root_);
    parents_[root_] = kNowhere;
    Mended lost;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i == root_ || rows_[i].parent.empty()) continue;
      const auto found = by_name_.find(rows_[i].parent);
      if (found == by_name_.end() || found->second == i) {
        lost.Add(rows_[i].name);
      } else {
        parents_[i] = found->second;
      }
    }
    lost.Note("below a parent that does not exist are shown on the top level", notes_);
  }

  // As their parent lists them, then as they stand in the file.
  void OrderChildren() {
    children_.assign(rows_.size(), {});
    std::vector<bool> is_placed(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (const std::string& name : rows_[i].children) {
        const auto found = by_name_.find(name);
        if (found == by_name_.end() || parents_[found->second] != i) continue;
        if (is_placed[found->second]) continue;
        is_placed[found->second] = true;
        children_[i].push_back(found->second);
      }
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i == root_ || is_placed[i] || is_left_out_[i]) continue;
      children_[parents_[i]].push_back(i);
    }
  }

  [[nodiscard]] std::vector<size_t> Reach(size_t from, std::vector<bool>& is_reached) const {
    std::vector<size_t> order, open = {from};
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      if (is_reached[node]) continue;
      is_reached[node] = true;
      order.push_back(node);
      open.insert(open.end(), children_[node].rbegin(), children_[node].rend());
    }
    return order;
  }

  void BreakCircles() {
    std::vector<bool> is_reached(rows_.size());
    (void)Reach(root_, is_reached);
    Mended circular;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (is_reached[i] || is_left_out_[i]) continue;
      circular.Add(rows_[i].name);
      std::erase(children_[parents_[i]], i);
      parents_[i] = root_;
      children_[root_].push_back(i);
      (void)Reach(i, is_reached);
    }
    circular.Note("are below themselves and shown on the top level", notes_);
  }

  std::vector<ImportedNode> InOrder() {
    std::vector<bool> is_reached(rows_.size());
    const std::vector<size_t> order = Reach(root_, is_reached);
    std::vector<size_t> position(rows_.size(), kNowhere);
    for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    std::vector<ImportedNode> nodes;
    nodes.reserve(order.size());
    for (const size_t row : order) {
      ImportedNode& node = nodes.emplace_back();
      node.row = std::move(rows_[row]);
      node.parent = parents_[row] == kNowhere ? kNowhere : position[parents_[row]];
      node.order = row;
    }
    return nodes;
  }

  std::vector<vis::NodeRow> rows_;
  std::vector<std::string>& notes_;
  IndexByName by_name_;
  std::vector<bool> is_left_out_;
  Mended repeated_;
  size_t root_ = kNowhere;
  std::vector<size_t> parents_;
  std::vector<std::vector<size_t>> children_;
};

IndexByName NamesOf(const std::vector<ImportedNode>& nodes) {
  IndexByName names;
  for (size_t i = 0; i < nodes.size(); ++i) names.emplace(nodes[i].row.name, i);
  return names;
}

void LinkSides(ImportedPlace& place) {
  const IndexByName names = NamesOf(place.golden);
  Mended lost;
  std::vector<bool> is_taken(place.golden.size());
  for (ImportedNode& node : place.target) {
    if (node.row.partner.empty()) continue;
    const auto found = names.find(node.row.partner);
    if (found == names.end() || is_taken[found->second]) {
      lost.Add(node.row.name);
    } else {
      is_taken[found->second] = true;
      node.partner = found->second;
    }
  }
  lost.Note("have a counterpart that does not exist, or is that of another node", place.notes);
  if (!place.target.empty() && !place.golden.empty() && place.target[0].partner == kNowhere &&
      !is_taken[0]) {
    place.target[0].partner = 0;  // the models themselves
  }
  const auto counts = [](const ImportedNode& node) {
    return node.parent != kNowhere && node.row.type != vis::NodeType::kCollection;
  };
  for (size_t i = 0; i < place.golden.size(); ++i) {
    if (counts(place.golden[i]) && !is_taken[i]) ++place.counts.unmatched_golden;
  }
  for (const ImportedNode& node : place.target) {
    if (!counts(node)) continue;
    if (node.partner == kNowhere) {
      ++place.counts.unmatched_target;
    } else if (node.level) {
      ++place.counts.levels[static_cast<size_t>(*node.level)];
    } else {
      ++place.counts.not_judged;
    }
  }
}

void FillLevels(const vis::LevelScale& scale, ImportedPlace& place) {
  Mended unknown;
  for (ImportedNode& node : place.target) {
    if (!node.row.index) continue;
    node.level = scale.LevelOf(*node.row.index);
    if (!node.level) unknown.Add(node.row.name);
  }
  unknown.Note("have a level that the colours of the file do not explain", place.notes);
}

// --- the first wrong call ---

Status FindFirst(vis::Source& source, ImportedPlace& place) {
  std::vector<size_t> errors;
  for (size_t i = 0; i < place.target.size(); ++i) {
    const ImportedNode& node = place.target[i];
    const bool is_call = node.parent != kNowhere && node.row.type != vis::NodeType::kCollection;
    if (is_call && node.level == vis::Level::kError) errors.push_back(i);
  }
  std::ranges::sort(errors, {}, [&](size_t i) { return place.target[i].order; });
  for (const size_t i : errors) {
    PL_TRY_ASSIGN(const vis::NodeTexts texts, source.ReadTexts(place.target[i].row));
    PL_TRY_ASSIGN(const std::vector<FileValue> values, ValuesIn(texts));
    if (ErrorsOf(values).are_inputs_bad) continue;
    place.first = i;
    place.is_first_source = true;
    return {};
  }
  if (!errors.empty()) place.first = errors.front();
  return {};
}

Status TakeFacts(vis::Source& source, ImportedPlace& place) {
  const std::string_view text = source.head().Fact(RankFactsKey(place.step, place.rank));
  if (!text.empty()) {
    auto facts = ParseRankFacts(text);
    if (facts) {
      place.facts = std::move(*facts);
    } else {
      place.notes.push_back("mp_meta: " + facts.error().message());
    }
  }
  if (!place.facts || !place.facts->answer) return FindFirst(source, place);
  if (!place.facts->answer->first_wrong_call) return {};
  const std::string& name = place.facts->answer->first_wrong_call->name;
  const auto found = std::ranges::find(
      place.target, name, [](const ImportedNode& node) { return std::string_view(node.row.name); });
  if (found != place.target.end()) {
    place.first = static_cast<size_t>(found - place.target.begin());
    place.is_first_source = true;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<vis::Source>> OpenVisFile(const std::string& path) {
  if (path.ends_with(".vis")) return vis_json::Open(path);
  if (path.ends_with(".db")) return vis_db::Open(path);
  return Error(ErrorCode::kUnsupported,
               fmt::format("{}: expected a file called .vis or .vis.db", path));
}

std::vector<vis::GraphPlace> PlacesOf(const vis::Source& source) {
  std::vector<vis::GraphPlace> places;
  for (vis::GraphPlace graph : source.graphs()) {
    graph.is_golden = false;
    const bool is_new =
        places.empty() || places.back().step != graph.step || places.back().rank != graph.rank;
    if (is_new) places.push_back(graph);
  }
  return places;
}

Result<ImportedPlace> ReadPlace(vis::Source& source, const vis::GraphPlace& place) {
  ImportedPlace imported;
  imported.step = place.step;
  imported.rank = place.rank;
  for (const vis::GraphPlace& graph : source.graphs()) {
    if (graph.step != place.step || graph.rank != place.rank) continue;
    PL_TRY_ASSIGN(std::vector<vis::NodeRow> rows, source.ReadNodes(graph));
    (graph.is_golden ? imported.golden : imported.target) =
        SideBuilder(std::move(rows), imported.notes).Build();
  }
  FillLevels(source.head().scale, imported);
  if (imported.is_pair()) LinkSides(imported);
  PL_TRY(TakeFacts(source, imported));
  return imported;
}

std::string AnswerOf(const ImportedPlace& place) {
  if (place.facts && place.facts->answer && !place.facts->answer->answer.empty()) {
    return place.facts->answer->answer;
  }
  if (!place.is_pair()) return {};
  const uint64_t errors = place.counts.levels[static_cast<size_t>(vis::Level::kError)];
  constexpr std::string_view kWhose = "levels of msprobe, no verdict of plumb compare";
  if (place.first == kNowhere) return fmt::format("no node is an error ({})", kWhose);
  return fmt::format("first error{}: {} ({} in error; {})",
                     place.is_first_source ? " whose inputs are fine" : ", its inputs differ too",
                     place.target[place.first].row.name, CountText(errors, "node"), kWhose);
}

}  // namespace plumbline::view
