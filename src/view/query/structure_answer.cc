#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/text_parts.h"
#include "view/query/question_table.h"
#include "view/store/name_index.h"

namespace plumbline::view {
namespace {

// Both trees side by side: rows in the target's order, golden nodes without counterpart where they
// stand among their neighbours.
struct AlignedRow {
  uint32_t target = kNoNode, golden = kNoNode;
};
struct Aligned {
  std::vector<AlignedRow> rows;
  std::vector<uint32_t> differences;  // rows with one side alone, or paired by hand
};

class Aligner {
 public:
  Aligner(const ResultStore& store, const StorePlace& place)
      : nodes_(store.nodes()), place_(place) {}

  Aligned Align() {
    uint32_t golden = place_.golden_count > 0 ? place_.golden : 0;
    const uint32_t golden_end = golden + place_.golden_count;
    for (uint32_t i = 0; i < place_.target_count; ++i) {
      const uint32_t target = place_.target + i;
      const uint32_t partner = nodes_.partner[target];
      // Golden nodes alone before the counterpart come first; those of another order later.
      if (partner != kNoNode && partner >= golden) golden = AddAlone(golden, partner + 1);
      Add({target, partner});
    }
    AddAlone(golden, golden_end);
    return std::move(aligned_);
  }

 private:
  uint32_t AddAlone(uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) {
      if (nodes_.partner[i] == kNoNode) Add({kNoNode, i});
    }
    return to;
  }
  void Add(const AlignedRow& row) {
    const bool is_alone = row.target == kNoNode || row.golden == kNoNode;
    if (is_alone || (nodes_.flags[row.target] & node_flag::kByHand) != 0) {
      aligned_.differences.push_back(static_cast<uint32_t>(aligned_.rows.size()));
    }
    aligned_.rows.push_back(row);
  }

  const NodeColumns& nodes_;
  const StorePlace& place_;
  Aligned aligned_;
};

std::shared_ptr<const Aligned> AlignedOf(const ResultStore& store, size_t place) {
  const std::string key = fmt::format("structure {}", place);
  if (auto kept = store.kept().Find<Aligned>(key)) return kept;
  auto found = std::make_shared<const Aligned>(Aligner(store, store.places()[place]).Align());
  store.kept().Keep(key, found);
  return found;
}

struct Suggestion {
  uint32_t node = kNoNode;
  double score = 0;
  std::string why;
};

// Parts of a name that two names share, of all that either has.
double Likeness(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> x = SplitAt(a, '.'), y = SplitAt(b, '.');
  const std::multiset<std::string_view> left(x.begin(), x.end());
  const std::multiset<std::string_view> right(y.begin(), y.end());
  std::vector<std::string_view> both;
  std::ranges::set_intersection(left, right, std::back_inserter(both));
  return 2.0 * static_cast<double>(both.size()) / static_cast<double>(x.size() + y.size());
}

// A counterpart for a node alone: of its parent's counterpart's children alone, or of the roots'
// where the parent is alone too, the one most like it in name, values and place.
class Suggester {
 public:
  explicit Suggester(const ResultStore& store) : store_(store), nodes_(store.nodes()) {}

  [[nodiscard]] std::optional<Suggestion> For(uint32_t node) const {
    const uint32_t parent = nodes_.parent[node];
    const uint32_t other = parent == kNoNode ? kNoNode : nodes_.partner[parent];
    if (other == kNoNode) return std::nullopt;
    const std::string name = store_.Name(node);
    const double place = PlaceAmong(node);
    std::optional<Suggestion> best;
    size_t looked = 0;
    ForEachChild(store_, other, [&](uint32_t candidate, size_t) {
      if (!IsCandidate(candidate, node)) return true;
      const Suggestion found = Judge(node, name, place, candidate);
      if (found.score >= kLeast && (!best || found.score > best->score)) best = found;
      return ++looked < kMostLooked;
    });
    return best;
  }

 private:
  static constexpr size_t kMostLooked = 200;
  // Half of what names, values and place can give; below it a proposal is a guess.
  static constexpr double kLeast = 0.5;
  static constexpr double kOfName = 0.5, kOfForm = 0.3, kOfPlace = 0.2;

  [[nodiscard]] bool IsCandidate(uint32_t candidate, uint32_t node) const {
    return nodes_.partner[candidate] == kNoNode && nodes_.type[candidate] == nodes_.type[node] &&
           nodes_.direction[candidate] == nodes_.direction[node];
  }

  // Where a node stands among its siblings, from 0 to 1: by the nodes before it.
  [[nodiscard]] double PlaceAmong(uint32_t node) const {
    const uint32_t parent = nodes_.parent[node];
    if (parent == kNoNode || nodes_.size[parent] < 2) return 0;
    return static_cast<double>(node - parent - 1) / static_cast<double>(nodes_.size[parent] - 1);
  }

  [[nodiscard]] Suggestion Judge(uint32_t node, const std::string& name, double place,
                                 uint32_t candidate) const {
    const double of_name = Likeness(name, store_.Name(candidate));
    const bool same_form = nodes_.form[node] == nodes_.form[candidate];
    const double of_place = 1 - std::abs(place - PlaceAmong(candidate));
    Suggestion found;
    found.node = candidate;
    found.score = kOfName * of_name + (same_form ? kOfForm : 0) + kOfPlace * of_place;
    found.why = fmt::format("{:.0f} % of the name, {} types and shapes, {:.0f} % of the place",
                            100 * of_name, same_form ? "the same" : "other", 100 * of_place);
    return found;
  }

  const ResultStore& store_;
  const NodeColumns& nodes_;
};

}  // namespace

Result<std::string> AnswerStructure(const Question& question) {
  const ResultStore& store = question.store;
  PL_TRY_ASSIGN(const int64_t asked, question.ReadPlace());
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  if (store.places().empty()) return Error(ErrorCode::kNotFound, "the result has no nodes");
  const auto place = static_cast<size_t>(std::max<int64_t>(asked, 0));
  const auto aligned = AlignedOf(store, place);
  const bool only_differences = question.parameters.Text("only") == "differences";
  const size_t total = only_differences ? aligned->differences.size() : aligned->rows.size();
  const NodeRows rows(question);
  const Suggester suggester(store);
  JsonAnswer out;
  out.Open('{').Members("total", total);
  NodeRows::AddFields(out);
  out.Key("rows").Open('[');
  const size_t end = std::min(total, page.offset + page.limit);
  for (size_t i = page.offset; i < end; ++i) {
    if (i > page.offset && out.size() > MostBytes(2 * page.limit)) break;
    const AlignedRow& row = aligned->rows[only_differences ? aligned->differences[i] : i];
    const uint32_t shown = row.target != kNoNode ? row.target : row.golden;
    const auto side = [&](uint32_t node) {
      return [&out, &rows, node] { node == kNoNode ? void(out.Null()) : rows.Add(node, -1, out); };
    };
    const auto suggestion = [&] {
      const bool is_alone = row.target != kNoNode && row.golden == kNoNode;
      const std::optional<Suggestion> found = is_alone ? suggester.For(shown) : std::nullopt;
      if (!found) return void(out.Null());
      out.Object("id", found->node, "name", store.Name(found->node), "score",
                 static_cast<float>(found->score), "why", found->why);
    };
    out.Object("target", side(row.target), "golden", side(row.golden), "depth",
               store.nodes().depth[shown], "suggestion", suggestion);
  }
  return out.Close(']').Close('}').Take();
}

}  // namespace plumbline::view
