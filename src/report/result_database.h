// The result as a SQLite database (docs/reference/compare.md, "SQLite").

#ifndef PLUMBLINE_REPORT_RESULT_DATABASE_H_
#define PLUMBLINE_REPORT_RESULT_DATABASE_H_

#include <string>

#include "plumbline/compare.h"

namespace plumbline::report {

// Tables `facts`, `calls` and `rows`, and the view `wrong` of suspicious and broken rows. Absent
// metrics are NULL; SQLite has no NaN, which is the text 'nan' in columns of statistics and
// metrics, and NULL in `error`.
Status WriteDatabase(const Comparison& comparison, const std::string& path);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_RESULT_DATABASE_H_
