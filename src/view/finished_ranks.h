// Ranks that an earlier run has finished, so that another one need not make them again.

#ifndef PLUMBLINE_VIEW_FINISHED_RANKS_H_
#define PLUMBLINE_VIEW_FINISHED_RANKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/compare_options.h"
#include "plumbline/result.h"
#include "view/rank_facts.h"

namespace plumbline::view {

// The ending of a file that holds one rank of a result that is being made; its name is hidden.
inline constexpr std::string_view kPartEnding = ".part";

// What a rank is made of, as a digest: names, sizes and times of change of all files of both sides
// and of the files that say how they pair, the tool and `form`, which tells apart all other
// options. kIo.
Result<std::string> FingerprintOf(const load::RankPair& pair, const CompareOptions& compare,
                                  std::string_view form);

// A file in which a rank stands complete.
struct FinishedRank {
  std::string path;
  RankFacts facts;
};

// By what they were made of. `ending`: ".vis" or ".vis.db"; the results of that kind and the parts
// of such in `directory` are looked into. What cannot be read holds nothing. `facts`: of the file
// that is made.
class FinishedRanks {
 public:
  FinishedRanks() = default;
  static FinishedRanks In(const std::string& directory, std::string_view ending,
                          const vis::Facts& facts);

  [[nodiscard]] const FinishedRank* Find(std::string_view fingerprint) const;
  // Parts of the same recordings' results, of no use once there is one.
  [[nodiscard]] const std::vector<std::string>& parts() const { return parts_; }

 private:
  void Take(const std::string& path, bool is_db, const vis::Facts& facts);

  std::map<std::string, FinishedRank, std::less<>> by_fingerprint_;
  std::vector<std::string> parts_;
};

// The name that a temporary file (AtomicFile) was to have; nothing: it is none, or its process
// lives on this machine.
std::optional<std::string_view> NameOfAbandoned(std::string_view temporary_name);

// Removes what killed runs were writing into `directory`: temporary files of parts and results of
// this ending whose process is gone, and what held their names; those that were last changed before
// `before` (ModifiedAt()), as another machine may be at work.
void RemoveAbandoned(const std::string& directory, std::string_view ending, int64_t before);

// Whether a path is that of a part.
bool IsPart(std::string_view path);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_FINISHED_RANKS_H_
