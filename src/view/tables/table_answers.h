// What a page may ask of tables, as functions from parameters to JSON (docs/design/viewer.md).

#ifndef PLUMBLINE_VIEW_TABLES_TABLE_ANSWERS_H_
#define PLUMBLINE_VIEW_TABLES_TABLE_ANSWERS_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "view/query/json_answer.h"
#include "view/query/parameters.h"
#include "view/store/kept_answers.h"
#include "view/tables/table_file.h"

namespace plumbline::view {

// A table, or those of a directory, each of which is read when it is asked for. Thread-safe.
class TableSet {
 public:
  // Reads the first one. Errors of FindTables() and Table::Read().
  static Result<std::shared_ptr<const TableSet>> Open(const std::string& path);
  explicit TableSet(std::vector<TableFile> files) : files_(std::move(files)) {}

  // "table": a page of the rows of `part`; "table/row": one of them as it stands. `q`: words that
  // must be in a cell, and "level:error,warning"; `sort`: "level", or the index of a column, with
  // "-" in front from the largest down; without it as in the file.
  [[nodiscard]] Result<std::string> Answer(std::string_view question,
                                           const Parameters& parameters) const;
  // The same rows, all of them. Errors of `take` end it.
  using TakeCells = std::function<Status(std::span<const std::string_view> cells)>;
  Status VisitRows(const Parameters& parameters, const TakeCells& take) const;
  // "17 rows: 2 error, 1 warning; first wrong call: Torch.mul.3.forward" of the first table.
  [[nodiscard]] std::string Summary() const;

 private:
  struct Shown;  // the rows that are asked for, in order

  [[nodiscard]] Result<std::shared_ptr<const Table>> TableAt(size_t part) const;
  [[nodiscard]] Result<Shown> Find(const Parameters& parameters) const;
  void AddFacts(const Shown& shown, JsonAnswer& out) const;

  std::vector<TableFile> files_;
  mutable KeptAnswers tables_{size_t{16} << 20};  // four of them
  mutable KeptAnswers orders_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_TABLES_TABLE_ANSWERS_H_
