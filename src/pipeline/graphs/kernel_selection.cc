#include "pipeline/graphs/kernel_selection.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/text_parts.h"
#include "config/graph_dump/kernel_entries.h"
#include "load/execution_order.h"

namespace plumbline::pipeline {
namespace {

using graph_dump::EntryKind;
using graph_dump::KernelEntries;

// "Default/net/Conv2D" of "Default/net/Conv2D-op12": numbers change with how graphs are saved.
std::string_view WithoutNumber(std::string_view name) {
  constexpr std::string_view kMark = "-op";
  const size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos || !IsDigits(name.substr(mark + kMark.size()))) return name;
  return name.substr(0, mark);
}

EntrySelection SelectionOf(const KernelEntries::Entry& entry, const std::set<std::string>& names) {
  EntrySelection selection;
  selection.text = entry.text;
  for (const std::string& name : names) {
    if (!KernelEntries::Matches(entry, name)) continue;
    if (selection.kernels++ == 0) selection.first = name;
  }
  if (selection.kernels > 0 || entry.kind != EntryKind::kName) return selection;
  for (const std::string& name : names) {
    if (WithoutNumber(name) != WithoutNumber(entry.text)) continue;
    selection.nearest = name;
    break;
  }
  return selection;
}

}  // namespace

Result<KernelSelection> SelectKernels(const std::vector<std::string>& kernels,
                                      const std::string& tree) {
  PL_TRY_ASSIGN(const KernelEntries entries, KernelEntries::Parse(kernels));
  PL_TRY_ASSIGN(const auto orders, load::ReadExecutionOrders(tree));
  std::set<std::string> names;
  for (const load::ExecutionOrder& order : orders) {
    names.insert(order.kernels.begin(), order.kernels.end());
  }
  if (names.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no table of execution order (expected "
                             "rank_0/execution_order/ms_execution_order_graph_0.csv)",
                             tree));
  }
  KernelSelection selection{orders.size(), names.size(), 0, {}};
  for (const std::string& name : names) {
    if (entries.Select(name)) ++selection.selected;
  }
  for (const KernelEntries::Entry& entry : entries.entries()) {
    selection.entries.push_back(SelectionOf(entry, names));
  }
  return selection;
}

}  // namespace plumbline::pipeline
