#include "formats/sqlite/sqlite_tree.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/text/text_parts.h"

namespace plumbline::sqlite {

namespace {

// Types of the file format; 13 + 2n is a text of n bytes.
constexpr uint64_t kNull = 0, kReal = 7, kZero = 8, kOne = 9, kText = 13;

void AppendBigEndian(uint64_t value, size_t bytes, std::string& out) {
  char text[sizeof(value)];
  for (int i = 7; i >= 0; --i, value >>= 8) text[i] = static_cast<char>(value);
  out.append(text + sizeof(text) - bytes, bytes);
}

// Bytes of an integer that is stored as short as it fits, and the type of that length.
struct IntegerForm {
  size_t bytes;
  uint64_t type;
};

IntegerForm FormOf(int64_t value) {
  constexpr IntegerForm kForms[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {6, 5}};
  if (value == 0 || value == 1) return {0, value == 0 ? kZero : kOne};
  for (const IntegerForm& form : kForms) {
    const int64_t most = (int64_t{1} << (8 * form.bytes - 1)) - 1;
    if (value >= -most - 1 && value <= most) return form;
  }
  return {8, 6};
}

}  // namespace

void AppendVarint(uint64_t value, std::string& out) {
  if (value < 0x80) {
    out += static_cast<char>(value);
    return;
  }
  auto groups = static_cast<int>((std::bit_width(value) + 6) / 7);
  const bool is_longest = groups > 8;  // then the last byte has eight bits
  if (is_longest) groups = 8;
  for (int i = groups - 1; i >= 0; --i) {
    const int shift = 7 * i + (is_longest ? 8 : 0);
    const uint64_t more = i > 0 || is_longest ? 0x80 : 0;
    out += static_cast<char>((value >> shift & 0x7F) | more);
  }
  if (is_longest) out += static_cast<char>(value & 0xFF);
}

void PackedRows::Clear() {
  bytes_.clear();
  ends_.clear();
}

void PackedRows::AddCell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) {
    const size_t before = values_.size();
    if (IsUtf8(*text)) {
      values_ += *text;
    } else {
      values_ += ReplaceInvalidUtf8(*text);
    }
    AppendVarint(kText + 2 * (values_.size() - before), types_);
    return;
  }
  if (const auto* integer = std::get_if<int64_t>(&cell)) {
    const IntegerForm form = FormOf(*integer);
    types_ += static_cast<char>(form.type);
    AppendBigEndian(static_cast<uint64_t>(*integer), form.bytes, values_);
    return;
  }
  const auto* real = std::get_if<double>(&cell);
  if (real == nullptr || std::isnan(*real)) {
    types_ += static_cast<char>(kNull);
    return;
  }
  types_ += static_cast<char>(kReal);
  AppendBigEndian(std::bit_cast<uint64_t>(*real), sizeof(*real), values_);
}

void PackedRows::Add(std::span<const Cell> cells) {
  types_.assign(1, static_cast<char>(kNull));
  values_.clear();
  for (const Cell& cell : cells.subspan(1)) AddCell(cell);
  // How long the types are stands before them and counts itself: a byte for up to 126 others, and
  // never more than two.
  AppendVarint(types_.size() + (types_.size() < 127 ? 1 : 2), bytes_);
  bytes_ += types_;
  bytes_ += values_;
  ends_.push_back(bytes_.size());
}

namespace {

constexpr char kLeaf = 13, kInterior = 5;
constexpr size_t kLeafHead = 8, kInteriorHead = 12, kPlaceBytes = 2;
// Most bytes of a record that a leaf holds; of longer ones at least kLeastHere, and as many as
// leave whole overflow pages.
constexpr size_t kMostHere = kPageBytes - 35;
constexpr size_t kLeastHere = (kPageBytes - 12) * 32 / 255 - 23;
constexpr size_t kOverflowBytes = kPageBytes - 4;  // behind the number of the next page
// A child's number and key.
constexpr size_t kMostInteriorCell = 4 + 9;
constexpr size_t kMostChildren =
    (kPageBytes - kInteriorHead) / (kMostInteriorCell + kPlaceBytes) + 1;
// SQLite locks bytes of this page, which holds nothing.
constexpr uint32_t kLockPage = (1U << 30) / kPageBytes + 1;
constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr size_t kPageCountAt = 28;  // in the head of the database

void PutU16(size_t value, char* out) {
  out[0] = static_cast<char>(value >> 8);
  out[1] = static_cast<char>(value);
}

void PutU32(uint32_t value, char* out) {
  PutU16(value >> 16, out);
  PutU16(value & 0xFFFF, out + 2);
}

size_t BytesHere(size_t record) {
  if (record <= kMostHere) return record;
  const size_t here = kLeastHere + (record - kLeastHere) % kOverflowBytes;
  return here <= kMostHere ? here : kLeastHere;
}

}  // namespace

// --- pages -----------------------------------------------------------------------------------

uint32_t PageFile::After(uint32_t page) { return page + 1 == kLockPage ? page + 2 : page + 1; }

Result<PageFile> PageFile::Open(AtomicFile& file, uint32_t pages) {
  PL_TRY(file.Skip(pages * kPageBytes));
  return PageFile(file, pages);
}

Status PageFile::Append(std::string_view page) {
  if (next() != last_ + 1) pending_.append(kPageBytes, '\0');
  pending_ += page;
  last_ = next();
  if (pending_.size() < kFlushBytes) return {};
  PL_TRY(file_->Write(pending_));
  pending_.clear();
  return {};
}

Status PageFile::Replace(uint32_t number, std::string_view page) {
  return file_->WriteAt(page, (number - 1) * kPageBytes);
}

Status PageFile::Finish() {
  PL_TRY(file_->Write(pending_));
  char count[4];
  PutU32(last_, count);
  return file_->WriteAt(std::string_view(count, sizeof(count)), kPageCountAt);
}

// --- tables ----------------------------------------------------------------------------------

TableTree::TableTree(PageFile& file, uint32_t root) : file_(file), root_(root) { ClearPage(kLeaf); }

void TableTree::ClearPage(char type) {
  page_.assign(kPageBytes, '\0');
  page_[0] = type;
  head_bytes_ = type == kLeaf ? kLeafHead : kInteriorHead;
  cells_ = 0;
  begin_of_cells_ = kPageBytes;
  PutU16(begin_of_cells_, page_.data() + 5);
}

void TableTree::PutCell(std::string_view cell) {
  begin_of_cells_ -= cell.size();
  std::memcpy(page_.data() + begin_of_cells_, cell.data(), cell.size());
  PutU16(begin_of_cells_, page_.data() + head_bytes_ + kPlaceBytes * cells_);
  ++cells_;
  PutU16(cells_, page_.data() + 3);
  PutU16(begin_of_cells_, page_.data() + 5);
}

bool TableTree::HasRoom(size_t cell) const {
  return head_bytes_ + kPlaceBytes * (cells_ + 1) + cell <= begin_of_cells_;
}

Status TableTree::Add(int64_t key, std::string_view record) {
  cell_.clear();
  AppendVarint(record.size(), cell_);
  AppendVarint(static_cast<uint64_t>(key), cell_);
  const size_t here = BytesHere(record.size());
  cell_ += record.substr(0, here);
  if (here < record.size()) {
    char first[4];
    PutU32(file_.next(), first);
    cell_.append(first, sizeof(first));
    PL_TRY(AddOverflow(record.substr(here)));
  }
  if (!HasRoom(cell_.size())) PL_TRY(FlushLeaf());
  PutCell(cell_);
  last_key_ = key;
  return {};
}

Status TableTree::AddOverflow(std::string_view rest) {
  std::string page;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kOverflowBytes);
    rest.remove_prefix(piece.size());
    page.assign(kPageBytes, '\0');
    PutU32(rest.empty() ? 0 : file_.after_next(), page.data());
    std::memcpy(page.data() + 4, piece.data(), piece.size());
    PL_TRY(file_.Append(page));
  }
  return {};
}

Status TableTree::FlushLeaf() {
  children_.push_back({file_.next(), last_key_});
  PL_TRY(file_.Append(page_));
  ClearPage(kLeaf);
  return {};
}

Status TableTree::Finish() {
  if (children_.empty()) return file_.Replace(root_, page_);
  PL_TRY(FlushLeaf());
  while (children_.size() > kMostChildren) PL_TRY(AddLevel());
  FillInterior(children_.data(), children_.data() + children_.size());
  return file_.Replace(root_, page_);
}

// Interior pages of equal numbers of children: none may be without a key.
Status TableTree::AddLevel() {
  const size_t pages = (children_.size() + kMostChildren - 1) / kMostChildren;
  std::vector<Child> level;
  for (size_t k = 0; k < pages; ++k) {
    const size_t begin = children_.size() * k / pages;
    const size_t end = children_.size() * (k + 1) / pages;
    FillInterior(children_.data() + begin, children_.data() + end);
    level.push_back({file_.next(), children_[end - 1].last_key});
    PL_TRY(file_.Append(page_));
  }
  children_ = std::move(level);
  return {};
}

void TableTree::FillInterior(const Child* begin, const Child* end) {
  ClearPage(kInterior);
  for (const Child* child = begin; child != end - 1; ++child) {
    cell_.assign(4, '\0');
    PutU32(child->page, cell_.data());
    AppendVarint(static_cast<uint64_t>(child->last_key), cell_);
    PutCell(cell_);
  }
  PutU32((end - 1)->page, page_.data() + kLeafHead);  // behind what both kinds of page have
}

}  // namespace plumbline::sqlite
