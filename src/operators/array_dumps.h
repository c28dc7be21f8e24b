// Arrays as dump files, and dump files of frameworks as arrays: upstream's dump_data_conversion.

#ifndef PLUMBLINE_OPERATORS_ARRAY_DUMPS_H_
#define PLUMBLINE_OPERATORS_ARRAY_DUMPS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "operators/msaccucmp_code.h"

namespace plumbline::operators {

enum class ArrayDumpKind : uint8_t {
  kFramework,  // {name}.{output}.{time}.npy <-> the same with .pb
  kQuantised,  // the same with .quant
  kDevice,     // {type}.{name}.{task}[.{stream}].{time}[.{input|output}].{index}[.{shape}].npy: all
               // arrays of one operator are one dump
};

struct ArrayDumpReport {
  std::vector<std::string> files;     // that were written
  std::vector<DumpFailure> failures;  // one a file that could not be converted
  std::vector<std::string> left_out;  // names of other forms
};

// Writes a dump for each array, or for all arrays of an operator, of a file or of the top level of
// a directory. kInvalidPath: no such file or directory; kDumpFileError: no array of such a name;
// kInvalidParameter: an output is a file of the input; kWriteError: the output directory. What
// fails for one file is in the report.
DumpResult<ArrayDumpReport> DumpsFromArrays(const std::string& input, const std::string& output,
                                            ArrayDumpKind kind);

// The way back for frameworks' dumps, whose output is one array each; devices': ConvertDumps().
DumpResult<ArrayDumpReport> ArraysFromDumps(const std::string& input, const std::string& output,
                                            ArrayDumpKind kind);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_ARRAY_DUMPS_H_
