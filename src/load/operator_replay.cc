#include "load/operator_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/hdf5/hdf5_handle.h"
#include "load/depthwise_rule.h"

namespace plumbline::load {
namespace {

using hdf5::Argument;
using hdf5::StoredValue;
using hdf5::TensorValue;
using hdf5::ValueKind;
using StoredValues = std::map<std::string, const StoredValue*, std::less<>>;

bool SameType(DType recorded, DType running) {
  const auto is_index = [](DType dtype) {
    return dtype == DType::kInt32 || dtype == DType::kInt64;
  };
  return recorded == running || (is_index(recorded) && is_index(running));
}

bool TensorFits(const StoredValue& stored, const TensorValue& running) {
  if (!running.has_storage || !stored.has_data) return running.has_storage == stored.has_data;
  return SameType(stored.dtype, running.view.dtype) &&
         std::ranges::equal(stored.sizes, running.view.sizes);
}

const StoredValue* Find(const StoredValues& stored, const std::string& name) {
  if (const auto found = stored.find(name); found != stored.end()) return found->second;
  for (const std::string_view other : hdf5::OtherNames(hdf5::ArgumentNames(), name)) {
    if (const auto found = stored.find(other); found != stored.end()) return found->second;
  }
  return nullptr;
}

bool IsScalar(ValueKind kind) {
  return kind == ValueKind::kScalar || kind == ValueKind::kOptionalScalar;
}

// Numbers other than scalars agree in their values.
bool NumberFits(const StoredValue& stored, const Argument& running) {
  const auto* whole = std::get_if<std::vector<int64_t>>(&stored.number);
  if (const auto* real = std::get_if<double>(&running.data)) {
    const auto* recorded = std::get_if<double>(&stored.number);
    return recorded != nullptr && (*recorded == *real || IsScalar(running.kind));
  }
  if (whole == nullptr) return false;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&running.data)) return *whole == *list;
  if (whole->size() != 1) return false;
  if (IsScalar(running.kind)) return true;
  const auto* truth = std::get_if<bool>(&running.data);
  const auto* number = std::get_if<int64_t>(&running.data);
  return whole->front() == (truth != nullptr ? int64_t{*truth} : *number);
}

// What is compared of one running argument with the recorded call; false: they differ.
bool Take(const StoredValues& stored, size_t index, const Argument& running, ReplayMatch& match) {
  const StoredValue* value = Find(stored, running.name);
  if (std::holds_alternative<hdf5::OptionsValue>(running.data)) return true;
  if (value == nullptr) return false;
  if (const auto* tensor = std::get_if<TensorValue>(&running.data)) {
    if (!TensorFits(*value, *tensor)) return false;
    if (tensor->has_storage) match.tensors.push_back({index, std::nullopt, *value});
    return true;
  }
  if (const auto* list = std::get_if<std::vector<TensorValue>>(&running.data)) {
    for (size_t i = 0; i < list->size(); ++i) {
      const auto found = stored.find(fmt::format("{0}/{0}_{1}", value->name, i));
      if (found == stored.end() || !TensorFits(*found->second, (*list)[i])) return false;
      if ((*list)[i].has_storage) match.tensors.push_back({index, i, *found->second});
    }
    return !stored.contains(fmt::format("{0}/{0}_{1}", value->name, list->size()));
  }
  if (!NumberFits(*value, running)) return false;
  if (!IsScalar(running.kind)) return true;
  if (const auto* real = std::get_if<double>(&value->number)) {
    match.scalars.emplace_back(index, *real);
  } else {
    const int64_t number = std::get<std::vector<int64_t>>(value->number).front();
    const bool is_truth = std::holds_alternative<bool>(running.data);
    if (is_truth) {
      match.scalars.emplace_back(index, number != 0);
    } else {
      match.scalars.emplace_back(index, number);
    }
  }
  return true;
}

}  // namespace

Result<OperatorReplay> OperatorReplay::Open(const std::string& path) {
  PL_TRY_ASSIGN(IsolatedDump dump, IsolatedDump::Open(path));
  return OperatorReplay(std::move(dump));
}

Result<std::optional<ReplayMatch>> OperatorReplay::MatchCall(const hdf5::CallPlace& place,
                                                             const std::string& operation,
                                                             std::span<const Argument> arguments) {
  const Result<std::vector<StoredValue>>& values = dump_.Values({place.operation, place.call});
  if (!values) return values.error();
  StoredValues stored;
  for (const StoredValue& value : *values) stored.emplace(value.name, &value);
  ReplayMatch match;
  match.place = place;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (hdf5::IsIgnoredArgument(operation, arguments[i].name)) continue;
    if (!Take(stored, i, arguments[i], match)) return std::optional<ReplayMatch>();
  }
  return std::optional(std::move(match));
}

Result<std::optional<ReplayMatch>> OperatorReplay::Match(const std::string& operation,
                                                         std::span<const Argument> arguments) {
  std::vector<std::string> names;
  if (dump_.calls().contains(operation)) {
    names.push_back(operation);
  } else {
    names = CounterpartsOf(operation, arguments);
  }
  for (const std::string& name : names) {
    const auto found = dump_.calls().find(name);
    if (found == dump_.calls().end()) continue;
    for (const int64_t call : found->second) {
      if (used_.contains({name, call})) continue;
      PL_TRY_ASSIGN(std::optional<ReplayMatch> match,
                    MatchCall({name, call, hdf5::Side::kInput}, operation, arguments));
      if (!match) continue;
      used_.emplace(name, call);
      return match;
    }
  }
  return std::optional<ReplayMatch>();
}

Result<hdf5::StoredTensor> OperatorReplay::Load(const ReplayMatch& match, size_t tensor) const {
  return dump_.Load(match.place, match.tensors[tensor].stored);
}

}  // namespace plumbline::load
