#include "ranks/comm_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/text/number_text.h"
#include "formats/json/dump_json.h"

namespace plumbline::ranks {

namespace {

// Slices of fewer elements are equal, or parts of one another in another order, often enough.
constexpr int64_t kTellingElements = 64;
constexpr std::string_view kNotWaited =
    "nobody waited for the call, so its tensors may have changed since";
constexpr std::string_view kAsynchronous =
    "asynchronous, and its recorder does not say when it was complete";

void CollectTensors(const plumbline::Value* value, const std::string& path,
                    std::vector<NamedTensor>& out) {
  if (value == nullptr) return;
  if (const auto* tensor = value->As<TensorRecord>()) {
    out.push_back({path, *tensor});
  } else if (const auto* list = value->As<ValueList>()) {
    for (size_t i = 0; i < list->size(); ++i) {
      CollectTensors(&(*list)[i], fmt::format("{}.{}", path, i), out);
    }
  }
}

// Arguments of a communication call, as they went in and as they were after it.
class CallReader {
 public:
  explicit CallReader(const Call& call) {
    if (const plumbline::Value* in = call.Find(dump_json::kInputArgs)) {
      positional_ = in->As<ValueList>();
    }
    keywords_ = call.Find(dump_json::kInputKwargs);
    if (const plumbline::Value* out = call.Find(dump_json::kOutput)) output_ = out->As<ValueList>();
  }

  // `position` and `keyword` name one argument.
  [[nodiscard]] std::vector<NamedTensor> Before(size_t position, std::string_view keyword) const {
    std::vector<NamedTensor> tensors;
    if (positional_ != nullptr && position < positional_->size()) {
      CollectTensors(&(*positional_)[position], fmt::format("input_args.{}", position), tensors);
    } else if (keywords_ != nullptr) {
      CollectTensors(keywords_->Find(keyword), fmt::format("input_kwargs.{}", keyword), tensors);
    }
    return tensors;
  }
  [[nodiscard]] std::vector<NamedTensor> After(size_t position, std::string_view keyword) const {
    std::vector<NamedTensor> tensors;
    const std::optional<size_t> index = OutputIndex(position, keyword);
    if (output_ == nullptr || !index || *index >= output_->size()) return tensors;
    CollectTensors(&(*output_)[*index], fmt::format("output.{}", *index), tensors);
    return tensors;
  }
  // The tensors of a batch's operations, in order: before the call, or after it.
  [[nodiscard]] std::vector<std::optional<NamedTensor>> OfOperations(bool after) const {
    std::vector<std::optional<NamedTensor>> tensors;
    const plumbline::Value* list = nullptr;
    std::string path = after ? "output.0" : "input_args.0";
    if (after) {
      list = output_ != nullptr && !output_->empty() ? &output_->front() : nullptr;
    } else if (positional_ != nullptr && !positional_->empty()) {
      list = &positional_->front();
    } else if (keywords_ != nullptr) {
      list = keywords_->Find("p2p_op_list");
      path = "input_kwargs.p2p_op_list";
    }
    const auto* operations = list != nullptr ? list->As<ValueList>() : nullptr;
    if (operations == nullptr) return tensors;
    for (size_t i = 0; i < operations->size(); ++i) {
      const plumbline::Value* const op = (*operations)[i].Find("op");
      const auto* name = op != nullptr ? op->As<std::string>() : nullptr;
      if (name == nullptr || name->empty()) continue;  // as ReadCommCall() counts them
      std::vector<NamedTensor> found;
      CollectTensors((*operations)[i].Find("tensor"), fmt::format("{}.{}.tensor", path, i), found);
      tensors.emplace_back();
      if (found.size() == 1) tensors.back() = std::move(found.front());
    }
    return tensors;
  }
  [[nodiscard]] bool IsAsynchronous() const {
    const plumbline::Value* argument = keywords_ != nullptr ? keywords_->Find("async_op") : nullptr;
    const plumbline::Value* const wrapped = argument != nullptr ? argument->Find("value") : nullptr;
    if (wrapped != nullptr) argument = wrapped;
    const bool* const truth = argument != nullptr ? argument->As<bool>() : nullptr;
    if (truth != nullptr) return *truth;
    if (positional_ == nullptr) return false;
    return std::ranges::any_of(*positional_, [](const plumbline::Value& value) {
      const plumbline::Value* const inner = value.Find("value");
      const bool* const given = (inner != nullptr ? *inner : value).As<bool>();
      return given != nullptr && *given;
    });
  }

 private:
  // Outputs are the positional arguments, then the keyword values.
  [[nodiscard]] std::optional<size_t> OutputIndex(size_t position, std::string_view keyword) const {
    const size_t positional = positional_ != nullptr ? positional_->size() : 0;
    if (position < positional) return position;
    const auto* map = keywords_ != nullptr ? keywords_->As<ValueMap>() : nullptr;
    if (map != nullptr) {
      for (size_t i = 0; i < map->size(); ++i) {
        if ((*map)[i].first == keyword) return positional + i;
      }
    }
    // Recorded of its outputs alone.
    return positional_ == nullptr ? std::optional(position) : std::nullopt;
  }

  const ValueList* positional_ = nullptr;
  const plumbline::Value* keywords_ = nullptr;
  const ValueList* output_ = nullptr;
};

std::optional<NamedTensor> OnlyOne(std::vector<NamedTensor> tensors) {
  if (tensors.size() != 1) return std::nullopt;
  return std::move(tensors.front());
}

std::string_view WhyUnjudged(const Call& call, const CommCall& comm, bool is_ours,
                             const CallReader& reader) {
  const plumbline::Value* const waited = call.Find("waited");
  const bool* const is_waited = waited != nullptr ? waited->As<bool>() : nullptr;
  if (is_waited != nullptr && !*is_waited) return kNotWaited;
  if (!comm.has_output || call.Find("incomplete") != nullptr) return kNotComplete;
  if (!is_ours && (!comm.waits || reader.IsAsynchronous())) return kAsynchronous;
  return {};
}

}  // namespace

CallValues ValuesOf(const Call& call, const CommCall& comm, const TransferArguments& arguments,
                    bool is_ours) {
  CallValues values;
  const CallReader reader(call);
  values.unjudged = WhyUnjudged(call, comm, is_ours, reader);
  if (!arguments.result.empty()) {
    values.received = reader.After(0, arguments.result);
    if (!arguments.given.empty()) {
      values.sent = reader.Before(arguments.given_at, arguments.given);
    }
  } else if (comm.api.starts_with("batch_")) {
    std::vector<std::optional<NamedTensor>> before = reader.OfOperations(false);
    std::vector<std::optional<NamedTensor>> after = reader.OfOperations(true);
    values.transfers.resize(comm.transfers.size());
    for (size_t i = 0; i < values.transfers.size(); ++i) {
      if (i < before.size()) values.transfers[i].before = std::move(before[i]);
      if (i < after.size()) values.transfers[i].after = std::move(after[i]);
    }
  } else if (!comm.transfers.empty()) {
    values.transfers.push_back(
        {OnlyOne(reader.Before(0, "tensor")), OnlyOne(reader.After(0, "tensor"))});
  }
  return values;
}

std::string SpelledStatistic(const Statistic& statistic) {
  if (const auto* real = std::get_if<double>(&statistic)) return PythonFloat(*real);
  if (const auto* whole = std::get_if<int64_t>(&statistic)) return std::to_string(*whole);
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? "True" : "False";
  return "None";
}

std::optional<double> RealOf(const Statistic& statistic) {
  if (const auto* real = std::get_if<double>(&statistic)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&statistic)) return static_cast<double>(*whole);
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? 1.0 : 0.0;
  return std::nullopt;
}

int64_t ElementsOf(const TensorRecord& record) { return ElementCount(record.shape).value_or(-1); }

double SumSlackOf(const TensorRecord& record) {
  constexpr double kSumRoundings = 4;
  const std::optional<DType> dtype = ParseDType(record.dtype_text);
  const double own = dtype ? UnitRoundoff(*dtype) : 0;
  return kSumRoundings * (own > 0 ? own : UnitRoundoff(DType::kFloat32));
}

Agreement CompareStatistic(const Statistic& expected, const Statistic& got, double slack) {
  const auto* a = std::get_if<int64_t>(&expected);
  const auto* b = std::get_if<int64_t>(&got);
  if (a != nullptr && b != nullptr) return *a == *b ? Agreement::kAgree : Agreement::kDiffer;
  const std::optional<double> x = RealOf(expected), y = RealOf(got);
  if (!x || !y || (std::isnan(*x) && std::isnan(*y))) return Agreement::kUnknown;
  if (*x == *y) return std::isinf(*x) ? Agreement::kUnknown : Agreement::kAgree;
  return std::abs(*x - *y) <= slack ? Agreement::kAgree : Agreement::kDiffer;
}

namespace {

Statistic CountOf(const std::optional<int64_t>& count) {
  return count ? Statistic(*count) : Statistic();
}

class RecordComparison {
 public:
  RecordComparison(const TensorRecord& expected, const TensorRecord& got) {
    const int64_t elements = ElementsOf(expected);
    Add("dtype", expected.dtype_text == got.dtype_text, expected.dtype_text, got.dtype_text);
    Add("element count", elements == ElementsOf(got), std::to_string(elements),
        std::to_string(ElementsOf(got)));
    tells_ = elements == 0;
    if (differs_) return;
    if (expected.digest && got.digest && expected.digest->size() == got.digest->size()) {
      Add("md5", *expected.digest == *got.digest, *expected.digest, *got.digest);
      tells_ = true;
    }
    AddStatistics(expected, got, elements);
  }

  [[nodiscard]] Agreement result() const {
    if (differs_) return Agreement::kDiffer;
    return tells_ ? Agreement::kAgree : Agreement::kUnknown;
  }
  [[nodiscard]] const Mismatch& mismatch() const { return mismatch_; }

 private:
  void AddStatistics(const TensorRecord& expected, const TensorRecord& got, int64_t elements) {
    Add("Max", expected.max, got.max);
    Add("Min", expected.min, got.min);
    Add("Max_except_inf_nan", expected.max_finite.value_or(Statistic()),
        got.max_finite.value_or(Statistic()));
    Add("Min_except_inf_nan", expected.min_finite.value_or(Statistic()),
        got.min_finite.value_or(Statistic()));
    const double unit = SumSlackOf(expected);
    const double norm = std::abs(RealOf(expected.norm).value_or(0));
    const double typical = norm / std::sqrt(static_cast<double>(std::max<int64_t>(elements, 1)));
    Add("Mean", expected.mean, got.mean,
        unit * std::max(typical, std::abs(RealOf(expected.mean).value_or(0))));
    Add("Norm", expected.norm, got.norm, unit * norm);
    // Alone, equal counts tell nothing of the numbers.
    const bool told = tells_;
    Add("nan count", CountOf(expected.nan_count), CountOf(got.nan_count));
    Add("inf count", CountOf(expected.inf_count), CountOf(got.inf_count));
    Add("zero count", CountOf(expected.zero_count), CountOf(got.zero_count));
    tells_ = told;
  }

  void Add(std::string_view name, const Statistic& expected, const Statistic& got,
           double slack = 0) {
    const Agreement agreement = CompareStatistic(expected, got, slack);
    if (agreement == Agreement::kUnknown) return;
    tells_ = true;
    Add(name, agreement == Agreement::kAgree, SpelledStatistic(expected), SpelledStatistic(got));
  }
  void Add(std::string_view name, bool agrees, const std::string& expected,
           const std::string& got) {
    if (agrees || differs_) return;
    differs_ = true;
    mismatch_ = {std::string(name), expected, got};
  }

  bool differs_ = false, tells_ = false;
  Mismatch mismatch_;
};

}  // namespace

Agreement CompareRecords(const TensorRecord& expected, const TensorRecord& got,
                         Mismatch& mismatch) {
  const RecordComparison compared(expected, got);
  mismatch = compared.mismatch();
  return compared.result();
}

std::string TextOfNumbers(const TensorRecord& record) {
  const std::optional<double> max = RealOf(record.max);
  if (!record.digest && (!max || !std::isfinite(*max))) return {};
  const std::string digest = record.digest ? fmt::format("digest {}, ", *record.digest) : "";
  return fmt::format("{}{} elements, Max {}, Min {}, Mean {}, Norm {}", digest, ElementsOf(record),
                     SpelledStatistic(record.max), SpelledStatistic(record.min),
                     SpelledStatistic(record.mean), SpelledStatistic(record.norm));
}

bool MayBeSoByChance(const TensorRecord& record) {
  const std::optional<DType> dtype = ParseDType(record.dtype_text);
  const std::optional<double> max = RealOf(record.max), min = RealOf(record.min);
  return !max || !min || *max == *min || ElementsOf(record) < kTellingElements ||
         !(dtype && UnitRoundoff(*dtype) > 0);
}

}  // namespace plumbline::ranks
