#include "formats/xlsx.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "formats/sheet_text.h"
#include "formats/zip_stream.h"

namespace plumbline::xlsx {
namespace {

constexpr uint32_t kMaxRows = 1048576;
constexpr size_t kFlushBytes = size_t{1} << 18;
// A sheet that would come near the archive's limit for one member is continued on the next.
constexpr uint64_t kSheetBytes = uint64_t{3} << 30;

constexpr std::string_view kDeclaration =
    "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
constexpr std::string_view kSheetHead =
    "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">";
constexpr std::string_view kFrozen =
    "<sheetViews><sheetView workbookViewId=\"0\"><pane xSplit=\"1\" ySplit=\"1\" "
    "topLeftCell=\"B2\" activePane=\"bottomRight\" state=\"frozen\"/></sheetView></sheetViews>";
constexpr std::string_view kRows = "<sheetData>";
constexpr std::string_view kRowsEnd = "</sheetData>";
constexpr std::string_view kSheetTail = "</worksheet>";
constexpr std::string_view kPackage = "http://schemas.openxmlformats.org/package/2006";
constexpr std::string_view kOffice =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
constexpr std::string_view kMain = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
constexpr std::string_view kType = "application/vnd.openxmlformats-officedocument.spreadsheetml";

// Cell formats 0 (plain), 1 (yellow) and 2 (red), in the order of Fill; then 3 (bold on grey) and 4
// (with line breaks).
constexpr std::string_view kHeaderStyle = " s=\"3\"";
constexpr std::string_view kWrappedStyle = " s=\"4\"";
std::string Styles() {
  std::string fills;
  for (const std::string_view color : {"FFFFFF00", "FFFF0000", "FFD9D9D9"}) {
    fills += fmt::format(
        "<fill><patternFill patternType=\"solid\"><fgColor rgb=\"{}\"/><bgColor indexed=\"64\"/>"
        "</patternFill></fill>",
        color);
  }
  return fmt::format(
      "<styleSheet xmlns=\"{}\"><fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/>"
      "<family val=\"2\"/></font><font><b/><sz val=\"11\"/><name val=\"Calibri\"/><family "
      "val=\"2\"/></font></fonts><fills count=\"5\"><fill><patternFill "
      "patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill>{}</fills>"
      "<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders>"
      "<cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/>"
      "</cellStyleXfs><cellXfs count=\"5\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" "
      "borderId=\"0\" xfId=\"0\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"2\" borderId=\"0\" "
      "xfId=\"0\" applyFill=\"1\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"3\" borderId=\"0\" "
      "xfId=\"0\" applyFill=\"1\"/><xf numFmtId=\"0\" fontId=\"1\" fillId=\"4\" borderId=\"0\" "
      "xfId=\"0\" applyFont=\"1\" applyFill=\"1\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" "
      "borderId=\"0\" xfId=\"0\" applyAlignment=\"1\"><alignment "
      "wrapText=\"1\"/></xf></cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" "
      "xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>",
      kMain, fills);
}

constexpr size_t kMaxSheetName = 31;  // characters, Excel's limit
// Excel's list, and what XML would need to escape.
constexpr std::string_view kNotInNames = "[]:*?/\\&<>\"";

// "A", "B", ..., "Z", "AA", ...
std::string ColumnName(size_t column) {
  std::string name;
  for (size_t rest = column + 1; rest > 0; rest = (rest - 1) / 26) {
    name.insert(name.begin(), static_cast<char>('A' + (rest - 1) % 26));
  }
  return name;
}

}  // namespace

struct Writer::Impl {
  zip::StreamWriter archive;
  std::vector<std::string> header;
  std::vector<std::string> columns;  // names of the columns used so far
  std::string text;                  // of the sheet, not yet in the archive
  std::string row_number;
  std::string_view style;  // attribute of the current row's cells
  uint32_t next_row = 1;
  size_t column = 0;
  std::vector<std::string> sheets;  // their names
  std::string sheet_name;           // of the sheets begun by name; empty: "Sheet"
  int parts = 0;                    // sheets of this name
  Look look = Look::kPlain;
  bool row_open = false;

  explicit Impl(zip::StreamWriter writer) : archive(std::move(writer)) {}

  Status Flush() {
    PL_TRY(archive.Write(text));
    text.clear();
    return {};
  }

  void StartRow(std::string_view cell_style) {
    if (row_open) text += "</row>";
    row_open = true;
    row_number = std::to_string(next_row++);
    text.append("<row r=\"").append(row_number).append("\">");
    style = cell_style;
    column = 0;
  }

  void StartCell() { StartCell(style); }
  void StartCell(std::string_view with_style) {
    if (column == columns.size()) columns.push_back(ColumnName(column));
    text.append("<c r=\"").append(columns[column++]).append(row_number).append("\"");
    text += with_style;
  }

  void AppendTextCell(std::string_view content) {
    const bool wraps = look == Look::kTable && content.find('\n') != std::string_view::npos;
    StartCell(wraps ? kWrappedStyle : style);
    text += " t=\"inlineStr\"><is>";
    AppendSheetText(content, text);
    text += "</is></c>";
  }

  Status EndSheet() {
    if (row_open) text += "</row>";
    row_open = false;
    text += kRowsEnd;
    if (look == Look::kTable && !header.empty()) {
      text +=
          fmt::format("<autoFilter ref=\"A1:{}{}\"/>", ColumnName(header.size() - 1), next_row - 1);
    }
    text += kSheetTail;
    return Flush();
  }

  // Ends the sheet before.
  Status AddSheet() {
    if (!sheets.empty()) PL_TRY(EndSheet());
    return OpenSheet();
  }

  Status OpenSheet() {
    std::string name = sheet_name.empty() ? "Sheet" : sheet_name;
    if (++parts > 1) {
      name = fmt::format("{}{}part_{}", sheet_name, sheet_name.empty() ? "" : "_", parts);
    }
    if (name.size() > kMaxSheetName || name.find_first_of(kNotInNames) != std::string::npos ||
        std::ranges::find(sheets, name) != sheets.end()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("sheet {}: the name is taken, longer than {} characters, or has one "
                               "of {}",
                               name, kMaxSheetName, kNotInNames));
    }
    sheets.push_back(std::move(name));
    PL_TRY(archive.Begin(fmt::format("xl/worksheets/sheet{}.xml", sheets.size())));
    text.append(kDeclaration).append(kSheetHead);
    text.append(look == Look::kTable ? kFrozen : "").append(kRows);
    next_row = 1;
    StartRow(look == Look::kTable ? kHeaderStyle : "");
    for (const std::string& cell : header) AppendTextCell(cell);
    return {};
  }

  Status AddMember(std::string_view name, const std::string& content) {
    PL_TRY(archive.Begin(name));
    PL_TRY(archive.Write(kDeclaration));
    return archive.Write(content);
  }

  // The members that name the sheets.
  Status AddWorkbook() {
    std::string types, names, relations;
    for (size_t i = 1; i <= sheets.size(); ++i) {
      types += fmt::format(
          "<Override PartName=\"/xl/worksheets/sheet{}.xml\" ContentType=\"{}.worksheet+xml\"/>", i,
          kType);
      names +=
          fmt::format("<sheet name=\"{}\" sheetId=\"{}\" r:id=\"rId{}\"/>", sheets[i - 1], i, i);
      relations += fmt::format(
          "<Relationship Id=\"rId{}\" Type=\"{}/worksheet\" Target=\"worksheets/sheet{}.xml\"/>", i,
          kOffice, i);
    }
    PL_TRY(AddMember("xl/styles.xml", Styles()));
    PL_TRY(AddMember("xl/workbook.xml",
                     fmt::format("<workbook xmlns=\"{}\" xmlns:r=\"{}\"><sheets>{}</sheets>"
                                 "</workbook>",
                                 kMain, kOffice, names)));
    PL_TRY(AddMember("xl/_rels/workbook.xml.rels",
                     fmt::format("<Relationships xmlns=\"{}/relationships\">{}<Relationship "
                                 "Id=\"rId{}\" Type=\"{}/styles\" Target=\"styles.xml\"/>"
                                 "</Relationships>",
                                 kPackage, relations, sheets.size() + 1, kOffice)));
    PL_TRY(AddMember("_rels/.rels",
                     fmt::format("<Relationships xmlns=\"{}/relationships\"><Relationship "
                                 "Id=\"rId1\" Type=\"{}/officeDocument\" "
                                 "Target=\"xl/workbook.xml\"/></Relationships>",
                                 kPackage, kOffice)));
    return AddMember(
        "[Content_Types].xml",
        fmt::format("<Types xmlns=\"{}/content-types\"><Default Extension=\"rels\" "
                    "ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>"
                    "<Default Extension=\"xml\" ContentType=\"application/xml\"/><Override "
                    "PartName=\"/xl/workbook.xml\" ContentType=\"{}.sheet.main+xml\"/>{}<Override "
                    "PartName=\"/xl/styles.xml\" ContentType=\"{}.styles+xml\"/></Types>",
                    kPackage, kType, types, kType));
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
  PL_TRY_ASSIGN(zip::StreamWriter archive, zip::StreamWriter::Create(path));
  return Writer(std::make_unique<Impl>(std::move(archive)));
}

Status Writer::BeginSheet(std::string_view name, std::span<const std::string_view> header,
                          Look look) {
  if (!impl_->sheets.empty()) PL_TRY(impl_->EndSheet());
  impl_->sheet_name = name;
  impl_->look = look;
  impl_->parts = 0;
  impl_->header.assign(header.begin(), header.end());
  return impl_->OpenSheet();
}

Status Writer::BeginRow(Fill fill) {
  if (impl_->text.size() >= kFlushBytes) PL_TRY(impl_->Flush());
  const bool full = impl_->next_row > kMaxRows || impl_->archive.member_bytes() > kSheetBytes;
  if (full) PL_TRY(impl_->AddSheet());
  constexpr std::string_view kStyles[] = {"", " s=\"1\"", " s=\"2\""};
  impl_->StartRow(kStyles[static_cast<size_t>(fill)]);
  return {};
}

Status Writer::Number(double value) {
  impl_->StartCell();
  impl_->text += "><v>";
  // 16 digits, as spreadsheets show them; whole numbers get no point.
  fmt::format_to(std::back_inserter(impl_->text), "{:.16G}", value);
  impl_->text += "</v></c>";
  return {};
}

Status Writer::Text(std::string_view text) {
  if (!text.empty()) {
    impl_->AppendTextCell(text);
  } else if (impl_->style.empty()) {
    ++impl_->column;  // blank cells exist only where they carry a fill
    if (impl_->column > impl_->columns.size()) {
      impl_->columns.push_back(ColumnName(impl_->column - 1));
    }
  } else {
    impl_->StartCell();
    impl_->text += "/>";
  }
  return {};
}

Status Writer::Close() {
  PL_TRY(impl_->EndSheet());
  PL_TRY(impl_->AddWorkbook());
  return impl_->archive.Close();
}

}  // namespace plumbline::xlsx
