// What a person paired by hand: kept in a file beside a result, whose recordings stay as they are.

#ifndef PLUMBLINE_VIEW_SERVE_HAND_MATCHES_H_
#define PLUMBLINE_VIEW_SERVE_HAND_MATCHES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"
#include "view/store/result_store.h"

namespace plumbline::view {

using NamePair = std::pair<std::string, std::string>;  // target, golden

// The body of `match` and `unmatch`.
struct MatchRequest {
  size_t place = 0;
  std::vector<NamePair> pairs;
  bool with_children = false;
};
// kInvalidArgument: no such JSON object. `places`: how many there are.
Result<MatchRequest> ParseMatchRequest(std::string_view body, size_t places);

// One thing done: pairs made or taken apart in one rank of one step.
struct MatchAction {
  bool is_match = true;  // false: taken apart
  int64_t step = 0, rank = 0;
  std::vector<NamePair> pairs{};
  std::string author{}, time{};  // time: UTC, "2026-01-31T12:00:00Z"
  bool is_undone = false;
};

// The pairs of a result and how they came about. A plain value; the file ({result}.mpmatch.json) is
// one JSON object: every pair as a member, as in the .vis.config of msprobe's viewer, and the
// member "plumbline" with the actions (docs/reference/view.md, "Pairs by hand").
class HandMatches {
 public:
  // No pairs where there is no file. kCorrupt: it is none of these; kUnsupported: of a later
  // version. Nothing is changed then.
  static Result<HandMatches> Read(const std::string& path);
  // Atomically.
  Status Write(const std::string& path) const;

  // Pairs nodes of one type that have no counterpart, each once; with their other direction where
  // that has none either; with_children: and those below, by type and last part of their names, in
  // order. kNotFound: there is no such node; kInvalidArgument: they cannot be paired.
  Status Match(const ResultStore& store, const MatchRequest& request);
  // Takes pairs apart that were made by hand; with_children: those below too. kNotFound: no such
  // pair.
  Status Unmatch(const ResultStore& store, const MatchRequest& request);
  // The last action is as if it had not been. kNotFound: there is none.
  Status Undo();

  [[nodiscard]] bool can_undo() const;
  // Of one rank of one step; of all of them, each once.
  [[nodiscard]] std::vector<NamePair> PairsOf(int64_t step, int64_t rank) const;
  [[nodiscard]] std::vector<NamePair> AllPairs() const;
  // Which pairs are where, to tell one state from another; empty: there is none.
  [[nodiscard]] std::string StateText() const;
  // {"pairs": [[target, golden], ...], "can_undo": true}
  [[nodiscard]] std::string AnswerText() const;

 private:
  [[nodiscard]] std::set<std::pair<int64_t, int64_t>> Places() const;  // step and rank
  void Append(const ResultStore& store, size_t place, bool is_match, std::vector<NamePair> pairs);

  std::vector<MatchAction> actions_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_HAND_MATCHES_H_
