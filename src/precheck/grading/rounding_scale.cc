#include "precheck/grading/rounding_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "precheck/standards.h"
#include "tensor/element_value.h"

namespace plumbline::precheck {
namespace {

// Of the finite elements of floating tensors; complex numbers count as their parts.
struct Magnitudes {
  double largest = 0;     // magnitude
  double half_range = 0;  // half the distance of the least and the largest element
  uint64_t elements = 0;
};

using Memory = std::span<const std::byte>;

bool LiesIn(const TensorPlace& place, Memory memory) {
  const Result<size_t> bytes = BytesOf(place);
  return bytes && place.offset <= memory.size() && *bytes <= memory.size() - place.offset;
}

Magnitudes MagnitudesOf(const TensorPlace& place, Memory memory) {
  const DType dtype = PartOf(place.dtype);
  if (InfoOf(dtype).kind != DTypeKind::kFloat || !LiesIn(place, memory)) return {};
  const size_t count = *BytesOf(place) / InfoOf(dtype).size_bytes;
  if (count == 0) return {};
  const kernels::Moments moments = kernels::MomentsOf(dtype, memory.data() + place.offset, count);
  if (!(moments.finite_max >= moments.finite_min)) return {0, 0, count};
  return {std::max(std::abs(moments.finite_max), std::abs(moments.finite_min)),
          moments.finite_max / 2 - moments.finite_min / 2, count};
}

std::vector<TensorPlace> TensorsOf(const CallValue& value) {
  std::vector<TensorPlace> tensors;
  ForEachTensor(value, [&](const TensorPlace& tensor) { tensors.push_back(tensor); });
  return tensors;
}

// In the order in which their gradients are returned.
std::vector<TensorPlace> ArgumentsOf(const PreparedCall& call) {
  std::vector<TensorPlace> tensors;
  ForEachInput(call, [&](const TensorPlace& tensor) { tensors.push_back(tensor); });
  return tensors;
}

Magnitudes Together(const std::vector<TensorPlace>& tensors, Memory memory) {
  Magnitudes all;
  for (const TensorPlace& tensor : tensors) {
    const Magnitudes one = MagnitudesOf(tensor, memory);
    all.largest = std::max(all.largest, one.largest);
    all.elements = std::max(all.elements, one.elements);
  }
  return all;
}

// How many elements of the one there are for each of the other; at least 1.
double Share(uint64_t many, uint64_t few) {
  return few == 0 ? 1 : std::max(1.0, static_cast<double>(many) / static_cast<double>(few));
}

// Requires: there are gradients.
Magnitudes IncomingOf(const GivenToCall& given) {
  std::vector<TensorPlace> gradients;
  for (const CallValue& value : *given.call->grads) {
    ForEachTensor(value, [&](const TensorPlace& tensor) { gradients.push_back(tensor); });
  }
  return Together(gradients, given.inputs);
}

Magnitudes ResultsOf(const GivenToCall& given) {
  if (given.bench.value == nullptr) return {};
  return Together(TensorsOf(*given.bench.value), given.bench.memory);
}

// Of two tensors; NaN where they cannot be compared.
double LargestError(const TensorPlace& bench, const TensorPlace& device, const GivenToCall& given) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const auto is_real = [](DType dtype) { return InfoOf(dtype).kind == DTypeKind::kFloat; };
  const bool are_alike =
      bench.shape == device.shape && is_real(bench.dtype) && is_real(device.dtype);
  if (!are_alike || !LiesIn(bench, given.bench.memory) || !LiesIn(device, given.device.memory)) {
    return kUnknown;
  }
  const size_t bench_bytes = InfoOf(bench.dtype).size_bytes;
  const size_t device_bytes = InfoOf(device.dtype).size_bytes;
  const size_t count = *BytesOf(bench) / bench_bytes;
  const std::byte* const b = given.bench.memory.data() + bench.offset;
  const std::byte* const d = given.device.memory.data() + device.offset;
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double error = std::abs(ElementAsDouble(device.dtype, d + i * device_bytes) -
                                  ElementAsDouble(bench.dtype, b + i * bench_bytes));
    if (std::isnan(error)) return kUnknown;
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace

double ForwardScale(const GivenToCall& given, uint64_t result_elements) {
  if (given.call == nullptr) return 0;
  const Magnitudes inputs = Together(ArgumentsOf(*given.call), given.inputs);
  return inputs.largest * std::sqrt(Share(inputs.elements, result_elements));
}

double GradientScale(const GivenToCall& given, size_t argument) {
  if (given.call == nullptr || !given.call->grads) return 0;
  const std::vector<TensorPlace> arguments = ArgumentsOf(*given.call);
  if (argument >= arguments.size()) return 0;
  const Magnitudes gradient = IncomingOf(given);
  const Magnitudes result = ResultsOf(given);
  const Magnitudes of = MagnitudesOf(arguments[argument], given.inputs);
  const double steepness = of.half_range > 0 ? std::max(1.0, 1 / of.half_range) : 1;
  const double terms = Share(result.elements, of.elements);
  return gradient.largest * result.largest * steepness / Share(of.elements, result.elements) *
         std::sqrt(terms);
}

double SummedGradientScale(const GivenToCall& given, size_t argument) {
  if (given.call == nullptr || !given.call->grads) return 0;
  const std::vector<TensorPlace> arguments = ArgumentsOf(*given.call);
  if (arguments.size() < 3 || argument + 1 != arguments.size()) return 0;
  const Magnitudes gradient = IncomingOf(given);
  const Magnitudes of = MagnitudesOf(arguments[argument], given.inputs);
  return gradient.largest * std::sqrt(Share(gradient.elements, of.elements));
}

double LargestResultError(const GivenToCall& given) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (given.bench.value == nullptr || given.device.value == nullptr) return kUnknown;
  const std::vector<TensorPlace> bench = TensorsOf(*given.bench.value);
  const std::vector<TensorPlace> device = TensorsOf(*given.device.value);
  if (bench.empty() || bench.size() != device.size()) return kUnknown;
  double largest = 0;
  for (size_t i = 0; i < bench.size(); ++i) {
    const double error = LargestError(bench[i], device[i], given);
    if (std::isnan(error)) return kUnknown;
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace plumbline::precheck
