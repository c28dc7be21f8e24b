#include "operators/hdf5_filtered.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/hdf5/hdf5_reader.h"
#include "formats/pytorch/tensor_convert.h"

namespace plumbline::operators {
namespace {

constexpr double kGoodCosine = 0.95;

bool IsWorthALook(const Hdf5Comparison& comparison, const Hdf5Row& row) {
  const auto cosine =
      std::ranges::find(comparison.algorithms, measure::DumpAlgorithm::kCosineSimilarity);
  const auto place = static_cast<size_t>(cosine - comparison.algorithms.begin());
  if (place >= row.algorithms.size()) return true;
  const std::optional<double> value = ParseReal(row.algorithms[place]);
  return !value || !(*value > kGoodCosine);
}

// Writes the tensor at `path`, "/add_Tensor/7/input/self", below `directory`, if it is one.
Status WriteTensorAt(const hdf5::DumpReader& reader, const std::string& path,
                     const std::string& directory) {
  const std::vector<std::string_view> parts = SplitAt(path, '/');
  // A call, nothing, or a name that would lead out of the directory.
  if (parts.size() < 5 || std::ranges::find(parts, "..") != parts.end()) return {};
  const auto call = ParseNatural(parts[2]);
  const auto side = parts[3] == "input" ? hdf5::Side::kInput : hdf5::Side::kOutput;
  const std::string name = path.substr(static_cast<size_t>(parts[4].data() - path.data()));
  const hdf5::CallPlace place{std::string(parts[1]), call.value_or(0), side};
  const auto values = reader.Values(place);
  if (!values) return {};
  const auto value = std::ranges::find(*values, name, &hdf5::StoredValue::name);
  if (value == values->end() || !value->has_data) return {};
  const auto tensor = reader.Load(place, *value);
  if (!tensor || value->kind != hdf5::ValueKind::kTensor) return {};
  const std::string to = directory + path + ".npy";
  PL_TRY(MakeDirectories(std::string(DirectoryOf(to))));
  PL_TRY(WriteNpy(tensor->view(), to));
  return {};
}

}  // namespace

Result<std::string> WriteHdf5Filtered(const Hdf5Comparison& comparison, const Hdf5Files& files) {
  PL_TRY_ASSIGN(const hdf5::DumpReader target, hdf5::DumpReader::Open(files.target));
  PL_TRY_ASSIGN(const hdf5::DumpReader golden, hdf5::DumpReader::Open(files.golden));
  const std::string stem = files.result.substr(0, files.result.rfind('.'));
  std::string directory = stem + "_filtered";
  PL_TRY(MakeDirectories(directory));
  std::string text;
  csv::AppendRow(Hdf5Header(comparison), text);
  for (const Hdf5Row& row : comparison.rows) {
    if (!IsWorthALook(comparison, row)) continue;
    csv::AppendRow(Hdf5Cells(comparison, row), text);
    PL_TRY(WriteTensorAt(target, row.target_path, JoinPath(directory, "my_dump")));
    PL_TRY(WriteTensorAt(golden, row.golden_path, JoinPath(directory, "gold_dump")));
  }
  PL_TRY(WriteFileAtomically(JoinPath(directory, "filtered_result.csv"), text, /*durable=*/false));
  return directory;
}

}  // namespace plumbline::operators
