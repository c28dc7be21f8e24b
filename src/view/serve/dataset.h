// What a page can look at: the graph of a result, a trend database, a table.

#ifndef PLUMBLINE_VIEW_SERVE_DATASET_H_
#define PLUMBLINE_VIEW_SERVE_DATASET_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "view/query/parameters.h"
#include "view/serve/job_list.h"
#include "view/store/result_store.h"
#include "view/tables/table_answers.h"

namespace plumbline::view {

// Immutable. Thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // "graph", "trend" or "table".
  [[nodiscard]] virtual std::string_view kind() const = 0;
  // Of the contents.
  [[nodiscard]] virtual std::string_view etag() const = 0;
  // The JSON that answers a question (docs/design/viewer.md). `base`: the dataset that the
  // parameter `base` names; null: none. kNotFound: no such question.
  [[nodiscard]] virtual Result<std::string> Answer(std::string_view question,
                                                   const Parameters& parameters,
                                                   const Dataset* base) const = 0;
  // What a terminal says of it, line by line; may be empty.
  [[nodiscard]] virtual std::vector<std::string> AnswerLines() const { return {}; }
  // Of a graph, of tables; null: it has none.
  [[nodiscard]] virtual const ResultStore* store() const { return nullptr; }
  [[nodiscard]] virtual const TableSet* tables() const { return nullptr; }
};

// Reads or compares what the paths hold; `golden` may be empty. May take long: `job` is told of the
// progress, and says when to stop.
using OpenDataset = std::function<Result<std::shared_ptr<const Dataset>>(
    const std::string& target, const std::string& golden, JobControl& job)>;

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_DATASET_H_
