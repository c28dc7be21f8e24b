#include "watch/live/layer_features.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "base/memory/digest.h"
#include "watch/live/elements.h"

namespace plumbline::watch {
namespace {

bool IsFloat(const TensorView& view) { return InfoOf(view.dtype).kind == DTypeKind::kFloat; }

TensorValues FeaturesOf(const TensorView& view) {
  TensorValues values = NoValues();
  values.dtype = view.dtype;
  return values;
}

std::vector<double> AllOf(const TensorView& view) {
  std::vector<double> all;
  all.reserve(static_cast<size_t>(view.element_count()));
  Elements elements(view);
  for (auto part = elements.Next(SIZE_MAX); !part.empty(); part = elements.Next(SIZE_MAX)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Calls take(row) with the rows of a tensor, each along its last dimension.
template <class Take>
void VisitRows(const TensorView& view, const Take& take) {
  const auto width = static_cast<size_t>(view.sizes.back());
  if (width == 0) return;
  std::vector<double> row;
  Elements elements(view);
  for (auto left = static_cast<size_t>(view.element_count()); left >= width; left -= width) {
    row.clear();
    while (row.size() < width) {
      const auto part = elements.Next(width - row.size());
      if (part.empty()) return;
      row.insert(row.end(), part.begin(), part.end());
    }
    take(row);
  }
}

struct SoftmaxFacts {
  double entropy = 0, largest = 0;
};

// Of the softmax of one row, which is overwritten.
SoftmaxFacts SoftmaxOf(std::span<double> row) {
  const double top = *std::ranges::max_element(row);
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - top);
  SoftmaxFacts facts;
  for (const double x : row) {
    const double p = x / sum;
    if (!(p <= 0)) facts.entropy -= p * std::log(p);
    facts.largest = p > facts.largest || std::isnan(p) ? p : facts.largest;
  }
  return facts;
}

double NormOf(std::span<const double> numbers) {
  double squares = 0;
  for (const double x : numbers) squares += x * x;
  return std::sqrt(squares);
}

// The first head of the first batch, a matrix of its own.
std::vector<double> HeadOf(const TensorView& view, bool is_batch_first) {
  const size_t sequence = is_batch_first ? 1 : 0;
  const std::array<int64_t, 2> sizes = {view.sizes[sequence], view.sizes[3]};
  const std::array<int64_t, 2> strides = {view.strides[sequence], view.strides[3]};
  return AllOf({view.dtype, view.data, sizes, strides});
}

std::vector<double> StartOf(std::string_view name, size_t size) {
  std::mt19937_64 random(Crc32c(std::as_bytes(std::span(name))));
  std::vector<double> start(size);
  for (double& x : start) x = static_cast<double>(random() >> 11) * 0x1p-52 - 1;  // -1 to 1
  const double norm = NormOf(start);
  for (double& x : start) x /= norm;
  return start;
}

}  // namespace

std::optional<TensorValues> AttentionFeatures(const TensorView& q, const TensorView& k,
                                              bool is_batch_first) {
  const bool have_form = q.sizes.size() == 4 && k.sizes.size() == 4 && IsFloat(q) && IsFloat(k) &&
                         q.element_count() > 0 && k.element_count() > 0 && q.sizes[3] == k.sizes[3];
  if (!have_form) return std::nullopt;
  const auto width = static_cast<size_t>(q.sizes[3]);
  const std::vector<double> queries = HeadOf(q, is_batch_first), keys = HeadOf(k, is_batch_first);
  const size_t rows = queries.size() / width, columns = keys.size() / width;
  const double scale = std::sqrt(static_cast<double>(width));
  std::vector<double> row;
  SoftmaxFacts sums;
  for (size_t i = 0; i < rows; ++i) {
    row.assign(std::min(columns, i + 1), 0);
    for (size_t j = 0; j < row.size(); ++j) {
      for (size_t d = 0; d < width; ++d) row[j] += queries[i * width + d] * keys[j * width + d];
      row[j] /= scale;
    }
    const SoftmaxFacts facts = SoftmaxOf(row);
    sums.entropy += facts.entropy;
    sums.largest += facts.largest;
  }
  TensorValues values = FeaturesOf(q);
  values.of(Op::kEntropy) = sums.entropy / static_cast<double>(rows);
  values.of(Op::kSoftmaxMax) = sums.largest / static_cast<double>(rows);
  return values;
}

std::optional<TensorValues> LinearFeatures(const TensorView& weight, std::string_view name) {
  if (weight.sizes.size() != 2 || !IsFloat(weight) || weight.element_count() == 0) {
    return std::nullopt;
  }
  constexpr int kIterations = 3;
  const auto width = static_cast<size_t>(weight.sizes[1]);
  std::vector<double> start = StartOf(name, width), image(width);
  double squares = 0, sigma = 0;
  for (int i = 0; i < kIterations; ++i) {
    std::ranges::fill(image, 0);
    squares = 0;
    sigma = 0;
    VisitRows(weight, [&](std::span<const double> row) {
      double product = 0;
      for (size_t j = 0; j < width; ++j) product += row[j] * start[j];
      for (size_t j = 0; j < width; ++j) {
        image[j] += product * row[j];
        squares += row[j] * row[j];
      }
      sigma += product * product;
    });
    sigma = std::sqrt(sigma);
    const double norm = NormOf(image);
    if (norm == 0) sigma = 0;
    if (norm == 0) break;
    for (size_t j = 0; j < width; ++j) start[j] = image[j] / norm;
  }
  TensorValues values = FeaturesOf(weight);
  values.of(Op::kKernelNorm) = sigma;
  values.of(Op::kStableRank) = sigma == 0 ? 0 : std::sqrt(squares) / sigma;
  return values;
}

std::optional<TensorValues> RouterWeightFeatures(const TensorView& weight) {
  if (weight.sizes.size() != 2 || !IsFloat(weight)) return std::nullopt;
  // As a matrix with a row for each expert.
  std::array<int64_t, 2> sizes = {weight.sizes[0], weight.sizes[1]};
  std::array<int64_t, 2> strides = {weight.strides[0], weight.strides[1]};
  if (sizes[0] >= sizes[1]) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  TensorValues values = FeaturesOf(weight);
  values.of(Op::kRouterSimilarity) = 0;
  if (sizes[0] < 2) return values;
  constexpr double kSmallestNorm = 1e-12;  // as upstream's normalize() has it
  std::vector<double> sum(static_cast<size_t>(sizes[1]));
  double own = 0;
  VisitRows({weight.dtype, weight.data, sizes, strides}, [&](std::span<const double> row) {
    const double norm = std::max(NormOf(row), kSmallestNorm);
    for (size_t j = 0; j < row.size(); ++j) {
      sum[j] += row[j] / norm;
      own += row[j] / norm * (row[j] / norm);
    }
  });
  double all = 0;
  for (const double x : sum) all += x * x;
  // The square of the sum has each pair twice and each expert with itself.
  const auto experts = static_cast<double>(sizes[0]);
  values.of(Op::kRouterSimilarity) = (all - own) / (experts * (experts - 1));
  return values;
}

std::optional<TensorValues> RouterLogitFeatures(const TensorView& logits) {
  if (logits.sizes.size() < 2 || !IsFloat(logits)) return std::nullopt;
  double sum = 0, tokens = 0;
  VisitRows(logits, [&](std::vector<double>& row) {
    sum += SoftmaxOf(row).entropy;
    ++tokens;
  });
  TensorValues values = FeaturesOf(logits);
  values.of(Op::kTokenEntropy) = tokens == 0 ? 0 : sum / tokens;
  return values;
}

TensorValues ZeroFeatures(MonitorKind kind) {
  TensorValues values = NoValues();
  values.dtype = DType::kFloat32;
  for (const Op op : FeatureOps(kind)) values.of(op) = 0;
  return values;
}

}  // namespace plumbline::watch
