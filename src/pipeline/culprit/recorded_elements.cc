#include "pipeline/culprit/recorded_elements.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/file.h"
#include "load/recorded_tensor.h"
#include "measure/cause_values.h"
#include "measure/compared_row.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr double kMostElements = 1 << 20;

// The file of one tensor.
struct TensorPlace {
  std::string directory, file;
};

constexpr std::string_view kBehindDump = "//";  // no path of a dump.json ends in it

// `tensors`: as in a Comparison.
std::string DirectoryBeside(const std::string& dump_json, const std::string& tensors) {
  return tensors.empty() ? JoinPath(DirectoryOf(dump_json), run_files::kTensorDirectory) : tensors;
}

TensorPlace PlaceOf(const Comparison& comparison, const Item& item, bool of_target) {
  const std::string_view name = item.data_name;
  for (const EarlierStep& step : comparison.earlier) {
    const std::string& dump = of_target ? step.target_path : step.golden_path;
    if (!name.starts_with(dump) || !name.substr(dump.size()).starts_with(kBehindDump)) continue;
    return {DirectoryBeside(dump, of_target ? step.target_tensors : step.golden_tensors),
            std::string(name.substr(dump.size() + kBehindDump.size()))};
  }
  return {TensorDirectoryOf(comparison, of_target), std::string(name)};
}

}  // namespace

std::string TensorDirectoryOf(const Comparison& comparison, bool of_target) {
  return of_target ? DirectoryBeside(comparison.target_path, comparison.target_tensors)
                   : DirectoryBeside(comparison.golden_path, comparison.golden_tensors);
}

std::string EarlierFile(std::string_view dump_json, std::string_view file) {
  return fmt::format("{}{}{}", dump_json, kBehindDump, file);
}

std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target, std::optional<int64_t> rows) {
  double count = measure::ElementsOf(item);
  if (rows) count *= static_cast<double>(*rows) / static_cast<double>(item.shape[0]);
  if (item.data_name.empty() || count > kMostElements) return std::nullopt;
  const TensorPlace place = PlaceOf(comparison, item, of_target);
  const auto file = load::OpenTensorIn(place.directory, place.file);
  if (!file) return std::nullopt;
  TensorView view = file->view();
  Shape sizes(view.sizes.begin(), view.sizes.end());
  if (rows) sizes[0] = *rows;
  view.sizes = sizes;
  Result<std::vector<double>> values = measure::DoublesOf(view);
  if (!values || static_cast<double>(values->size()) != count) return std::nullopt;
  return std::move(*values);
}

}  // namespace plumbline::pipeline
