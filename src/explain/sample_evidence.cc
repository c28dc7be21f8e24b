#include "explain/sample_evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/file/lost_mapping.h"
#include "formats/pytorch/tensor_file.h"
#include "load/graph_dump.h"
#include "load/run_reader.h"
#include "tensor/element_value.h"
#include "verdict/contents.h"

namespace plumbline::explain {

namespace {

using explain::ElementPair;
using explain::ErrorHistogram;
using explain::Evidence;

constexpr uint64_t kMostElements = uint64_t{1} << 20;  // looked at per tensor
constexpr size_t kPairs = 300;
constexpr size_t kWorstPairs = 60;  // of these
constexpr size_t kListedWorst = 12;
constexpr size_t kProfileParts = 200;

// Bytes from the first element to the element at a row-major index.
int64_t OffsetOf(const TensorView& view, uint64_t index) {
  int64_t offset = 0;
  for (size_t d = view.sizes.size(); d-- > 0;) {
    const auto size = static_cast<uint64_t>(view.sizes[d]);
    offset += static_cast<int64_t>(index % size) * view.strides[d];
    index /= size;
  }
  return offset * InfoOf(view.dtype).size_bytes;
}

double ElementAt(const TensorView& view, bool contiguous, uint64_t index) {
  const int64_t offset = contiguous ? static_cast<int64_t>(index * InfoOf(view.dtype).size_bytes)
                                    : OffsetOf(view, index);
  return ElementAsDouble(view.dtype, view.data + offset);
}

bool IsEqual(double target, double golden) {
  return target == golden || (std::isnan(target) && std::isnan(golden));
}

// What sorts elements: equal ones 0, NaN and infinity on one side above everything.
double Badness(const ElementPair& pair) {
  if (IsEqual(pair.target, pair.golden)) return 0;
  const double difference = std::fabs(pair.target - pair.golden);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

void Count(const ElementPair& pair, ErrorHistogram& histogram) {
  ++histogram.total;
  if (IsEqual(pair.target, pair.golden)) {
    ++histogram.equal;
    return;
  }
  const double difference = Badness(pair);
  if (std::isinf(difference)) {
    ++histogram.nonfinite;
    return;
  }
  // Where golden is 0 the error counts against target: 1.
  const double base = pair.golden != 0 ? std::fabs(pair.golden) : std::fabs(pair.target);
  const double place =
      (std::log10(difference / base) - ErrorHistogram::kLow) / ErrorHistogram::kStep;
  const double last = static_cast<double>(ErrorHistogram::kBuckets - 1);
  ++histogram.counts[static_cast<size_t>(std::clamp(place, 0.0, last))];
}

// Keeps the worst pairs and evenly spaced ones.
void ChoosePairs(const std::vector<ElementPair>& all, Evidence& evidence) {
  std::vector<ElementPair> worst = all;
  const size_t count = std::min(kWorstPairs, worst.size());
  std::partial_sort(worst.begin(), worst.begin() + static_cast<ptrdiff_t>(count), worst.end(),
                    [](const ElementPair& a, const ElementPair& b) {
                      return std::pair(-Badness(a), a.index) < std::pair(-Badness(b), b.index);
                    });
  worst.resize(count);
  while (!worst.empty() && Badness(worst.back()) == 0) worst.pop_back();
  evidence.worst.assign(
      worst.begin(), worst.begin() + static_cast<ptrdiff_t>(std::min(kListedWorst, worst.size())));
  evidence.pairs = std::move(worst);
  const size_t step = all.size() / (kPairs - kWorstPairs) + 1;
  for (size_t i = 0; i < all.size(); i += step) evidence.pairs.push_back(all[i]);
  const auto by_index = [](const ElementPair& a, const ElementPair& b) {
    return a.index < b.index;
  };
  std::sort(evidence.pairs.begin(), evidence.pairs.end(), by_index);
  evidence.pairs.erase(
      std::unique(evidence.pairs.begin(), evidence.pairs.end(),
                  [](const ElementPair& a, const ElementPair& b) { return a.index == b.index; }),
      evidence.pairs.end());
}

void FillProfile(const std::vector<ElementPair>& all, Evidence& evidence) {
  const size_t parts = std::min(kProfileParts, all.size());
  evidence.profile.assign(parts, 0.0);
  for (const ElementPair& pair : all) {
    const auto part =
        static_cast<size_t>(static_cast<double>(pair.index) / static_cast<double>(evidence.count) *
                            static_cast<double>(parts));
    double& largest = evidence.profile[std::min(part, parts - 1)];
    const double badness = Badness(pair);
    if (std::isnan(largest)) continue;
    largest =
        std::isinf(badness) ? std::numeric_limits<double>::quiet_NaN() : std::max(largest, badness);
  }
}

bool HasTensors(const ComparedRow& row) {
  return row.target && row.golden && !row.target->data_name.empty() &&
         !row.golden->data_name.empty();
}

// The row that the answer names; where it is no tensor, the worst output of that call.
const ComparedRow* RowOf(const Comparison& comparison) {
  if (!comparison.first_wrong_call) return nullptr;
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  const ComparedRow* worst = nullptr;
  for (const ComparedRow& row : comparison.rows) {
    if (comparison.calls[row.call].name() != answer.name || !HasTensors(row)) continue;
    if (row.item().name == answer.item) return &row;
    if (row.item().role != ItemRole::kOutput) continue;
    // An error that is NaN says that values are not finite: nothing is worse.
    const bool worse = worst == nullptr || std::isnan(row.error) || row.error > worst->error;
    if (worse && row.verdict == Verdict::kBroken) worst = &row;
    if (worst == nullptr) worst = &row;
  }
  return worst;
}

// The metrics have verified the files already.
Result<TensorFile> OpenTrusted(const Comparison& comparison, bool of_target,
                               const std::string& name) {
  const std::vector<std::string>& graphs =
      of_target ? comparison.target_graphs : comparison.golden_graphs;
  if (!graphs.empty()) return TensorFile::Open(load::GraphFile(graphs, name, true));
  return load::OpenTensorIn(verdict::TensorDirectoryOf(comparison, of_target), name,
                            torch_pt::DataCheck::kTrust);
}

}  // namespace

std::optional<Evidence> SampleTensors(const TensorView& target, const TensorView& golden) {
  const int64_t elements = target.element_count();
  if (elements <= 0 || elements != golden.element_count()) return std::nullopt;
  for (const TensorView* view : {&target, &golden}) {
    if (InfoOf(view->dtype).kind == DTypeKind::kComplex) return std::nullopt;
  }
  Evidence evidence;
  evidence.count = static_cast<uint64_t>(elements);
  evidence.shape.assign(target.sizes.begin(), target.sizes.end());
  const uint64_t step = (evidence.count + kMostElements - 1) / kMostElements;
  const bool plain_target = target.is_contiguous(), plain_golden = golden.is_contiguous();
  std::vector<ElementPair> all;
  all.reserve(evidence.count / step + 1);
  for (uint64_t i = 0; i < evidence.count; i += step) {
    all.push_back({i, ElementAt(target, plain_target, i), ElementAt(golden, plain_golden, i)});
    Count(all.back(), evidence.histogram);
  }
  FillProfile(all, evidence);
  ChoosePairs(all, evidence);
  return evidence;
}

std::optional<Evidence> SampleEvidence(const Comparison& comparison) {
  const ComparedRow* row = RowOf(comparison);
  if (comparison.mode != CompareMode::kTensor || row == nullptr) return std::nullopt;
  const LossWatch watch;
  const auto target = OpenTrusted(comparison, true, row->target->data_name);
  const auto golden = OpenTrusted(comparison, false, row->golden->data_name);
  if (!target || !golden) return std::nullopt;
  std::optional<Evidence> evidence = SampleTensors(target->view(), golden->view());
  if (!watch.Check()) return std::nullopt;
  if (evidence) evidence->item = row->item().name;
  return evidence;
}

}  // namespace plumbline::explain
