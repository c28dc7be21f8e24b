// The files of one result while they are written: ranks, links between them, facts.

#ifndef PLUMBLINE_VIEW_RESULT_FILES_H_
#define PLUMBLINE_VIEW_RESULT_FILES_H_

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/vis_json.h"
#include "formats/sqlite/vis_db.h"
#include "load/rank_directories.h"
#include "plumbline/result.h"
#include "report/result_names.h"
#include "view/build_graph.h"
#include "view/finished_ranks.h"
#include "view/graph_files.h"
#include "view/graph_report.h"
#include "view/rank_links.h"

namespace plumbline::view {

// One rank, read and, with a golden side, compared.
struct BuiltRank {
  RecordedGraph target;
  std::optional<RecordedGraph> golden;
  std::optional<RankAnswer> answer;
};

// Takes ranks by step and in order, and writes them. Single-threaded.
class ResultFiles {
 public:
  // `has_many`: the names of files say which rank they hold. `options` must outlive this.
  ResultFiles(const GraphFileOptions& options, const std::string& target, const std::string& golden,
              bool has_many);
  // Removes what was not finished, unless it can be resumed.
  ~ResultFiles();
  ResultFiles(const ResultFiles&) = delete;
  ResultFiles& operator=(const ResultFiles&) = delete;

  // Whether one earlier database holds all these ranks, and no more: then it is the result.
  Result<bool> IsThere(const std::vector<load::RankPair>& pairs);
  Status Begin();
  // Whether an earlier run has finished this rank.
  [[nodiscard]] bool Knows(const load::RankPair& pair);
  // Takes it from there; false: it cannot be read any more, or is not there.
  Result<bool> Reuse(const load::RankPair& pair);
  Status Add(const load::RankPair& pair, BuiltRank& rank);
  Result<GraphFileReport> Finish();

  std::vector<std::string>& notes() { return report_.notes; }

 private:
  // What links of one side need: its calls, and what a link says of them.
  struct Side {
    RankCommunication communication;
    std::map<std::string, std::string, std::less<>> levels;
  };
  // A rank that is written, until those of its step are linked.
  struct Pending {
    vis::GraphPlace place;
    std::array<std::optional<Side>, 2> sides;  // target, golden
    std::string from{}, to{};                  // of .vis: where it stands, and where it goes
    std::optional<report::FreeName> name{};    // holds `to`
  };

  [[nodiscard]] bool is_db() const { return options_.type == GraphFileType::kDb; }
  [[nodiscard]] std::string_view kind() const { return is_pair_ ? "compare" : "build"; }
  [[nodiscard]] std::string Prefix(const load::RankPair& pair) const;
  const std::string& FingerprintFor(const load::RankPair& pair);

  Status WriteDbPart(const load::RankPair& pair, BuiltRank& rank, const RankFacts& facts);
  Status WriteVis(const load::RankPair& pair, BuiltRank& rank, const RankFacts& facts,
                  Pending& pending);
  Result<Pending> PendingOf(const load::RankPair& pair, const FinishedRank& finished);
  RankFacts FactsOf(const load::RankPair& pair, BuiltRank& rank);
  void Count(const load::RankPair& pair, const RankFacts& facts);
  // Links the ranks of the last step; `step`: that of the rank that comes, none at the end.
  Status CloseStep(std::optional<int64_t> step);
  Status PlaceLinks(const std::array<std::vector<TransferTexts>, 2>& links);
  [[nodiscard]] vis::Summary SummaryOf(int64_t micro_steps) const;
  [[nodiscard]] vis::Facts FileFacts() const;
  [[nodiscard]] std::string PathOfPart(std::string_view name) const;
  const GraphFileOptions& options_;
  const std::string target_, golden_;
  const bool is_pair_, has_many_;
  bool is_finished_ = false;
  const int64_t begun_at_;  // nanoseconds since 1970
  std::string task_;
  GraphFileReport report_;
  std::set<int64_t> ranks_, steps_;
  std::optional<report::FreeName> name_;  // of the database
  std::optional<vis_db::Writer> db_;
  FinishedRanks finished_;
  std::map<std::string, std::string> fingerprints_;  // by label; empty: not known
  std::vector<Pending> pending_;
  std::vector<std::string> parts_;  // written by this run
  vis::Facts rank_facts_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_RESULT_FILES_H_
