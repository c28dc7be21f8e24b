#include "formats/xlsx_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text_parts.h"
#include "formats/xml_parser.h"
#include "formats/zip.h"

namespace plumbline::xlsx {
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
