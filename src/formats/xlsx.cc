#include "formats/xlsx.h"

#include <fmt/format.h>
#include <xlsxwriter.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"

namespace plumbline::xlsx {
namespace {

constexpr lxw_row_t kMaxRows = 1048576;
constexpr size_t kMaxTextBytes = 32767;
constexpr lxw_color_t kRed = 0xFF0000;
constexpr lxw_color_t kYellow = 0xFFFF00;

// Longest prefix of at most `limit` bytes that does not cut a UTF-8 sequence.
std::string_view Prefix(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

}  // namespace

struct Writer::Impl {
  explicit Impl(AtomicFile atomic_file) : file(std::move(atomic_file)) {}
  ~Impl() {
    // Frees the workbook; the temporary is removed with `file`.
    if (workbook != nullptr) workbook_close(workbook);
  }

  AtomicFile file;
  std::string path;
  std::string directory;
  std::vector<std::string> header;
  std::string scratch;  // zero-terminated copy of the current text
  lxw_workbook* workbook = nullptr;
  lxw_worksheet* sheet = nullptr;
  lxw_format* yellow = nullptr;
  lxw_format* red = nullptr;
  lxw_format* format = nullptr;  // of the current row
  lxw_row_t next_row = 0;
  lxw_row_t row = 0;
  lxw_col_t column = 0;
  std::string sheet_name;  // of the sheets begun by name; empty: "Sheet"
  int sheet_count = 0;     // of this name

  Error Failed(lxw_error code) const {
    return Error(ErrorCode::kIo,
                 fmt::format("{}: cannot write the workbook: {}", path, lxw_strerror(code)));
  }

  lxw_format* SolidFill(lxw_color_t color) {
    lxw_format* fill = workbook_add_format(workbook);
    format_set_pattern(fill, LXW_PATTERN_SOLID);
    format_set_fg_color(fill, color);
    return fill;
  }

  Status AddSheet() {
    ++sheet_count;
    std::string name = sheet_name.empty() ? "Sheet" : sheet_name;
    if (sheet_count > 1) {
      name = fmt::format("{}{}part_{}", sheet_name, sheet_name.empty() ? "" : "_", sheet_count);
    }
    sheet = workbook_add_worksheet(workbook, name.c_str());
    if (sheet == nullptr) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: cannot add sheet {} (the name is too long or taken)", path, name));
    }
    next_row = 1;
    row = 0;
    column = 0;
    format = nullptr;
    for (const std::string& cell : header) {
      const lxw_error code = worksheet_write_string(sheet, 0, column++, cell.c_str(), nullptr);
      if (code != LXW_NO_ERROR) return Failed(code);
    }
    return {};
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, std::span<const std::string_view> header) {
  PL_TRY_ASSIGN(Writer writer, CreateEmpty(path));
  writer.impl_->header.assign(header.begin(), header.end());
  PL_TRY(writer.impl_->AddSheet());
  return writer;
}

Result<Writer> Writer::CreateEmpty(const std::string& path) {
  // Creates the temporary with the right mode; libxlsxwriter reopens it under its name.
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  auto impl = std::make_unique<Impl>(std::move(file));
  impl->path = path;
  impl->directory = std::string(DirectoryOf(path));
  const std::string temporary = JoinPath(impl->directory, fmt::format(".{}.tmp", BaseName(path)));
  lxw_workbook_options options = {};
  options.constant_memory = LXW_TRUE;
  options.tmpdir = impl->directory.data();
  impl->workbook = workbook_new_opt(temporary.c_str(), &options);
  if (impl->workbook == nullptr) {
    return Error(ErrorCode::kInternal, fmt::format("{}: cannot start a workbook", path));
  }
  impl->yellow = impl->SolidFill(kYellow);
  impl->red = impl->SolidFill(kRed);
  return Writer(std::move(impl));
}

Status Writer::BeginSheet(std::string_view name, std::span<const std::string_view> header) {
  impl_->sheet_name = name;
  impl_->sheet_count = 0;
  impl_->header.assign(header.begin(), header.end());
  return impl_->AddSheet();
}

Status Writer::BeginRow(Fill fill) {
  if (impl_->next_row == kMaxRows) PL_TRY(impl_->AddSheet());
  impl_->row = impl_->next_row++;
  impl_->column = 0;
  impl_->format = fill == Fill::kNone ? nullptr : (fill == Fill::kRed ? impl_->red : impl_->yellow);
  return {};
}

Status Writer::Number(double value) {
  const lxw_error code =
      worksheet_write_number(impl_->sheet, impl_->row, impl_->column++, value, impl_->format);
  if (code != LXW_NO_ERROR) return impl_->Failed(code);
  return {};
}

Status Writer::Text(std::string_view text) {
  impl_->scratch.assign(Prefix(text, kMaxTextBytes));
  // Blank cells exist only where they carry a fill.
  const lxw_error code =
      text.empty() ? worksheet_write_blank(impl_->sheet, impl_->row, impl_->column, impl_->format)
                   : worksheet_write_string(impl_->sheet, impl_->row, impl_->column,
                                            impl_->scratch.c_str(), impl_->format);
  ++impl_->column;
  if (code != LXW_NO_ERROR) return impl_->Failed(code);
  return {};
}

Status Writer::Close() {
  const lxw_error code = workbook_close(std::exchange(impl_->workbook, nullptr));
  if (code != LXW_NO_ERROR) return impl_->Failed(code);
  return impl_->file.Commit(false);
}

}  // namespace plumbline::xlsx
