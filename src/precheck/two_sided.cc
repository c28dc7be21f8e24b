#include "precheck/two_sided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/number_text.h"
#include "plumbline/tensor.h"
#include "precheck/standards.h"
#include "report/result_names.h"

namespace plumbline::precheck {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Where no element may be wrong: so many of them count as once over the limit.
constexpr double kWrongShareUnit = 0.001;

std::string Short(double value) {
  std::string text;
  AppendGeneral(value, 3, text);
  return text;
}

std::optional<double> ValueOf(const Cell& cell) {
  return cell ? std::optional(cell->value) : std::nullopt;
}

bool IsNaN(const Cell& cell) { return cell && std::isnan(cell->value); }

Number Double(double value) { return {.value = value}; }

// Which numbers a row of the target has.
bool HasBenchmark(const OutputRow& row) {
  return row.small_value_error_ratio && row.rmse && row.max_rel_error && row.mean_rel_error &&
         row.error_balance;
}
bool HasAbsolute(const OutputRow& row) {
  return row.inf_nan_error_ratio && row.rel_error_ratio && row.abs_error_ratio;
}
bool HasNumbers(const OutputRow& row, Standard standard) {
  switch (standard) {
    case Standard::kBinary:
      return row.error_rate.has_value();
    case Standard::kAbsolute:
      return HasAbsolute(row);
    case Standard::kUlp:
      return row.ulp_proportion.has_value();
    case Standard::kThousandth:
      return row.thousandth.has_value();
    case Standard::kAccumulative:
      return HasAbsolute(row) && row.error_balance;
    case Standard::kBenchmark:
      return HasBenchmark(row);
  }
  return false;
}

// The standard of the name and dtype, or the one whose numbers there are. The share of thousandths
// says nothing about which: every narrow float has it.
std::optional<Standard> ChooseStandard(const OutputRow& row, std::string_view api) {
  const Standard by_name = TwoSidedStandardOf(api, row.device_dtype);
  for (const Standard standard :
       {by_name, Standard::kBenchmark, Standard::kUlp, Standard::kAbsolute, Standard::kBinary}) {
    if (HasNumbers(row, standard)) return standard;
  }
  return std::nullopt;
}

// "(0,)", "(2, 0)".
bool HasNoElements(std::string_view shape) {
  for (size_t at = shape.find('0'); at != std::string_view::npos; at = shape.find('0', at + 1)) {
    const char before = at == 0 ? '(' : shape[at - 1];
    const char behind = at + 1 == shape.size() ? ')' : shape[at + 1];
    if ((before == '(' || before == ' ') && (behind == ',' || behind == ')')) return true;
  }
  return false;
}

// Judges one output by one standard, filling a row.
class Judge {
 public:
  Judge(const OutputRow& target, const GoldenNumbers& golden, TwoSidedRow& row)
      : target_(target),
        golden_(golden),
        row_(row),
        dtype_(ParseDType(target.device_dtype).value_or(DType::kFloat32)),
        is_float8_(target.device_dtype.find("float8") != std::string::npos) {}

  void Run(Standard standard) {
    row_.algorithm = DisplayName(standard);
    switch (standard) {
      case Standard::kBinary:
        return Binary();
      case Standard::kAbsolute:
        return Absolute();
      case Standard::kUlp:
        return Ulp();
      case Standard::kThousandth:
        return Thousandth();
      case Standard::kAccumulative:
        return Accumulative();
      case Standard::kBenchmark:
        return Benchmark();
    }
  }

 private:
  // How a value of the target stands to that of the reference.
  struct Ratio {
    double value = std::nan("");
    bool is_plain = false;  // both are finite
    bool is_like = false;   // both are NaN, or the same infinity
  };

  Ratio RatioOf(double target, double golden) const {
    if (std::isfinite(target) && std::isfinite(golden)) {
      const double divisor = std::max(std::abs(golden), RatioFloor(dtype_));
      return {std::abs(target) / divisor, true, true};
    }
    const bool is_infinite = std::isinf(target) || std::isinf(golden);
    return {std::nan(""), false,
            is_infinite ? target == golden : std::isnan(target) && std::isnan(golden)};
  }

  void Say(std::string_view text) {
    if (!row_.message.empty()) row_.message += '\n';
    row_.message += text;
  }

  // What makes the output an error.
  void Blame(double excess, const std::string& reason) {
    Say("ERROR: " + reason);
    row_.status = CheckStatus::kError;
    if (std::isnan(excess)) excess = kInfinite;
    if (row_.reason.empty() || excess > row_.excess) row_.reason = reason;
    row_.excess = std::max(row_.excess, excess);
  }

  void SayNotFinite(std::string_view what, double target, double golden, bool is_like) {
    const std::string both = fmt::format("{} is {} on the target and {} on the reference", what,
                                         PythonFloat(target), PythonFloat(golden));
    if (is_like) return Say(both);
    Blame(kInfinite, both);
  }

  // Fills the cells of a ratio that has a limit.
  Ratio SetRatio(double target, double golden, double limit, SidedMetric& metric) const {
    const Ratio ratio = RatioOf(target, golden);
    metric.value = Double(ratio.value);
    const bool is_over = ratio.is_plain ? !(ratio.value <= limit) : !ratio.is_like;
    metric.status = is_over ? CheckStatus::kError : CheckStatus::kPass;
    return ratio;
  }

  // The same of a ratio that decides on the output.
  void Compare(std::string_view what, double target, double golden, double limit,
               SidedMetric& metric) {
    const Ratio ratio = SetRatio(target, golden, limit, metric);
    if (!ratio.is_plain) return SayNotFinite(what, target, golden, ratio.is_like);
    if (metric.status == CheckStatus::kPass) return;
    Blame(ratio.value / limit, fmt::format("{} is {} times that of the reference (limit {})", what,
                                           Short(ratio.value), Short(limit)));
  }

  // A share of elements of which there may be none.
  void ExpectZero(std::string_view what, double share, SidedMetric& metric) {
    metric.status = share == 0 ? CheckStatus::kPass : CheckStatus::kError;
    if (metric.status == CheckStatus::kPass) return;
    Blame(std::abs(share) / kWrongShareUnit, fmt::format("{} is {} (limit 0)", what, Short(share)));
  }

  void Skip(std::string_view reason) {
    row_.status = CheckStatus::kSkip;
    row_.message = reason;
  }

  void Binary() {
    row_.status = CheckStatus::kPass;
    row_.error_rate.value = target_.error_rate;
    ExpectZero("share of unequal elements", target_.error_rate->value, row_.error_rate);
  }

  void Absolute() {
    row_.status = CheckStatus::kPass;
    row_.inf_nan.value = Double(target_.inf_nan_error_ratio->value);
    row_.rel_error.value = Double(target_.rel_error_ratio->value);
    row_.abs_error.value = Double(target_.abs_error_ratio->value);
    ExpectZero("share of wrong elements among NaN and Inf", row_.inf_nan.value->value,
               row_.inf_nan);
    ExpectZero("share of elements with too large a relative error", row_.rel_error.value->value,
               row_.rel_error);
    ExpectZero("share of small elements with too large an absolute error",
               row_.abs_error.value->value, row_.abs_error);
  }

  void Accumulative() {
    Absolute();
    const double balance = target_.error_balance->value;
    const double limit = LimitsOf(Standard::kAccumulative, dtype_).balance;
    row_.error_balance = {Double(balance),
                          balance <= limit ? CheckStatus::kPass : CheckStatus::kError};
    if (balance <= limit) return;
    Blame(balance / limit,
          fmt::format("balance of errors is {} (limit {})", Short(balance), Short(limit)));
  }

  void Thousandth() {
    const double share = target_.thousandth->value;
    const bool passes = share >= kThousandthShareAtLeast;
    row_.status = row_.thousandth.status = passes ? CheckStatus::kPass : CheckStatus::kError;
    row_.thousandth.value = target_.thousandth;
    if (passes) return;
    Blame((1 - share) / (1 - kThousandthShareAtLeast),
          fmt::format("share of elements within a thousandth is {} (limit {})", Short(share),
                      Short(kThousandthShareAtLeast)));
  }

  void Benchmark() {
    if (!golden_.small_value || !golden_.rmse || !golden_.max_rel_error ||
        !golden_.mean_rel_error || !golden_.error_balance) {
      return Skip("no-counterpart: the reference has no numbers of this standard");
    }
    row_.status = CheckStatus::kPass;
    // All other numbers are of the finite elements alone.
    if (IsNaN(target_.cosine) && !golden_.has_nan_cosine) {
      Blame(kInfinite,
            "NaN or infinity is among the values on the target alone (cosine similarity)");
    }
    Compare("share of wrong small values", target_.small_value_error_ratio->value,
            *golden_.small_value, kSmallValueRatio, row_.small_value);
    Compare("root mean square error", target_.rmse->value, *golden_.rmse, kRmseRatio, row_.rmse);
    Compare("largest relative error", target_.max_rel_error->value, *golden_.max_rel_error,
            kMaxRelativeRatio, row_.max_rel_error);
    Compare("mean relative error", target_.mean_rel_error->value, *golden_.mean_rel_error,
            kMeanRelativeRatio, row_.mean_rel_error);
    // Told, and no reason for an error.
    (void)SetRatio(target_.error_balance->value, *golden_.error_balance, kBalanceRatio,
                   row_.error_balance);
  }

  // Of float8 there is no mean, and the reference is not asked.
  void Float8Ulp() {
    const double proportion = target_.ulp_proportion->value;
    const bool passes = proportion < kUlpProportionBelow;
    row_.ulp_proportion = Double(proportion);
    row_.status = row_.ulp.status = passes ? CheckStatus::kPass : CheckStatus::kError;
    if (passes) return;
    Blame(proportion / kUlpProportionBelow,
          fmt::format("share of elements far off in the last place is {} (limit {})",
                      Short(proportion), Short(kUlpProportionBelow)));
  }

  void Ulp() {
    if (is_float8_) return Float8Ulp();
    if (!golden_.mean_ulp || !golden_.ulp_proportion || !target_.mean_ulp) {
      return Skip("no-counterpart: a side has no numbers of this standard");
    }
    row_.status = CheckStatus::kPass;
    const double mean = target_.mean_ulp->value;
    const double proportion = target_.ulp_proportion->value;
    row_.mean_ulp = Double(mean);
    row_.ulp_proportion = Double(proportion);
    const Ratio means = RatioOf(mean, *golden_.mean_ulp);
    if (!means.is_plain) {
      SayNotFinite("mean ULP error", mean, *golden_.mean_ulp, means.is_like);
    }
    const Ratio ratio = RatioOf(proportion, *golden_.ulp_proportion);
    if (!ratio.is_plain) {
      SayNotFinite("share of large ULP errors", proportion, *golden_.ulp_proportion, ratio.is_like);
    }
    row_.ulp.value = Double(ratio.value);
    if (row_.status == CheckStatus::kError) return;  // the cell of the status stays blank
    LimitUlp(mean, proportion, ratio.value);
    row_.ulp.status = row_.status;
  }

  // One of the limits is enough.
  void LimitUlp(double mean, double proportion, double ratio) {
    const bool is_float32 = dtype_ == DType::kFloat32;
    const double limit = is_float32 ? kUlpProportionBelowFloat32 : kUlpProportionBelow;
    if (is_float32 && mean < kUlpMeanBelow) return;
    if (proportion < limit || ratio < kUlpProportionRatioBelow) return;
    double excess = std::min(proportion / limit, ratio / kUlpProportionRatioBelow);
    std::string reason;
    if (is_float32) {
      excess = std::min(excess, mean / kUlpMeanBelow);
      reason = fmt::format("mean ULP error is {} (limit {}), ", Short(mean), Short(kUlpMeanBelow));
    }
    Blame(excess, reason + fmt::format("share of large ULP errors is {} (limit {}), {} times that "
                                       "of the reference (limit {})",
                                       Short(proportion), Short(limit), Short(ratio),
                                       Short(kUlpProportionRatioBelow)));
  }

  const OutputRow& target_;
  const GoldenNumbers& golden_;
  TwoSidedRow& row_;
  DType dtype_;
  bool is_float8_;
};

// Why an output has no decision; empty: it can have one.
std::string SkipReason(const DetailsRow& target, const GoldenNumbers* golden) {
  const OutputRow& output = target.output;
  if (golden == nullptr) return "no-counterpart: the reference has no such output";
  if (golden->repeated) return "no-counterpart: the reference has several rows of this name";
  if (!target.problem.empty()) return "bad-argument: " + target.problem;
  if (!golden->problem.empty()) return "no-counterpart: on the reference, " + golden->problem;
  // Nothing was compared there; the message says why.
  const bool is_blank = output.device_dtype.empty() || output.status == CheckStatus::kSkip;
  if (is_blank || HasNoElements(output.shape)) {
    return output.message.empty() ? "no-output: not judged on the target" : output.message;
  }
  if (IsNeverTwoSided(output.device_dtype)) {
    return fmt::format("unsupported-type: {} has no reference of higher precision",
                       output.device_dtype);
  }
  return {};
}

// An output without numbers: wrong by itself, or judged in another way, or not at all.
void JudgeWithoutNumbers(const OutputRow& output, TwoSidedRow& row) {
  if (output.status == CheckStatus::kError) {
    row.status = CheckStatus::kError;
    row.excess = kInfinite;
    row.reason = "wrong on the target by itself, without numbers to compare";
    row.message = "ERROR: " + row.reason + (output.message.empty() ? "" : "\n" + output.message);
  } else if (IsDropout(output.name) && output.status == CheckStatus::kPass) {
    row.status = CheckStatus::kPass;
    row.message = "judged on the target by its share of zeros";
  } else {
    row.status = CheckStatus::kSkip;
    row.message = "no-output: the target has no numbers of the standard";
  }
}

// ---- The files ----

struct ValueOfMetric {
  SidedMetric TwoSidedRow::*metric;
};
struct WordOfMetric {
  SidedMetric TwoSidedRow::*metric;
};
using Source = std::variant<std::string TwoSidedRow::*, Cell TwoSidedRow::*,
                            CheckStatus TwoSidedRow::*, ValueOfMetric, WordOfMetric>;
struct Column {
  std::string_view name;
  Source source;
};

constexpr Column kColumns[] = {
    {"API Name", &TwoSidedRow::name},
    {"\u5c0f\u503c\u57df\u9519\u8bef\u6bd4\u503c", ValueOfMetric{&TwoSidedRow::small_value}},
    {"\u5c0f\u503c\u57df\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::small_value}},
    {"\u5747\u65b9\u6839\u8bef\u5dee\u6bd4\u503c", ValueOfMetric{&TwoSidedRow::rmse}},
    {"\u5747\u65b9\u6839\u8bef\u5dee\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::rmse}},
    {"\u76f8\u5bf9\u8bef\u5dee\u6700\u5927\u503c\u6bd4\u503c",
     ValueOfMetric{&TwoSidedRow::max_rel_error}},
    {"\u76f8\u5bf9\u8bef\u5dee\u6700\u5927\u503c\u5224\u5b9a\u7ed3\u679c",
     WordOfMetric{&TwoSidedRow::max_rel_error}},
    {"\u76f8\u5bf9\u8bef\u5dee\u5e73\u5747\u503c\u6bd4\u503c",
     ValueOfMetric{&TwoSidedRow::mean_rel_error}},
    {"\u76f8\u5bf9\u8bef\u5dee\u5e73\u5747\u503c\u5224\u5b9a\u7ed3\u679c",
     WordOfMetric{&TwoSidedRow::mean_rel_error}},
    {"\u8bef\u5dee\u5747\u8861\u6027\u6bd4\u503c", ValueOfMetric{&TwoSidedRow::error_balance}},
    {"\u8bef\u5dee\u5747\u8861\u6027\u5224\u5b9a\u7ed3\u679c",
     WordOfMetric{&TwoSidedRow::error_balance}},
    {"inf/nan\u9519\u8bef\u7387", ValueOfMetric{&TwoSidedRow::inf_nan}},
    {"inf/nan\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::inf_nan}},
    {"\u76f8\u5bf9\u8bef\u5dee\u9519\u8bef\u7387", ValueOfMetric{&TwoSidedRow::rel_error}},
    {"\u76f8\u5bf9\u8bef\u5dee\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::rel_error}},
    {"\u7edd\u5bf9\u8bef\u5dee\u9519\u8bef\u7387", ValueOfMetric{&TwoSidedRow::abs_error}},
    {"\u7edd\u5bf9\u8bef\u5dee\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::abs_error}},
    {"\u4e8c\u8fdb\u5236\u4e00\u81f4\u9519\u8bef\u7387", ValueOfMetric{&TwoSidedRow::error_rate}},
    {"\u4e8c\u8fdb\u5236\u4e00\u81f4\u9519\u8bef\u7387\u5224\u5b9a\u7ed3\u679c",
     WordOfMetric{&TwoSidedRow::error_rate}},
    {"ULP\u8bef\u5dee\u5e73\u5747\u503c", &TwoSidedRow::mean_ulp},
    {"ULP\u8bef\u5dee\u5927\u4e8e\u9608\u503c\u5360\u6bd4", &TwoSidedRow::ulp_proportion},
    {"ULP\u8bef\u5dee\u5927\u4e8e\u9608\u503c\u5360\u6bd4\u6bd4\u503c",
     ValueOfMetric{&TwoSidedRow::ulp}},
    {"ULP\u8bef\u5dee\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::ulp}},
    {"\u53cc\u5343\u6307\u6807", ValueOfMetric{&TwoSidedRow::thousandth}},
    {"\u53cc\u5343\u6307\u6807\u5224\u5b9a\u7ed3\u679c", WordOfMetric{&TwoSidedRow::thousandth}},
    {"\u6bd4\u5bf9\u7ed3\u679c", &TwoSidedRow::status},
    {"\u6bd4\u5bf9\u7b97\u6cd5", &TwoSidedRow::algorithm},
    {"Message", &TwoSidedRow::message},
};

constexpr std::string_view kResultColumns[] = {"API Name", "Forward Test Success",
                                               "Backward Test Success", "Message"};

// The columns of the input files without which there is no comparison, as upstream has them.
constexpr std::string_view kNeeded[] = {
    "API Name",
    "DEVICE Dtype",
    "\u5c0f\u503c\u57df\u9519\u8bef\u5360\u6bd4",
    "\u5747\u65b9\u6839\u8bef\u5dee",
    "\u76f8\u5bf9\u8bef\u5dee\u6700\u5927\u503c",
    "\u76f8\u5bf9\u8bef\u5dee\u5e73\u5747\u503c",
    "\u8bef\u5dee\u5747\u8861\u6027",
    "\u4e8c\u8fdb\u5236\u4e00\u81f4\u9519\u8bef\u7387",
    "inf/nan\u9519\u8bef\u7387",
    "\u76f8\u5bf9\u8bef\u5dee\u9519\u8bef\u7387",
    "\u7edd\u5bf9\u8bef\u5dee\u9519\u8bef\u7387",
    "ULP\u8bef\u5dee\u5e73\u5747\u503c",
    "ULP\u8bef\u5dee\u5927\u4e8e\u9608\u503c\u5360\u6bd4",
    "\u53cc\u5343\u6307\u6807",
};

std::string CellText(const TwoSidedRow& row, const Column& column, int precision) {
  std::string text;
  if (const auto* value = std::get_if<ValueOfMetric>(&column.source)) {
    AppendNumber((row.*(value->metric)).value, precision, text);
  } else if (const auto* word = std::get_if<WordOfMetric>(&column.source)) {
    text = StatusWord((row.*(word->metric)).status);
  } else if (const auto* cell = std::get_if<Cell TwoSidedRow::*>(&column.source)) {
    AppendNumber(row.*(*cell), precision, text);
  } else if (const auto* status = std::get_if<CheckStatus TwoSidedRow::*>(&column.source)) {
    text = StatusWord(row.*(*status));
  } else {
    text = row.*std::get<std::string TwoSidedRow::*>(column.source);
    if (text.empty() && column.name != "Message") text = " ";
  }
  return text;
}

void AppendDetails(const TwoSidedRow& row, int precision, std::string& out) {
  std::vector<std::string> cells;
  for (const Column& column : kColumns) cells.push_back(CellText(row, column, precision));
  AppendCsvRow(cells, out);
}

// One direction of a call, put together from its outputs.
struct Direction {
  bool has_rows = false;
  CheckStatus worst = CheckStatus::kNone;  // of outputs that were judged
  std::string skip_message;                // of the first one that was not

  void Add(const TwoSidedRow& row) {
    if (row.status != CheckStatus::kSkip) worst = std::max(worst, row.status);
    if (row.status == CheckStatus::kSkip && skip_message.empty()) skip_message = row.message;
    has_rows = true;
  }
  [[nodiscard]] CheckStatus status() const {
    return has_rows && worst == CheckStatus::kNone ? CheckStatus::kSkip : worst;
  }
};

struct SidedCall {
  std::string name;
  Direction forward, backward;
  bool is_topk = false;

  void Add(const OutputName& output, const TwoSidedRow& row) {
    is_topk = output.api == "topk";
    (output.is_forward ? forward : backward).Add(row);
  }
  // The row of the result file.
  void AppendTo(std::string& out, std::string_view note = {}) const {
    std::string message = Message();
    if (!note.empty()) message += fmt::format("{}{}", message.empty() ? "" : "\n", note);
    AppendCsvRow(std::vector<std::string>{name, std::string(StatusWord(forward.status())),
                                          std::string(StatusWord(backward.status())), message},
                 out);
  }
  [[nodiscard]] std::string Message() const {
    if (is_topk && forward.status() == CheckStatus::kError) {
      return "An NPU sorts what topk returns also with sorted=False, the CPU does not: look "
             "whether "
             "only the order differs.";
    }
    if (forward.status() == CheckStatus::kSkip) return forward.skip_message;
    return backward.status() == CheckStatus::kSkip ? backward.skip_message : std::string();
  }
};

size_t Index(CheckStatus status) { return static_cast<size_t>(status); }

// Reads both files and keeps what the result says.
class Comparison {
 public:
  explicit Comparison(const TwoSidedOptions& options) : options_(options) {}

  plumbline::Status ReadGolden() {
    return VisitDetails(
        options_.golden_details, kNeeded, [this](DetailsRow& row) -> plumbline::Status {
          const auto [at, is_new] = golden_.try_emplace(row.output.name, GoldenNumbers(row));
          if (!is_new) at->second.repeated = true;
          return {};
        });
  }

  plumbline::Status JudgeTarget(const std::string& path) {
    PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
    file.text() += TwoSidedDetailsHeader();
    PL_TRY(VisitDetails(options_.target_details, kNeeded,
                        [&](DetailsRow& target) -> plumbline::Status {
                          const auto found = golden_.find(target.output.name);
                          GoldenNumbers* golden = found == golden_.end() ? nullptr : &found->second;
                          if (golden != nullptr) golden->is_used = true;
                          Add(JudgeTwoSided(target, golden), golden == nullptr, file.text());
                          return file.Flush();
                        }));
    return file.Close();
  }

  plumbline::Status WriteResult(const std::string& path) {
    PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
    file.text() += TwoSidedResultHeader();
    for (const SidedCall& call : calls_) {
      ++result_.counts.forward[Index(call.forward.status())];
      ++result_.counts.backward[Index(call.backward.status())];
      call.AppendTo(file.text());
      PL_TRY(file.Flush());
    }
    return file.Close();
  }

  TwoSidedResult Finish(std::string result_path, std::string details_path) {
    result_.counts.calls = calls_.size();
    for (const auto& [name, golden] : golden_) result_.counts.only_golden += !golden.is_used;
    result_.result_path = std::move(result_path);
    result_.details_path = std::move(details_path);
    return std::move(result_);
  }

 private:
  void Add(const TwoSidedRow& row, bool only_target, std::string& out) {
    AppendDetails(row, options_.precision, out);
    ++result_.counts.outputs[Index(row.status)];
    result_.counts.only_target += only_target;
    const bool is_worst =
        row.status == CheckStatus::kError && (!result_.worst || row.excess > result_.worst->excess);
    if (is_worst) result_.worst = row;
    const auto name = ParseOutputName(row.name);
    SidedCall& call = CallOf(name ? std::string(name->call) : row.name);
    if (!name) {
      call.forward.Add(row);
      call.backward.Add(row);
      return;
    }
    call.Add(*name, row);
  }

  SidedCall& CallOf(const std::string& name) {
    const auto [at, is_new] = places_.try_emplace(name, calls_.size());
    if (is_new) calls_.emplace_back().name = name;
    return calls_[at->second];
  }

  const TwoSidedOptions& options_;
  std::unordered_map<std::string, GoldenNumbers> golden_;
  std::vector<SidedCall> calls_;                    // in the order of their first output
  std::unordered_map<std::string, size_t> places_;  // in calls_
  TwoSidedResult result_;
};

// Of rows that only one side has: nobody knows whether these are right.
std::string LonelyText(const TwoSidedCounts& counts) {
  std::string text;
  const auto add = [&](size_t count, std::string_view where) {
    if (count > 0) text += fmt::format("{}{} on the {}", text.empty() ? "" : ", ", count, where);
  };
  add(counts.only_target, "target");
  add(counts.only_golden, "reference");
  return text.empty() ? text : "; without a counterpart: " + text;
}

}  // namespace

GoldenNumbers::GoldenNumbers(const DetailsRow& row)
    : small_value(ValueOf(row.output.small_value_error_ratio)),
      rmse(ValueOf(row.output.rmse)),
      max_rel_error(ValueOf(row.output.max_rel_error)),
      mean_rel_error(ValueOf(row.output.mean_rel_error)),
      error_balance(ValueOf(row.output.error_balance)),
      mean_ulp(ValueOf(row.output.mean_ulp)),
      ulp_proportion(ValueOf(row.output.ulp_proportion)),
      has_nan_cosine(IsNaN(row.output.cosine)),
      problem(row.problem) {}

TwoSidedRow JudgeTwoSided(const DetailsRow& target, const GoldenNumbers* golden) {
  TwoSidedRow row;
  row.name = target.output.name;
  const auto name = ParseOutputName(row.name);
  std::string skipped = "bad-argument: the name is not that of an output of a call";
  if (name) skipped = SkipReason(target, golden);
  if (!skipped.empty()) {
    row.status = CheckStatus::kSkip;
    row.message = std::move(skipped);
    return row;
  }
  const auto standard = ChooseStandard(target.output, name->api);
  if (standard) {
    Judge(target.output, *golden, row).Run(*standard);
  } else {
    JudgeWithoutNumbers(target.output, row);
  }
  return row;
}

std::string TwoSidedDetailsHeader() {
  std::vector<std::string_view> names;
  for (const Column& column : kColumns) names.push_back(column.name);
  return HeaderText(names);
}

std::string TwoSidedResultHeader() { return HeaderText(kResultColumns); }

CallRows TwoSidedRowsOf(const CallOutcome& target, const CallOutcome& golden, int precision) {
  CallRows rows;
  SidedCall call;
  call.name = target.name;
  const auto take = [&](const TwoSidedRow& row) {
    AppendDetails(row, precision, rows.details);
    if (const auto name = ParseOutputName(row.name)) call.Add(*name, row);
  };
  const auto add = [&](std::string_view direction, const DirectionOutcome& of_target,
                       const DirectionOutcome& of_golden) {
    std::unordered_map<std::string_view, GoldenNumbers> numbers;
    for (const OutputRow& row : of_golden.rows) {
      numbers.try_emplace(row.name, GoldenNumbers(DetailsRow{row, {}}));
    }
    for (const OutputRow& row : of_target.rows) {
      const auto found = numbers.find(row.name);
      TwoSidedRow judged = JudgeTwoSided(DetailsRow{row, {}},
                                         found == numbers.end() ? nullptr : &found->second);
      const bool is_unjudged = judged.status == CheckStatus::kSkip && of_golden.skip;
      if (is_unjudged) judged.message += "\nreference: " + of_golden.skip->Text();
      take(judged);
    }
    if (of_target.rows.empty() && of_target.skip) {
      TwoSidedRow skipped;
      skipped.name = fmt::format("{}.{}.output.0", target.name, direction);
      skipped.status = CheckStatus::kSkip;
      skipped.message = of_target.skip->Text();
      take(skipped);
    }
  };
  add("forward", target.forward, golden.forward);
  add("backward", target.backward, golden.backward);
  call.AppendTo(rows.result, target.note);
  return rows;
}

Result<TwoSidedResult> CompareTwoSided(const TwoSidedOptions& options) {
  constexpr std::string_view kPrefix = "api_precision_compare_";
  constexpr std::string_view kExtension = ".csv";
  Comparison comparison(options);
  PL_TRY(comparison.ReadGolden());
  PL_TRY(MakeDirectories(options.output_directory));
  const report::FreeName stamp = report::FreeStamp(
      options.output_directory, fmt::format("{}result", kPrefix), {&kExtension, 1});
  const auto path_of = [&](std::string_view kind) {
    return JoinPath(options.output_directory,
                    fmt::format("{}{}_{}{}", kPrefix, kind, stamp.text, kExtension));
  };
  std::string details = path_of("details"), result = path_of("result");
  PL_TRY(comparison.JudgeTarget(details));
  PL_TRY(comparison.WriteResult(result));
  return comparison.Finish(std::move(result), std::move(details));
}

std::string TwoSidedAnswer(const TwoSidedResult& result) {
  const std::string lonely = LonelyText(result.counts);
  if (result.worst) {
    return fmt::format("worst: {}: {}{}", result.worst->name, result.worst->reason, lonely);
  }
  const StatusCounts& outputs = result.counts.outputs;
  const size_t judged = outputs[Index(CheckStatus::kPass)] + outputs[Index(CheckStatus::kWarning)];
  const size_t skipped = outputs[Index(CheckStatus::kSkip)];
  if (judged == 0) {
    return fmt::format("nothing was compared: {} without a decision{}",
                       CountText(skipped, "output"), lonely);
  }
  const std::string of = skipped == 0 ? "" : fmt::format("{} of ", judged);
  return fmt::format("no API is worse than on the reference device: {}{} compared{}", of,
                     CountText(judged + skipped, "output"), lonely);
}

}  // namespace plumbline::precheck
