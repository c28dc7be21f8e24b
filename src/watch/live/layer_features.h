// What single layers do, in a few numbers: attention, matrices of weights, routers of experts.
// Formulas are those of upstream 26.2.0, in double.

#ifndef PLUMBLINE_WATCH_LIVE_LAYER_FEATURES_H_
#define PLUMBLINE_WATCH_LIVE_LAYER_FEATURES_H_

#include <optional>
#include <string_view>

#include "watch/live/tensor_values.h"

namespace plumbline::watch {

// Results hold the ops of one kind alone (FeatureOps()), other numbers are NaN. Nothing: the shapes
// or dtypes are not those that are expected.

// Of the first head of the first batch of Q and K, four dimensions each: sequence, batch, head and
// width, or with `is_batch_first` batch, sequence, head and width. Row i of Q K^T / sqrt(width) is
// seen up to column i, whatever both lengths are. kEntropy is the mean over the rows of the entropy
// of their softmax, kSoftmaxMax that of its largest element.
std::optional<TensorValues> AttentionFeatures(const TensorView& q, const TensorView& k,
                                              bool is_batch_first);

// kKernelNorm: the largest singular value after three power iterations from a start that depends
// on `name` alone. kStableRank: the Frobenius norm divided by it. Both 0 for a matrix of zeros.
std::optional<TensorValues> LinearFeatures(const TensorView& weight, std::string_view name);

// kRouterSimilarity: mean cosine of all pairs of experts, which the smaller dimension of the matrix
// counts (columns of a square one). 0 below two experts.
std::optional<TensorValues> RouterWeightFeatures(const TensorView& weight);

// kTokenEntropy: mean over all tokens of the entropy of the softmax over the last dimension. 0
// without tokens; at least two dimensions.
std::optional<TensorValues> RouterLogitFeatures(const TensorView& logits);

// Each op of the kind is 0: what upstream writes where it can compute nothing.
TensorValues ZeroFeatures(MonitorKind kind);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_LAYER_FEATURES_H_
