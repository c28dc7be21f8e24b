#include "store/entry_table.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/memory/pages.h"
#include "formats/json/dump_json.h"
#include "record/run_files.h"

namespace plumbline {

namespace {

// Text is handed to the file in pieces of about this size.
constexpr size_t kDrainBytes = size_t{1} << 20;
constexpr size_t kUsualEntryBytes = 4096;
constexpr size_t kChunkBytes = size_t{1} << 20;

// Calls `visit` for every tensor below `value`.
template <class Visit>
void ForEachTensor(Value& value, const Visit& visit) {
  if (auto* tensor = value.As<TensorRecord>()) {
    visit(*tensor);
  } else if (auto* list = value.As<ValueList>()) {
    for (Value& item : *list) ForEachTensor(item, visit);
  } else if (auto* map = value.As<ValueMap>()) {
    for (auto& [key, item] : *map) ForEachTensor(item, visit);
  }
}

void MergeMembers(ValueMap& into, ValueMap&& later) {
  for (auto& added : later) {
    const auto it = std::find_if(into.begin(), into.end(),
                                 [&](const auto& known) { return known.first == added.first; });
    if (it != into.end()) {
      it->second = std::move(added.second);
    } else {
      into.push_back(std::move(added));
    }
  }
}

// The same for tensors that are maps, because they have keys of their own (sharded tensors).
template <class Visit>
void ForEachTensorMap(Value& value, const Visit& visit) {
  if (auto* list = value.As<ValueList>()) {
    for (Value& item : *list) ForEachTensorMap(item, visit);
  } else if (auto* map = value.As<ValueMap>()) {
    if (value.Find("data_name") != nullptr && value.Find("requires_grad") != nullptr) visit(*map);
    for (auto& [key, item] : *map) ForEachTensorMap(item, visit);
  }
}

// Removes the file names that `keep` refuses; returns how many.
uint64_t DropTensors(Call& call, const EntryTable::KeepTensor& keep) {
  uint64_t dropped = 0;
  for (auto& [key, member] : call.members) {
    ForEachTensor(member, [&](TensorRecord& tensor) {
      if (!tensor.data_name || keep(*tensor.data_name)) return;
      tensor.data_name.reset();
      ++dropped;
    });
    ForEachTensorMap(member, [&](ValueMap& tensor) {
      dropped += std::erase_if(tensor, [&](const auto& field) {
        const auto* name = field.second.template As<std::string>();
        return field.first == "data_name" && name != nullptr && !keep(*name);
      });
    });
  }
  return dropped;
}

}  // namespace

EntryTable::EntryTable()
    : memory_(std::make_unique<std::pmr::monotonic_buffer_resource>(kChunkBytes, &PageMemory())),
      parts_(memory_.get()),
      slots_(memory_.get()),
      index_(memory_.get()),
      stacks_(memory_.get()) {}

std::span<const std::byte> EntryTable::Keep(std::span<const std::byte> bytes) {
  auto* at = static_cast<std::byte*>(memory_->allocate(bytes.size(), 1));
  std::memcpy(at, bytes.data(), bytes.size());
  return {at, bytes.size()};
}

Status EntryTable::Add(std::span<const std::byte> packed) {
  PL_TRY(PeekEntry(packed));
  const std::span<const std::byte> kept = Keep(packed);
  bytes_added_ += packed.size();
  PL_TRY_ASSIGN(const EntryHead head, PeekEntry(kept));
  const auto [it, is_new] = index_.try_emplace(head.name, static_cast<uint32_t>(slots_.size()));
  if (is_new) slots_.emplace_back().name = head.name;
  Slot& slot = slots_[it->second];
  if (slot.stack_id == 0) slot.stack_id = head.stack_id;
  if (head.has_parent) {
    slot.has_parent = true;
    slot.parent = head.parent;
  }
  if (!head.has_members) return {};
  if (!slot.has_members) ++call_count_;
  slot.has_members = true;
  const auto part = static_cast<uint32_t>(parts_.size());
  parts_.push_back({kept, kNone});
  if (slot.last_part == kNone) {
    slot.first_part = part;
  } else {
    parts_[slot.last_part].next = part;
  }
  slot.last_part = part;
  return {};
}

void EntryTable::Remove(std::string_view name) {
  const auto it = index_.find(name);
  if (it == index_.end()) return;
  Slot& slot = slots_[it->second];
  if (slot.has_members) --call_count_;
  slot.removed = true;
  index_.erase(it);
}

void EntryTable::AddStack(uint32_t id, std::span<const std::string> frames) {
  const std::string text = dump_json::FormatFrames(frames);
  stacks_.try_emplace(id).first->second.assign(text.data(), text.size());
}

Result<Call> EntryTable::Merge(const Slot& slot, WriteResult& result) const {
  Call call;
  for (uint32_t part = slot.first_part; part != kNone; part = parts_[part].next) {
    PL_TRY_ASSIGN(UnpackedEntry entry, UnpackEntry(parts_[part].bytes, &late_));
    result.values_missing += entry.late_missing;
    if (part == slot.first_part) {
      call = std::move(entry.call);
    } else {
      MergeMembers(call.members, std::move(entry.call.members));
    }
  }
  debug_entry::Compose(call.members);
  return call;
}

Status EntryTable::WriteStacks(AtomicFile& file) const {
  dump_json::StackTexts table;
  for (const Slot& slot : slots_) {
    if (slot.removed || slot.stack_id == 0) continue;
    const auto it = stacks_.find(slot.stack_id);
    if (it != stacks_.end()) table.emplace_back(slot.name, it->second);
  }
  return dump_json::WriteStackTexts(table,
                                    [&](std::string_view piece) { return file.Write(piece); });
}

std::string EntryTable::ConstructText() const {
  dump_json::CallTree calls;
  for (const Slot& slot : slots_) {
    if (!slot.removed && slot.has_parent) calls.rows.push_back({slot.name, slot.parent, 0});
  }
  return dump_json::FormatConstruct(calls);
}

std::string_view EntryTable::MainFileOf(Files files) {
  return files == Files::kDebug ? run_files::kDebugJson : run_files::kDumpJson;
}

Result<EntryTable::WriteResult> EntryTable::Write(const Directory& directory,
                                                  const RunHeader& header,
                                                  const KeepTensor& keep_tensor,
                                                  const WriteOptions& options) const {
  using run_files::kConstructJson, run_files::kStackJson;
  if (options.files == Files::kAll) {
    PL_TRY_ASSIGN(AtomicFile stacks, AtomicFile::Create(directory, run_files::kStackJson));
    PL_TRY(WriteStacks(stacks));
    PL_TRY(stacks.Commit(options.durable));
    PL_TRY(WriteFileAtomically(directory, run_files::kConstructJson, ConstructText(),
                               options.durable));
  }
  WriteResult result;
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(directory, MainFileOf(options.files)));
  PL_TRY(WriteDump(file, header, keep_tensor, result));
  if (options.before_dump) PL_TRY(options.before_dump(result));
  PL_TRY(file.Commit(options.durable));
  return result;
}

Status EntryTable::WriteDump(AtomicFile& file, const RunHeader& header,
                             const KeepTensor& keep_tensor, WriteResult& result) const {
  std::string text;
  text.reserve(std::min(kDrainBytes + kDrainBytes / 8, kUsualEntryBytes * slots_.size()));
  dump_json::DumpWriter writer(text);
  writer.Begin(header);
  for (const Slot& slot : slots_) {
    if (slot.removed || !slot.has_members) continue;
    Result<Call> call = Merge(slot, result);
    if (!call) {
      ++result.entries_damaged;
      continue;
    }
    if (keep_tensor) result.tensors_dropped += DropTensors(*call, keep_tensor);
    writer.Add(*call);
    if (text.size() < kDrainBytes) continue;
    PL_TRY(file.Write(text));
    text.clear();
  }
  writer.End();
  return file.Write(text);
}

}  // namespace plumbline

namespace plumbline::debug_entry {

namespace {

// The item or member at `position`; null pointer when there is none.
Value* Child(Value& parent, size_t position) {
  if (auto* list = parent.As<ValueList>(); list != nullptr && position < list->size()) {
    return &(*list)[position];
  }
  if (auto* map = parent.As<ValueMap>(); map != nullptr && position < map->size()) {
    return &(*map)[position].second;
  }
  return nullptr;
}

Value* Find(Value& top, std::string_view place) {
  Value* value = &top;
  while (value != nullptr && !place.empty()) {
    const size_t dot = std::min(place.find('.'), place.size());
    const std::string_view digits = place.substr(0, dot);
    size_t position = 0;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, position);
    if (parsed.ec != std::errc() || parsed.ptr != end) return nullptr;
    value = Child(*value, position);
    place.remove_prefix(std::min(dot + 1, place.size()));
  }
  return value;
}

}  // namespace

void Compose(ValueMap& members) {
  if (members.size() < 2 || !members[0].first.empty()) return;
  for (size_t i = 1; i < members.size(); ++i) {
    Value* place = Find(members[0].second, members[i].first);
    if (place != nullptr) *place = std::move(members[i].second);
  }
  members.resize(1);
}

}  // namespace plumbline::debug_entry
