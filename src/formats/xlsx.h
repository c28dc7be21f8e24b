// Result workbooks with filled rows.

#ifndef PLUMBLINE_FORMATS_XLSX_H_
#define PLUMBLINE_FORMATS_XLSX_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::xlsx {

enum class Fill : uint8_t { kNone, kYellow, kRed };  // whole cell, solid

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

}  // namespace plumbline::xlsx

#endif  // PLUMBLINE_FORMATS_XLSX_H_
