// Dumps of ATB (Ascend Transformer Boost): statistic.csv and, where tensors were stored, .bin
// files.

#ifndef PLUMBLINE_LOAD_ATB_DUMP_H_
#define PLUMBLINE_LOAD_ATB_DUMP_H_

#include <array>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

// One tensor of one operator: a row of statistic.csv, cells as they stand there.
struct AtbTensor {
  std::string operation;  // "{id}_{name}/..." of the operator and those around it
  std::string name;       // operation/{IO}.{index}, which pairs the two sides
  bool is_output = false;
  std::string device_and_pid, execution_count, dtype, shape;
  std::array<std::string, 4> statistics;  // max, min, mean, norm
  std::string path;                       // of the .bin file; empty: none
};

struct AtbDump {
  bool has_tensors = false;
  std::vector<AtbTensor> tensors;  // in file order
  size_t left_out = 0;             // rows of another length, or whose names and ids do not match
};

// Whether `path` is a directory whose statistic.csv has the 15 columns of ATB.
bool IsAtbDump(const std::string& path);

// kNotFound without statistic.csv or rows in it; kCorrupt when it is damaged or of another kind;
// kIo.
Result<AtbDump> ReadAtbDump(const std::string& directory);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_ATB_DUMP_H_
