#include "pipeline/culprit/recorded_elements.h"

#include <utility>

#include "base/file.h"
#include "load/recorded_tensor.h"
#include "measure/cause_values.h"
#include "measure/compared_row.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr double kMostElements = 1 << 20;

}  // namespace

std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target, std::optional<int64_t> rows) {
  double count = measure::ElementsOf(item);
  if (rows) count *= static_cast<double>(*rows) / static_cast<double>(item.shape[0]);
  if (item.data_name.empty() || count > kMostElements) return std::nullopt;
  const std::string& dump = of_target ? comparison.target_path : comparison.golden_path;
  const auto file =
      load::OpenTensorIn(JoinPath(DirectoryOf(dump), run_files::kTensorDirectory), item.data_name);
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
