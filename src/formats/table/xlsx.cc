#include "formats/table/xlsx.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/zip.h"
#include "formats/table/xml_parser.h"

namespace plumbline::xlsx {

namespace {

constexpr size_t kMostBytes = 32767;

// Bytes of the character of XML at the start of `text`; 0 if there is none.
size_t CharacterBytes(std::string_view text) {
  const bool no_character = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
  return no_character ? 0 : Utf8CharacterBytes(text);
}

// "_x" with four hexadecimal digits and "_": readers would take it for an escape.
bool LooksLikeEscape(std::string_view text) {
  if (text.size() < 7 || text[1] != 'x' || text[6] != '_') return false;
  return text.substr(2, 4).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F && c != '&' && c != '<' && c != '>' && c != '_';
}

// What stands at the start of `text` and is not plain; returns the bytes consumed.
size_t AppendSpecial(std::string_view text, std::string& out) {
  const char c = text[0];
  if (c == '&' || c == '<' || c == '>') {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;";
    return 1;
  }
  if (c == '_') {
    out += LooksLikeEscape(text) ? "_x005F_" : "_";
    return 1;
  }
  if (c == '\t' || c == '\n' || c == 0x7F) {
    out += c;
    return 1;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    out += fmt::format("_x{:04X}_", static_cast<unsigned char>(c));
    return 1;
  }
  const size_t size = CharacterBytes(text);
  out += size == 0 ? kReplacementCharacter : text.substr(0, size);
  return size == 0 ? 1 : size;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

void AppendSheetText(std::string_view text, std::string& out) {
  text = Utf8Beginning(text, kMostBytes);
  const bool keep = !text.empty() && (IsBlank(text.front()) || IsBlank(text.back()));
  out += keep ? "<t xml:space=\"preserve\">" : "<t>";
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    if (IsPlain(text[at])) {
      ++at;
      continue;
    }
    out.append(text, from, at - from);
    at += AppendSpecial(text.substr(at), out);
    from = at;
  }
  out.append(text, from).append("</t>");
}

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

// Cell formats 0 (plain), 1 (yellow) and 2 (red), in the order of Fill, whose grey is 5; 3 is bold
// on grey, 4 has line breaks.
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
      "</cellStyleXfs><cellXfs count=\"6\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" "
      "borderId=\"0\" xfId=\"0\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"2\" borderId=\"0\" "
      "xfId=\"0\" applyFill=\"1\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"3\" borderId=\"0\" "
      "xfId=\"0\" applyFill=\"1\"/><xf numFmtId=\"0\" fontId=\"1\" fillId=\"4\" borderId=\"0\" "
      "xfId=\"0\" applyFont=\"1\" applyFill=\"1\"/><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" "
      "borderId=\"0\" xfId=\"0\" applyAlignment=\"1\"><alignment "
      "wrapText=\"1\"/></xf><xf numFmtId=\"0\" fontId=\"0\" fillId=\"4\" borderId=\"0\" xfId=\"0\" "
      "applyFill=\"1\"/></cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" "
      "builtinId=\"0\"/></cellStyles></styleSheet>",
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
    // A filled cell keeps its colour.
    const bool wraps =
        look == Look::kTable && style.empty() && content.find('\n') != std::string_view::npos;
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
  constexpr std::string_view kStyles[] = {"", " s=\"1\"", " s=\"2\"", " s=\"5\""};
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

namespace {

constexpr uint64_t kMaxXmlBytes = uint64_t{4} << 30;
constexpr size_t kMaxColumns = 16384;  // of the format

// The namespaces of a workbook's tables: of ECMA-376, and of its strict form. Tables in none are
// read as well.
constexpr std::string_view kSpaces[] = {"",
                                        "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
                                        "http://purl.oclc.org/ooxml/spreadsheetml/main"};

// Column of a reference such as "AB12"; nothing when it is none.
std::optional<size_t> ColumnOf(std::string_view reference) {
  size_t column = 0;
  for (const char c : reference) {
    if (c < 'A' || c > 'Z') break;
    column = column * 26 + static_cast<size_t>(c - 'A') + 1;
    if (column > kMaxColumns) return std::nullopt;
  }
  if (column == 0) return std::nullopt;
  return column - 1;
}

// Reads one part of a workbook: what is inside elements of other namespaces (extensions of its
// writer) and inside phonetic hints is no part of a table.
class PartHandler : public xml::Handler {
 public:
  explicit PartHandler(std::string_view root) : root_(root) {}

  Status Begin(const xml::Element& element) final {
    const bool is_table = std::ranges::find(kSpaces, element.space()) != std::end(kSpaces);
    if (std::exchange(is_first_, false) && (!is_table || element.name() != root_)) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("its root is {} of namespace '{}' (expected {})", element.name(),
                               element.space(), root_));
    }
    if (skipped_depth_ > 0 || !is_table || element.name() == "rPh") {
      ++skipped_depth_;
      return {};
    }
    open_.emplace_back(element.name());
    return BeginElement(element);
  }
  Status End() final {
    if (skipped_depth_ > 0) {
      --skipped_depth_;
      return {};
    }
    const std::string name = std::move(open_.back());
    open_.pop_back();
    return EndElement(name);
  }
  void Text(std::string_view piece) final {
    if (skipped_depth_ == 0 && IsTextOf(open_.back())) text_ += piece;
  }

 protected:
  virtual Status BeginElement(const xml::Element& element) = 0;
  virtual Status EndElement(std::string_view name) = 0;
  // Whether the characters of the innermost element belong to the text.
  [[nodiscard]] virtual bool IsTextOf(std::string_view name) const = 0;

  std::string text_;

 private:
  std::string_view root_;
  bool is_first_ = true;
  size_t skipped_depth_ = 0;  // elements that have begun inside what is skipped
  std::vector<std::string> open_;
};

// xl/sharedStrings.xml
class SharedTextsHandler final : public PartHandler {
 public:
  explicit SharedTextsHandler(std::vector<std::string>& texts)
      : PartHandler("sst"), texts_(texts) {}

 private:
  Status BeginElement(const xml::Element& element) override {
    if (element.name() == "si") text_.clear();
    return {};
  }
  Status EndElement(std::string_view name) override {
    if (name == "si") texts_.push_back(text_);
    return {};
  }
  [[nodiscard]] bool IsTextOf(std::string_view name) const override { return name == "t"; }

  std::vector<std::string>& texts_;
};

// xl/worksheets/sheet1.xml and so on.
class SheetHandler final : public PartHandler {
 public:
  SheetHandler(size_t sheet, const std::vector<std::string>& shared, const RowVisitor& visit)
      : PartHandler("worksheet"), sheet_(sheet), shared_(shared), visit_(visit) {}

  [[nodiscard]] bool is_done() const override { return is_done_; }

 private:
  Status BeginElement(const xml::Element& element) override {
    if (element.name() == "row") {
      if (is_in_row_) return Damaged("a row inside a row");
      is_in_row_ = true;
      cells_.clear();
    } else if (is_in_row_ && element.name() == "c") {
      return BeginCell(element);
    } else if (is_in_cell_ && element.name() == "v") {
      has_value_ = has_value_ || !is_inline_;
    }
    return {};
  }

  Status EndElement(std::string_view name) override {
    if (is_in_cell_ && name == "c") {
      is_in_cell_ = false;
      return EndCell();
    }
    if (name == "row") {
      is_in_row_ = false;
      is_done_ = !visit_(sheet_, cells_);
    }
    return {};
  }

  [[nodiscard]] bool IsTextOf(std::string_view name) const override {
    return is_in_cell_ && name == (is_inline_ ? "t" : "v");
  }

  Status BeginCell(const xml::Element& element) {
    if (is_in_cell_) return Damaged("a cell inside a cell");
    const size_t at = ColumnOf(element.Attribute("r")).value_or(cells_.size());
    if (at < cells_.size() || at >= kMaxColumns) return Damaged("cells out of order");
    cells_.resize(at + 1);
    type_ = element.Attribute("t");
    is_inline_ = type_ == "inlineStr";
    is_in_cell_ = true;
    has_value_ = false;
    text_.clear();
    return {};
  }

  Status EndCell() {
    Cell& cell = cells_.back();
    cell.text = std::move(text_);
    text_.clear();
    if (is_inline_ || !has_value_) return {};
    cell.is_number = type_.empty() || type_ == "n";
    if (type_ == "b") cell.text = cell.text == "1" ? "True" : "False";
    if (type_ != "s") return {};
    const std::optional<int64_t> index = ParseNatural(cell.text);
    if (!index || static_cast<uint64_t>(*index) >= shared_.size()) {
      return Damaged("no such shared text");
    }
    cell.text = shared_[static_cast<size_t>(*index)];
    return {};
  }

  static Error Damaged(std::string_view what) {
    return Error(ErrorCode::kCorrupt, std::string(what));
  }

  size_t sheet_;
  const std::vector<std::string>& shared_;
  const RowVisitor& visit_;
  std::vector<Cell> cells_;
  std::string type_;  // of the cell that is read
  bool is_in_row_ = false, is_in_cell_ = false, is_inline_ = false, has_value_ = false;
  bool is_done_ = false;
};

// The parts of one opened workbook.
class Workbook {
 public:
  static Result<Workbook> Open(const std::string& path) {
    PL_TRY_ASSIGN(auto file, MappedFile::Open(path));
    Result<std::vector<zip::Member>> members = zip::ReadDirectory(file->bytes());
    if (!members) return Error(ErrorCode::kCorrupt, NotAWorkbook(path, members.error().message()));
    Workbook book(path, std::move(file), std::move(*members));
    PL_TRY(book.ReadSharedTexts());
    book.FindSheets();
    if (book.sheets_.empty()) return Error(ErrorCode::kCorrupt, NotAWorkbook(path, "no sheet"));
    return book;
  }

  // False when the visitor wants no more.
  Result<bool> ReadSheet(size_t sheet, const RowVisitor& visit) const {
    SheetHandler handler(sheet, shared_, visit);
    PL_TRY(ReadPart(*sheets_[sheet].second, handler));
    return !handler.is_done();
  }
  [[nodiscard]] size_t sheet_count() const { return sheets_.size(); }

 private:
  Workbook(std::string path, std::shared_ptr<const MappedFile> file,
           std::vector<zip::Member> members)
      : path_(std::move(path)), file_(std::move(file)), members_(std::move(members)) {}

  static std::string NotAWorkbook(const std::string& path, std::string_view why) {
    return fmt::format("{}: not a readable workbook ({})", path, why);
  }
  Status ReadPart(const zip::Member& member, xml::Handler& handler) const {
    Result<std::string> text = zip::Extract(file_->bytes(), member, kMaxXmlBytes);
    if (!text) return text.error().In(path_);
    const Status read = xml::Parse(*text, handler);
    if (read) return {};
    return Error(read.error().code(),
                 fmt::format("{}: damaged ({}: {})", path_, member.name, read.error().message()));
  }

  void FindSheets() {
    constexpr std::string_view kFolder = "xl/worksheets/", kEnd = ".xml";
    for (const zip::Member& member : members_) {
      std::string_view name = member.name;
      if (!name.starts_with(kFolder) || !name.ends_with(kEnd)) continue;
      name = name.substr(kFolder.size(), name.size() - kFolder.size() - kEnd.size());
      if (name.find('/') != std::string_view::npos) continue;
      // The digits at its end; a writer of one sheet may call it sheet.xml.
      const std::string_view number = name.substr(name.find_last_not_of("0123456789") + 1);
      sheets_.emplace_back(ParseNatural(number).value_or(0), &member);
    }
    std::stable_sort(sheets_.begin(), sheets_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  Status ReadSharedTexts() {
    const auto found = std::find_if(members_.begin(), members_.end(), [](const zip::Member& m) {
      return m.name == "xl/sharedStrings.xml";
    });
    if (found == members_.end()) return {};
    SharedTextsHandler handler(shared_);
    return ReadPart(*found, handler);
  }

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<zip::Member> members_;
  std::vector<std::pair<int64_t, const zip::Member*>> sheets_;
  std::vector<std::string> shared_;
};

}  // namespace

Status ReadRows(const std::string& path, const RowVisitor& visit) {
  PL_TRY_ASSIGN(const Workbook book, Workbook::Open(path));
  for (size_t sheet = 0; sheet < book.sheet_count(); ++sheet) {
    PL_TRY_ASSIGN(const bool more, book.ReadSheet(sheet, visit));
    if (!more) break;
  }
  return {};
}

}  // namespace plumbline::xlsx
