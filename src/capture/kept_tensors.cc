#include "capture/kept_tensors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace plumbline::capture {
namespace {

// Names of Python's in-place operators; other names with two underscores only read.
constexpr std::array<std::string_view, 14> kInPlaceOperators = {
    "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__",
    "__iand__", "__ior__",  "__ixor__", "__ilshift__",  "__irshift__",   "__idiv__", "__setitem__"};

// Fill a tensor without looking at it.
constexpr std::array<std::string_view, 11> kOverwriting = {
    "fill_",      "zero_",        "copy_",      "normal_", "uniform_",    "random_",
    "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_",
};

template <size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Writes WritesOf(std::string_view api, const WriteHints& hints) {
  const std::string_view name = api.substr(api.rfind('.') + 1);
  if (name.ends_with("__")) {
    return IsOneOf(name, kInPlaceOperators) ? Writes::kFirst : Writes::kNothing;
  }
  if (hints.has_out) return Writes::kOut;
  if (hints.is_in_place) return Writes::kEverything;
  if (IsOneOf(name, kOverwriting)) return Writes::kOverwritten;
  if (name.ends_with("_")) return Writes::kFirst;
  const bool is_batch_norm = name.find("batch_norm") != std::string_view::npos;
  if (is_batch_norm || name == "instance_norm") return Writes::kRunningStats;
  // relu(x, True), dropout(x, 0.5, True, True): the last positional argument is `inplace`.
  if (hints.ends_in_true && api.starts_with("Functional.")) return Writes::kFirst;
  return Writes::kNothing;
}

bool MayWrite(Writes writes, std::string_view path) {
  switch (writes) {
    case Writes::kNothing:
      return false;
    case Writes::kFirst:
    case Writes::kOverwritten:
      return path == "input.0" || path.starts_with("input.0.");
    case Writes::kOut:
      return path == "kwargs.out" || path.starts_with("kwargs.out.");
    case Writes::kRunningStats:
      return path == "input.1" || path == "input.2" || path == "input.3" || path == "input.4" ||
             path.starts_with("kwargs.running_");
    case Writes::kEverything:
      break;
  }
  return true;
}

bool IsRead(Writes writes, std::string_view path) {
  const bool overwrites = writes == Writes::kOut || writes == Writes::kOverwritten;
  return !overwrites || !MayWrite(writes, path);
}

bool WritesFirst(Writes writes) {
  return writes == Writes::kFirst || writes == Writes::kOverwritten;
}

KeptTensors& KeptTensors::operator=(KeptTensors&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  tensors = std::exchange(other.tensors, {});
  awaited = std::exchange(other.awaited, {});
  head = other.head;
  writes = other.writes;
  in_output = other.in_output;
  has_input = other.has_input;
  input_hit = other.input_hit;
  output_hit = other.output_hit;
  is_unknown = other.is_unknown;
  input_saturated = other.input_saturated;
  output_saturated = other.output_saturated;
  return *this;
}

void KeptTensors::Clear() {
  // Letting go of a tensor can run code that records: this must be consistent before.
  const std::vector<KeptTensor> old = std::exchange(tensors, {});
  const std::vector<AwaitedFlag> unread = std::exchange(awaited, {});
  head = 0;
  writes = Writes::kNothing;
  in_output = has_input = input_hit = output_hit = is_unknown = false;
  input_saturated = output_saturated = false;
}

void KeptTensors::Note(Sight sight, std::string_view path) {
  if (!in_output && !IsRead(writes, path)) sight = {};
  (in_output ? output_hit : input_hit) |= sight.hit;
  (in_output ? output_saturated : input_saturated) |= sight.saturated;
  has_input |= !in_output;
  is_unknown |= sight.unknown;
}

void KeptTensors::Await(ObjectRef is_finite, std::string_view path) {
  if (is_finite.get() == nullptr || (!in_output && !IsRead(writes, path))) return;
  awaited.push_back({std::move(is_finite), in_output});
}

void KeptTensors::Append(KeptTensors&& part, size_t offset) {
  for (KeptTensor& kept : part.tensors) {
    kept.begin += offset;
    kept.end += offset;
  }
  tensors.insert(tensors.end(), std::make_move_iterator(part.tensors.begin()),
                 std::make_move_iterator(part.tensors.end()));
  part.tensors.clear();
  awaited.insert(awaited.end(), std::make_move_iterator(part.awaited.begin()),
                 std::make_move_iterator(part.awaited.end()));
  part.awaited.clear();
  has_input |= part.has_input;
  input_hit |= part.input_hit;
  output_hit |= part.output_hit;
  is_unknown |= part.is_unknown;
  input_saturated |= part.input_saturated;
  output_saturated |= part.output_saturated;
}

void KeptTensors::TakeOff(size_t size) {
  for (KeptTensor& kept : tensors) {
    kept.begin -= size;
    kept.end -= size;
  }
}

std::string_view KeptTensors::origin() const {
  if (is_hit() ? input_hit : input_saturated) return "propagated";
  return has_input && !is_unknown ? "origin" : "unknown";
}

}  // namespace plumbline::capture
