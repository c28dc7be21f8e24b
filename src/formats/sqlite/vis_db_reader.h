// Reading .vis.db files (vis_db.h): those of msprobe from 8.2.1 on, and our own.

#ifndef PLUMBLINE_FORMATS_SQLITE_VIS_DB_READER_H_
#define PLUMBLINE_FORMATS_SQLITE_VIS_DB_READER_H_

#include <memory>
#include <string>

#include "formats/json/vis_source.h"
#include "plumbline/result.h"

namespace plumbline::vis_db {

// Opened read-only and unchangeable: nothing is made beside it, so that it may lie in a read-only
// directory. Memory is that of the rows that are asked for. kNotFound; kUnsupported: no database,
// or one with other tables; kCorrupt: damaged, or its writer has not finished (a journal beside it,
// no row in tb_config); kIo.
Result<std::unique_ptr<vis::Source>> Open(const std::string& path);

}  // namespace plumbline::vis_db

#endif  // PLUMBLINE_FORMATS_SQLITE_VIS_DB_READER_H_
