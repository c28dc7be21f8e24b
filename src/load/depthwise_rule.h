// Which operator of a GPU stands for a convolution whose groups have one channel each: PyTorch 1.5
// ran such ones by its own kernel, or by cuDNN's where that is faster.

#ifndef PLUMBLINE_LOAD_DEPTHWISE_RULE_H_
#define PLUMBLINE_LOAD_DEPTHWISE_RULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_dump.h"

namespace plumbline::load {

// What decides about a depthwise convolution: as many groups as channels, more than one, and a
// multiple of that many filters.
struct DepthwiseConvolution {
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t kernel_height = 0, kernel_width = 0;
  std::vector<int64_t> stride, dilation;
  bool is_half = false;  // input and weight are float16
};

// Nothing: the arguments of the call are those of another convolution, or some are missing.
std::optional<DepthwiseConvolution> ReadDepthwise(std::span<const hdf5::Argument> arguments);

// Whether PyTorch 1.5 with cuDNN 7.6 or newer ran it by cuDNN.
bool RunsByCudnn(const DepthwiseConvolution& convolution);

// The recorded operators that may stand for a running one that the file does not have under its own
// name, the likeliest first.
std::vector<std::string> CounterpartsOf(const std::string& operation,
                                        std::span<const hdf5::Argument> arguments);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_DEPTHWISE_RULE_H_
