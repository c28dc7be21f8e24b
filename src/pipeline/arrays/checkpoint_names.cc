#include "pipeline/arrays/checkpoint_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace plumbline {
namespace {

using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;

// Put around modules by DDP, torch.compile, FSDP and activation checkpointing.
constexpr std::array<std::string_view, 4> kWrappers = {
    "module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};

NameSet SetOf(const Names& names) { return {names.begin(), names.end()}; }

size_t CommonCount(const Names& names, const NameSet& others) {
  size_t common = 0;
  for (const std::string& name : names) common += others.contains(name) ? 1 : 0;
  return common;
}

std::string WithoutSegment(const std::string& name, std::string_view segment) {
  std::string out;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part != segment) {
      if (!out.empty()) out += '.';
      out += part;
    }
    begin = end + 1;
  }
  return out;
}

// Leaves `segment` out of one side's names if more of them are found on the other side then.
bool DropWrapper(std::string_view segment, Names& names, const Names& other) {
  Names shorter;
  for (const std::string& name : names) shorter.push_back(WithoutSegment(name, segment));
  if (shorter == names || SetOf(shorter).size() != shorter.size()) return false;
  const NameSet others = SetOf(other);
  if (CommonCount(shorter, others) <= CommonCount(names, others)) return false;
  names = std::move(shorter);
  return true;
}

// The beginning, up to a dot, without which most names are found on the other side; and how many.
std::pair<std::string, size_t> BestPrefix(const Names& names, const NameSet& others) {
  std::map<std::string, size_t> found;
  for (const std::string& name : names) {
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (others.contains(std::string_view(name).substr(dot + 1))) ++found[name.substr(0, dot + 1)];
    }
  }
  std::pair<std::string, size_t> best;
  for (const auto& [prefix, count] : found) {
    if (count > best.second) best = {prefix, count};
  }
  return best;
}

std::string DropPrefix(Names& names, const Names& other) {
  const NameSet others = SetOf(other);
  const auto [prefix, count] = BestPrefix(names, others);
  if (count <= CommonCount(names, others)) return "";
  Names shorter = names;
  for (std::string& name : shorter) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  if (SetOf(shorter).size() != shorter.size()) return "";
  names = std::move(shorter);
  return prefix;
}

}  // namespace

AlignedNames AlignNames(std::vector<std::string> target, std::vector<std::string> golden) {
  AlignedNames aligned{std::move(target), std::move(golden), {}};
  const auto note = [&](std::string_view text, std::string_view side) {
    aligned.notes.push_back(fmt::format("\"{}\" in names of the {} is left out", text, side));
  };
  for (const std::string_view wrapper : kWrappers) {
    if (DropWrapper(wrapper, aligned.target, aligned.golden)) note(wrapper, "target");
    if (DropWrapper(wrapper, aligned.golden, aligned.target)) note(wrapper, "golden");
  }
  const std::string of_target = DropPrefix(aligned.target, aligned.golden);
  if (!of_target.empty()) note(of_target, "target");
  const std::string of_golden = DropPrefix(aligned.golden, aligned.target);
  if (!of_golden.empty()) note(of_golden, "golden");
  return aligned;
}

}  // namespace plumbline
