#include "operators/compare_hdf5.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/process/parallel.h"
#include "formats/hdf5/hdf5_handle.h"
#include "formats/hdf5/hdf5_reader.h"
#include "measure/array_verdict.h"
#include "measure/dump_algorithms.h"
#include "measure/tensor_metrics.h"
#include "report/result_names.h"

namespace plumbline::operators {

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

namespace {

using hdf5::Side;
using hdf5::StoredTensor;
using hdf5::StoredValue;
using hdf5::ValueKind;

constexpr const char* kNothing = "*";
constexpr std::string_view kNoData = "no-data";  // a tensor that was recorded by name alone

// One call of one dump, and where it comes from.
struct CallSide {
  const hdf5::DumpReader& reader;
  hdf5::CallPlace place;
  [[nodiscard]] std::string PathOf(const std::string& name) const {
    return fmt::format("/{}/{}/{}/{}", place.operation, place.call, SideName(place.side), name);
  }
};

// How two types of elements go together.
enum class TypesAre : uint8_t { kPaired, kNoted, kOther };

// Floats of any width have the same values up to the rounding of the narrower one. Those that
// upstream pairs, too, need no note.
TypesAre CompareTypes(DType a, DType b) {
  if (a == b) return TypesAre::kPaired;
  const auto one_is = [&](DType dtype) { return a == dtype || b == dtype; };
  if (one_is(DType::kInt32) && one_is(DType::kInt64)) return TypesAre::kPaired;
  const auto are_both = [&](DTypeKind kind) {
    return InfoOf(a).kind == kind && InfoOf(b).kind == kind;
  };
  if (are_both(DTypeKind::kFloat) && !one_is(DType::kFloat64)) return TypesAre::kPaired;
  return are_both(DTypeKind::kFloat) || are_both(DTypeKind::kComplex) ? TypesAre::kNoted
                                                                      : TypesAre::kOther;
}

Hdf5Row RowOf(int64_t index, const std::string& operation, std::string target, std::string golden,
              Side side) {
  Hdf5Row row;
  row.index = index;
  row.operation = operation;
  row.judged.operation = fmt::format("/{}/{}", operation, index);
  row.judged.name = target == kNothing ? golden : target;
  row.judged.is_output = side == Side::kOutput;
  row.target_path = std::move(target);
  row.golden_path = std::move(golden);
  return row;
}

void Fail(Hdf5Row& row, measure::ArrayVerdict verdict, std::string reason) {
  row.judged.verdict = verdict;
  row.fail_reason = std::move(reason);
}

using Algorithms = std::span<const measure::DumpAlgorithm>;

// Equally many elements, in their order where the shapes differ.
Status MeasureTensors(const StoredTensor& target, const StoredTensor& golden, Algorithms algorithms,
                      Hdf5Row& row) {
  PL_TRY_ASSIGN(const Tensor a, Tensor::Copy(target.view()));
  PL_TRY_ASSIGN(const Tensor b, Tensor::Copy(golden.view()));
  if (a.view().element_count() == 0) {
    Fail(row, measure::NotComparable("empty"), "the tensors are empty");
    return {};
  }
  for (const measure::AlgorithmText& text : measure::RunDumpAlgorithms(
           algorithms, {a.view(), b.view(), row.target_path, row.golden_path})) {
    row.algorithms.push_back(text.value);
    if (text.message.empty()) continue;
    if (!row.fail_reason.empty()) row.fail_reason += ",";
    row.fail_reason += text.message;
  }
  PL_TRY_ASSIGN(const kernels::Pairwise sums, measure::SumPairs(a.view(), b.view()));
  row.judged.verdict = measure::JudgeElements(measure::DifferenceOf(sums), a.view(), b.view(),
                                              target.recorded_dtype, golden.recorded_dtype);
  return {};
}

// A value of a call.
struct SideValue {
  const CallSide& side;
  const StoredValue& value;
};

void CompareTensors(const SideValue& target, const SideValue& golden, Algorithms algorithms,
                    Hdf5Row& row) {
  const StoredValue &mine = target.value, &theirs = golden.value;
  row.dtype = InfoOf(mine.dtype).name;
  row.shape = fmt::format("[{}]", fmt::join(mine.sizes, ","));
  if (!mine.has_data || !theirs.has_data) {
    Fail(row, measure::NotComparable(kNoData), "The dump has no elements of the tensor.");
    return;
  }
  const TypesAre types = CompareTypes(mine.dtype, theirs.dtype);
  const std::string names =
      fmt::format("{} and {}", InfoOf(mine.dtype).name, InfoOf(theirs.dtype).name);
  if (types == TypesAre::kOther) {
    Fail(row, {Verdict::kBroken, "type-differs", 0, 0},
         fmt::format("The DataType on both sides are different, {}.", names));
    return;
  }
  if (ElementCount(mine.sizes).value_or(-1) != ElementCount(theirs.sizes).value_or(-2)) {
    Fail(row, {Verdict::kBroken, "shape-differs", 0, 0},
         fmt::format("Due to the different shapes on the left and right,the left dump data({}) can "
                     "not be compared to the right dump data([{}]).",
                     row.shape, fmt::join(theirs.sizes, ",")));
    return;
  }
  const auto a = target.side.reader.Load(target.side.place, mine);
  const auto b = golden.side.reader.Load(golden.side.place, theirs);
  Status status =
      a ? (b ? MeasureTensors(*a, *b, algorithms, row) : Status(tl::unexpect, b.error()))
        : Status(tl::unexpect, a.error());
  if (!status) Fail(row, measure::NotComparable("unreadable"), status.error().message());
  if (!status || types == TypesAre::kPaired) return;
  row.fail_reason = fmt::format(
      "The DataType on both sides are different, {}: the values are "
      "compared.{}{}",
      names, row.fail_reason.empty() ? "" : ",", row.fail_reason);
}

bool IsNaN(const StoredValue& value) {
  const auto* number = std::get_if<double>(&value.number);
  return number != nullptr && std::isnan(*number);
}

using Values = std::map<std::string, StoredValue>;

// The values of one side of a call by name; what is wrong with it otherwise.
Result<Values> ValuesOf(const CallSide& side) {
  PL_TRY_ASSIGN(std::vector<StoredValue> list, side.reader.Values(side.place));
  Values values;
  for (StoredValue& value : list) values.emplace(value.name, std::move(value));
  return values;
}

const StoredValue* Find(const Values& values, const std::string& name) {
  if (const auto found = values.find(name); found != values.end()) return &found->second;
  for (const std::string_view other : hdf5::OtherNames(hdf5::ArgumentNames(), name)) {
    const auto found = values.find(std::string(other));
    if (found != values.end()) return &found->second;
  }
  return nullptr;
}

// Adds the rows of one side of a pair of calls.
class SideRows {
 public:
  SideRows(const CallSide& target, const CallSide& golden, Algorithms algorithms,
           std::vector<Hdf5Row>& rows)
      : target_(target), golden_(golden), algorithms_(algorithms), rows_(rows) {}

  void Add() {
    const Result<Values> mine = ValuesOf(target_), theirs = ValuesOf(golden_);
    if (!mine || !theirs) {
      Hdf5Row& row = AddRow(target_.PathOf(""), golden_.PathOf(""));
      Fail(row, measure::NotComparable("unreadable"),
           (mine ? theirs.error() : mine.error()).message());
      return;
    }
    std::map<const StoredValue*, bool> used;
    for (const auto& [name, value] : *mine) {
      const StoredValue* other = Find(*theirs, name);
      used[other] = true;
      AddValue(value, other);
    }
    for (const auto& [name, value] : *theirs) {
      if (!used.contains(&value)) AddGoldenOnly(value);
    }
  }

 private:
  Hdf5Row& AddRow(std::string target, std::string golden) {
    return rows_.emplace_back(RowOf(target_.place.call, target_.place.operation, std::move(target),
                                    std::move(golden), target_.place.side));
  }

  void AddValue(const StoredValue& mine, const StoredValue* theirs) {
    const std::string path = target_.PathOf(mine.name);
    if (theirs == nullptr) {
      AddTargetOnly(mine);
      return;
    }
    if (mine.kind != ValueKind::kTensor && theirs->kind != ValueKind::kTensor) {
      if (mine.number == theirs->number) return;
      Hdf5Row& row = AddRow(path, golden_.PathOf(theirs->name));
      if (IsNaN(mine) && IsNaN(*theirs)) {
        Fail(row, measure::NotComparable("nonfinite-both"), "The number is NaN on both sides.");
        return;
      }
      Fail(row, {Verdict::kBroken, "values-differ", 0, 0}, "The numbers on both sides differ.");
      return;
    }
    if (mine.kind != theirs->kind) {
      AddTargetOnly(mine);
      AddGoldenOnly(*theirs);
      return;
    }
    Hdf5Row& row = AddRow(path, golden_.PathOf(theirs->name));
    CompareTensors({target_, mine}, {golden_, *theirs}, algorithms_, row);
  }

  void AddTargetOnly(const StoredValue& mine) {
    const std::string path = target_.PathOf(mine.name);
    Hdf5Row& row = AddRow(path, kNothing);
    if (mine.kind == ValueKind::kTensor) {
      row.dtype = InfoOf(mine.dtype).name;
      row.shape = fmt::format("[{}]", fmt::join(mine.sizes, ","));
    }
    row.judged.paired = false;
    Fail(row, measure::NotComparable("only-target"),
         fmt::format("No data match with {} in golden dump data.", path));
  }

  void AddGoldenOnly(const StoredValue& theirs) {
    const std::string path = golden_.PathOf(theirs.name);
    Hdf5Row& row = AddRow(kNothing, path);
    row.judged.paired = false;
    Fail(row, measure::NotComparable("only-golden"),
         fmt::format("No data match with {} in my dump data.", path));
  }

  const CallSide& target_;
  const CallSide& golden_;
  Algorithms algorithms_;
  std::vector<Hdf5Row>& rows_;
};

// What all pairs of one comparison share.
struct PairContext {
  const hdf5::DumpReader& target;
  const hdf5::DumpReader& golden;
  Algorithms algorithms;
  bool has_inputs;
};

std::vector<Hdf5Row> RowsOfPair(const PairContext& context,
                                const std::pair<Hdf5Call, std::optional<Hdf5Call>>& pair) {
  const auto& [mine, theirs] = pair;
  std::vector<Hdf5Row> rows;
  if (!theirs) {
    Hdf5Row& row =
        rows.emplace_back(RowOf(mine.id, mine.operation, mine.text(), kNothing, Side::kOutput));
    row.judged.paired = false;
    Fail(row, measure::NotComparable("only-target"),
         fmt::format("No data match with op:{} in golden dump data.", mine.operation));
    return rows;
  }
  for (const Side side : {Side::kInput, Side::kOutput}) {
    if (side == Side::kInput && !context.has_inputs) continue;
    const CallSide left{context.target, {mine.operation, mine.id, side}};
    const CallSide right{context.golden, {theirs->operation, theirs->id, side}};
    SideRows(left, right, context.algorithms, rows).Add();
  }
  return rows;
}

// A replay writes outputs alone.
Result<bool> HasInputs(const hdf5::DumpReader& reader) {
  for (const auto& [operation, ids] : reader.calls()) {
    for (const int64_t id : ids) {
      PL_TRY_ASSIGN(const auto values, reader.Values({operation, id, Side::kInput}));
      if (!values.empty()) return true;
    }
  }
  return false;
}

bool IsOfNpu(const hdf5::DumpReader& reader) {
  for (const auto& [operation, ids] : reader.calls()) {
    for (const Side side : {Side::kInput, Side::kOutput}) {
      const auto values = reader.Values({operation, ids.front(), side});
      if (!values) continue;
      const auto tensor = std::ranges::find(*values, true, &StoredValue::has_data);
      if (tensor != values->end()) return tensor->device == hdf5::kNpu;
    }
  }
  return false;
}

// Two files of one array each, whatever they are called.
Hdf5Comparison CompareArrays(const hdf5::SoleArray& target, const hdf5::SoleArray& golden,
                             Algorithms algorithms) {
  const StoredTensor &mine = target.tensor, &theirs = golden.tensor;
  Hdf5Row row = RowOf(0, target.name, target.name, golden.name, Side::kOutput);
  row.judged.operation = target.name;
  row.dtype = InfoOf(mine.recorded_dtype).name;
  row.shape = fmt::format("[{}]", fmt::join(mine.sizes, ","));
  if (CompareTypes(mine.recorded_dtype, theirs.recorded_dtype) == TypesAre::kOther) {
    Fail(row, {Verdict::kBroken, "type-differs", 0, 0},
         fmt::format("The types are {} and {}.", row.dtype, InfoOf(theirs.recorded_dtype).name));
  } else if (mine.sizes != theirs.sizes) {
    Fail(row, {Verdict::kBroken, "shape-differs", 0, 0},
         fmt::format("The shapes are {} and [{}].", row.shape, fmt::join(theirs.sizes, ",")));
  } else if (const Status measured = MeasureTensors(mine, theirs, algorithms, row); !measured) {
    Fail(row, measure::NotComparable("unreadable"), measured.error().message());
  }
  Hdf5Comparison comparison;
  comparison.algorithms.assign(algorithms.begin(), algorithms.end());
  comparison.answer = report::AnswerOf({&row.judged, 1}, /*left_out=*/0);
  comparison.rows.push_back(std::move(row));
  return comparison;
}

}  // namespace

Result<Hdf5Comparison> CompareHdf5(const std::string& target, const std::string& golden,
                                   const Hdf5CompareOptions& options) {
  PL_TRY_ASSIGN(const auto mine, hdf5::ReadSoleArray(target));
  PL_TRY_ASSIGN(const auto theirs, hdf5::ReadSoleArray(golden));
  if (mine && theirs) return CompareArrays(*mine, *theirs, options.algorithms);
  if (mine || theirs) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds one array, but {} does not (expected two files of one "
                             "array each, or two operator dumps)",
                             mine ? target : golden, mine ? golden : target));
  }
  PL_TRY_ASSIGN(const hdf5::DumpReader left, hdf5::DumpReader::Open(target));
  PL_TRY_ASSIGN(const hdf5::DumpReader right, hdf5::DumpReader::Open(golden));
  const Result<bool> has_inputs = HasInputs(left);
  // What cannot be read becomes a row below.
  const bool with_inputs = has_inputs.value_or(true);
  const Hdf5CallPairs calls = PairHdf5Calls(left, right, !with_inputs);
  const PairContext context{left, right, options.algorithms, with_inputs};
  std::vector<std::vector<Hdf5Row>> parts(calls.pairs.size());
  RunWithThreads(options.threads, [&] {
    ParallelFor(parts.size(), [&](size_t i) { parts[i] = RowsOfPair(context, calls.pairs[i]); });
  });
  Hdf5Comparison comparison;
  comparison.algorithms = options.algorithms;
  comparison.target_is_npu = IsOfNpu(left);
  for (std::vector<Hdf5Row>& part : parts) {
    std::ranges::move(part, std::back_inserter(comparison.rows));
  }
  const int64_t last = calls.pairs.empty() ? 0 : calls.pairs.back().first.id;
  for (const Hdf5Call& call : calls.golden_only) {
    Hdf5Row& row = comparison.rows.emplace_back(
        RowOf(last + 1, call.operation, kNothing, call.text(), Side::kOutput));
    row.judged.paired = false;
    Fail(row, measure::NotComparable("only-golden"),
         fmt::format("No data match with {} in my dump data.", call.text()));
  }
  std::vector<report::JudgedTensor> judged;
  for (const Hdf5Row& row : comparison.rows) judged.push_back(row.judged);
  comparison.answer = report::AnswerOf(judged, /*left_out=*/0);
  return comparison;
}

csv::Row Hdf5Header(const Hdf5Comparison& comparison) {
  csv::Row header = {"Index", "NPUDump", "NPUDumpPath", "GroundTruthPath", "DataType", "Shape"};
  for (const auto algorithm : comparison.algorithms) {
    header.emplace_back(measure::DumpAlgorithmName(algorithm));
  }
  header.insert(header.end(), {"CompareFailReason", "Verdict", "Reason"});
  return header;
}

csv::Row Hdf5Cells(const Hdf5Comparison& comparison, const Hdf5Row& row) {
  csv::Row cells = {std::to_string(row.index), row.operation, row.target_path,
                    row.golden_path,           row.dtype,     row.shape};
  for (size_t i = 0; i < comparison.algorithms.size(); ++i) {
    cells.push_back(i < row.algorithms.size() ? row.algorithms[i] : "NaN");
  }
  cells.push_back(row.fail_reason);
  cells.emplace_back(VerdictName(row.judged.verdict.verdict));
  cells.emplace_back(row.judged.verdict.reason);
  return cells;
}

Result<std::string> WriteHdf5Result(const Hdf5Comparison& comparison,
                                    const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  const report::FreeName name = report::FreePath(directory, "result", ".csv");
  PL_TRY_ASSIGN(TextFile out, TextFile::Create(name.text));
  csv::AppendRow(Hdf5Header(comparison), out.text());
  for (const Hdf5Row& row : comparison.rows) {
    csv::AppendRow(Hdf5Cells(comparison, row), out.text());
    PL_TRY(out.Flush());
  }
  PL_TRY(out.Close());
  return name.text;
}

}  // namespace plumbline::operators
