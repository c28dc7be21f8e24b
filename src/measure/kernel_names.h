// What MindSpore's graph kernels compute, by the names of the functions that they serve.

#ifndef PLUMBLINE_MEASURE_KERNEL_NAMES_H_
#define PLUMBLINE_MEASURE_KERNEL_NAMES_H_

#include <string_view>

namespace plumbline::measure {

// "MatMul" -> "matmul", "BiasAdd" -> "add". The name itself where the kernel is not known.
std::string_view ApiOfKernel(std::string_view kernel);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_KERNEL_NAMES_H_
