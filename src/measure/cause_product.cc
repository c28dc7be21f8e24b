#include "measure/cause_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace plumbline::measure {
namespace {

constexpr size_t kSamples = 512;
constexpr double kMostElements = 1 << 23;  // of one operand
constexpr double kReproduced = 0.3;        // what may be left of the difference
constexpr double kLargestRounding = 0.1;   // a larger error is no rounding

// y[b, m, n] = bias[n] + sum over k of x[b, m, k] w[b, k, n], or w[n, k] when it is transposed.
struct Product {
  std::vector<double> x, w, bias;
  size_t inner = 0;    // k
  size_t rows = 0;     // m of one matrix of the batch
  size_t columns = 0;  // n
  bool is_transposed = false;
  bool is_batched = false;  // w has a matrix per batch

  // One output element with `round` applied to both operands.
  template <class Round>
  [[nodiscard]] double At(size_t index, const Round& round) const {
    const size_t n = index % columns;
    const size_t row = index / columns;
    const size_t matrix = is_batched ? row / rows * inner * columns : 0;
    double sum = 0;
    for (size_t k = 0; k < inner; ++k) {
      const double weight = is_transposed ? w[n * inner + k] : w[matrix + k * columns + n];
      sum += round(x[row * inner + k]) * round(weight);
    }
    return bias.empty() ? sum : sum + bias[n];
  }
};

double RoundedTo(double value, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

bool Fits(const TensorView& view) {
  return static_cast<double>(view.element_count()) <= kMostElements &&
         InfoOf(view.dtype).kind == DTypeKind::kFloat;
}

// Sizes of a product, checked against those of its result.
bool SetSizes(const TensorView& x, const TensorView& w, std::span<const int64_t> y,
              Product& product) {
  if (x.sizes.empty() || w.sizes.size() < 2 || y.empty()) return false;
  const std::span<const int64_t> last = w.sizes.last(2);
  const int64_t inner = x.sizes.back();
  const int64_t columns = product.is_transposed ? last[0] : last[1];
  if ((product.is_transposed ? last[1] : last[0]) != inner || y.back() != columns) return false;
  product.is_batched = w.sizes.size() > 2;
  if (product.is_batched && product.is_transposed) return false;
  // The batches of x, w and y must be the same ones.
  const auto lead = x.sizes.first(x.sizes.size() - 1);
  const auto result = y.first(y.size() - 1);
  if (!std::equal(lead.begin(), lead.end(), result.begin(), result.end())) return false;
  if (product.is_batched) {
    const auto batch = w.sizes.first(w.sizes.size() - 2);
    if (lead.empty() || !std::equal(batch.begin(), batch.end(), lead.begin(), lead.end() - 1)) {
      return false;
    }
  }
  product.inner = static_cast<size_t>(inner);
  product.columns = static_cast<size_t>(columns);
  product.rows = lead.empty() ? 1 : static_cast<size_t>(lead.back());
  return inner > 1;
}

std::optional<Product> ProductOf(const CauseRequest& request) {
  const std::string_view api = request.api;
  const bool is_linear = api == "linear" || api == "Linear";
  const bool has_addend = api == "addmm";
  const bool is_product = is_linear || has_addend || api == "matmul" || api == "mm" ||
                          api == "bmm" || api == "__matmul__";
  std::vector<const CauseCandidate*> operands;
  for (const CauseCandidate& candidate : request.candidates) {
    if (candidate.role == CauseCandidate::Role::kOperand) operands.push_back(&candidate);
  }
  if (!is_product || operands.size() < 2 || (has_addend && operands.size() != 3)) {
    return std::nullopt;
  }
  const size_t first = has_addend ? 1 : 0;
  const TensorView& x = operands[first]->view;
  const TensorView& w = operands[first + 1]->view;
  Product product;
  product.is_transposed = is_linear;
  if (!Fits(x) || !Fits(w) || !SetSizes(x, w, request.target.sizes, product)) return std::nullopt;
  const CauseCandidate* bias = has_addend                          ? operands[0]
                               : is_linear && operands.size() == 3 ? operands[2]
                                                                   : nullptr;
  if (bias != nullptr) {
    const bool is_row =
        bias->view.sizes.size() == 1 && bias->view.sizes[0] == request.target.sizes.back();
    if (!is_row) return std::nullopt;
    product.bias = DoublesOf(bias->view).value_or(std::vector<double>());
  }
  product.x = DoublesOf(x).value_or(std::vector<double>());
  product.w = DoublesOf(w).value_or(std::vector<double>());
  const bool is_loaded =
      !product.x.empty() && !product.w.empty() && (bias == nullptr || !product.bias.empty());
  return is_loaded ? std::optional(std::move(product)) : std::nullopt;
}

struct Sample {
  std::vector<size_t> indices;
  double golden_squares = 0;
  double difference_squares = 0;  // of target and golden
};

Sample SampleOf(const CausePair& pair) {
  Sample sample;
  const size_t step = std::max<size_t>(1, pair.size() / kSamples);
  for (size_t i = step / 2; i < pair.size(); i += step) {
    const double d = pair.target[i] - pair.golden[i];
    if (!std::isfinite(d)) continue;
    sample.indices.push_back(i);
    sample.golden_squares += pair.golden[i] * pair.golden[i];
    sample.difference_squares += d * d;
  }
  return sample;
}

// |values - product| over |target - golden|, over the sample.
template <class Round>
double LeftOf(const Product& product, const Sample& sample, std::span<const double> values,
              const Round& round) {
  double squares = 0;
  for (const size_t i : sample.indices) {
    const double left = values[i] - product.At(i, round);
    squares += left * left;
  }
  return std::sqrt(squares / sample.difference_squares);
}

}  // namespace

std::optional<Cause> FindProductCause(const CauseRequest& request, const CausePair& pair,
                                      const PairSums& sums) {
  const bool is_whole = std::equal(pair.shape.begin(), pair.shape.end(),
                                   request.target.sizes.begin(), request.target.sizes.end());
  if (!is_whole || sums.nonfinite_differs > 0 || sums.error() > kLargestRounding) {
    return std::nullopt;
  }
  const std::optional<Product> product = ProductOf(request);
  if (!product) return std::nullopt;
  const Sample sample = SampleOf(pair);
  if (!(sample.difference_squares > 0) || !(sample.golden_squares > 0)) return std::nullopt;
  const auto keep = [](double value) { return value; };
  const double golden_left = LeftOf(*product, sample, pair.golden, keep);
  if (!(golden_left <= kReproduced)) return std::nullopt;  // golden is not this product
  for (const auto& [bits, name] :
       {std::pair(8, "bfloat16"), std::pair(11, "float16 or tf32"), std::pair(4, "float8_e4m3")}) {
    const auto round = [bits = bits](double value) { return RoundedTo(value, bits); };
    const double left = LeftOf(*product, sample, pair.target, round);
    if (!(left <= kReproduced)) continue;
    return Cause{"narrowed",
                 fmt::format("the product of the operands rounded to {} reproduces the target "
                             "({:.2g} of the difference stays unexplained)",
                             name, left),
                 CauseConfidence::kHigh};
  }
  return Cause{"accumulation",
               fmt::format("golden is the product of its operands to {:.2g} of the difference; the "
                           "target is off by {:.2g}, which no rounding of the operands reproduces: "
                           "another order or a narrower accumulator of {} terms",
                           golden_left, sums.error(), product->inner),
               CauseConfidence::kMedium};
}

}  // namespace plumbline::measure
