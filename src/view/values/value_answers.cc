#include "view/values/value_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/file/lost_mapping.h"
#include "base/text/text_parts.h"
#include "measure/tensor_metrics.h"
#include "tensor/element_value.h"
#include "view/query/json_answer.h"
#include "view/values/distribution.h"
#include "view/values/error_counts.h"
#include "view/values/tensor_views.h"

namespace plumbline::view {
namespace {

constexpr std::array<std::string_view, 5> kValueQuestions = {"stats", "histogram", "slice", "topk",
                                                             "profile"};
constexpr size_t kErrorBins = 256;
constexpr int64_t kMostCells = 2048;  // of a slice, one way
constexpr int64_t kMostWorst = 1000;
constexpr int64_t kMostProfileCells = 8192;

std::string ShapeText(const Shape& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

// The two sides of a value, opened.
struct OpenValue {
  std::optional<ValueFile> target, golden;
  std::string target_key, golden_key;  // of their contents
  TensorView target_view, golden_view;
  std::vector<std::string> notes;

  [[nodiscard]] const ValueFile& any() const { return target ? *target : *golden; }
  [[nodiscard]] bool has_both() const { return target && golden; }
  [[nodiscard]] bool is_comparable() const {
    return has_both() && target->sizes() == golden->sizes();
  }
  // Both where they can be compared, else what is there.
  [[nodiscard]] ValueSides sides() const {
    return {target ? &target_view : nullptr, golden ? &golden_view : nullptr};
  }
};

void AddNotes(OpenValue& value) {
  const auto is_any = [&](const auto& of) {
    return (value.target && of(value.target->dtype())) ||
           (value.golden && of(value.golden->dtype()));
  };
  if (is_any([](DType dtype) { return InfoOf(dtype).kind == DTypeKind::kComplex; })) {
    value.notes.emplace_back(
        "complex numbers count by their modulus; two differ by the modulus of their difference");
  }
  if (is_any([](DType dtype) { return dtype == DType::kInt64 || dtype == DType::kUInt64; })) {
    value.notes.emplace_back("integers above 2^53 are rounded but in the list of the worst");
  }
  if (value.has_both() && !value.is_comparable()) {
    value.notes.push_back(fmt::format("the shapes differ, so nothing is compared: {} and {}",
                                      ShapeText(value.target->sizes()),
                                      ShapeText(value.golden->sizes())));
  }
  if (value.has_both() && value.target->dtype() != value.golden->dtype()) {
    value.notes.push_back(fmt::format("the data types differ: {} and {}",
                                      InfoOf(value.target->dtype()).name,
                                      InfoOf(value.golden->dtype()).name));
  }
}

Result<OpenValue> OpenBoth(const ValueFiles& files) {
  if (files.target.empty() && files.golden.empty()) {
    return Error(ErrorCode::kNotFound,
                 "the elements of this value are in neither recording. Record again with the task "
                 "\"tensor\" in config.json");
  }
  OpenValue value;
  if (!files.target.empty()) {
    PL_TRY_ASSIGN(value.target_key, ContentKey(files.target));
    PL_TRY_ASSIGN(value.target, ValueFile::Open(files.target));
    value.target_view = value.target->view();
  }
  if (!files.golden.empty()) {
    PL_TRY_ASSIGN(value.golden_key, ContentKey(files.golden));
    PL_TRY_ASSIGN(value.golden, ValueFile::Open(files.golden));
    value.golden_view = value.golden->view();
  }
  if (!value.has_both()) {
    value.notes.push_back(fmt::format("{} has no elements of this value on disk",
                                      value.target ? "golden" : "target"));
  }
  AddNotes(value);
  return value;
}

// Passes over the tensors, whose results are kept.
class ValuePasses {
 public:
  ValuePasses(const OpenValue& value, const ValueContext& context)
      : value_(value), context_(context) {}

  Result<std::shared_ptr<const Distribution>> Of(bool of_target) const {
    const std::string key = "distribution\n" + (of_target ? value_.target_key : value_.golden_key);
    return Kept<Distribution>(
        key,
        [&] {
          return DistributionOf(ElementReader((of_target ? value_.target : value_.golden)->view()),
                                context_.cancel);
        },
        [](const Distribution& made) { return made.table.size() * sizeof(Distribution::Value); });
  }

  // Requires: is_comparable().
  Result<std::shared_ptr<const ErrorCounts>> Errors() const {
    PL_TRY_ASSIGN(const auto golden, Of(false));
    return Kept<ErrorCounts>(
        PairKey("errors"), [&] { return CountErrors(Pair(), *golden, context_.cancel); },
        [](const ErrorCounts&) { return 2 * OctaveCounts::kBins * sizeof(uint64_t); });
  }

  Result<std::shared_ptr<const Distribution>> Difference() const {
    return Kept<Distribution>(
        PairKey("difference"), [&] { return DistributionOfDifference(Pair(), context_.cancel); },
        [](const Distribution&) { return sizeof(Distribution); });
  }

  [[nodiscard]] CancelFlag cancel() const { return context_.cancel; }
  [[nodiscard]] const OpenValue& value() const { return value_; }

 private:
  [[nodiscard]] PairReader Pair() const { return {value_.target->view(), value_.golden->view()}; }
  [[nodiscard]] std::string PairKey(std::string_view what) const {
    return fmt::format("{}\n{}\n{}", what, value_.target_key, value_.golden_key);
  }

  template <class T, class Make, class BytesOf>
  Result<std::shared_ptr<const T>> Kept(const std::string& key, const Make& make,
                                        const BytesOf& bytes_of) const {
    if (context_.cache != nullptr) {
      if (auto found = context_.cache->Find<T>(key)) return found;
    }
    const LossWatch watch;
    PL_TRY_ASSIGN(T made, make());
    PL_TRY(watch.Check());
    auto shared = std::make_shared<const T>(std::move(made));
    if (context_.cache != nullptr) context_.cache->Keep(key, shared, sizeof(T) + bytes_of(*shared));
    return shared;
  }

  const OpenValue& value_;
  const ValueContext& context_;
};

// ---- pieces of answers ----

void AddCounts(const Distribution& of, JsonAnswer& out) {
  out.Members("elements", of.elements, "nan", of.nan, "inf", of.inf, "minus_inf", of.minus_inf,
              "zero", of.zero, "subnormal", of.subnormal);
}

void AddMoments(const Distribution& of, JsonAnswer& out) {
  if (of.finite() == 0) {
    for (const char* name : {"min", "max", "mean", "norm", "quantiles"}) out.Key(name).Null();
    return;
  }
  out.Members("min", of.min, "max", of.max, "mean", of.mean, "norm", of.norm, "quantiles",
              of.quantiles);
}

// "target" and "golden": null, or what `add` makes of a side, in an object.
template <class Add>
Status AddSides(const OpenValue& value, const Add& add, JsonAnswer& out) {
  for (const bool of_target : {true, false}) {
    const std::optional<ValueFile>& side = of_target ? value.target : value.golden;
    out.Key(of_target ? "target" : "golden");
    if (!side) {
      out.Null();
      continue;
    }
    out.Open('{').Members("dtype", InfoOf(side->dtype()).name, "shape", side->sizes());
    PL_TRY(add(of_target, *side));
    out.Close('}');
  }
  out.Members("notes", value.notes);
  return {};
}

Status AddHeads(const OpenValue& value, JsonAnswer& out) {
  return AddSides(
      value, [](bool, const ValueFile&) -> Status { return {}; }, out);
}

void AddMetrics(const TensorMetrics& metrics, JsonAnswer& out) {
  const auto number = [](const Metric& metric) {
    const double* const held = std::get_if<double>(&metric);
    return held == nullptr ? std::nullopt : std::optional(*held);
  };
  out.Object("cosine", number(metrics.cosine), "max_abs_error", number(metrics.max_abs_error),
             "max_relative_error", number(metrics.max_relative_error), "below_thousandth_ratio",
             number(metrics.below_thousandth_ratio), "below_five_thousandths_ratio",
             number(metrics.below_five_thousandths_ratio), "euclidean_distance",
             number(metrics.euclidean_distance), "relative_l2", number(metrics.relative_l2),
             "max_ulp", number(metrics.max_ulp), "element_count", metrics.element_count,
             "mismatch_count", metrics.mismatch_count, "golden_zero_mismatch_count",
             metrics.golden_zero_mismatch_count);
}

// ---- stats ----

Status AddDifference(const ValuePasses& passes, JsonAnswer& out) {
  const OpenValue& value = passes.value();
  if (!value.is_comparable()) {
    out.Members("difference", nullptr, "metrics", nullptr);
    return {};
  }
  PL_TRY_ASSIGN(const auto difference, passes.Difference());
  out.Key("difference").Open('{');
  AddCounts(*difference, out);
  AddMoments(*difference, out);
  out.Close('}');
  PL_TRY_ASSIGN(const TensorMetrics metrics,
                measure::MeasureTensors(value.target->view(), value.golden->view()));
  out.Key("metrics");
  AddMetrics(metrics, out);
  return {};
}

Status AnswerStats(const ValuePasses& passes, const Parameters&, JsonAnswer& out) {
  const auto add = [&](bool of_target, const ValueFile&) -> Status {
    PL_TRY_ASSIGN(const auto distribution, passes.Of(of_target));
    AddCounts(*distribution, out);
    AddMoments(*distribution, out);
    return {};
  };
  PL_TRY(AddSides(passes.value(), add, out));
  out.Members("quantiles_at", kQuantiles);
  return AddDifference(passes, out);
}

// ---- histogram ----

Result<BinScale> ScaleOf(const Parameters& parameters) {
  const std::string_view scale = parameters.Text("scale");
  if (scale.empty() || scale == "linear") return BinScale::kLinear;
  if (scale == "symlog") return BinScale::kSymmetricLog;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("scale: expected linear or symlog, got '{}'", scale.substr(0, 40)));
}

// The same for both sides; none where neither has a finite element.
Result<BinEdges> CommonEdges(const ValuePasses& passes, BinScale scale) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const bool of_target : {true, false}) {
    if (!(of_target ? passes.value().target : passes.value().golden)) continue;
    PL_TRY_ASSIGN(const auto distribution, passes.Of(of_target));
    if (distribution->finite() == 0) continue;
    low = std::min(low, distribution->min);
    high = std::max(high, distribution->max);
  }
  return low > high ? BinEdges() : EdgesBetween(low, high, scale);
}

void AddErrors(const ErrorCounts& errors, JsonAnswer& out) {
  const auto bins = [&](const OctaveCounts& counts) {
    return [&out, condensed = counts.Condensed(kErrorBins)] {
      out.Object("edges", condensed.edges, "counts", condensed.counts);
    };
  };
  std::vector<double> ulp_edges = {0};
  for (size_t k = 0; k < errors.ulp.size(); ++k) {
    ulp_edges.push_back(std::ldexp(1.0, static_cast<int>(k)));
  }
  out.Open('{').Members("nonfinite", errors.nonfinite, "nonfinite_mismatch",
                        errors.nonfinite_mismatch, "equal", errors.equal, "relative_infinite",
                        errors.relative_infinite, "absolute", bins(errors.absolute), "relative",
                        bins(errors.relative));
  out.Key("ulp");
  errors.ulp.empty() ? out.Null() : out.Object("edges", ulp_edges, "counts", errors.ulp);
  out.Key("deciles").List(errors.deciles, [&](const DecileErrors& decile) {
    const auto count = static_cast<double>(std::max<uint64_t>(decile.count, 1));
    out.Object("low", decile.low, "high", decile.high, "count", decile.count, "absolute_mean",
               decile.absolute_sum / count, "absolute_max", decile.absolute_max, "relative_max",
               decile.relative_max);
  });
  out.Close('}');
}

Status AnswerHistogram(const ValuePasses& passes, const Parameters& parameters, JsonAnswer& out) {
  PL_TRY_ASSIGN(const BinScale scale, ScaleOf(parameters));
  PL_TRY_ASSIGN(const BinEdges edges, CommonEdges(passes, scale));
  const auto add = [&](bool of_target, const ValueFile& side) -> Status {
    PL_TRY_ASSIGN(const auto distribution, passes.Of(of_target));
    AddCounts(*distribution, out);
    BinCounts counts;
    if (!edges.empty()) {
      PL_TRY_ASSIGN(counts,
                    CountBins(ElementReader(side.view()), *distribution, edges, passes.cancel()));
    }
    out.Members("counts", counts);
    return {};
  };
  PL_TRY(AddSides(passes.value(), add, out));
  out.Members("scale", scale == BinScale::kLinear ? "linear" : "symlog", "edges", edges);
  out.Key("errors");
  if (!passes.value().is_comparable()) {
    out.Null();
    return {};
  }
  PL_TRY_ASSIGN(const auto errors, passes.Errors());
  AddErrors(*errors, out);
  return {};
}

// ---- slice ----

Error Faulty(std::string_view name, std::string_view expected, std::string_view got) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: expected {}, got '{}'", name, expected, got.substr(0, 40)));
}

// Numbers by comma, each from 0 to below `limit_of(position)`; an empty text has none.
template <class LimitOf>
Result<std::vector<int64_t>> NumberList(std::string_view name, std::string_view text,
                                        const LimitOf& limit_of) {
  std::vector<int64_t> numbers;
  if (text.empty()) return numbers;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::optional<int64_t> number = ParseInteger(part);
    const int64_t limit = limit_of(numbers.size());
    if (!number || *number < 0 || *number >= limit) {
      return Faulty(name, fmt::format("whole numbers by comma, the next below {}", limit), part);
    }
    numbers.push_back(*number);
  }
  return numbers;
}

Status SetAxes(const Parameters& parameters, const Shape& shape, Plane& plane) {
  const size_t dimensions = shape.size();
  PL_TRY_ASSIGN(const std::vector<int64_t> axes,
                NumberList("axes", parameters.Text("axes"),
                           [&](size_t) { return static_cast<int64_t>(dimensions); }));
  if (axes.size() > 2 || (axes.size() == 2 && axes[0] == axes[1])) {
    return Faulty("axes", "two different dimensions, or one", parameters.Text("axes"));
  }
  if (axes.size() == 2) plane.row_axis = static_cast<size_t>(axes[0]);
  if (!axes.empty()) plane.column_axis = static_cast<size_t>(axes.back());
  if (!axes.empty()) return {};
  if (dimensions > 1) plane.row_axis = dimensions - 2;
  if (dimensions > 0) plane.column_axis = dimensions - 1;
  return {};
}

Status SetFixed(const Parameters& parameters, const Shape& shape, Plane& plane) {
  plane.at.assign(shape.size(), 0);
  std::vector<size_t> others;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != plane.row_axis && d != plane.column_axis) others.push_back(d);
  }
  const std::string_view text = parameters.Text("fixed");
  PL_TRY_ASSIGN(const std::vector<int64_t> fixed, NumberList("fixed", text, [&](size_t i) {
                  return i < others.size() ? shape[others[i]] : 0;
                }));
  if (!fixed.empty() && fixed.size() != others.size()) {
    return Faulty("fixed", fmt::format("{} indices, one for each other dimension", others.size()),
                  text);
  }
  for (size_t i = 0; i < fixed.size(); ++i) plane.at[others[i]] = fixed[i];
  return {};
}

Result<IndexRange> RangeOf(const Parameters& parameters, std::string_view name, int64_t size) {
  const std::string_view text = parameters.Text(name);
  if (text.empty()) return IndexRange{0, size};
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const auto begin = ParseInteger(text.substr(0, colon));
    const auto end = ParseInteger(text.substr(colon + 1));
    if (begin && end && *begin >= 0 && *begin < *end && *end <= size) {
      return IndexRange{*begin, *end};
    }
  }
  return Faulty(name, fmt::format("begin:end with 0 <= begin < end <= {}", size), text);
}

Result<Plane> PlaneOf(const Parameters& parameters, const Shape& shape) {
  Plane plane;
  PL_TRY(SetAxes(parameters, shape, plane));
  PL_TRY(SetFixed(parameters, shape, plane));
  if (plane.row_axis) {
    PL_TRY_ASSIGN(plane.rows, RangeOf(parameters, "rows", shape[*plane.row_axis]));
  }
  if (plane.column_axis) {
    PL_TRY_ASSIGN(plane.columns, RangeOf(parameters, "columns", shape[*plane.column_axis]));
  }
  constexpr int64_t kDefault = 256;
  PL_TRY_ASSIGN(const int64_t width, parameters.Number("width", kDefault, 1, kMostCells));
  PL_TRY_ASSIGN(const int64_t height, parameters.Number("height", kDefault, 1, kMostCells));
  plane.width = static_cast<size_t>(width);
  plane.height = static_cast<size_t>(height);
  return plane;
}

Result<PlaneSide> SideOf(const Parameters& parameters, const OpenValue& value) {
  const std::string_view side = parameters.Text("side");
  const bool is_target =
      side == "target" || (side.empty() && !value.is_comparable() && value.target);
  if (is_target && value.target) return PlaneSide::kTarget;
  if ((side == "golden" || (side.empty() && !value.target)) && value.golden) {
    return PlaneSide::kGolden;
  }
  if ((side == "difference" || side.empty()) && value.is_comparable()) {
    return PlaneSide::kDifference;
  }
  if (side == "target" || side == "golden" || side == "difference") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("side={}: {}", side,
                             value.notes.empty() ? "is not there" : value.notes.back()));
  }
  return Faulty("side", "target, golden or difference", side);
}

void AddPlane(const Plane& plane, JsonAnswer& out) {
  out.Key("axes").Open('[');
  if (plane.row_axis) out.Integer(*plane.row_axis);
  if (plane.column_axis) out.Integer(*plane.column_axis);
  out.Close(']').Key("fixed").Open('[');
  for (size_t d = 0; d < plane.at.size(); ++d) {
    if (d != plane.row_axis && d != plane.column_axis) out.Integer(plane.at[d]);
  }
  out.Close(']').Members("rows", std::array{plane.rows.begin, plane.rows.end}, "columns",
                         std::array{plane.columns.begin, plane.columns.end});
}

void AddCells(const PooledPlane& pooled, bool is_difference, JsonAnswer& out) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double cell : pooled.cells) {
    if (!std::isfinite(cell)) continue;
    low = std::min(low, cell);
    high = std::max(high, cell);
  }
  const bool is_any = low <= high;
  out.Members("width", pooled.width, "height", pooled.height, "is_exact", pooled.is_exact,
              "pooling",
              pooled.is_exact ? "none"
              : is_difference ? "largest"
                              : "mean",
              "min", is_any ? std::optional(low) : std::nullopt, "max",
              is_any ? std::optional(high) : std::nullopt);
  out.Key("cells").Open('[');
  for (size_t row = 0; row < pooled.height; ++row) {
    out.Put(std::span(pooled.cells).subspan(row * pooled.width, pooled.width));
  }
  out.Close(']');
}

Status AnswerSlice(const ValuePasses& passes, const Parameters& parameters, JsonAnswer& out) {
  const OpenValue& value = passes.value();
  PL_TRY_ASSIGN(const PlaneSide side, SideOf(parameters, value));
  const ValueFile& shown = side == PlaneSide::kGolden ? *value.golden : *value.target;
  PL_TRY_ASSIGN(const Plane plane, PlaneOf(parameters, shown.sizes()));
  const bool is_difference = side == PlaneSide::kDifference;
  PooledPlane pooled;
  pooled.is_exact = true;
  if (shown.elements() > 0) {
    PL_TRY_ASSIGN(pooled, PoolPlane(value.sides(), side, plane, passes.cancel()));
  }
  PL_TRY(AddHeads(value, out));
  out.Key("side").Text(is_difference                ? "difference"
                       : side == PlaneSide::kGolden ? "golden"
                                                    : "target");
  AddPlane(plane, out);
  AddCells(pooled, is_difference, out);
  return {};
}

// ---- topk ----

// As it is: an integer with all digits, a complex number as its two parts.
void AddElement(const ElementReader& reader, uint64_t index, JsonAnswer& out) {
  std::array<std::byte, 16> scratch;
  const std::byte* at = reader.Raw(index, 1, scratch.data());
  VisitElement(reader.dtype(), at, [&](auto value, auto... imaginary) {
    if constexpr (sizeof...(imaginary) > 0) {
      out.Put(std::array{static_cast<double>(value), static_cast<double>(imaginary)...});
    } else if constexpr (std::is_same_v<decltype(value), bool>) {
      out.Integer(value ? 1 : 0);
    } else if constexpr (std::is_integral_v<decltype(value)>) {
      out.Integer(value);
    } else {
      out.Number(static_cast<double>(value));
    }
  });
}

void AddIndex(uint64_t flat, const Shape& sizes, JsonAnswer& out) {
  Shape index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    const auto size = static_cast<uint64_t>(sizes[d]);
    index[d] = static_cast<int64_t>(flat % size);
    flat /= size;
  }
  out.Members("index", index);
}

void AddWorst(const OpenValue& value, uint64_t flat, JsonAnswer& out) {
  out.Open('{');
  AddIndex(flat, value.any().sizes(), out);
  for (const bool of_target : {true, false}) {
    const std::optional<ValueFile>& side = of_target ? value.target : value.golden;
    out.Key(of_target ? "target" : "golden");
    if (side) {
      AddElement(ElementReader(side->view()), flat, out);
    } else {
      out.Null();
    }
  }
  if (value.has_both()) {
    ElementPair pair;
    PairReader(value.target->view(), value.golden->view())
        .Read(flat, 1, &pair.target, &pair.golden, &pair.difference);
    out.Members("difference", pair.difference, "relative",
                std::fabs(pair.difference) / std::fabs(pair.golden));
  }
  out.Close('}');
}

// Nothing where the sides can be looked at together.
Status NeedComparable(const OpenValue& value) {
  if (!value.has_both() || value.is_comparable()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the shapes differ, so nothing can be compared: {} and {}",
                           ShapeText(value.target->sizes()), ShapeText(value.golden->sizes())));
}

Status AnswerTopk(const ValuePasses& passes, const Parameters& parameters, JsonAnswer& out) {
  const OpenValue& value = passes.value();
  PL_TRY(NeedComparable(value));
  constexpr int64_t kDefault = 20;
  PL_TRY_ASSIGN(const int64_t count, parameters.Number("k", kDefault, 1, kMostWorst));
  const std::string_view by = parameters.Text("by");
  if (!by.empty() && by != "absolute" && by != "relative") {
    return Faulty("by", "absolute or relative", by);
  }
  PL_TRY_ASSIGN(
      const std::vector<uint64_t> worst,
      WorstElements(value.sides(), by == "relative" ? WorstBy::kRelative : WorstBy::kAbsolute,
                    static_cast<size_t>(count), passes.cancel()));
  PL_TRY(AddHeads(value, out));
  out.Members("by", by.empty() ? "absolute" : by).Key("worst");
  out.List(worst, [&](uint64_t index) { AddWorst(value, index, out); });
  return {};
}

// ---- profile ----

Status AnswerProfile(const ValuePasses& passes, const Parameters& parameters, JsonAnswer& out) {
  const OpenValue& value = passes.value();
  PL_TRY(NeedComparable(value));
  const Shape& shape = value.any().sizes();
  if (shape.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "axis: the value is one number (shape []) and has no axis");
  }
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  PL_TRY_ASSIGN(const int64_t axis, parameters.Number("axis", last, 0, last));
  constexpr int64_t kDefault = 1024;
  PL_TRY_ASSIGN(const int64_t width, parameters.Number("width", kDefault, 1, kMostProfileCells));
  PL_TRY_ASSIGN(const std::vector<AxisCell> cells,
                ProfileAxis(value.sides(), static_cast<size_t>(axis), static_cast<size_t>(width),
                            passes.cancel()));
  PL_TRY(AddHeads(value, out));
  const int64_t length = shape[static_cast<size_t>(axis)];
  out.Members("axis", axis, "length", length).Key("begins").Open('[');
  for (size_t k = 0; k < cells.size(); ++k) out.Integer(ShareBegin(length, cells.size(), k));
  out.Close(']');
  const auto column = [&](auto AxisCell::*member) {
    return [&out, &cells, member] {
      out.List(cells, [&](const AxisCell& cell) { out.Put(cell.*member); });
    };
  };
  out.Members("elements", column(&AxisCell::elements), "nonfinite", column(&AxisCell::nonfinite),
              "absolute_max", column(&AxisCell::absolute_max), "relative_max",
              column(&AxisCell::relative_max), "target_mean", column(&AxisCell::target_mean),
              "golden_mean", column(&AxisCell::golden_mean), "target_norm",
              column(&AxisCell::target_norm), "golden_norm", column(&AxisCell::golden_norm));
  return {};
}

using AnswerOne = Status (*)(const ValuePasses&, const Parameters&, JsonAnswer&);
constexpr std::array<AnswerOne, kValueQuestions.size()> kAnswers = {
    &AnswerStats, &AnswerHistogram, &AnswerSlice, &AnswerTopk, &AnswerProfile};

// All parameters that any question has.
std::string ParametersKey(std::string_view what, const Parameters& parameters) {
  std::string key = fmt::format("answer\n{}", what);
  for (const char* name : {"scale", "axes", "fixed", "rows", "columns", "width", "height", "side",
                           "k", "by", "axis"}) {
    key += fmt::format("\n{}", parameters.Text(name));
  }
  return key;
}

}  // namespace

Result<std::string> ValueAnswer(const ValueFiles& files, std::string_view what,
                                const Parameters& parameters, const ValueContext& context) {
  const auto question = std::ranges::find(kValueQuestions, what);
  if (question == kValueQuestions.end()) {
    return Faulty("what", fmt::format("one of {}", fmt::join(kValueQuestions, ", ")), what);
  }
  PL_TRY_ASSIGN(const OpenValue value, OpenBoth(files));
  const std::string key = fmt::format("{}\n{}\n{}", ParametersKey(what, parameters),
                                      value.target_key, value.golden_key);
  if (context.cache != nullptr) {
    if (const auto found = context.cache->Find<std::string>(key)) return *found;
  }
  const LossWatch watch;
  JsonAnswer out;
  out.Open('{');
  PL_TRY(kAnswers[static_cast<size_t>(question - kValueQuestions.begin())](
      ValuePasses(value, context), parameters, out));
  out.Close('}');
  PL_TRY(watch.Check());
  std::string text = out.Take();
  if (context.cache != nullptr) {
    context.cache->Keep(key, std::make_shared<const std::string>(text), text.size());
  }
  return text;
}

}  // namespace plumbline::view
