#include "pipeline/operators/hdf5_pairs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "formats/hdf5_names.h"

namespace plumbline::pipeline {
namespace {

using Calls = std::map<std::string, std::vector<int64_t>>;

constexpr std::array<std::string_view, 3> kDevicePrefixes = {"Npu", "Cudnn", "Thnn"};

// Names under which the golden dump may have the calls of `operation`: its own, those of the map,
// or its own with the prefix of another device.
std::vector<std::string> GoldenNames(const std::string& operation, const Calls& golden) {
  if (golden.contains(operation)) return {operation};
  std::vector<std::string> names;
  for (const std::string_view other : hdf5::OtherNames(hdf5::OperatorNames(), operation)) {
    if (golden.contains(std::string(other))) names.emplace_back(other);
  }
  if (!names.empty()) return names;
  for (const std::string_view prefix : kDevicePrefixes) {
    if (!operation.starts_with(prefix)) continue;
    for (const std::string_view other : kDevicePrefixes) {
      const std::string name = std::string(other) + operation.substr(prefix.size());
      if (golden.contains(name)) names.push_back(name);
    }
  }
  return names;
}

// All calls of these operators, by sequence id.
std::vector<Hdf5Call> CallsOf(const std::vector<std::string>& names, const Calls& calls) {
  std::vector<Hdf5Call> all;
  for (const std::string& name : names) {
    for (const int64_t id : calls.at(name)) all.push_back({name, id});
  }
  std::ranges::sort(all, {}, &Hdf5Call::id);
  return all;
}

std::optional<Hdf5Call> FindById(const std::vector<Hdf5Call>& calls, int64_t id) {
  const auto found = std::ranges::find(calls, id, &Hdf5Call::id);
  return found == calls.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

Hdf5CallPairs PairHdf5Calls(const hdf5::DumpReader& target, const hdf5::DumpReader& golden,
                            bool by_id) {
  Hdf5CallPairs result;
  std::set<Hdf5Call> used;
  for (const auto& [operation, ids] : target.calls()) {
    const std::vector<Hdf5Call> others =
        CallsOf(GoldenNames(operation, golden.calls()), golden.calls());
    for (size_t i = 0; i < ids.size(); ++i) {
      std::optional<Hdf5Call> other;
      if (by_id) {
        other = FindById(others, ids[i]);
      } else if (i < others.size()) {
        other = others[i];
      }
      if (other && !used.insert(*other).second) other.reset();
      result.pairs.emplace_back(Hdf5Call{operation, ids[i]}, std::move(other));
    }
  }
  std::ranges::sort(result.pairs, {}, [](const auto& pair) { return pair.first.id; });
  for (const auto& [operation, ids] : golden.calls()) {
    for (const int64_t id : ids) {
      if (!used.contains({operation, id})) result.golden_only.push_back({operation, id});
    }
  }
  std::ranges::sort(result.golden_only, {}, &Hdf5Call::id);
  return result;
}

}  // namespace plumbline::pipeline
