#include "formats/xlsx_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/utf8.h"
#include "formats/zip.h"

namespace plumbline::xlsx {
namespace {

constexpr uint64_t kMaxXmlBytes = uint64_t{4} << 30;
constexpr size_t kMaxColumns = 16384;  // of the format
constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// The character that `name` (between & and ;) stands for; nothing when it is none.
std::optional<uint32_t> Entity(std::string_view name) {
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [word, character] : kNamed) {
    if (name == word) return static_cast<uint32_t>(character);
  }
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const bool hexadecimal = name.starts_with('x');
  if (hexadecimal) name.remove_prefix(1);
  uint32_t code = 0;
  const auto parsed =
      std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
  if (!whole || code > kMaxCodePoint) return std::nullopt;
  return code;
}

void AppendDecoded(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const size_t amp = text.find('&', at);
    if (amp == std::string_view::npos) {
      out += text.substr(at);
      return;
    }
    out += text.substr(at, amp - at);
    const size_t end = text.find(';', amp);
    const auto code =
        end == std::string_view::npos ? std::nullopt : Entity(text.substr(amp + 1, end - amp - 1));
    if (code) {
      AppendUtf8(*code, out);
      at = end + 1;
    } else {
      out += '&';
      at = amp + 1;
    }
  }
}

// One element: <name attributes>body</name>. Elements of one name never nest in these files.
struct Element {
  std::string_view attributes, body;
};

// Finds the elements of one name front to back.
class Elements {
 public:
  Elements(std::string_view xml, std::string_view name) : xml_(xml), name_(name) {}

  // False at the end and at an element that never ends (then damaged() is true).
  bool Next(Element& element) {
    const std::string open = fmt::format("<{}", name_);
    for (size_t at = xml_.find(open, at_); at != std::string_view::npos;
         at = xml_.find(open, at + 1)) {
      const size_t behind = at + open.size();
      if (behind >= xml_.size() ||
          std::string_view(" \t\r\n/>").find(xml_[behind]) == std::string_view::npos) {
        continue;  // another name that begins alike
      }
      return Take(behind, element);
    }
    return false;
  }
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  bool Take(size_t behind, Element& element) {
    const size_t close = xml_.find('>', behind);
    damaged_ = close == std::string_view::npos;
    if (damaged_) return false;
    const bool is_empty = xml_[close - 1] == '/';
    element.attributes = xml_.substr(behind, close - behind - (is_empty ? 1 : 0));
    element.body = {};
    at_ = close + 1;
    if (is_empty) return true;
    const std::string end = fmt::format("</{}>", name_);
    const size_t stop = xml_.find(end, at_);
    damaged_ = stop == std::string_view::npos;
    if (damaged_) return false;
    element.body = xml_.substr(at_, stop - at_);
    at_ = stop + end.size();
    return true;
  }

  std::string_view xml_, name_;
  size_t at_ = 0;
  bool damaged_ = false;
};

std::string_view Attribute(std::string_view attributes, std::string_view name) {
  const std::string key = fmt::format(" {}=\"", name);
  const size_t at = attributes.find(key);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + key.size();
  const size_t end = attributes.find('"', begin);
  return end == std::string_view::npos ? std::string_view() : attributes.substr(begin, end - begin);
}

// The text of all <t> in `body`; those of phonetic hints are not part of it.
std::string TextOf(std::string_view body) {
  std::string text;
  Elements parts(body.substr(0, body.find("<rPh")), "t");
  for (Element part; parts.Next(part);) AppendDecoded(part.body, text);
  return text;
}

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
    PL_TRY_ASSIGN(const std::string xml, Extract(*sheets_[sheet].second));
    Elements rows(xml, "row");
    std::vector<Cell> cells;
    for (Element row; rows.Next(row);) {
      PL_TRY(ReadCells(row.body, cells));
      if (!visit(sheet, cells)) return false;
    }
    if (rows.damaged()) return Damaged("a row never ends");
    return true;
  }
  [[nodiscard]] size_t sheet_count() const { return sheets_.size(); }

 private:
  Workbook(std::string path, std::shared_ptr<const MappedFile> file,
           std::vector<zip::Member> members)
      : path_(std::move(path)), file_(std::move(file)), members_(std::move(members)) {}

  static std::string NotAWorkbook(const std::string& path, std::string_view why) {
    return fmt::format("{}: not a readable workbook ({})", path, why);
  }
  [[nodiscard]] Error Damaged(std::string_view what) const {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: damaged ({})", path_, what));
  }
  [[nodiscard]] Result<std::string> Extract(const zip::Member& member) const {
    Result<std::string> text = zip::Extract(file_->bytes(), member, kMaxXmlBytes);
    if (!text) return text.error().In(path_);
    return text;
  }

  void FindSheets() {
    constexpr std::string_view kFolder = "xl/worksheets/sheet", kEnd = ".xml";
    for (const zip::Member& member : members_) {
      std::string_view name = member.name;
      if (!name.starts_with(kFolder) || !name.ends_with(kEnd)) continue;
      name = name.substr(kFolder.size(), name.size() - kFolder.size() - kEnd.size());
      size_t number = 0;
      const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
      if (parsed.ec == std::errc()) sheets_.emplace_back(number, &member);
    }
    std::sort(sheets_.begin(), sheets_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  Status ReadSharedTexts() {
    const auto found = std::find_if(members_.begin(), members_.end(), [](const zip::Member& m) {
      return m.name == "xl/sharedStrings.xml";
    });
    if (found == members_.end()) return {};
    PL_TRY_ASSIGN(const std::string xml, Extract(*found));
    Elements items(xml, "si");
    for (Element item; items.Next(item);) shared_.push_back(TextOf(item.body));
    if (items.damaged()) return Damaged("a shared text never ends");
    return {};
  }

  Status ReadCells(std::string_view row, std::vector<Cell>& cells) const {
    cells.clear();
    Elements elements(row, "c");
    for (Element element; elements.Next(element);) {
      const auto column = ColumnOf(Attribute(element.attributes, "r"));
      const size_t at = column.value_or(cells.size());
      if (at < cells.size() || at >= kMaxColumns) return Damaged("cells out of order");
      cells.resize(at + 1);
      PL_TRY(ReadCell(element, cells[at]));
    }
    if (elements.damaged()) return Damaged("a cell never ends");
    return {};
  }

  Status ReadCell(const Element& element, Cell& cell) const {
    const std::string_view type = Attribute(element.attributes, "t");
    if (type == "inlineStr") {
      cell.text = TextOf(element.body);
      return {};
    }
    Elements values(element.body, "v");
    Element value;
    if (!values.Next(value)) return {};
    AppendDecoded(value.body, cell.text);
    cell.is_number = type.empty() || type == "n";
    if (type == "b") cell.text = cell.text == "1" ? "True" : "False";
    if (type != "s") return {};
    size_t index = 0;
    const char* const end = cell.text.data() + cell.text.size();
    const auto parsed = std::from_chars(cell.text.data(), end, index);
    if (parsed.ec != std::errc() || index >= shared_.size()) return Damaged("no such shared text");
    cell.text = shared_[index];
    return {};
  }

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<zip::Member> members_;
  std::vector<std::pair<size_t, const zip::Member*>> sheets_;
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
