#include "arrays/compare_npy_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "arrays/compare_arrays.h"
#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "load/name_mapping.h"
#include "match/expand.h"
#include "measure/array_verdict.h"
#include "measure/compared_row.h"
#include "record/run_files.h"

namespace plumbline {
namespace {

constexpr int kMostLevels = 5;

using Files = std::map<std::string, std::string>;  // path by "input.0"
struct TreeRow {
  std::string target, golden;
  std::vector<std::string> cells;  // Mean to Max Relative Error
  measure::ArrayVerdict verdict;
  std::string problem;
};

bool HasOnlyArrays(const std::string& directory, int level, bool& any) {
  const auto names = ListDirectory(directory);
  if (!names || level > kMostLevels) return false;
  return std::ranges::all_of(*names, [&](const std::string& name) {
    if (run_files::IsAboutDumps(name)) return true;
    const std::string path = JoinPath(directory, name);
    if (KindOf(path) == PathKind::kDirectory) return HasOnlyArrays(path, level + 1, any);
    any = true;
    return name.ends_with(".npy");
  });
}

// The part of a name from "input" or "output" on; the whole name where it has neither.
std::string KeyOf(const std::string& name) {
  const std::vector<std::string_view> parts = SplitAt(name, '.');
  size_t at = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i] == "input" || parts[i] == "output") at = i;
  }
  return at == 0 ? name : fmt::format("{}.{}", parts[at], parts[at + 1]);
}

// Of several with one key the second has " 2" behind it, in the order of their full names.
Result<Files> ArraysIn(const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  PL_TRY_ASSIGN(const load::NameMapping mapping, load::NameMapping::Read(directory));
  std::set<std::pair<std::string, std::string>> arrays;  // full name, file
  for (const std::string& name : names) {
    const bool is_directory = KindOf(JoinPath(directory, name)) == PathKind::kDirectory;
    if (run_files::IsAboutDumps(name) || is_directory) continue;
    arrays.emplace(mapping.NameOf(name), name);
  }
  Files files;
  for (const auto& [full_name, name] : arrays) {
    const std::string key = KeyOf(full_name);
    std::string free = key;
    for (int n = 2; files.contains(free); ++n) free = fmt::format("{} {}", key, n);
    files.emplace(free, JoinPath(directory, name));
  }
  return files;
}

double MeanOf(const TensorView& view) {
  long double sum = 0;
  const auto count = static_cast<size_t>(view.element_count());
  for (size_t i = 0; i < count; ++i) sum += ElementValue(view, i);
  return static_cast<double>(sum / static_cast<long double>(count));
}

// Smallest step of the golden's type at 1, which stands for a golden 0.
long double EpsilonOf(DType dtype) {
  const bool is_float = InfoOf(dtype).kind == DTypeKind::kFloat;
  return is_float ? 2.0L * UnitRoundoff(dtype) : std::numeric_limits<double>::epsilon();
}

void Measure(const TensorView& a, const TensorView& b, TreeRow& row) {
  long double most_absolute = 0, most_relative = 0;
  bool any_nan = false;
  const auto count = static_cast<size_t>(a.element_count());
  for (size_t i = 0; i < count; ++i) {
    const long double y = ElementValue(b, i), diff = ElementDistance(a, b, i);
    any_nan = any_nan || std::isnan(diff);
    most_absolute = std::max(most_absolute, diff);
    most_relative = std::max(most_relative, diff / std::abs(y == 0 ? EpsilonOf(b.dtype) : y));
  }
  const bool equal = std::equal(a.data, a.data + a.size_bytes(), b.data, b.data + b.size_bytes());
  const auto text = [&](long double value) {
    return any_nan ? std::string("nan") : PythonFloat(static_cast<double>(value));
  };
  row.cells = {PythonFloat(MeanOf(a)), PythonFloat(MeanOf(b)), equal ? "True" : "False",
               text(most_absolute), text(most_relative)};
  row.verdict = measure::JudgePair(a, b);
}

void CompareFiles(TreeRow& row) {
  const auto left = npy::NpyFile::Open(row.target), right = npy::NpyFile::Open(row.golden);
  const auto a = left ? Tensor::Copy(left->view()) : Result<Tensor>(left.error());
  const auto b = right ? Tensor::Copy(right->view()) : Result<Tensor>(right.error());
  if (!a || !b) {
    row.verdict = measure::NotComparable("unreadable");
    row.problem = (a ? b.error() : a.error()).message();
  } else if (!std::ranges::equal(a->view().sizes, b->view().sizes)) {
    row.verdict = {Verdict::kBroken, "shape-differs", 0, 0};
    row.problem = fmt::format("shapes {} and {}", match::TupleText(a->view().sizes),
                              match::TupleText(b->view().sizes));
  } else if (a->view().dtype != b->view().dtype) {
    row.verdict = {Verdict::kBroken, "type-differs", 0, 0};
    row.problem =
        fmt::format("types {} and {}", InfoOf(a->view().dtype).name, InfoOf(b->view().dtype).name);
  } else if (a->view().element_count() == 0) {
    row.verdict = measure::NotComparable("empty");
  } else {
    Measure(a->view(), b->view(), row);
  }
}

// Adds rows of two directories of arrays; a missing one is an empty path.
Status CompareDirectories(const std::string& target, const std::string& golden,
                          std::vector<TreeRow>& rows) {
  Files mine, theirs;
  if (!target.empty()) {
    PL_TRY_ASSIGN(mine, ArraysIn(target));
  }
  if (!golden.empty()) {
    PL_TRY_ASSIGN(theirs, ArraysIn(golden));
  }
  std::set<std::string> keys;
  for (const auto& [key, path] : mine) keys.insert(key);
  for (const auto& [key, path] : theirs) keys.insert(key);
  for (const std::string& key : keys) {
    TreeRow& row = rows.emplace_back();
    if (const auto found = mine.find(key); found != mine.end()) row.target = found->second;
    if (const auto found = theirs.find(key); found != theirs.end()) row.golden = found->second;
    if (!row.target.empty() && !row.golden.empty()) {
      CompareFiles(row);
      continue;
    }
    row.verdict = measure::NotComparable(row.golden.empty() ? "only-target" : "only-golden");
    row.problem = "there is no counterpart";
  }
  return {};
}

// Below a directory; none of one that is not there.
Result<std::vector<std::string>> DirectoriesIn(const std::string& path) {
  if (path.empty()) return std::vector<std::string>();
  return ListDirectories(path);
}

// Adds the rows of two directories and of those below. Directories of operators pair by name, those
// of an operator's times by position. An empty path: the side lacks it.
Status CompareLevels(const std::string& target, const std::string& golden, int level,
                     std::vector<TreeRow>& rows) {
  constexpr int kOfOperator = 1;
  PL_TRY(CompareDirectories(target, golden, rows));
  PL_TRY_ASSIGN(const std::vector<std::string> mine, DirectoriesIn(target));
  PL_TRY_ASSIGN(const std::vector<std::string> theirs, DirectoriesIn(golden));
  const auto in = [](const std::string& directory, const std::vector<std::string>& names,
                     const std::string& name) {
    const bool is_there = std::ranges::find(names, name) != names.end();
    return is_there ? JoinPath(directory, name) : std::string();
  };
  if (level == kOfOperator) {
    for (size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
      PL_TRY(CompareLevels(i < mine.size() ? JoinPath(target, mine[i]) : "",
                           i < theirs.size() ? JoinPath(golden, theirs[i]) : "", level + 1, rows));
    }
    return {};
  }
  std::set<std::string> names(mine.begin(), mine.end());
  names.insert(theirs.begin(), theirs.end());
  for (const std::string& name : names) {
    PL_TRY(CompareLevels(in(target, mine, name), in(golden, theirs, name), level + 1, rows));
  }
  return {};
}

// Lines end in CR LF, as upstream's do; line breaks within a cell stay as they are.
std::string TableText(const std::vector<TreeRow>& rows) {
  std::string text(kByteOrderMark);
  text +=
      "NPU File Name,Bench File Name,Mean,Bench Mean,Md5 Consistency,Max Abs Error,"
      "Max Relative Error,Verdict,Reason,Problem\r\n";
  for (const TreeRow& row : rows) {
    csv::Row cells = {row.target, row.golden};
    const size_t measured = 5;
    for (size_t i = 0; i < measured; ++i) {
      cells.push_back(row.cells.empty() ? std::string() : row.cells[i]);
    }
    cells.emplace_back(VerdictName(row.verdict.verdict));
    cells.emplace_back(row.verdict.reason);
    cells.push_back(row.problem);
    csv::AppendRow(cells, text);
    text.insert(text.size() - 1, 1, '\r');
  }
  return text;
}

}  // namespace

bool IsNpyTree(const std::string& directory) {
  bool any = false;
  return HasOnlyArrays(directory, 1, any) && any;
}

Result<NpyTreeReport> CompareNpyTrees(const std::string& target, const std::string& golden,
                                      const std::string& output) {
  PL_TRY_ASSIGN(const std::string left, RealPath(target));
  PL_TRY_ASSIGN(const std::string right, RealPath(golden));
  if (left == right) {
    return Error(ErrorCode::kInvalidArgument, target + ": is given on both sides");
  }
  std::vector<TreeRow> rows;
  PL_TRY(CompareLevels(left, right, 0, rows));
  PL_TRY(MakeDirectories(output));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  NpyTreeReport report{JoinPath(output, fmt::format("batch_compare_{}.csv", seconds)), rows.size()};
  for (const TreeRow& row : rows) {
    if (!measure::IsGood(row.verdict.verdict)) ++report.differing;
  }
  PL_TRY(WriteFileAtomically(report.path, TableText(rows), /*durable=*/false));
  return report;
}

}  // namespace plumbline
