// From the paths that a user names to something that a page can look at.

#ifndef PLUMBLINE_VIEW_SERVE_RESULT_OPENER_H_
#define PLUMBLINE_VIEW_SERVE_RESULT_OPENER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "plumbline/compare_options.h"
#include "plumbline/result.h"
#include "view/serve/dataset.h"
#include "view/serve/hand_matches.h"
#include "view/serve/store_cache.h"
#include "view/store/kept_answers.h"
#include "view/trends/trend_answers.h"

namespace plumbline::view {

struct OpenerOptions {
  CompareOptions compare;  // how recordings are paired and judged
  StoreCacheOptions cache;
  // For pairs made by hand where there is no cache; empty: there are none then.
  std::string scratch_directory;
  std::string store_path;  // of the first pair of paths: its store; empty: in the cache
};

// The graph of a store, with the values of its tensors.
class GraphDataset : public Dataset {
 public:
  // `cancel`: set when no answer is needed any more.
  GraphDataset(FoundStore found, std::shared_ptr<const std::atomic<bool>> cancel)
      : found_(std::move(found)), cancel_(std::move(cancel)) {}

  [[nodiscard]] std::string_view kind() const override { return "graph"; }
  [[nodiscard]] std::string_view etag() const override { return found_.store->etag(); }
  [[nodiscard]] Result<std::string> Answer(std::string_view question, const Parameters& parameters,
                                           const Dataset* base) const override;
  [[nodiscard]] const ResultStore* store() const override { return found_.store.get(); }
  [[nodiscard]] const FoundStore& found() const { return found_; }
  // As plumb compare prints it, line by line.
  [[nodiscard]] std::vector<std::string> AnswerLines() const override;

 private:
  [[nodiscard]] Result<std::string> AnswerValues(const Parameters& parameters) const;

  FoundStore found_;
  std::shared_ptr<const std::atomic<bool>> cancel_;
  mutable KeptAnswers values_;
};

// A trend database: its questions are "trend/meta" and so on; `base` stands for `against`.
class TrendDataset : public Dataset {
 public:
  TrendDataset(TrendDb database, std::string etag)
      : database_(std::move(database)), etag_(std::move(etag)) {}

  [[nodiscard]] std::string_view kind() const override { return "trend"; }
  [[nodiscard]] std::string_view etag() const override { return etag_; }
  [[nodiscard]] Result<std::string> Answer(std::string_view question, const Parameters& parameters,
                                           const Dataset* base) const override;

 private:
  TrendDb database_;
  std::string etag_;
};

// A table, or those of a directory (view/tables/table_answers.h).
class TableDataset : public Dataset {
 public:
  TableDataset(std::shared_ptr<const TableSet> tables, std::string etag)
      : tables_(std::move(tables)), etag_(std::move(etag)) {}

  [[nodiscard]] std::string_view kind() const override { return "table"; }
  [[nodiscard]] std::string_view etag() const override { return etag_; }
  [[nodiscard]] Result<std::string> Answer(std::string_view question, const Parameters& parameters,
                                           const Dataset* base) const override;
  [[nodiscard]] std::vector<std::string> AnswerLines() const override {
    return {tables_->Summary()};
  }
  [[nodiscard]] const TableSet* tables() const override { return tables_.get(); }

 private:
  std::shared_ptr<const TableSet> tables_;
  std::string etag_;
};

// Opens paths of any kind. Thread-safe.
class ResultOpener {
 public:
  explicit ResultOpener(OpenerOptions options);

  // An OpenDataset. kUnsupported: what is there cannot be looked at; errors of BuildStore() and of
  // the readers.
  Result<std::shared_ptr<const Dataset>> Open(const std::string& target, const std::string& golden,
                                              JobControl& job) const;
  // Ends what is being answered from tensors.
  void CancelAnswers() { *cancel_ = true; }
  // Where the pairs made by hand of these paths are kept; empty: nowhere.
  [[nodiscard]] std::string MatchesPath(const std::string& id, const std::string& target) const;

 private:
  Result<std::shared_ptr<const Dataset>> OpenRecordings(const std::string& target,
                                                        const std::string& golden,
                                                        JobControl& job) const;
  [[nodiscard]] HandMatches MatchesOf(const std::string& id, const std::string& target) const;
  // The store of these paths, options and pairs.
  [[nodiscard]] Result<std::shared_ptr<const Dataset>> OpenStore(
      const std::vector<std::string>& paths, const std::string& options, const HandMatches& by_hand,
      const StoreCache::Build& build) const;
  static Result<std::shared_ptr<const Dataset>> OpenTables(const std::string& path);
  // A .vis or .vis.db, which is a result.
  Result<std::shared_ptr<const Dataset>> OpenVis(const std::string& path, const std::string& golden,
                                                 JobControl& job) const;

  OpenerOptions options_;
  StoreCache cache_;
  std::shared_ptr<std::atomic<bool>> cancel_ = std::make_shared<std::atomic<bool>>(false);
};

// How the paths of a command line belong together: two recordings are compared, everything else is
// looked at by itself. kInvalidArgument: more than two recordings.
struct PathPair {
  std::string target, golden;
};
Result<std::vector<PathPair>> PairPaths(const std::vector<std::string>& paths);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_RESULT_OPENER_H_
