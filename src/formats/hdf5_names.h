// Operators and arguments that have another name on another device.

#ifndef PLUMBLINE_FORMATS_HDF5_NAMES_H_
#define PLUMBLINE_FORMATS_HDF5_NAMES_H_

#include <string_view>
#include <utility>
#include <vector>

namespace plumbline::hdf5 {

using NameRow = std::pair<std::string_view, std::vector<std::string_view>>;

// What get_op_map() answers: names of operators on other devices, in the order to try them.
const std::vector<NameRow>& OperatorNames();
// Arguments of one operator that an operator of the map calls otherwise.
const std::vector<NameRow>& ArgumentNames();

// The row of `name`, or nothing.
const std::vector<std::string_view>& OtherNames(const std::vector<NameRow>& rows,
                                                std::string_view name);

// Whether a replay leaves an argument of an operator out of its comparison.
bool IsIgnoredArgument(std::string_view operation, std::string_view argument);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_NAMES_H_
