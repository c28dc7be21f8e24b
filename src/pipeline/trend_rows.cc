#include "pipeline/trend_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "base/text_parts.h"
#include "formats/dump_json.h"
#include "record/call_name.h"

namespace plumbline {
namespace {

using trend_db::Metric;
using trend_db::Row;
using trend_db::Tag;
using Parts = std::vector<std::string_view>;

constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";
constexpr std::string_view kParametersGrad = "parameters_grad";
constexpr std::string_view kModule = "Module";
constexpr std::string_view kCell = "Cell";
// Components between the name of a call and its tensors.
constexpr std::string_view kInputPart = "input";
constexpr std::string_view kKeywordPart = "kwargs";
constexpr double kLargest = 1e9;

std::string Join(std::span<const std::string_view> parts) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), "."));
}

// The direction stands last but for a number, or (APIs of odd mappings) anywhere: the last counts,
// because a module may be called "forward".
std::optional<size_t> DirectionAt(const Parts& parts) {
  for (size_t i = parts.size(); i-- > 1;) {
    if (parts[i] == kForward || parts[i] == kBackward) return i;
    if (parts[i] == kParametersGrad && i + 2 >= parts.size()) return i;
  }
  return std::nullopt;
}

bool IsTrue(const Value* value) {
  const bool* truth = value == nullptr ? nullptr : value->As<bool>();
  return truth != nullptr && *truth;
}

bool IsFrameworkTensor(const TensorRecord& tensor) {
  return tensor.type == "torch.Tensor" || tensor.type == "mindspore.Tensor" ||
         tensor.type == "mindtorch.Tensor";
}

// Collects the rows of one call.
class RowMaker {
 public:
  RowMaker(Metric metric, std::string target, int64_t micro_step)
      : metric_(metric), target_(std::move(target)), micro_step_(micro_step) {}

  // Every tensor in `value`; `tail` is its path below the call.
  void AddAll(const Value& value, const std::string& tail) {
    if (const auto* tensor = value.As<TensorRecord>()) {
      Add(*tensor, tail);
    } else if (const auto* list = value.As<ValueList>()) {
      for (size_t i = 0; i < list->size(); ++i) AddAll((*list)[i], fmt::format("{}.{}", tail, i));
    } else if (const auto* map = value.As<ValueMap>()) {
      for (const auto& [key, member] : *map) AddAll(member, fmt::format("{}.{}", tail, key));
    }
  }

  void AddMember(const Call& call, std::string_view member, std::string_view part) {
    const Value* value = call.Find(member);
    if (value != nullptr) AddAll(*value, std::string(part));
  }

  // A parameter: its tensor, or a list that holds it.
  void AddParameter(const Value& value, const std::string& tail) {
    const auto* list = value.As<ValueList>();
    AddAll(list != nullptr && list->size() == 1 ? list->front() : value, tail);
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  void Add(const TensorRecord& tensor, const std::string& tail) {
    if (!IsFrameworkTensor(tensor)) return;
    Row row;
    row.metric = metric_;
    row.target = fmt::format("{}.{}", target_, tail);
    row.tail_parts =
        std::max<size_t>(2, static_cast<size_t>(std::count(tail.begin(), tail.end(), '.')) + 1);
    row.micro_step = micro_step_;
    row.values = {TrendValue(tensor.norm), TrendValue(tensor.max), TrendValue(tensor.min),
                  TrendValue(tensor.mean)};
    rows_.push_back(std::move(row));
  }

  Metric metric_;
  std::string target_;
  int64_t micro_step_;
  std::vector<Row> rows_;
};

void AddModuleTags(const Parts& names, std::vector<Tag>& tags) {
  size_t begin = 0;          // of the text that has no tag yet
  bool after_layer = false;  // the component before is the number of a layer
  for (size_t i = 0; i < names.size(); ++i) {
    const bool number = IsDigits(names[i]);
    if (number && (i == 0 || after_layer)) {
      begin = i + 1;  // a number without a name, such as the position in a list of models
      after_layer = true;
      continue;
    }
    after_layer = number;
    if (!number) continue;
    tags.push_back({fmt::format("{}.{}", names[i - 1], names[i]), "layer"});
    const auto between = std::span(names).subspan(begin, i - 1 - begin);
    if (!between.empty()) tags.push_back({Join(between), "module"});
    begin = i + 1;
  }
  if (begin < names.size()) tags.push_back({Join(std::span(names).subspan(begin)), "module"});
}

}  // namespace

std::string MapName(std::string name, const NameMapping& mapping) {
  for (const auto& [old_text, new_text] : mapping) {
    for (size_t at = name.find(old_text); at != std::string::npos;
         at = name.find(old_text, at + new_text.size())) {
      name.replace(at, old_text.size(), new_text);
    }
  }
  return name;
}

std::optional<double> TrendValue(const Statistic& statistic) {
  double value = 0;
  if (const auto* real = std::get_if<double>(&statistic)) {
    value = *real;
  } else if (const auto* whole = std::get_if<int64_t>(&statistic)) {
    value = static_cast<double>(*whole);
  } else if (const auto* truth = std::get_if<bool>(&statistic)) {
    value = *truth ? 1 : 0;
  } else {
    return std::nullopt;
  }
  if (std::isnan(value)) return std::nullopt;
  if (std::isinf(value)) return std::copysign(kLargest + 1, value);
  return std::clamp(value, -kLargest, kLargest);
}

std::vector<Row> TrendRows(const Call& call) {
  Parts parts = SplitAt(call.name, '.');
  const std::optional<size_t> at = DirectionAt(parts);
  if (!at) return {};
  const std::string_view direction = parts[*at];
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*at));
  const std::optional<int64_t> number = ParseNatural(parts.back());
  if (number && parts.size() > 1) parts.pop_back();
  const auto maker = [&](Metric metric) {
    return RowMaker(metric, Join(parts), parts.empty() ? 0 : number.value_or(0));
  };
  if (direction == kParametersGrad) {
    RowMaker rows = maker(Metric::kParametersGrad);
    for (const auto& [name, value] : call.members) rows.AddParameter(value, name);
    return rows.Take();
  }
  if (direction == kBackward) {
    RowMaker rows = maker(Metric::kBackward);
    rows.AddMember(call, dump_json::kInput, kInputPart);
    rows.AddMember(call, dump_json::kOutput, dump_json::kOutput);
    return rows.Take();
  }
  RowMaker rows =
      maker(IsTrue(call.Find(dump_json::kIsRecompute)) ? Metric::kRecompute : Metric::kForward);
  rows.AddMember(call, dump_json::kInputArgs, kInputPart);
  rows.AddMember(call, dump_json::kInputKwargs, kKeywordPart);
  rows.AddMember(call, dump_json::kOutput, dump_json::kOutput);
  const Value* parameters = call.Find(dump_json::kParameters);
  const auto* map = parameters == nullptr ? nullptr : parameters->As<ValueMap>();
  if (map != nullptr) {
    for (const auto& [name, value] : *map) {
      rows.AddParameter(value, fmt::format("{}.{}", dump_json::kParameters, name));
    }
  }
  return rows.Take();
}

std::vector<Tag> TrendTags(const Row& row) {
  const Parts parts = SplitAt(row.target, '.');
  if (parts.size() < 3 || parts.size() <= row.tail_parts) return {};
  const auto all = std::span(parts);
  const auto tail = all.last(row.tail_parts);
  std::vector<Tag> tags = {{Join(tail), "index"}};
  if (tail.front() == dump_json::kParameters) {
    tags.push_back({std::string(dump_json::kParameters), "default"});
  }
  Parts names;
  bool is_module = false;
  for (const std::string_view part : all.first(parts.size() - row.tail_parts)) {
    if (part != kModule && part != kCell) {
      names.push_back(part);
      continue;
    }
    is_module = true;
    Tag tag{std::string(part), "default"};
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(std::move(tag));
  }
  if (names.empty()) return {};
  if (is_module) {
    AddModuleTags(names, tags);
  } else {
    tags.push_back({Join(names), "function"});
  }
  return tags;
}

}  // namespace plumbline
