#include "pipeline/culprit/symmetric_gradient.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "load/recorded_tensor.h"
#include "measure/cause_values.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/recorded_elements.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {
namespace {

// Matrices one after the other, row-major.
struct Matrices {
  size_t size = 0;  // rows, and columns
  std::vector<double> values;

  // Of the element that stands at the other side of the diagonal.
  [[nodiscard]] size_t Mirrored(size_t i) const {
    const size_t in_matrix = i % (size * size);
    return i - in_matrix + in_matrix % size * size + in_matrix / size;
  }
};

std::optional<Matrices> Load(const std::string& directory, const Item& item) {
  const Shape& shape = item.shape;
  const size_t rank = shape.size();
  if (!item.is_tensor || item.data_name.empty() || rank < 2) return std::nullopt;
  if (shape[rank - 1] != shape[rank - 2] || shape[rank - 1] < 2) return std::nullopt;
  const auto file = load::OpenTensorIn(directory, item.data_name);
  if (!file) return std::nullopt;
  Result<std::vector<double>> values = measure::DoublesOf(file->view());
  if (!values || values->empty()) return std::nullopt;
  return Matrices{static_cast<size_t>(shape[rank - 1]), std::move(*values)};
}

// Whether the antisymmetric part is nothing but rounding and something stands beside the diagonal.
bool IsSymmetric(const Matrices& matrices, double noise) {
  double whole = 0, apart = 0, beside = 0;
  for (size_t i = 0; i < matrices.values.size(); ++i) {
    const double value = matrices.values[i];
    const size_t mirrored = matrices.Mirrored(i);
    whole += value * value;
    if (mirrored == i) continue;
    const double difference = value - matrices.values[mirrored];
    apart += difference * difference;
    beside += value * value;
  }
  return std::sqrt(apart) <= noise * std::sqrt(whole) &&
         std::sqrt(beside) > noise * std::sqrt(whole);
}

// Relative error of the symmetric part.
double ErrorOfSymmetricPart(const Matrices& target, const Matrices& golden) {
  double difference = 0, whole = 0;
  for (size_t i = 0; i < golden.values.size(); ++i) {
    const size_t mirrored = golden.Mirrored(i);
    const double a = (target.values[i] + target.values[mirrored]) / 2;
    const double b = (golden.values[i] + golden.values[mirrored]) / 2;
    difference += (a - b) * (a - b);
    whole += b * b;
  }
  return std::sqrt(difference / whole);  // NaN where there is none
}

// Whether the means agree, which antisymmetric parts do not touch: dear files stay closed for most
// faults.
bool HaveOneMean(const Item& target, const Item& golden, double noise) {
  const std::optional<double> a = NumberOf(target.statistics[2]);
  const std::optional<double> b = NumberOf(golden.statistics[2]);
  const std::optional<double> size = measure::RmsOf(golden);
  return a && b && size && std::abs(*a - *b) <= noise * *size;
}

// The forward result of the call whose backward reads the row's gradient.
const ComparedRow* ValueOf(const Comparison& comparison, const ComparedRow& row) {
  const std::string forward = ForwardNameOf(comparison.calls[row.call].target_name);
  const auto call = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
    return !forward.empty() && each.paired() && each.target_name == forward;
  });
  if (call == comparison.calls.end()) return nullptr;
  for (const ComparedRow& each : measure::RowsOf(comparison, *call)) {
    if (!measure::IsInput(each) && each.target && each.golden) return &each;
  }
  return nullptr;
}

}  // namespace

bool MeansTheSameForSymmetricValue(const Comparison& comparison, const ComparedRow& row,
                                   double noise) {
  if (!row.target || !row.golden || !measure::IsInput(row)) return false;
  if (row.target->shape != row.golden->shape) return false;
  if (!HaveOneMean(*row.target, *row.golden, noise)) return false;
  const ComparedRow* value = ValueOf(comparison, row);
  if (value == nullptr || !measure::IsGood(value->verdict)) return false;
  if (value->target->shape != row.target->shape) return false;
  for (const bool of_target : {true, false}) {
    const auto matrices =
        Load(TensorDirectoryOf(comparison, of_target), of_target ? *value->target : *value->golden);
    if (!matrices || !IsSymmetric(*matrices, noise)) return false;
  }
  const auto target = Load(TensorDirectoryOf(comparison, true), *row.target);
  const auto golden = Load(TensorDirectoryOf(comparison, false), *row.golden);
  return target && golden && target->values.size() == golden->values.size() &&
         ErrorOfSymmetricPart(*target, *golden) <= noise;
}

}  // namespace plumbline::pipeline
