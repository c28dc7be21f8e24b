#include "formats/acl_threads.h"

#include <string_view>
#include <utility>

#include "base/json.h"

namespace plumbline::acl {
namespace {

constexpr std::string_view kThreadMode = "threadMode", kInstances = "slice_instance_num",
                           kCuts = "outputCutList", kInputs = "input_tensor_slice",
                           kOutputs = "output_tensor_slice", kLower = "lower", kHigher = "higher";
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
  } else if (key == kInputs) {
    Boxes boxes = ReadThreads(in);
    slices.inputs = std::move(boxes.sizes);
    slices.input_starts = std::move(boxes.starts);
  } else if (key == kOutputs) {
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

}  // namespace plumbline::acl
