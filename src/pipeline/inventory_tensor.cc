#include "pipeline/inventory_tensor.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/number_text.h"
#include "formats/npy.h"
#include "formats/torch_pt.h"
#include "kernels/tensor_scan.h"
#include "record/tensor_stats.h"
#include "tensor/block_gather.h"
#include "tensor/element_value.h"

namespace plumbline {
namespace {

constexpr size_t kFewValues = 8;

struct ToText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  template <class T>
  std::string operator()(T value) const {
    if constexpr (std::is_integral_v<T>) return std::to_string(value);
    return PythonFloat(static_cast<double>(value));
  }
  template <class T>
  std::string operator()(T real, T imaginary) const {
    std::string text = (*this)(real);
    if (!(imaginary < 0)) text += '+';
    return text + (*this)(imaginary) + "j";
  }
};

void AddStatistic(const char* name, const Statistic& value, TensorFacts& facts) {
  std::string text;
  if (const auto* real = std::get_if<double>(&value)) {
    text = PythonFloat(*real);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    text = std::to_string(*integer);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    text = *truth ? "true" : "false";
  } else {
    return;
  }
  facts.statistics.emplace_back(name, std::move(text));
}

void Describe(const TensorView& view, TensorFacts& facts) {
  facts.dtype = InfoOf(view.dtype).name;
  facts.shape.assign(view.sizes.begin(), view.sizes.end());
  facts.bytes = view.size_bytes();
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(view.dtype, scan.moments, view.sizes.empty());
  AddStatistic("max", stats.max, facts);
  AddStatistic("min", stats.min, facts);
  AddStatistic("mean", stats.mean, facts);
  AddStatistic("norm", stats.norm, facts);
  facts.nans = scan.moments.nan_count;
  facts.infs = scan.moments.inf_count;
  facts.zeros = scan.moments.zero_count;
  const size_t few = std::min<size_t>(static_cast<size_t>(view.element_count()), kFewValues);
  if (few == 0) return;
  std::vector<std::byte> scratch(BlockGather::kMinScratchBytes);
  BlockGather gather(view, scratch);
  gather.Select(0, few);
  const std::span<const std::byte> bytes = gather.Next();
  for (size_t i = 0; i < few; ++i) {
    const std::byte* at = bytes.data() + i * InfoOf(view.dtype).size_bytes;
    facts.values.push_back(VisitElement(view.dtype, at, ToText()));
  }
}

}  // namespace

Result<TensorFacts> ReadTensorFacts(const std::string& path) {
  TensorFacts facts;
  facts.path = path;
  if (path.ends_with(".npy")) {
    PL_TRY_ASSIGN(const npy::NpyFile file, npy::NpyFile::Open(path));
    Describe(file.view(), facts);
  } else {
    PL_TRY_ASSIGN(const torch_pt::PtFile file, torch_pt::PtFile::Open(path));
    Describe(file.view(), facts);
  }
  return facts;
}

}  // namespace plumbline
