#include "formats/hdf5_names.h"

#include <algorithm>

namespace plumbline::hdf5 {

const std::vector<NameRow>& OperatorNames() {
  static const std::vector<NameRow> kRows = {
      {"NpuConvolutionBackward", {"CudnnConvolutionBackward", "ThnnConvDepthwise2DBackward"}},
      {"CudnnConvolutionBackward", {"NpuConvolutionBackward"}},
      {"ThnnConvDepthwise2DBackward", {"NpuConvolutionBackward"}},
      {"NativeBatchNormBackward", {"CudnnBatchNormBackward"}},
      {"CudnnBatchNormBackward", {"NativeBatchNormBackward"}},
  };
  return kRows;
}

const std::vector<NameRow>& ArgumentNames() {
  static const std::vector<NameRow> kRows = {
      {"input", {"self"}}, {"self", {"input"}}, {"eps", {"epsilon"}}, {"epsilon", {"eps"}}};
  return kRows;
}

const std::vector<std::string_view>& OtherNames(const std::vector<NameRow>& rows,
                                                std::string_view name) {
  static const std::vector<std::string_view> kNone;
  const auto row = std::ranges::find(rows, name, &NameRow::first);
  return row == rows.end() ? kNone : row->second;
}

bool IsIgnoredArgument(std::string_view operation, std::string_view argument) {
  return (operation == "NpuConvolutionBackward" &&
          (argument == "benchmark" || argument == "deterministic")) ||
         (operation == "NativeBatchNormBackward" && argument == "result3");
}

}  // namespace plumbline::hdf5
