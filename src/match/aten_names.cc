#include "match/aten_names.h"

#include <algorithm>
#include <array>

namespace plumbline::match {
namespace {

struct Entry {
  std::string_view operator_name;
  std::string_view torch_name;
};

// Sorted by operator name. Where an operator serves several functions, the most used one.
constexpr auto kEntries = std::to_array<Entry>({
    {"_adaptive_avg_pool2d", "adaptive_avg_pool2d"},
    {"_adaptive_avg_pool3d", "adaptive_avg_pool3d"},
    {"_cdist_forward", "cdist"},
    {"_embedding_bag", "embedding_bag"},
    {"_linalg_det", "det"},
    {"_linalg_eigh", "eigh"},
    {"_linalg_slogdet", "slogdet"},
    {"_linalg_svd", "svd"},
    {"_log_softmax", "log_softmax"},
    {"_native_batch_norm_legit", "batch_norm"},
    {"_native_batch_norm_legit_functional", "batch_norm"},
    {"_pdist_forward", "pdist"},
    {"_reshape_alias", "reshape"},
    {"_scaled_dot_product_efficient_attention", "scaled_dot_product_attention"},
    {"_scaled_dot_product_flash_attention", "scaled_dot_product_attention"},
    {"_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention"},
    {"_softmax", "softmax"},
    {"_to_copy", "to"},
    {"_unsafe_view", "view"},
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arcsin", "asin"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"bitwise_left_shift", "lshift"},
    {"bitwise_right_shift", "rshift"},
    {"constant_pad_nd", "pad"},
    {"convolution", "conv2d"},
    {"cudnn_batch_norm", "batch_norm"},
    {"divide", "div"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"grid_sampler_2d", "grid_sample"},
    {"grid_sampler_3d", "grid_sample"},
    {"index", "getitem"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_vector_norm", "norm"},
    {"log_sigmoid_forward", "logsigmoid"},
    {"max_pool2d_with_indices", "max_pool2d"},
    {"max_pool3d_with_indices", "max_pool3d"},
    {"multiply", "mul"},
    {"native_batch_norm", "batch_norm"},
    {"native_dropout", "dropout"},
    {"native_group_norm", "group_norm"},
    {"native_layer_norm", "layer_norm"},
    {"negative", "neg"},
    {"nll_loss2d_forward", "nll_loss"},
    {"nll_loss_forward", "nll_loss"},
    {"not_equal", "ne"},
    {"rrelu_with_noise", "rrelu"},
    {"split_with_sizes", "split"},
    {"subtract", "sub"},
    {"t", "transpose"},
    {"unsafe_split", "split"},
    {"upsample_bicubic2d", "interpolate"},
    {"upsample_bilinear2d", "interpolate"},
    {"upsample_nearest1d", "interpolate"},
    {"upsample_nearest2d", "interpolate"},
    {"upsample_nearest3d", "interpolate"},
});
static_assert(std::ranges::is_sorted(kEntries, {}, &Entry::operator_name));

}  // namespace

std::string_view TorchNameOfAten(std::string_view operator_name) {
  const auto at = std::ranges::lower_bound(kEntries, operator_name, {}, &Entry::operator_name);
  return at != kEntries.end() && at->operator_name == operator_name ? at->torch_name
                                                                    : operator_name;
}

}  // namespace plumbline::match
