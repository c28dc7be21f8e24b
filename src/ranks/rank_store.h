// Results of single ranks that a later run can take over: what they were made from, and the
// outcome.

#ifndef PLUMBLINE_RANKS_RANK_STORE_H_
#define PLUMBLINE_RANKS_RANK_STORE_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/carried_values.h"
#include "load/rank_directories.h"
#include "match/training_match.h"
#include "ranks/merge_results.h"
#include "ranks/rank_outcome.h"

namespace plumbline::ranks {

// What decides the results of a rank besides its inputs and the options of its comparison.
struct RankWorkFacts {
  bool with_verdicts = false;  // the files of diff_analyze.h belong to it
  size_t page_bytes = 0;       // what this rank may take of the page over all ranks
  const match::TrainingRules* training = nullptr;  // null: the calls pair by name
  std::span<const compare::StepPair> before{};     // the steps that it is judged behind
  std::string_view gap{};                          // StepsFound::gap
  bool is_shown = true;                            // as of StepChain
};

// The stored outcome of one rank pair in `directory`, which holds its result files.
class RankStore {
 public:
  // Looks at the inputs: names, sizes and times of the files of both ranks, and the options that
  // decide what the result is.
  RankStore(std::string directory, const load::RankPair& pair, const CompareOptions& options,
            const RankWorkFacts& work);

  // This rank's part of the page over all ranks; empty when no page is asked for.
  [[nodiscard]] const std::string& page_path() const { return page_path_; }

  struct Stored {
    RankOutcome outcome;
    bool is_of_this_run = false;  // CompareOptions::stamp is that of when it was stored
  };
  // The outcome, if inputs, options and result files are those of when it was stored.
  [[nodiscard]] std::optional<Stored> Load() const;
  // Requires: the result files and the part of the page are complete. kIo.
  [[nodiscard]] Status Save(const RankOutcome& outcome) const;
  // Forgets the outcome, before the result is made again.
  void Drop() const;

 private:
  std::string directory_;
  std::string path_, page_path_;
  std::string inputs_;  // digest
  std::string stamp_;
};

// What decides the results of all ranks besides their inputs: the options, the mapping files as
// they are now, the version of plumbline. A digest.
std::string OptionsDigest(const CompareOptions& options, const match::TrainingRules* training);
// Whether a pair's recordings are still those of which it was taken: a digest of names, sizes and
// times of their JSON files. Empty where the target's directory cannot be seen.
std::string RecordingsDigest(const load::RankPair& pair);

// Ranks whose newest comparison gave no result: their tables are older, or there are none.

struct LostRanks {
  std::vector<std::string> outdated;     // a line for each of the tables that is older
  std::vector<std::string> without_one;  // a line for each rank that has no table
};

// Of the ranks that the newest compare_ranks_<time>.json calls failed or missing. That file is in
// `directory` or, for a directory step<n>, in the one above it. Without one there is nothing to
// say; one that cannot be read is a line of `outdated` itself.
LostRanks FindLostRanks(const std::string& directory, const std::vector<RankTable>& tables);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_RANK_STORE_H_
