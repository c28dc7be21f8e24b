#include "view/store/result_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/file/file.h"
#include "base/memory/bytes.h"
#include "base/process/parallel.h"
#include "base/text/json_members.h"
#include "view/store/detail_block.h"
#include "view/store/name_index.h"
#include "view/store/store_format.h"

namespace plumbline::view {
namespace {

// Texts one after the other, and where each ends.
struct TextTable {
  std::string_view chars;
  std::span<const uint64_t> ends;

  [[nodiscard]] bool is_good() const {
    return std::ranges::is_sorted(ends) && (ends.empty() ? 0 : ends.back()) <= chars.size();
  }
  [[nodiscard]] std::string_view operator[](size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return chars.substr(begin, ends[i] - begin);
  }
};

Error Corrupt(std::string_view what) {
  return {ErrorCode::kCorrupt, std::string(what) + ". Open the recordings again to make a new one"};
}

}  // namespace

struct ResultStore::Impl {
  std::shared_ptr<const MappedFile> file;
  StoreHeader header;
  std::string etag;
  json::Value facts;
  std::vector<StorePlace> places;
  NodeColumns columns;
  NameIndex names;
  std::span<const uint32_t> by_name, by_order;
  TextTable frames, forms, operations, link_texts;
  TextTable stacks;  // of numbers
  std::vector<std::string_view> form_list, operation_list;
  std::span<const BlockRow> blocks;
  std::string_view details;
  std::span<const LinkRow> links;
  std::span<const EndRow> ends;
  std::span<const uint32_t> ends_by_node;
  KeptAnswers kept;

  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(header.node_count); }

  [[nodiscard]] std::string_view BytesOf(Section section) const {
    const SectionRow& row = header.sections[static_cast<size_t>(section)];
    return AsText(file->bytes()).substr(row.offset, row.size);
  }
  // Requires: CheckSections() found them aligned.
  template <class T>
  [[nodiscard]] std::span<const T> RowsOf(Section section) const {
    const std::string_view bytes = BytesOf(section);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  [[nodiscard]] TextTable TextsOf(Section section) const {
    return {BytesOf(section),
            RowsOf<uint64_t>(static_cast<Section>(static_cast<uint32_t>(section) + 1))};
  }

  Status ReadHeader() {
    const std::span<const std::byte> bytes = file->bytes();
    if (bytes.size() < sizeof(header.magic) ||
        std::memcmp(bytes.data(), kStoreMagic.data(), kStoreMagic.size()) != 0) {
      return Error(ErrorCode::kCorrupt, "no result store of plumb view");
    }
    if (bytes.size() < sizeof(StoreHeader)) return Corrupt("cut: shorter than its header");
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.version != kStoreVersion || header.section_count != kSectionCount) {
      return Corrupt(fmt::format("made by another version of plumbline (format {}, expected {})",
                                 header.version, kStoreVersion));
    }
    if (header.file_size != bytes.size()) {
      return Corrupt(fmt::format("cut: {} bytes (expected {})", bytes.size(), header.file_size));
    }
    etag = fmt::format("{:016x}{:016x}", header.digest_high, header.digest_low);
    return {};
  }

  Status CheckSections() const {
    for (const SectionRow& row : header.sections) {
      const bool fits = row.offset <= header.file_size && row.size <= header.file_size - row.offset;
      if (!fits || row.offset % kSectionAlignment != 0) {
        return Corrupt("damaged: a section lies outside of the file");
      }
    }
    return {};
  }

  // Spans of the columns; all must have one entry per node.
  Status MapColumns() {
    auto section = static_cast<uint32_t>(Section::kFirstColumn);
    bool is_good = header.node_count < kNoNode;
    columns.ForEach([&]<class T>(std::span<const T>& column) {
      column = RowsOf<T>(static_cast<Section>(section++));
      is_good &= column.size() == header.node_count;
    });
    by_name = RowsOf<uint32_t>(Section::kByName);
    by_order = RowsOf<uint32_t>(Section::kByOrder);
    is_good &= by_name.size() == header.node_count && by_order.size() == header.node_count;
    return is_good ? Status() : Corrupt("damaged: a column has another length than the others");
  }

  Status MapTexts() {
    frames = TextsOf(Section::kFrameText);
    stacks = TextsOf(Section::kStackFrames);
    forms = TextsOf(Section::kFormText);
    operations = TextsOf(Section::kOperationText);
    link_texts = TextsOf(Section::kLinkText);
    for (const TextTable* table : {&frames, &stacks, &forms, &operations, &link_texts}) {
      if (!table->is_good()) return Corrupt("damaged: texts end where they should not");
    }
    const std::span<const uint32_t> numbers = RowsOf<uint32_t>(Section::kStackFrames);
    const bool is_good =
        std::ranges::all_of(numbers, [&](uint32_t i) { return i < frames.ends.size(); }) &&
        std::ranges::all_of(stacks.ends, [](uint64_t end) { return end % sizeof(uint32_t) == 0; });
    if (!is_good) return Corrupt("damaged: a call stack with frames that there are not");
    for (size_t i = 0; i < forms.ends.size(); ++i) form_list.push_back(forms[i]);
    for (size_t i = 0; i < operations.ends.size(); ++i) operation_list.push_back(operations[i]);
    blocks = RowsOf<BlockRow>(Section::kDetailBlocks);
    details = BytesOf(Section::kDetails);
    for (const BlockRow& block : blocks) {
      if (block.offset > details.size() || block.packed_size > details.size() - block.offset) {
        return Corrupt("damaged: a block of details lies outside of them");
      }
    }
    return {};
  }

  Status MapNames() {
    PL_TRY_ASSIGN(names, NameIndex::Open(header.name_count, BytesOf(Section::kNameText),
                                         RowsOf<uint64_t>(Section::kNameBlocks),
                                         RowsOf<uint64_t>(Section::kTrigramBitmaps),
                                         RowsOf<uint32_t>(Section::kTrigrams)));
    return {};
  }

  // Graphs cover the nodes in order without gaps.
  Status MapPlaces() {
    uint64_t next = 0;
    const auto takes = [&](uint32_t begin, uint32_t size) {
      if (size == 0) return begin == kNoNode;
      const bool follows = begin == next;
      next += size;
      return follows;
    };
    for (const PlaceRow& row : RowsOf<PlaceRow>(Section::kPlaces)) {
      if (!takes(row.target, row.target_count) || !takes(row.golden, row.golden_count)) {
        return Corrupt("damaged: its ranks overlap");
      }
      places.push_back(
          {row.step, row.rank, row.target, row.target_count, row.golden, row.golden_count});
    }
    return next == header.node_count ? Status() : Corrupt("damaged: nodes of no rank");
  }

  // Every index of the nodes of one graph; `other_begin` and `other_count`: of the other side.
  [[nodiscard]] bool IsGraph(uint32_t begin, uint32_t count, uint32_t other_begin,
                             uint32_t other_count) const {
    const uint64_t end = uint64_t{begin} + count;
    std::atomic<bool> is_good = true;
    constexpr size_t kNodesAtOnce = 1 << 16;
    ParallelBlocks(count, kNodesAtOnce, [&](size_t from, size_t to) {
      bool good = true;
      for (size_t i = begin + from; i < begin + to; ++i) {
        const uint32_t parent = columns.parent[i];
        const uint64_t last = i + columns.size[i];
        good &= columns.size[i] > 0 && last <= end;
        if (i == begin) {
          good &= parent == kNoNode && last == end;
        } else {
          good &= parent >= begin && parent < i;
          good &= good && last <= uint64_t{parent} + columns.size[parent];
        }
        good &= columns.order[i] < count && columns.children[i] < columns.size[i];
        const uint32_t partner = columns.partner[i];
        good &=
            partner == kNoNode || (partner >= other_begin && partner - other_begin < other_count);
      }
      if (!good) is_good = false;
    });
    return is_good;
  }

  [[nodiscard]] bool AreNumbersGood(size_t i) const {
    const uint64_t detail = columns.detail[i];
    return columns.name[i] < names.size() && columns.stack[i] < stacks.ends.size() &&
           columns.form[i] < form_list.size() && columns.operation[i] < operation_list.size() &&
           (detail == kNoDetail || detail >> 32 < blocks.size()) &&
           columns.type[i] < kStoredTypes && columns.direction[i] < kDirections &&
           columns.level[i] < kNodeLevels && columns.worst[i] < kNodeLevels &&
           columns.overflow[i] < kStoredOverflows && by_name[i] < count() && by_order[i] < count();
  }

  Status CheckNodes() const {
    for (const StorePlace& place : places) {
      const bool is_good = (place.target_count == 0 || IsGraph(place.target, place.target_count,
                                                               place.golden, place.golden_count)) &&
                           (place.golden_count == 0 || IsGraph(place.golden, place.golden_count,
                                                               place.target, place.target_count));
      if (!is_good) return Corrupt("damaged: its nodes are no trees");
    }
    std::atomic<bool> is_good = true;
    constexpr size_t kNodesAtOnce = 1 << 16;
    ParallelBlocks(count(), kNodesAtOnce, [&](size_t from, size_t to) {
      bool good = true;
      for (size_t i = from; i < to; ++i) good &= AreNumbersGood(i);
      if (!good) is_good = false;
    });
    return is_good ? Status() : Corrupt("damaged: a node refers to what there is not");
  }

  Status MapLinks() {
    links = RowsOf<LinkRow>(Section::kLinks);
    ends = RowsOf<EndRow>(Section::kLinkEnds);
    ends_by_node = RowsOf<uint32_t>(Section::kEndsByNode);
    const size_t texts = link_texts.ends.size();
    bool is_good = ends_by_node.size() == ends.size();
    for (const LinkRow& link : links) {
      is_good &= uint64_t{link.first_end} + link.end_count <= ends.size() && link.key < texts;
    }
    for (const EndRow& end : ends) {
      is_good &= end.node < count() && end.link < links.size() && end.mismatch < texts &&
                 end.role < kStoredRoles;
    }
    for (const uint32_t end : ends_by_node) is_good &= end < ends.size();
    return is_good ? Status() : Corrupt("damaged: a link between ranks leads nowhere");
  }

  Status Read() {
    PL_TRY(ReadHeader());
    PL_TRY(CheckSections());
    PL_TRY(MapColumns());
    PL_TRY(MapTexts());
    PL_TRY(MapNames());
    PL_TRY(MapPlaces());
    PL_TRY(CheckNodes());
    PL_TRY(MapLinks());
    Result<json::Value> read = json::Value::Parse(BytesOf(Section::kFacts));
    if (!read || !read->is_object()) return Corrupt("damaged: its facts are no JSON object");
    facts = std::move(*read);
    return {};
  }
};

std::string_view StoredTypeName(StoredType type) {
  static constexpr std::string_view kNames[kStoredTypes] = {"module", "api", "fused", "group",
                                                            "root"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view NodeLevelName(NodeLevel level) {
  static constexpr std::string_view kNames[kNodeLevels] = {"none", "pass", "warning", "error",
                                                           "unmatched"};
  return kNames[static_cast<size_t>(level)];
}

std::string_view StoredOverflowName(StoredOverflow overflow) {
  static constexpr std::string_view kNames[kStoredOverflows] = {"", "medium", "high", "critical"};
  return kNames[static_cast<size_t>(overflow)];
}

std::string_view StoredRoleName(StoredRole role) {
  static constexpr std::string_view kNames[kStoredRoles] = {"send", "receive", "send_receive"};
  return kNames[static_cast<size_t>(role)];
}

ResultStore::ResultStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ResultStore::~ResultStore() = default;

Result<std::shared_ptr<const ResultStore>> ResultStore::Open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  PL_TRY_ASSIGN(impl->file, MappedFile::Open(path));
  const Status read = impl->Read();
  if (!read) return read.error().In(path);
  return std::shared_ptr<const ResultStore>(new ResultStore(std::move(impl)));
}

std::string_view ResultStore::etag() const { return impl_->etag; }
const json::Value& ResultStore::facts() const { return impl_->facts; }
const json::Value& ResultStore::PlaceFacts(size_t place) const {
  static const json::Value kNone;
  const json::Value::List& list = json::ListAt(facts(), "places");
  return place < list.size() ? list[place] : kNone;
}
std::optional<uint32_t> ResultStore::FirstCall(int64_t place) const {
  const json::Value* const first = facts().Find("first");
  if (place < 0 && (first == nullptr || first->Find("place") == nullptr)) return std::nullopt;
  const size_t at = place < 0 ? json::NaturalAt(*first, "place") : static_cast<size_t>(place);
  const std::string_view name =
      place < 0 ? json::TextAt(*first, "name") : json::TextAt(PlaceFacts(at), "first");
  if (name.empty()) return std::nullopt;
  const std::optional<uint32_t> target = Find(at, false, name);
  return target ? target : Find(at, true, name);
}
std::span<const StorePlace> ResultStore::places() const { return impl_->places; }
const NodeColumns& ResultStore::nodes() const { return impl_->columns; }
uint32_t ResultStore::size() const { return impl_->count(); }
const NameIndex& ResultStore::names() const { return impl_->names; }
std::span<const uint32_t> ResultStore::by_name() const { return impl_->by_name; }
std::span<const uint32_t> ResultStore::by_order() const { return impl_->by_order; }
std::span<const std::string_view> ResultStore::operations() const { return impl_->operation_list; }
std::span<const std::string_view> ResultStore::forms() const { return impl_->form_list; }
size_t ResultStore::link_count() const { return impl_->links.size(); }
KeptAnswers& ResultStore::kept() const { return impl_->kept; }

size_t ResultStore::PlaceOf(uint32_t node) const {
  // The last place whose first node is not behind it; places without nodes follow their neighbours.
  size_t found = 0;
  size_t low = 0, high = places().size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const StorePlace& place = places()[middle];
    const uint32_t begin = place.target_count > 0 ? place.target : place.golden;
    if (begin <= node) {
      found = middle;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return found;
}

bool ResultStore::IsGolden(uint32_t node) const {
  const StorePlace& place = places()[PlaceOf(node)];
  return place.golden_count > 0 && node >= place.golden;
}

std::optional<uint32_t> ResultStore::Find(size_t place, bool of_golden,
                                          std::string_view name) const {
  if (place >= places().size()) return std::nullopt;
  const StorePlace& at = places()[place];
  const uint32_t begin = of_golden ? at.golden : at.target;
  const uint32_t count = of_golden ? at.golden_count : at.target_count;
  const std::optional<uint32_t> number = names().Find(name);
  if (!number || count == 0) return std::nullopt;
  const auto key = [&](uint32_t node) { return std::pair(nodes().name[node], node); };
  const auto found = std::ranges::lower_bound(by_name(), std::pair(*number, begin), {}, key);
  if (found == by_name().end() || nodes().name[*found] != *number) return std::nullopt;
  return *found - begin < count ? std::optional(*found) : std::nullopt;
}

std::string ResultStore::Name(uint32_t node) const { return names().At(nodes().name[node]); }

std::vector<std::string_view> ResultStore::Stack(uint32_t node) const {
  std::vector<std::string_view> frames;
  const std::string_view numbers = impl_->stacks[nodes().stack[node]];
  for (size_t at = 0; at + sizeof(uint32_t) <= numbers.size(); at += sizeof(uint32_t)) {
    uint32_t frame = 0;
    std::memcpy(&frame, numbers.data() + at, sizeof(frame));
    frames.push_back(impl_->frames[frame]);
  }
  return frames;
}

Result<NodeDetail> ResultStore::Detail(uint32_t node) const {
  uint64_t at = nodes().detail[node];
  const uint32_t partner = nodes().partner[node];
  if (at == kNoDetail && partner != kNoNode) at = nodes().detail[partner];
  if (at == kNoDetail) return NodeDetail();
  const BlockRow& block = impl_->blocks[at >> 32];
  Result<NodeDetail> detail = ReadDetail(impl_->details.substr(block.offset, block.packed_size),
                                         block.raw_size, block.crc, static_cast<uint32_t>(at));
  if (!detail) return detail.error().In(impl_->file->path());
  return detail;
}

StoredLink ResultStore::Link(size_t link) const {
  const LinkRow& row = impl_->links[link];
  StoredLink found{impl_->link_texts[row.key], row.is_message != 0, row.layer, {}};
  for (uint32_t i = 0; i < row.end_count; ++i) {
    const EndRow& end = impl_->ends[row.first_end + i];
    found.ends.push_back(
        {end.node, static_cast<StoredRole>(end.role), impl_->link_texts[end.mismatch]});
  }
  return found;
}

std::vector<uint32_t> ResultStore::LinksOf(uint32_t node) const {
  std::vector<uint32_t> links;
  const auto node_of = [&](uint32_t end) { return impl_->ends[end].node; };
  const auto last = std::ranges::upper_bound(impl_->ends_by_node, node, {}, node_of);
  auto at = std::ranges::lower_bound(impl_->ends_by_node, node, {}, node_of);
  for (; at != last; ++at) {
    const uint32_t end = *at;
    if (links.empty() || links.back() != impl_->ends[end].link) {
      links.push_back(impl_->ends[end].link);
    }
  }
  return links;
}

Result<StoredFiles> FindValueFiles(const ResultStore& store, uint32_t node,
                                   std::string_view value) {
  if (node >= store.size()) {
    return Error(ErrorCode::kNotFound, fmt::format("node {}: there is no such node", node));
  }
  PL_TRY_ASSIGN(const NodeDetail detail, store.Detail(node));
  const auto found = std::ranges::find(detail.values, value, &StoredValue::name);
  if (found == detail.values.end()) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: has no value {}", store.Name(node), value));
  }
  const json::Value& facts = store.PlaceFacts(store.PlaceOf(node));
  StoredFiles files;
  const auto find = [&](const std::optional<ValueSide>& side, std::string_view key,
                        std::optional<StoredFile>& file) {
    const std::string_view directory = json::TextAt(facts, key);
    if (!side || side->data_name.empty() || directory.empty()) return;
    file = {std::string(directory), std::string(side->data_name)};
  };
  find(found->target, "target_tensors", files.target);
  find(found->golden, "golden_tensors", files.golden);
  if (files.target || files.golden) return files;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no tensor of {} was recorded. Record with task tensor to see its "
                           "elements",
                           store.Name(node), value));
}

}  // namespace plumbline::view
