// One entry of dump.json -> rows of the trend database, and the tags of a row.

#ifndef PLUMBLINE_PIPELINE_TREND_ROWS_H_
#define PLUMBLINE_PIPELINE_TREND_ROWS_H_

#include <string>
#include <utility>
#include <vector>

#include "formats/trend_db.h"
#include "plumbline/record.h"

namespace plumbline {

// Old text -> new text, in the order in which they are applied.
using NameMapping = std::vector<std::pair<std::string, std::string>>;

// `name` after every occurrence of every old text was replaced.
std::string MapName(std::string name, const NameMapping& mapping);

// The number that the database holds for a statistic: NaN and absent are nothing, truth is 1 or 0,
// +-Inf is +-1000000001, anything else beyond +-1e9 is +-1e9.
std::optional<double> TrendValue(const Statistic& statistic);

// The rows of `call`, whose name is mapped already; rank and step are left 0. One row per tensor,
// whatever its dtype, keyword arguments and nested values included. Empty for an entry that is
// neither forward, backward nor parameters_grad.
std::vector<trend_db::Row> TrendRows(const Call& call);

// See docs/formats/trend_db.md. Empty for names of fewer than three components.
std::vector<trend_db::Tag> TrendTags(const trend_db::Row& row);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_TREND_ROWS_H_
