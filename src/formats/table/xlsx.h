// Workbooks (.xlsx): results written row by row, and tables read, whoever wrote them.

#ifndef PLUMBLINE_FORMATS_TABLE_XLSX_H_
#define PLUMBLINE_FORMATS_TABLE_XLSX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::xlsx {

// Texts of spreadsheet cells.

// Appends the element `<t>` with `text` (UTF-8), cut to the 32,767 that a cell holds. Control
// characters and texts that look like an escape are written as the format's escapes (_x001B_);
// bytes that are not UTF-8 or no character of XML become U+FFFD. Blanks at the ends stay.
void AppendSheetText(std::string_view text, std::string& out);

// Result workbooks with filled rows.

enum class Fill : uint8_t { kNone, kYellow, kRed, kGrey };  // whole cell, solid

// kTable: a bold grey header row with filters, which stays in view with the first column; line
// breaks in cells are shown.
enum class Look : uint8_t { kPlain, kTable };

// A workbook written row by row in constant memory. It appears under `path` when Close() succeeds;
// before, and when destroyed without Close(), nothing is visible. Texts are never taken for
// formulas. A sheet that is full (1,048,576 rows) is continued on the next one, each with the
// header. Move-only. Single-threaded.
class Writer {
 public:
  // The first sheet is called "Sheet", the next ones "part_2", "part_3", ...
  static Result<Writer> Create(const std::string& path, std::span<const std::string_view> header);
  // Without a sheet: begin one before the first row.
  static Result<Writer> CreateEmpty(const std::string& path);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  // Begins another sheet with its own header; kInvalidArgument when the name is longer than 31
  // characters or taken. A full one is continued on "<name>_part_2", ...
  Status BeginSheet(std::string_view name, std::span<const std::string_view> header,
                    Look look = Look::kPlain);
  Status BeginRow(Fill fill);
  // Cells of the row, left to right. Not-finite numbers cannot be stored: write a text. Texts above
  // Excel's limit of 32,767 characters are cut.
  Status Number(double value);
  Status Text(std::string_view text);
  // kIo when the disk is full or the file cannot be renamed; kUnsupported above 4 GiB.
  Status Close();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads the tables of result workbooks (.xlsx) of any writer.

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

#endif  // PLUMBLINE_FORMATS_TABLE_XLSX_H_
