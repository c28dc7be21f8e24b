// From the paths that a user names to something that a page can look at.

#ifndef PLUMBLINE_VIEW_SERVE_RESULT_OPENER_H_
#define PLUMBLINE_VIEW_SERVE_RESULT_OPENER_H_

#include <memory>
#include <string>
#include <vector>

#include "plumbline/compare_options.h"
#include "plumbline/result.h"
#include "view/serve/dataset.h"
#include "view/serve/store_cache.h"
#include "view/store/kept_answers.h"
#include "view/trends/trend_answers.h"

namespace plumbline::view {

struct OpenerOptions {
  CompareOptions compare;  // how recordings are paired and judged
  StoreCacheOptions cache;
  std::string store_path;  // of the first pair of paths: its store; empty: in the cache
};

// The graph of a store, with the values of its tensors.
class GraphDataset : public Dataset {
 public:
  explicit GraphDataset(FoundStore found) : found_(std::move(found)) {}

  [[nodiscard]] std::string_view kind() const override { return "graph"; }
  [[nodiscard]] std::string_view etag() const override { return found_.store->etag(); }
  [[nodiscard]] Result<std::string> Answer(std::string_view question, const Parameters& parameters,
                                           const Dataset* base) const override;
  [[nodiscard]] const ResultStore* store() const override { return found_.store.get(); }
  [[nodiscard]] const FoundStore& found() const { return found_; }
  // As plumb compare prints it, line by line.
  [[nodiscard]] std::vector<std::string> AnswerLines() const;

 private:
  [[nodiscard]] Result<std::string> AnswerValues(const Parameters& parameters) const;

  FoundStore found_;
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

// Opens paths of any kind. Thread-safe.
class ResultOpener {
 public:
  explicit ResultOpener(OpenerOptions options);

  // An OpenDataset. kUnsupported: what is there cannot be looked at; errors of BuildStore() and of
  // the readers.
  Result<std::shared_ptr<const Dataset>> Open(const std::string& target, const std::string& golden,
                                              JobControl& job) const;
  // Where the pairs made by hand of these paths are kept.
  [[nodiscard]] std::string MatchesPath(const std::string& id, const std::string& target) const;

 private:
  Result<std::shared_ptr<const Dataset>> OpenRecordings(const std::string& target,
                                                        const std::string& golden,
                                                        JobControl& job) const;
  // A .vis or .vis.db, which is a result.
  Result<std::shared_ptr<const Dataset>> OpenVis(const std::string& path, const std::string& golden,
                                                 JobControl& job) const;

  OpenerOptions options_;
  StoreCache cache_;
};

// How the paths of a command line belong together: two recordings are compared, everything else is
// looked at by itself. kInvalidArgument: more than two recordings.
struct PathPair {
  std::string target, golden;
};
Result<std::vector<PathPair>> PairPaths(const std::vector<std::string>& paths);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_RESULT_OPENER_H_
