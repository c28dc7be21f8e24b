// grad_summary_{step}.csv: what a gradient probe says about the gradients of one step, a row per
// parameter (docs/reference/grad-probe.md).

#ifndef PLUMBLINE_FORMATS_TABLE_GRAD_SUMMARY_H_
#define PLUMBLINE_FORMATS_TABLE_GRAD_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::grad_summary {

struct Columns {
  bool has_md5 = false;
  bool has_shares = false;
  std::vector<std::string> bounds;  // of the shares, ascending, as they are to be spelled
};

// A gradient. max, min and norm are float32 numbers in a gradient's own precision.
struct Row {
  std::string name;  // of the parameter
  std::string md5;   // empty: not there
  std::vector<uint64_t> counts;  // elements of each interval between bounds, then those equal to 0
  uint64_t elements = 0;
  double max = 0, min = 0, norm = 0;
  Shape shape;
};

// The whole file as upstream 1.2.2 writes it: a byte order mark, lines that end in CR LF.
std::string FileText(const Columns& columns, std::span<const Row> rows);

std::string FileName(int64_t step);
// The step of such a name.
std::optional<int64_t> StepOf(std::string_view file_name);

// A row as it is read: the parameter, and whether max, min or norm of its gradient is NaN or
// infinite.
struct Entry {
  std::string name;
  bool is_nonfinite = false;
};
// The rows, in order; also of files of upstream's static graphs, which spell headers with capitals.
// kCorrupt without a column of names. kNotFound, kIo.
Result<std::vector<Entry>> ReadEntries(const std::string& path);

}  // namespace plumbline::grad_summary

#endif  // PLUMBLINE_FORMATS_TABLE_GRAD_SUMMARY_H_
