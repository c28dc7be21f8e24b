// What a page may ask of a database of trends: `GET d/{id}/trend/{question}`
// (docs/design/viewer.md).
//
// In all answers a value is a number, or "inf" and "-inf" where the importer marked it so, or "nan"
// (the database holds a row without the number), or null: there is no row, or the statistic was not
// recorded of it. A gap is never 0, and nothing is clipped but what the importer clips at 1e9.
//
// | Question | Parameters | Answer |
// |---|---|---|
// | `meta` | `metric`: of the tags and targets (the first one); `tags` by comma; `q`: in the name;
// `offset`, `limit` (100) of the targets | {"metrics": [{"name", "statistics"}], "ranks", "steps"
// (all that any rank has), "exact_steps": false where a row of "steps" may have no data, "metric",
// "tags": {category: [name]}, "targets": {"total", "offset", "rows": [[id, name, vpp_stage,
// micro_step]]}} | | `heat` | `metric`, `stat`, `dimension`: `step`, `rank` or `module`, and its
// `value` (of a module its id); `tags`, `q`; `x_offset`, `x_limit` (200), `y_offset`, `y_limit`
// (200); `against`: another database | {"x", "y": {"kind": "rank", "step" or "module", "total",
// "offset", "labels": [number or [id, name, vpp_stage, micro_step]]}, "cells": by rows of y, "min",
// "max", "mean", "deviation": over the finite cells, or null; "notes"}. Step: ranks over modules;
// rank: steps over modules; module: steps over ranks. Against another database the cells are this
// one's minus that one's, matched by name, rank and step | | `line` | `metric`, `stat`, `along`:
// `step` (over all ranks or `ranks` by comma) or `rank` (over `steps` by comma); `targets`: ids by
// comma, or `tags` and `q`; `offset`, `limit` (2000) of the axis; `against` | {"along", "x": [..],
// "total", "series": [{"target": [id, name, ..], "rank" or "step", "side": "target" or "against",
// "values"}], "series_total"; "notes"}: at most 100 series | | `alerts` | `metric`, `stat`, `tags`,
// `q`, `window` (20), `offset`, `limit` (100) | {"rule": sentence, "total", "alerts": [{"target",
// "rank", "step", "kind": "nan", "inf", "z" or "ratio", "value", "z", "ratio"}]} by step |

#ifndef PLUMBLINE_VIEW_TRENDS_TREND_ANSWERS_H_
#define PLUMBLINE_VIEW_TRENDS_TREND_ANSWERS_H_

#include <memory>
#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "view/query/parameters.h"
#include "view/values/value_file.h"

namespace plumbline::view {

// A database that is asked by several clients. Thread-safe; movable.
class TrendDb {
 public:
  // Errors of TrendReader::Open().
  static Result<TrendDb> Open(const std::string& path);
  TrendDb(TrendDb&&) noexcept;
  TrendDb& operator=(TrendDb&&) = delete;
  ~TrendDb();

  struct Impl;
  [[nodiscard]] Impl& impl() const { return *impl_; }

 private:
  explicit TrendDb(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct TrendContext {
  const TrendDb* against = nullptr;  // that the parameter `against` names; null: none
  CancelFlag cancel = nullptr;
};

// The JSON text. Thread-safe. kInvalidArgument for faulty parameters, which says what there is;
// errors of TrendReader; kNotFound "cancelled".
Result<std::string> TrendAnswer(const TrendDb& database, std::string_view question,
                                const Parameters& parameters, const TrendContext& context = {});

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_TRENDS_TREND_ANSWERS_H_
