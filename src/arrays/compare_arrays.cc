#include "arrays/compare_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "formats/table/xlsx.h"
#include "measure/elementwise.h"
#include "tensor/element_value.h"

namespace plumbline {

namespace {

const std::byte* AddressOf(const TensorView& view, size_t i) {
  return view.data + i * InfoOf(view.dtype).size_bytes;
}

struct ToValue {
  template <class T>
  long double operator()(T value) const {
    return static_cast<long double>(value);
  }
  template <class T>
  long double operator()(T real, T imaginary) const {
    return std::hypot(static_cast<long double>(real), static_cast<long double>(imaginary));
  }
};

struct ToParts {
  using Parts = std::pair<long double, long double>;
  template <class T>
  Parts operator()(T value) const {
    return {static_cast<long double>(value), 0};
  }
  template <class T>
  Parts operator()(T real, T imaginary) const {
    return {static_cast<long double>(real), static_cast<long double>(imaginary)};
  }
};

struct ToText {
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  template <class T>
  std::string operator()(T value) const {
    if constexpr (sizeof(T) == 1) return fmt::format("{}", static_cast<int>(value));
    std::string text = fmt::format("{}", value);
    const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
    return std::is_floating_point_v<T> && is_whole ? text + ".0" : text;
  }
  template <class T>
  std::string operator()(T real, T imaginary) const {
    return fmt::format("({}{:+}j)", real, imaginary);
  }
};

}  // namespace

long double ElementValue(const TensorView& view, size_t i) {
  return VisitElement(view.dtype, AddressOf(view, i), ToValue());
}

long double ElementDistance(const TensorView& one, const TensorView& other, size_t i) {
  const auto [x, x_imaginary] = VisitElement(one.dtype, AddressOf(one, i), ToParts());
  const auto [y, y_imaginary] = VisitElement(other.dtype, AddressOf(other, i), ToParts());
  const long double real = x == y ? 0 : std::abs(x - y);
  if (x_imaginary == y_imaginary) return real;
  return std::hypot(real, x_imaginary - y_imaginary);
}

std::string ElementText(const TensorView& view, size_t i) {
  return VisitElement(view.dtype, AddressOf(view, i), ToText());
}

namespace {

constexpr size_t kMaxNotes = 20;

// Upstream's headers, in UTF-8 by bytes: percentage of equal elements, index of the first unequal
// one, largest absolute and relative error, percentages within a thousandth and a hundredth. The
// last column is ours.
constexpr std::string_view kHeader[] = {
    "step",
    "rank",
    "micro_step",
    "id",
    "shape1",
    "shape2",
    "\u76f8\u540c\u5143\u7d20\u767e\u5206\u6bd4(%)",
    "\u9996\u4e2a\u4e0d\u5339\u914d\u5143\u7d20\u7d22\u5f15",
    "\u6700\u5927\u7edd\u5bf9\u8bef\u5dee",
    "\u6700\u5927\u76f8\u5bf9\u8bef\u5dee",
    "\u8bef\u5dee\u5728\u5343\u5206\u4e4b\u4e00\u5185\u5143\u7d20\u5360\u6bd4(%)",
    "\u8bef\u5dee\u5728\u767e\u5206\u4e4b\u4e00\u5185\u5143\u7d20\u5360\u6bd4(%)",
    "note",
};

struct Place {
  int64_t step = 0, rank = 0, micro_step = 0, id = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};
using Tag = std::map<Place, std::string>;  // path of each array

struct Row {
  Place place;
  Shape first, second;
  std::optional<measure::ElementMatch> match;
  std::string note;
};

// Subdirectories called <prefix><n>.
Result<std::map<int64_t, std::string>> Numbered(const std::string& path, std::string_view prefix) {
  std::map<int64_t, std::string> found;
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    const auto number = NaturalAfter(prefix, name);
    const std::string below = JoinPath(path, name);
    if (number && KindOf(below) == PathKind::kDirectory) found.emplace(*number, below);
  }
  return found;
}

// Behind the last dot, else behind the last underscore of a name without its ending.
std::optional<int64_t> IdIn(std::string_view stem) {
  for (const char mark : {'.', '_'}) {
    const size_t at = stem.rfind(mark);
    if (at == stem.npos) continue;
    if (const auto id = ParseNatural(stem.substr(at + 1))) return id;
  }
  return std::nullopt;
}

// The arrays of one directory. Those without a number are left to the comparison by name.
Status AddArrays(const std::string& path, Place place, Tag& tag) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    if (!name.ends_with(".npy")) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - 4);
    const auto id = IdIn(stem);
    if (!id) continue;
    place.id = *id;
    tag.emplace(place, JoinPath(path, name));
  }
  return {};
}

Result<Tag> ReadTag(const std::string& path) {
  Tag tag;
  PL_TRY_ASSIGN(const auto steps, Numbered(path, "step"));
  for (const auto& [step, step_path] : steps) {
    PL_TRY_ASSIGN(const auto ranks, Numbered(step_path, "rank"));
    for (const auto& [rank, rank_path] : ranks) {
      PL_TRY(AddArrays(rank_path, {step, rank, 0, 0}, tag));
      PL_TRY_ASSIGN(const auto micro_steps, Numbered(rank_path, "micro_step"));
      for (const auto& [micro_step, micro_path] : micro_steps) {
        PL_TRY(AddArrays(micro_path, {step, rank, micro_step, 0}, tag));
      }
    }
  }
  return tag;
}

Row Measure(const Place& place, const std::string& first, const std::string& second) {
  Row row{.place = place, .first = {}, .second = {}, .match = {}, .note = {}};
  const auto a = npy::NpyFile::Open(first), b = npy::NpyFile::Open(second);
  if (!a || !b) {
    row.note = !a ? a.error().message() : b.error().message();
    return row;
  }
  row.first.assign(a->view().sizes.begin(), a->view().sizes.end());
  row.second.assign(b->view().sizes.begin(), b->view().sizes.end());
  const auto match = measure::MatchElements(a->view(), b->view());
  if (!match) {
    row.note = match.error().message();
    return row;
  }
  row.match = *match;
  if (match->count == 0) row.note = "no common elements";
  if (row.first != row.second) row.note = "shapes differ; the common part is compared";
  return row;
}

Status WriteNumber(xlsx::Writer& out, double value) {
  return std::isfinite(value) ? out.Number(value) : out.Text(PythonFloat(value));
}

Status WriteRow(xlsx::Writer& out, const Row& row) {
  PL_TRY(out.BeginRow(xlsx::Fill::kNone));
  for (const int64_t number :
       {row.place.step, row.place.rank, row.place.micro_step, row.place.id}) {
    PL_TRY(out.Number(static_cast<double>(number)));
  }
  PL_TRY(out.Text(fmt::format("[{}]", fmt::join(row.first, ", "))));
  PL_TRY(out.Text(fmt::format("[{}]", fmt::join(row.second, ", "))));
  if (!row.match || row.match->count == 0) {
    for (int i = 0; i < 6; ++i) PL_TRY(out.Text(""));
    return out.Text(row.note);
  }
  const measure::ElementMatch& match = *row.match;
  const auto percent = [&](uint64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(match.count);
  };
  PL_TRY(out.Number(percent(match.equal)));
  if (match.first_mismatch) {
    PL_TRY(out.Number(static_cast<double>(*match.first_mismatch)));
  } else {
    PL_TRY(out.Text(""));
  }
  PL_TRY(WriteNumber(out, match.max_abs));
  PL_TRY(WriteNumber(out, match.max_relative));
  PL_TRY(out.Number(percent(match.within_thousandth)));
  PL_TRY(out.Number(percent(match.within_hundredth)));
  return out.Text(row.note);
}

void Count(const Row& row, ArrayTreeReport& report) {
  ++report.rows;
  const bool agrees =
      row.match && row.match->count > 0 && !row.match->first_mismatch && row.first == row.second;
  report.differing += agrees ? 0 : 1;
  if (row.match || report.notes.size() >= kMaxNotes) return;
  report.notes.push_back(row.note);
}

Status CompareTag(const Tag& first, const Tag& second, const std::string& path,
                  ArrayTreeReport& report) {
  std::vector<std::pair<Place, std::pair<std::string, std::string>>> pairs;
  for (const auto& [place, file] : first) {
    const auto found = second.find(place);
    if (found != second.end()) pairs.push_back({place, {file, found->second}});
  }
  report.unpaired += first.size() + second.size() - 2 * pairs.size();
  if (pairs.empty()) return {};
  std::vector<Row> rows(pairs.size());
  ParallelFor(pairs.size(), [&](size_t i) {
    rows[i] = Measure(pairs[i].first, pairs[i].second.first, pairs[i].second.second);
  });
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  PL_TRY_ASSIGN(xlsx::Writer out, xlsx::Writer::Create(path, kHeader));
  for (const Row& row : rows) {
    PL_TRY(WriteRow(out, row));
    Count(row, report);
  }
  PL_TRY(out.Close());
  report.files.push_back(path);
  return {};
}

Result<std::map<std::string, Tag>> ReadTree(const std::string& path) {
  std::map<std::string, Tag> tags;
  const std::string data = JoinPath(path, "data");
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(data));
  for (const std::string& name : names) {
    const std::string below = JoinPath(data, name);
    if (KindOf(below) != PathKind::kDirectory) continue;
    PL_TRY_ASSIGN(Tag tag, ReadTag(below));
    if (!tag.empty()) tags.emplace(name, std::move(tag));
  }
  return tags;
}

}  // namespace

bool IsArrayTree(const std::string& path) {
  if (KindOf(JoinPath(path, "data")) != PathKind::kDirectory) return false;
  const auto tags = ReadTree(path);
  return tags && !tags->empty();
}

Result<ArrayTreeReport> CompareArrayTrees(const std::string& first, const std::string& second,
                                          const std::string& output, int threads) {
  PL_TRY_ASSIGN(const auto left, ReadTree(first));
  PL_TRY_ASSIGN(const auto right, ReadTree(second));
  ArrayTreeReport report;
  Status status;
  for (const auto& entry : left) {
    const std::string& name = entry.first;
    const Tag& tag = entry.second;
    const auto other = right.find(name);
    if (other == right.end()) {
      report.unpaired += tag.size();
      continue;
    }
    const std::string path = JoinPath(output, name + ".xlsx");
    RunWithThreads(threads, [&] { status = CompareTag(tag, other->second, path, report); });
    PL_TRY(status);
  }
  for (const auto& [name, tag] : right) report.unpaired += left.contains(name) ? 0 : tag.size();
  if (!report.files.empty()) return report;
  return Error(ErrorCode::kNotFound, fmt::format("{}: no array that {} has too (expected "
                                                 "data/<tag>/step0/rank0/<name>_<id>.npy)",
                                                 first, second));
}

}  // namespace plumbline
