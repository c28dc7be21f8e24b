// Reads the tables of result workbooks (.xlsx) of any writer.

#ifndef PLUMBLINE_FORMATS_XLSX_READER_H_
#define PLUMBLINE_FORMATS_XLSX_READER_H_

#include <functional>
#include <span>
#include <string>

#include "plumbline/result.h"

namespace plumbline::xlsx {

// A cell as it stands in the file: a number keeps its spelling; blank cells are empty texts.
struct Cell {
  std::string text;
  bool is_number = false;
};

// Called for every row in order, with `sheet` counted from 0 and the cells from column A on
// (missing ones blank). False ends the reading without an error.
using RowVisitor = std::function<bool(size_t sheet, std::span<const Cell> cells)>;

// All sheets in the order of their numbers (sheet1.xml, sheet2.xml, ...), row by row. Tables may be
// of either namespace of the format, with any prefix, or of none; what is of another namespace is
// no part of them. Texts may be shared, in place, or rich; formulas count with their stored value.
// Memory: the XML of one sheet and all shared texts. kNotFound, kIo; kCorrupt when the file is no
// workbook or damaged; kInvalidArgument above 4 GiB of XML.
Status ReadRows(const std::string& path, const RowVisitor& visit);

}  // namespace plumbline::xlsx

#endif  // PLUMBLINE_FORMATS_XLSX_READER_H_
