#include "pipeline/graphs/write_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "base/csv.h"
#include "base/text_file.h"
#include "load/graph_index.h"

namespace plumbline::pipeline {
namespace {

constexpr std::array<std::string_view, 10> kColumns = {
    "Rank", "Graph", "Step", "Kernel", "Op Type", "IO", "Slot", "Data Type", "Shape", "Path"};

std::string Line(const load::GraphIndex& index, const load::IndexedTensor& tensor) {
  const load::GraphDirectory& place = index.DirectoryOf(tensor);
  const bool is_constant = place.step == load::GraphIndex::kEveryStep;
  const std::string cells[] = {
      std::to_string(place.rank),
      place.graph ? std::to_string(*place.graph) : std::string(),
      is_constant ? std::string() : std::to_string(place.step),
      std::string(tensor.kernel),
      std::string(tensor.op_type),
      tensor.is_output ? "output" : "input",
      std::to_string(tensor.slot),
      std::string(tensor.dtype),
      tensor.shape ? fmt::format("[{}]", fmt::join(*tensor.shape, ",")) : std::string(),
      index.PathOf(tensor)};
  std::string line;
  csv::AppendRow(cells, line);
  return line;
}

}  // namespace

Result<WrittenIndex> WriteGraphIndex(const std::string& root, const std::string& path) {
  PL_TRY_ASSIGN(const load::GraphIndex index, load::GraphIndex::Read(root, /*reads_headers=*/true));
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  std::string header;
  csv::AppendRow(kColumns, header);
  PL_TRY(file.Write(header));
  WrittenIndex written{index.tensors().size(), 0, index.left_out()};
  for (const load::IndexedTensor& tensor : index.tensors()) {
    if (tensor.dtype == load::kUnreadableDType) ++written.unreadable;
    PL_TRY(file.Write(Line(index, tensor)));
  }
  PL_TRY(file.Close());
  return written;
}

}  // namespace plumbline::pipeline
