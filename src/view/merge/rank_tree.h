// One rank's recording as a tree whose nodes can be moved, renamed and merged with those of other
// ranks.

#ifndef PLUMBLINE_VIEW_MERGE_RANK_TREE_H_
#define PLUMBLINE_VIEW_MERGE_RANK_TREE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "load/rank_scan.h"
#include "plumbline/record.h"
#include "plumbline/result.h"
#include "view/model_graph.h"

namespace plumbline::view {

// A node of one rank, or what nodes of several ranks became.
struct Part {
  std::string name;
  NodeType type = NodeType::kModule;
  int64_t rank = 0;  // that recorded it
  int64_t micro_step = 0;
  Part* parent = nullptr;            // null: the root
  std::vector<Part*> children{};     // in order of recording
  ValueMap members{};                // of its entry in dump.json; empty: it has none
  std::string_view frames{};         // JSON list, of the tree that recorded it; empty: none
  std::vector<std::string> merge{};  // what was merged and how, a line each
  // Folding a pipeline: a layer that several ranks have under one name, and one that came from
  // another rank.
  bool is_split = false, is_moved = false;
  size_t position = 0;     // of a moved one, among its siblings on its own rank
  bool is_merged = false;  // folding tensor parallel ranks: done

  [[nodiscard]] bool is_module() const { return type == NodeType::kModule; }
};

// Owns its parts, which stay where they are; a part may hang below one of another tree, which must
// then outlive this one's use. Move-only.
struct RankTree {
  RankTree() = default;
  RankTree(RankTree&&) = default;
  RankTree& operator=(RankTree&&) = default;

  int64_t rank = 0;
  std::string task, level, framework;  // of dump.json
  bool counts_micro_steps = false;     // the recorder counted them
  int64_t micro_steps = 1;
  std::string tensor_directory;     // of files that its tensors name; empty: they name none
  std::deque<Part> parts;           // the root first
  std::vector<std::string> stacks;  // JSON lists of frames
  std::vector<std::string> notes;
  std::unordered_map<std::string, Part*> by_name;  // see Index()

  [[nodiscard]] Part& root() { return parts.front(); }
  [[nodiscard]] Part* Find(std::string_view name) const;
  // Looks up what hangs below the root now, under its present name. Of equal names the first
  // counts.
  void Index();
};

// Errors as of BuildGraph().
Result<RankTree> ReadRankTree(const std::string& directory, int64_t rank);

// `top` and all below it, parents before children.
std::vector<Part*> PartsBelow(Part& top);

// Hangs `part` below `parent` in front of the child at `place`.
void AttachAt(Part& part, Part& parent, size_t place);

// Whether the names from both parts' parents up to the root are equal.
bool HaveSameAncestors(const Part& a, const Part& b);

// What a call of communication says (load/rank_scan.h); `api` is its CommunicationApi(). Adds its
// group to `groups`.
CommCall CommunicationOf(const Part& part, std::string_view api, std::vector<CommGroup>& groups);

// "Torch.add_rank1.0.forward" of "Torch.add.0.forward" with 1: calls that the ranks number on their
// own.
std::string WithRankMark(std::string_view api_name, int64_t rank);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_RANK_TREE_H_
