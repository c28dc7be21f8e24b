#include "view/store/store_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "view/store/name_index.h"
#include "view/store/place_data.h"
#include "view/store/store_format.h"

namespace plumbline::view {
namespace {

// The sections of a file in the order in which they are written.
class SectionFile {
 public:
  static Result<SectionFile> Create(const std::string& path) {
    PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
    PL_TRY(file.Skip(sizeof(StoreHeader)));
    return SectionFile(std::move(file));
  }

  Status Begin(Section section) {
    static constexpr std::array<char, kSectionAlignment> kZeros{};
    const size_t over = at_ % kSectionAlignment;
    if (over != 0) PL_TRY(Put({kZeros.data(), kSectionAlignment - over}));
    open_ = static_cast<size_t>(section);
    header.sections[open_].offset = at_;
    return {};
  }
  Status Write(std::string_view bytes) {
    header.sections[open_].size += bytes.size();
    digest_->Update(std::as_bytes(std::span(bytes)));
    return Put(bytes);
  }
  template <class T>
  Status Add(Section section, std::span<const T> rows) {
    PL_TRY(Begin(section));
    return Write({reinterpret_cast<const char*>(rows.data()), rows.size_bytes()});
  }
  template <class T>
  Status Add(Section section, const std::vector<T>& rows) {
    return Add(section, std::span<const T>(rows));
  }
  Status AddText(Section section, std::string_view text) {
    PL_TRY(Begin(section));
    return Write(text);
  }
  // All texts of a pool, and where each ends, in the section behind.
  Status Add(Section section, const TextPool& texts) {
    PL_TRY(AddText(section, texts.chars()));
    return Add(static_cast<Section>(static_cast<uint32_t>(section) + 1), texts.ends());
  }
  Status Commit() {
    const Digest128 digest = digest_->Finish();
    header.digest_low = digest.low;
    header.digest_high = digest.high;
    header.file_size = at_;
    PL_TRY(file_.WriteAt({reinterpret_cast<const char*>(&header), sizeof(header)}, 0));
    return file_.Commit(/*durable=*/false);
  }

  StoreHeader header;

 private:
  explicit SectionFile(AtomicFile file) : file_(std::move(file)) {}
  Status Put(std::string_view bytes) {
    at_ += bytes.size();
    return file_.Write(bytes);
  }

  AtomicFile file_;
  size_t open_ = 0;  // section
  uint64_t at_ = sizeof(StoreHeader);
  std::unique_ptr<Xxh3> digest_ = std::make_unique<Xxh3>();
};

// Numbers of one pool for those of another whose texts were added to it. `from` may be moved from.
std::vector<uint32_t> AddAll(TextPool& from, TextPool& to) {
  std::vector<uint32_t> numbers(from.size());
  if (to.size() == 0) {
    std::iota(numbers.begin(), numbers.end(), 0U);
    to = std::move(from);
    return numbers;
  }
  for (size_t i = 0; i < from.size(); ++i) numbers[i] = to.Add(from[i]);
  return numbers;
}

void Renumber(const std::vector<uint32_t>& numbers, std::vector<uint32_t>& column) {
  for (uint32_t& number : column) number = numbers[number];
}

}  // namespace

struct StoreWriter::Impl {
  explicit Impl(SectionFile created) : file(std::move(created)) {
    for (TextPool* pool : {&forms, &operations, &stacks, &link_texts}) pool->Add("");
  }

  // Places as added; their names, stacks, forms and operations are those of the pools here.
  std::vector<PlaceData> places;
  TextPool names, forms, operations, frames, stacks, link_texts;
  std::mutex details_mutex;  // of the blocks and of the file until Finish()
  std::vector<BlockRow> blocks;
  uint64_t detail_bytes = 0;
  std::vector<LinkRecord> links;
  SectionFile file;

  Status Take(PlaceData& place) {
    PL_TRY(place.status);
    place.Complete();
    const std::vector<uint32_t> name_numbers = AddAll(place.names, names);
    const std::vector<uint32_t> form_numbers = AddAll(place.forms, forms);
    const std::vector<uint32_t> operation_numbers = AddAll(place.operations, operations);
    const std::vector<uint32_t> stack_numbers = AddStacks(place);
    for (OwnColumns* side : {&place.target, &place.golden}) {
      Renumber(name_numbers, side->name);
      Renumber(form_numbers, side->form);
      Renumber(operation_numbers, side->operation);
      Renumber(stack_numbers, side->stack);
    }
    for (TextPool* pool :
         {&place.names, &place.forms, &place.operations, &place.frames, &place.stacks}) {
      pool->Clear();
    }
    return {};
  }

  Result<uint32_t> WriteBlock(const PackedBlock& block) {
    const std::lock_guard lock(details_mutex);
    blocks.push_back(
        {detail_bytes, static_cast<uint32_t>(block.bytes.size()), block.raw_size, block.crc, 0});
    detail_bytes += block.bytes.size();
    PL_TRY(file.Write(block.bytes));
    return static_cast<uint32_t>(blocks.size() - 1);
  }

  std::vector<uint32_t> AddStacks(PlaceData& place) {
    const std::vector<uint32_t> frame_numbers = AddAll(place.frames, frames);
    std::vector<uint32_t> numbers(place.stacks.size());
    std::string stack;
    for (size_t i = 0; i < place.stacks.size(); ++i) {
      stack = place.stacks[i];
      for (size_t at = 0; at < stack.size(); at += sizeof(uint32_t)) {
        uint32_t frame = 0;
        std::memcpy(&frame, stack.data() + at, sizeof(frame));
        frame = frame_numbers[frame];
        std::memcpy(stack.data() + at, &frame, sizeof(frame));
      }
      numbers[i] = stacks.Add(stack);
    }
    return numbers;
  }

  // --- all places together ---

  std::vector<size_t> shown;     // indices of places, by step and rank
  std::vector<PlaceRow> rows;    // of places as shown
  std::vector<size_t> row_of;    // by index of Add()
  std::vector<uint32_t> sorted;  // rank of a name among the sorted ones
  uint32_t node_count = 0;

  Status Arrange() {
    shown.resize(places.size());
    std::iota(shown.begin(), shown.end(), size_t{0});
    std::ranges::stable_sort(shown, {},
                             [&](size_t i) { return std::pair(places[i].step, places[i].rank); });
    row_of.resize(places.size());
    uint64_t next = 0;
    for (const size_t i : shown) {
      row_of[i] = rows.size();
      const PlaceData& place = places[i];
      PlaceRow row{place.step, place.rank, kNoNode, 0, kNoNode, 0};
      const auto take = [&](const OwnColumns& side, uint32_t& begin, uint32_t& count) {
        if (side.name.empty()) return;
        begin = static_cast<uint32_t>(next);
        count = static_cast<uint32_t>(side.name.size());
        next += side.name.size();
      };
      take(place.target, row.target, row.target_count);
      take(place.golden, row.golden, row.golden_count);
      rows.push_back(row);
    }
    // Ids are JSON numbers and list positions; ten times the largest recording known.
    constexpr uint64_t kMostNodes = uint64_t{1} << 31;
    if (next > kMostNodes) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{} nodes (at most {} fit into a store). Open fewer ranks or steps",
                               next, kMostNodes));
    }
    node_count = static_cast<uint32_t>(next);
    return {};
  }

  Status WriteNames() {
    std::vector<uint32_t> order(names.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](uint32_t i) { return names[i]; });
    sorted.resize(order.size());
    std::vector<std::string_view> texts(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      sorted[order[i]] = static_cast<uint32_t>(i);
      texts[i] = names[order[i]];
    }
    file.header.name_count = texts.size();
    const NameSections sections = FormatNames(texts);
    PL_TRY(file.AddText(Section::kNameText, sections.text));
    PL_TRY(file.Add(Section::kNameBlocks, sections.blocks));
    PL_TRY(file.Add(Section::kTrigramBitmaps, sections.bitmaps));
    return file.Add(Section::kTrigrams, sections.classes);
  }

  // Calls visit(side, first id, first id of the other side) for every graph in order of ids.
  template <class Visit>
  Status ForEachGraph(const Visit& visit) {
    for (size_t k = 0; k < shown.size(); ++k) {
      PlaceData& place = places[shown[k]];
      if (rows[k].target_count > 0) PL_TRY(visit(place.target, rows[k].target, rows[k].golden));
      if (rows[k].golden_count > 0) PL_TRY(visit(place.golden, rows[k].golden, rows[k].target));
    }
    return {};
  }

  // From indices of graphs to ids.
  void MakeIds() {
    (void)ForEachGraph([&](OwnColumns& side, uint32_t first, uint32_t other) -> Status {
      for (uint32_t& name : side.name) name = sorted[name];
      for (uint32_t& parent : side.parent) parent += parent == kNoNode ? 0 : first;
      for (uint32_t& partner : side.partner) partner += partner == kNoNode ? 0 : other;
      return {};
    });
  }

  Status WriteOrders() {
    std::vector<uint32_t> by_order(node_count), starts(names.size() + 1);
    (void)ForEachGraph([&](OwnColumns& side, uint32_t first, uint32_t) -> Status {
      for (size_t i = 0; i < side.name.size(); ++i) {
        by_order[first + side.order[i]] = first + static_cast<uint32_t>(i);
        ++starts[side.name[i] + 1];
      }
      return {};
    });
    PL_TRY(file.Add(Section::kByOrder, by_order));
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<uint32_t>& by_name = by_order;
    (void)ForEachGraph([&](OwnColumns& side, uint32_t first, uint32_t) -> Status {
      for (size_t i = 0; i < side.name.size(); ++i) {
        by_name[starts[side.name[i]]++] = first + static_cast<uint32_t>(i);
      }
      return {};
    });
    return file.Add(Section::kByName, by_name);
  }

  // Column by column, in each graph by graph. A column that is written is dropped.
  Status WriteColumns() {
    auto section = static_cast<uint32_t>(Section::kFirstColumn);
    Status status;
    for (size_t column = 0; column < kNodeColumnCount; ++column, ++section) {
      PL_TRY(file.Begin(static_cast<Section>(section)));
      PL_TRY(ForEachGraph([&](OwnColumns& side, uint32_t, uint32_t) -> Status {
        size_t at = 0;
        Status written;
        side.ForEach([&]<class T>(std::vector<T>& rows_of_column) {
          if (at++ != column) return;
          written = file.Write({reinterpret_cast<const char*>(rows_of_column.data()),
                                rows_of_column.size() * sizeof(T)});
          rows_of_column = {};
        });
        return written;
      }));
    }
    return {};
  }

  uint32_t IdOf(const NodeAt& at) const {
    const PlaceRow& row = rows[row_of[at.place]];
    return (at.is_golden ? row.golden : row.target) + at.node;
  }

  Status WriteLinks() {
    std::vector<LinkRow> link_rows;
    std::vector<EndRow> ends;
    for (const LinkRecord& link : links) {
      const auto number = static_cast<uint32_t>(link_rows.size());
      link_rows.push_back({link.layer, static_cast<uint32_t>(ends.size()),
                           static_cast<uint32_t>(link.ends.size()), link_texts.Add(link.key),
                           link.is_message ? 1U : 0U});
      for (const EndRecord& end : link.ends) {
        ends.push_back(
            {IdOf(end.at), number, link_texts.Add(end.mismatch), static_cast<uint32_t>(end.role)});
      }
    }
    std::vector<uint32_t> by_node(ends.size());
    std::iota(by_node.begin(), by_node.end(), 0U);
    std::ranges::stable_sort(by_node, {}, [&](uint32_t i) { return ends[i].node; });
    PL_TRY(file.Add(Section::kLinks, link_rows));
    PL_TRY(file.Add(Section::kLinkEnds, ends));
    PL_TRY(file.Add(Section::kEndsByNode, by_node));
    return file.Add(Section::kLinkText, link_texts);
  }

  Status WriteStacks() {
    PL_TRY(file.Add(Section::kFrameText, frames));
    return file.Add(Section::kStackFrames, stacks);
  }

  // Members of a place that follow from its nodes. Before the columns are written.
  void AddCounts(const PlaceData& place, json::Value& facts) const {
    std::array<int64_t, kNodeLevels> levels{};
    std::array<int64_t, kStoredOverflows> overflows{};
    int64_t micro_steps = 0, unmatched_golden = 0;
    for (size_t i = 0; i < place.target.name.size(); ++i) {
      micro_steps = std::max<int64_t>(micro_steps, place.target.micro_step[i] + 1);
      ++overflows[place.target.overflow[i]];
      if (place.target.type[i] < static_cast<uint8_t>(StoredType::kGroup)) {
        ++levels[place.target.level[i]];
      }
    }
    for (const uint8_t level : place.golden.level) {
      unmatched_golden += level == static_cast<uint8_t>(NodeLevel::kUnmatched) ? 1 : 0;
    }
    const auto number = [&](NodeLevel level) {
      return json::Value(levels[static_cast<size_t>(level)]);
    };
    json::Value counts = json::Value::Object();
    for (const NodeLevel level :
         {NodeLevel::kPass, NodeLevel::kWarning, NodeLevel::kError, NodeLevel::kNone}) {
      counts.Put(NodeLevelName(level), number(level));
    }
    counts.Put("unmatched_target", number(NodeLevel::kUnmatched));
    counts.Put("unmatched_golden", json::Value(unmatched_golden));
    json::Value graded = json::Value::Object();
    for (const StoredOverflow overflow :
         {StoredOverflow::kMedium, StoredOverflow::kHigh, StoredOverflow::kCritical}) {
      graded.Put(StoredOverflowName(overflow),
                 json::Value(overflows[static_cast<size_t>(overflow)]));
    }
    facts.Put("micro_steps", json::Value(micro_steps));
    facts.Put("counts", std::move(counts));
    facts.Put("overflows", std::move(graded));
  }

  // The text of the facts with what is known of each place, by step and rank.
  json::Value FactsOf(const json::Value& facts, const std::vector<json::Value>& place_facts) const {
    json::Value all = facts;
    json::Value::List list;
    for (const size_t i : shown) {
      json::Value place = i < place_facts.size() && place_facts[i].is_object()
                              ? place_facts[i]
                              : json::Value::Object();
      AddCounts(places[i], place);
      list.push_back(std::move(place));
    }
    all.Put("places", json::Value(std::move(list)));
    const json::Value* const first = facts.Find("first");
    const json::Value* const at = first == nullptr ? nullptr : first->Find("place");
    const auto index = at == nullptr ? std::nullopt : at->AsNatural();
    if (!index || *index >= row_of.size()) return all;
    json::Value moved = *first;
    moved.Put("place", json::Value(static_cast<int64_t>(row_of[*index])));
    all.Put("first", std::move(moved));
    return all;
  }
};

StoreWriter::StoreWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreWriter::StoreWriter(StoreWriter&&) noexcept = default;
StoreWriter::~StoreWriter() = default;

Result<StoreWriter> StoreWriter::Create(const std::string& path) {
  PL_TRY_ASSIGN(SectionFile file, SectionFile::Create(path));
  PL_TRY(file.Begin(Section::kDetails));
  return StoreWriter(std::make_unique<Impl>(std::move(file)));
}

PlaceBuilder StoreWriter::Begin(int64_t step, int64_t rank) {
  return {step, rank,
          [impl = impl_.get()](const PackedBlock& block) { return impl->WriteBlock(block); }};
}

Result<size_t> StoreWriter::Add(PlaceBuilder&& place) {
  PL_TRY(Replace(impl_->places.size(), std::move(place)));
  return impl_->places.size() - 1;
}

Status StoreWriter::Replace(size_t index, PlaceBuilder&& place) {
  PlaceData data = place.Take();
  PL_TRY(impl_->Take(data));
  if (index >= impl_->places.size()) impl_->places.resize(index + 1);
  impl_->places[index] = std::move(data);
  return {};
}

std::optional<NodeAt> StoreWriter::Find(size_t place, bool is_golden, std::string_view name) const {
  const auto number = impl_->names.Find(name);
  if (!number || place >= impl_->places.size()) return std::nullopt;
  const std::vector<uint32_t>& names = impl_->places[place].Side(is_golden).name;
  const auto found = std::ranges::find(names, *number);
  if (found == names.end()) return std::nullopt;
  return NodeAt{place, is_golden, static_cast<uint32_t>(found - names.begin())};
}

void StoreWriter::AddLink(LinkRecord link) { impl_->links.push_back(std::move(link)); }

Status StoreWriter::Finish(const json::Value& facts, const std::vector<json::Value>& place_facts) {
  Impl& impl = *impl_;
  PL_TRY(impl.Arrange());
  const std::string text = impl.FactsOf(facts, place_facts).Text();
  PL_TRY(impl.WriteNames());
  impl.MakeIds();
  impl.file.header.node_count = impl.node_count;
  PL_TRY(impl.file.AddText(Section::kFacts, text));
  PL_TRY(impl.file.Add(Section::kPlaces, impl.rows));
  PL_TRY(impl.WriteOrders());
  PL_TRY(impl.WriteStacks());
  PL_TRY(impl.file.Add(Section::kFormText, impl.forms));
  PL_TRY(impl.file.Add(Section::kOperationText, impl.operations));
  PL_TRY(impl.file.Add(Section::kDetailBlocks, impl.blocks));
  PL_TRY(impl.WriteLinks());
  PL_TRY(impl.WriteColumns());
  return impl.file.Commit();
}

}  // namespace plumbline::view
