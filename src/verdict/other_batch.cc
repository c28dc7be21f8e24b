#include "verdict/other_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/batch_parts.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

namespace {

using Keys = std::unordered_set<ContentKey, ContentKeyHash>;

// What the calls of one side have made of parts.
struct Made {
  Keys forward, backward;
  Keys joined;                                 // parts laid together again
  std::unordered_set<std::string_view> names;  // of forward calls
};

// Follows the parts through the calls of both sides.
class Spread {
 public:
  Spread(const Comparison& comparison, const std::vector<DataParts>& data)
      : comparison_(comparison), is_in_(comparison.calls.size()) {
    for (const DataParts& parts : data) {
      for (const auto* side : {&parts.target, &parts.golden}) {
        for (const DataPart& part : *side) Add(part.call);
      }
    }
    // Golden's own calls may stand behind those that read their results.
    for (bool again = true; again;) {
      again = false;
      for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
        if (is_in_[i]) continue;
        const bool joins = TakeJoin(i, true) || TakeJoin(i, false);
        if (!joins && !Follows(i)) continue;
        if (!joins) Add(i);
        again = true;
      }
    }
  }

  [[nodiscard]] const std::vector<bool>& is_in() const { return is_in_; }

 private:
  Made& MadeBy(bool of_target) { return made_[of_target ? 0 : 1]; }
  static bool Holds(const Keys& keys, const Item& item) {
    const std::optional<ContentKey> key = IsTelling(item) ? KeyOf(item) : std::nullopt;
    if (!key || keys.empty()) return false;
    if (keys.contains(*key)) return true;
    if (!key->HasDigest() && keys.contains(NegativeOf(item, *key))) return true;
    return keys.contains(ExtremesOf(item, *key));
  }

  // What a cast to a wider type, which no recorder sees, keeps of mean and norm depends on how they
  // were added up.
  static ContentKey ExtremesOf(const Item& item, const ContentKey& key) {
    ContentKey extremes;
    extremes.element_count = key.element_count;
    for (size_t i = 0; i < 2; ++i) {
      const std::optional<double> value = NumberOf(item.statistics[i]);
      extremes.statistics[i] = std::bit_cast<uint64_t>(value.value_or(0));
    }
    return extremes;
  }
  static bool IsNarrow(const Item& item) {
    return measure::RoundoffOf(item, item) > UnitRoundoff(DType::kFloat32);
  }

  void Add(uint32_t index) {
    is_in_[index] = true;
    const ComparedCall& call = comparison_.calls[index];
    const bool is_forward = KindOfCall(call.name()) == CallKind::kForward;
    for (const bool of_target : {true, false}) {
      Made& made = MadeBy(of_target);
      if (is_forward) made.names.insert(measure::NameOn(call, of_target));
      for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
        const Slot<Item>& item = measure::SideOf(row, of_target);
        if (!item || measure::IsInput(*item) || !IsTelling(*item)) continue;
        const auto key = KeyOf(*item);
        if (!key) continue;
        Keys& keys = is_forward ? made.forward : made.backward;
        keys.insert(*key);
        if (IsNarrow(*item)) keys.insert(ExtremesOf(*item, *key));
      }
    }
  }

  // Whether the row reads what one side made of a part. Gradients that a forward call reads are
  // those of parameters, which are the same for every cut.
  bool Reads(const ComparedRow& row, bool of_target, bool is_forward) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !measure::IsInput(*item)) return false;
    const Made& made = MadeBy(of_target);
    return Holds(made.forward, *item) || (!is_forward && Holds(made.backward, *item));
  }

  bool Follows(uint32_t index) {
    const ComparedCall& call = comparison_.calls[index];
    const CallKind kind = KindOfCall(call.name());
    if (kind == CallKind::kParametersGrad) return false;
    const bool is_forward = kind == CallKind::kForward;
    for (const bool of_target : {true, false}) {
      const Text& name = measure::NameOn(call, of_target);
      if (!is_forward && MadeBy(of_target).names.contains(ForwardNameOf(name))) return true;
    }
    return std::ranges::any_of(measure::RowsOf(comparison_, call), [&](const ComparedRow& row) {
      const bool ours = Reads(row, true, is_forward), theirs = Reads(row, false, is_forward);
      if (ours == theirs) return ours;
      // A whole against parts that were laid together: both sides have all of it.
      const Slot<Item>& other = measure::SideOf(row, !ours);
      return !other || !Holds(MadeBy(!ours).joined, *other);
    });
  }

  // A call of one side alone that lays parts one behind the other.
  bool TakeJoin(uint32_t index, bool of_target) {
    const ComparedCall& call = comparison_.calls[index];
    const Text& name = measure::NameOn(call, of_target);
    if (call.paired() || name.empty() || KindOfCall(name) != CallKind::kForward) return false;
    if (measure::ClassOfCall(name) != measure::CallClass::kCopy) return false;
    size_t parts = 0;
    int64_t length = 0;
    const Item* result = nullptr;
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || !item->is_tensor || item->shape.empty()) continue;
      if (!measure::IsInput(*item)) {
        result = &*item;
      } else if (Reads(row, of_target, true)) {
        ++parts;
        length += item->shape[0];
      }
    }
    const auto key = result == nullptr ? std::nullopt : KeyOf(*result);
    if (!key || parts < 2 || result->shape[0] != length) return false;
    MadeBy(of_target).joined.insert(*key);
    is_in_[index] = true;
    MadeBy(of_target).names.insert(name);  // its gradient is cut again
    return true;
  }

  const Comparison& comparison_;
  std::vector<bool> is_in_;
  std::array<Made, 2> made_;
};

// Per place (API and argument), which contents each side reads there.
class Read {
 public:
  explicit Read(const Comparison& comparison) : comparison_(comparison) {
    for (const ComparedRow& row : comparison.rows) {
      for (const bool of_target : {true, false}) {
        const Slot<Item>& item = measure::SideOf(row, of_target);
        const auto key = item && measure::IsInput(*item) ? KeyOf(*item) : std::nullopt;
        if (key) SideOf(of_target)[PlaceOf(row, of_target)].insert(*key);
      }
    }
  }

  // Whether what each side reads in the row is what the other reads in another call of that API:
  // calls that one side makes once per part have other numbers.
  [[nodiscard]] bool IsElsewhere(const ComparedRow& row) {
    if (!row.target || !row.golden || !measure::IsInput(row)) return false;
    const auto ours = KeyOf(*row.target), theirs = KeyOf(*row.golden);
    if (!ours || !theirs || ours == theirs) return false;
    if (!IsTelling(*row.target) || !IsTelling(*row.golden)) return false;
    return SideOf(false)[PlaceOf(row, false)].contains(*ours) &&
           SideOf(true)[PlaceOf(row, true)].contains(*theirs);
  }

 private:
  using Places = std::unordered_map<std::string, Keys>;

  Places& SideOf(bool of_target) { return of_target ? target_ : golden_; }
  [[nodiscard]] std::string PlaceOf(const ComparedRow& row, bool of_target) const {
    const ComparedCall& call = comparison_.calls[row.call];
    const Text& name = measure::NameOn(call, of_target);
    return fmt::format("{} {}", SeriesOf(name),
                       measure::ShortName(*measure::SideOf(row, of_target), name));
  }

  const Comparison& comparison_;
  Places target_, golden_;
};

// Calls of one name whose sides have other forms, of which one sees a part: neither tells anything
// of the other.
std::unordered_set<std::string_view> NamesWithin(const Comparison& comparison,
                                                 const std::vector<bool>& is_in) {
  std::unordered_set<std::string_view> names;
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    if (is_in[i] && !comparison.calls[i].paired()) names.insert(comparison.calls[i].name());
  }
  return names;
}

std::string PartsText(const DataParts& parts) {
  const auto text = [](const std::vector<DataPart>& side) {
    const Item& first = *side.front().item;
    return fmt::format("{} of {}", side.size(),
                       first.shape_text ? first.shape_text->view() : std::string_view());
  };
  return fmt::format("{} against {}", text(parts.target), text(parts.golden));
}

// How the batches are cut that are read where fewest are: words and labels may come from one place.
void CountParts(const Comparison& comparison, const std::vector<DataParts>& data,
                const DataParts& first, OtherBatch& found) {
  found.target_parts = first.target.size();
  found.golden_parts = first.golden.size();
  std::unordered_map<std::string, size_t> batches;
  for (const DataParts& parts : data) {
    const bool is_alike =
        parts.target.size() == found.target_parts && parts.golden.size() == found.golden_parts;
    if (!is_alike) return;
    const DataPart& part = parts.target.front();
    ++batches[PlaceOf(comparison.calls[part.call].target_name, *part.item)];
  }
  const auto count_of = [](const auto& entry) { return entry.second; };
  found.times = std::ranges::min_element(batches, {}, count_of)->second;
}

}  // namespace

OtherBatch FindOtherBatch(const Comparison& comparison) {
  OtherBatch found;
  const std::vector<DataParts> data = FindDataParts(comparison);
  if (data.empty()) return found;
  const auto entry_of = [](const DataParts& parts) { return parts.target.front().call; };
  const DataParts& first = *std::ranges::min_element(data, {}, entry_of);
  found.entry = entry_of(first);
  found.parts = PartsText(first);
  CountParts(comparison, data, first, found);
  const Spread spread(comparison, data);
  const std::unordered_set<std::string_view> names = NamesWithin(comparison, spread.is_in());
  std::optional<Read> read;
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    bool is_other = spread.is_in()[i] || (!call.paired() && names.contains(call.name()));
    if (!is_other && call.paired() && KindOfCall(call.target_name) == CallKind::kForward) {
      if (!read) read.emplace(comparison);
      is_other =
          std::ranges::any_of(measure::RowsOf(comparison, call),
                              [&](const ComparedRow& row) { return read->IsElsewhere(row); });
    }
    if (is_other) found.calls.push_back(i);
  }
  return found;
}

namespace {

constexpr double kBatchRoundings = 64;  // of others, that a gradient of nothing but rounding has
constexpr double kLeft = 0.05;          // of a difference that is the same along an axis
constexpr double kLeastElements = 2;

CallKind KindOf(const Comparison& comparison, const ComparedRow& row) {
  return KindOfCall(comparison.calls[row.call].name());
}

// Parameters of modules are recorded in any case.
bool HasInputs(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
    return (row.target || row.golden) && row.item().role == ItemRole::kInput;
  });
}

bool IsWrongNumber(const Comparison& comparison, const ComparedRow& row) {
  return measure::HasTensors(row) && comparison.calls[row.call].paired() &&
         measure::IsBad(row.verdict) && std::isfinite(row.error);
}

// Whether the gradient is no larger than what rounding leaves of the largest beside it: of one
// module, or returned by one call.
bool MayBeResidue(const Comparison& comparison, const ComparedRow& row) {
  if (measure::IsMultiple(*row.target, *row.golden)) return false;
  double largest = 0;
  for (const ComparedRow& each : measure::RowsOf(comparison, comparison.calls[row.call])) {
    if (!measure::HasTensors(each) || measure::IsInput(each)) continue;
    largest = std::max(largest, measure::RmsOf(*each.golden).value_or(0));
  }
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  const double most = std::min(kBatchRoundings * roundoff, std::sqrt(roundoff)) * largest;
  const std::optional<double> target = measure::RmsOf(*row.target);
  const std::optional<double> golden = measure::RmsOf(*row.golden);
  return target && golden && std::max(*target, *golden) <= most;
}

// Whether the differences do not change along one of the axes.
bool IsAddedAlongAnAxis(const std::vector<double>& differences, const Shape& shape,
                        double rounding) {
  double square = 0;
  for (const double each : differences) square += each * each;
  size_t inner = differences.size();
  for (const int64_t extent : shape) {
    const auto length = static_cast<size_t>(extent);
    inner /= std::max<size_t>(length, 1);
    if (length < 2) continue;
    double left = 0;
    for (size_t i = 0; i < differences.size(); ++i) {
      const size_t first = i - i / inner % length * inner;
      const double apart = differences[i] - differences[first];
      left += apart * apart;
    }
    const double noise = rounding * rounding * static_cast<double>(differences.size());
    if (left <= std::max(kLeft * kLeft * square, noise)) return true;
  }
  return false;
}

bool IsAdded(const Comparison& comparison, const ComparedRow& row) {
  if (comparison.mode != CompareMode::kTensor) return true;  // not told
  const auto target = RecordedElements(comparison, *row.target, true);
  auto golden = RecordedElements(comparison, *row.golden, false);
  if (!target || !golden || target->size() != golden->size()) return false;
  for (size_t i = 0; i < golden->size(); ++i) (*golden)[i] = (*target)[i] - (*golden)[i];
  const double size = measure::RmsOf(*row.golden).value_or(0);
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  return IsAddedAlongAnAxis(*golden, row.golden->shape, kBatchRoundings * roundoff * size);
}

// Whether the call loses what is the same for all that it compares, functions and modules.
bool LosesWhatIsAdded(std::string_view name) {
  const measure::Amplifier amplifier = measure::AmplifierOfCall(name);
  if (amplifier == measure::Amplifier::kSoftmax ||
      amplifier == measure::Amplifier::kNormalisation) {
    return true;
  }
  const std::string_view whole = name.substr(0, name.rfind(".forward"));
  const std::string_view type = whole.substr(whole.rfind('.') + 1);
  return SeriesOf(std::string(name)).empty() &&
         (type.find("Norm") != type.npos || type.find("Softmax") != type.npos);
}

bool ReturnsWrong(const Comparison& comparison, const ComparedCall& call) {
  return std::ranges::any_of(measure::RowsOf(comparison, call),
                             [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
}

// For each call behind the first step, whether the next one that loses what is added agrees.
std::vector<bool> MeetNext(const Comparison& comparison) {
  std::vector<bool> meet(comparison.calls.size());
  bool next = false;
  for (size_t i = comparison.calls.size(); i-- > comparison.earlier.front().calls_end;) {
    const ComparedCall& call = comparison.calls[i];
    meet[i] = next;
    const bool is_forward = call.paired() && KindOfCall(call.name()) == CallKind::kForward;
    if (is_forward && LosesWhatIsAdded(call.target_name)) next = !ReturnsWrong(comparison, call);
  }
  return meet;
}

}  // namespace

std::vector<uint32_t> ResultsWithoutProof(const Comparison& comparison) {
  if (comparison.of_saves || HasInputs(comparison)) return {};
  std::vector<bool> meet(comparison.calls.size());
  if (!comparison.earlier.empty()) meet = MeetNext(comparison);
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    if (!IsWrongNumber(comparison, row)) continue;
    const CallKind kind = KindOf(comparison, row);
    const bool is_gradient =
        kind != CallKind::kForward && !measure::IsInput(row) && MayBeResidue(comparison, row);
    const bool is_result = kind == CallKind::kForward && !measure::IsInput(row) && meet[row.call] &&
                           measure::ElementsOf(*row.golden) >= kLeastElements &&
                           IsAdded(comparison, row);
    if (is_gradient || is_result) found.push_back(i);
  }
  return found;
}

}  // namespace plumbline::verdict
