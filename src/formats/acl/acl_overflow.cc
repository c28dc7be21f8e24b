#include "formats/acl/acl_overflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/memory/bytes.h"
#include "base/text/json.h"
#include "formats/acl/acl_types.h"

namespace plumbline::acl {

namespace {

constexpr std::string_view kThreadMode = "threadMode", kInstances = "slice_instance_num",
                           kCuts = "outputCutList", kInputSlices = "input_tensor_slice",
                           kOutputSlices = "output_tensor_slice", kLower = "lower",
                           kHigher = "higher";
constexpr int kMaxDepth = 16;

bool ReadInteger(json::Reader& in, int64_t& value) {
  json::Number number;
  if (!in.ReadNumber(number)) return false;
  if (const auto* integer = std::get_if<int64_t>(&number)) value = *integer;
  return true;
}

void ReadShape(json::Reader& in, Shape& sizes) {
  if (!in.EnterArray()) return;
  while (in.NextElement()) ReadInteger(in, sizes.emplace_back());
}

// [thread][tensor]: the box of each part.
struct Boxes {
  std::vector<std::vector<Shape>> starts, sizes;
};

// Of one dimension: its bounds.
void ReadBounds(json::Reader& in, Shape& starts, Shape& sizes) {
  int64_t lower = 0, higher = 0;
  std::string_view key;
  if (!in.EnterObject()) return;
  while (in.NextMember(key)) {
    if (key == kLower) {
      ReadInteger(in, lower);
    } else if (key == kHigher) {
      ReadInteger(in, higher);
    } else {
      in.SkipValue();
    }
  }
  starts.push_back(lower);
  // Bounds that make no part are no size; unsigned, as they may lie anywhere.
  sizes.push_back(
      static_cast<int64_t>(static_cast<uint64_t>(higher) - static_cast<uint64_t>(lower)));
}

void ReadTensors(json::Reader& in, std::vector<Shape>& starts, std::vector<Shape>& sizes) {
  if (!in.EnterArray()) return;
  while (in.NextElement()) {
    Shape& start = starts.emplace_back();
    Shape& size = sizes.emplace_back();
    if (!in.EnterArray()) return;
    while (in.NextElement()) ReadBounds(in, start, size);
  }
}

Boxes ReadThreads(json::Reader& in) {
  Boxes boxes;
  if (!in.EnterArray()) return boxes;
  while (in.NextElement()) {
    ReadTensors(in, boxes.starts.emplace_back(), boxes.sizes.emplace_back());
  }
  return boxes;
}

void ReadMember(json::Reader& in, std::string_view key, ThreadSlices& slices) {
  if (key == kThreadMode) {
    if (in.Peek() == json::Kind::kBool) {
      in.ReadBool(slices.is_automatic);
      return;
    }
    int64_t mode = 0;
    ReadInteger(in, mode);
    slices.is_automatic = mode != 0;
  } else if (key == kInstances) {
    ReadInteger(in, slices.instance_count);
  } else if (key == kCuts) {
    if (!in.EnterArray()) return;
    while (in.NextElement()) ReadShape(in, slices.output_cuts.emplace_back());
  } else if (key == kInputSlices) {
    Boxes boxes = ReadThreads(in);
    slices.inputs = std::move(boxes.sizes);
    slices.input_starts = std::move(boxes.starts);
  } else if (key == kOutputSlices) {
    Boxes boxes = ReadThreads(in);
    slices.outputs = std::move(boxes.sizes);
    slices.output_starts = std::move(boxes.starts);
  } else {
    in.SkipValue();
  }
}

std::optional<Shape> Find(const std::vector<std::vector<Shape>>& threads, uint64_t thread,
                          size_t index) {
  if (thread >= threads.size() || index >= threads[thread].size()) return std::nullopt;
  return threads[thread][index];
}

}  // namespace

std::optional<Shape> ThreadSlices::InputOf(uint64_t thread, size_t index) const {
  return Find(inputs, thread, index);
}

std::optional<Shape> ThreadSlices::OutputOf(uint64_t thread, size_t index) const {
  return Find(outputs, thread, index);
}

Result<std::optional<ThreadSlices>> ReadThreadSlices(const Message& message) {
  if (message.attributes.empty()) return std::optional<ThreadSlices>();
  const std::string& text = message.attributes.front().value;
  if (text.find(kThreadMode) == std::string::npos) return std::optional<ThreadSlices>();
  ThreadSlices slices;
  json::Reader in(text, kMaxDepth);
  std::string_view key;
  if (in.EnterObject()) {
    while (in.NextMember(key)) ReadMember(in, std::string(key), slices);
  }
  if (!in.failed()) in.ReadEnd();
  if (in.failed()) return in.error().In("attribute 0");
  return std::optional(std::move(slices));
}

namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kOldBytes = 2048;
constexpr std::string_view kStatus = "status";

// Where an old record has what.
struct OldPart {
  std::string_view kind;
  size_t place;
  size_t status_place;
  bool is_core;  // kernel code and block in front of the status
};
constexpr OldPart kOldParts[] = {{"DHA Atomic Add", 0, 512, false},
                                 {"L2 Atomic Add", 128, 768, false},
                                 {"AI Core", 256, 1024, true}};

constexpr std::string_view kOldFields[] = {"model_id",  "stream_id", "task_id",
                                           "task_type", "pc_start",  "para_base"};
constexpr std::string_view kHexFields[] = {"pc_start", "para_base", "kernel_code", "src_addr",
                                           "dst_addr"};

using Names = std::vector<std::string_view>;
// By the number in the record.
struct NewKind {
  std::string_view kind;
  Names fields;
};
const std::array<NewKind, 4>& NewKinds() {
  static const Names core = {"model_id",   "stream_id", "task_id",  "task_type",
                             "context_id", "thread_id", "pc_start", "para_base",
                             "core_id",    "block_id",  "status"};
  static const std::array<NewKind, 4> kinds = {
      {{"AIC", core},
       {"AIV", core},
       {"AICPU",
        {"model_id", "stream_id", "task_id", "task_type", "context_id", "cpu_id", "thread_id",
         "status"}},
       {"SDMA",
        {"model_id", "stream_id", "task_id", "task_type", "context_id", "thread_id", "src_addr",
         "dst_addr", "channel_id", "status"}}}};
  return kinds;
}

Result<OverflowField> ReadField(ByteReader& in, std::string_view name, size_t count = 1) {
  OverflowField field;
  field.name = name;
  field.is_hex = std::ranges::find(kHexFields, name) != std::end(kHexFields);
  field.is_list = count > 1;
  for (size_t i = 0; i < count; ++i) {
    PL_TRY_ASSIGN(field.values.emplace_back(), in.ReadU64());
  }
  return field;
}

Result<OverflowRecord> ReadOld(Bytes bytes) {
  OverflowRecord record;
  for (const OldPart& place : kOldParts) {
    OverflowPart& part = record.parts.emplace_back();
    part.kind = place.kind;
    ByteReader in(bytes);
    PL_TRY(in.Seek(place.place));
    for (const std::string_view name : kOldFields) {
      PL_TRY_ASSIGN(part.fields.emplace_back(), ReadField(in, name));
    }
    PL_TRY(in.Seek(place.status_place));
    if (place.is_core) {
      PL_TRY_ASSIGN(part.fields.emplace_back(), ReadField(in, "kernel_code"));
      PL_TRY_ASSIGN(part.fields.emplace_back(), ReadField(in, "block_idx"));
    }
    PL_TRY_ASSIGN(part.fields.emplace_back(), ReadField(in, kStatus));
  }
  return record;
}

Result<OverflowRecord> ReadNew(ByteReader in) {
  constexpr size_t kStatusesOfVersion1 = 4;
  OverflowRecord record;
  record.is_new = true;
  PL_TRY_ASSIGN(record.version, in.ReadU32());
  PL_TRY_ASSIGN(record.valid, in.ReadU32());
  PL_TRY_ASSIGN(const uint32_t kind, in.ReadU32());
  PL_TRY_ASSIGN(record.reserved, in.ReadU32());
  PL_TRY_ASSIGN(record.data_bytes, in.ReadU32());
  if (kind >= NewKinds().size()) {
    return Error(ErrorCode::kUnsupported, fmt::format("an overflow of type {} (expected 0 to {})",
                                                      kind, NewKinds().size() - 1));
  }
  OverflowPart& part = record.parts.emplace_back();
  part.kind = NewKinds()[kind].kind;
  const bool is_core = part.kind == "AIC" || part.kind == "AIV";
  for (const std::string_view name : NewKinds()[kind].fields) {
    const bool is_list = is_core && record.version == 1 && name == kStatus;
    PL_TRY_ASSIGN(part.fields.emplace_back(),
                  ReadField(in, name, is_list ? kStatusesOfVersion1 : 1));
  }
  return record;
}

// A list stands with one value a line, as Python's json module indents it.
std::string ValueText(const OverflowField& field, const std::string& indent) {
  if (field.is_list) {
    return fmt::format("[\n{0}    {1}\n{0}]", indent,
                       fmt::join(field.values, fmt::format(",\n{}    ", indent)));
  }
  return fmt::format(fmt::runtime(field.is_hex ? "\"{:#x}\"" : "{}"), field.values[0]);
}

std::string PartJson(const OverflowPart& part, const std::string& indent) {
  std::string text = "{\n";
  for (size_t i = 0; i < part.fields.size(); ++i) {
    const OverflowField& field = part.fields[i];
    text += fmt::format("{}    \"{}\": {}{}\n", indent, field.name,
                        ValueText(field, indent + "    "), i + 1 < part.fields.size() ? "," : "");
  }
  return text + indent + "}";
}

}  // namespace

std::optional<uint64_t> OverflowPart::Value(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &OverflowField::name);
  if (found == fields.end() || found->values.empty()) return std::nullopt;
  return found->values[0];
}

bool OverflowPart::has_overflow() const {
  const auto status = std::ranges::find(fields, kStatus, &OverflowField::name);
  return status != fields.end() &&
         std::ranges::any_of(status->values, [](uint64_t value) { return value != 0; });
}

Result<OverflowRecord> ReadOverflow(Bytes bytes) {
  ByteReader in(bytes);
  const Result<uint32_t> magic = in.ReadU32();
  if (magic && *magic == kRecordMagic) return ReadNew(in);
  if (bytes.size() == kOldBytes) return ReadOld(bytes);
  return Error(ErrorCode::kCorrupt, fmt::format("an overflow record of {} bytes (expected {})",
                                                bytes.size(), kOldBytes));
}

std::string OverflowJson(const OverflowRecord& record) {
  const std::string indent(4, ' '), inner(8, ' ');
  std::string text = "{\n";
  if (!record.is_new) {
    for (size_t i = 0; i < record.parts.size(); ++i) {
      text +=
          fmt::format("{}\"{}\": {}{}\n", indent, record.parts[i].kind,
                      PartJson(record.parts[i], indent), i + 1 < record.parts.size() ? "," : "");
    }
    return text + "}";
  }
  text += fmt::format("{}\"magic\": \"{:#x}\",\n{}\"version\": {},\n{}\"acc_list\": {{\n", indent,
                      kRecordMagic, indent, record.version, indent);
  text += fmt::format("{}\"valid\": {},\n{}\"acc_type\": \"{}\",\n", inner, record.valid, inner,
                      record.parts[0].kind);
  text += fmt::format("{}\"rsv\": {},\n{}\"data_len\": {},\n", inner, record.reserved, inner,
                      record.data_bytes);
  return text +
         fmt::format("{}\"data\": {}\n{}}}\n}}", inner, PartJson(record.parts[0], inner), indent);
}

}  // namespace plumbline::acl
