#include "pipeline/culprit/recorded_elements.h"

#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "load/recorded_tensor.h"
#include "measure/cause_values.h"
#include "measure/compared_row.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr double kMostElements = 1 << 20;

// The file of one tensor: the dump.json beside its directory, and its name there.
struct TensorPlace {
  std::string dump, file;
};

TensorPlace PlaceOf(const Comparison& comparison, const Item& item, bool of_target) {
  const std::string& name = item.data_name;
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const auto cut = static_cast<size_t>(end - name.data());
  const bool is_earlier = error == std::errc() && cut < name.size() && name[cut] == '/' &&
                          index < comparison.earlier.size();
  if (!is_earlier) return {of_target ? comparison.target_path : comparison.golden_path, name};
  const EarlierStep& step = comparison.earlier[index];
  return {of_target ? step.target_path : step.golden_path, name.substr(cut + 1)};
}

}  // namespace

std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target, std::optional<int64_t> rows) {
  double count = measure::ElementsOf(item);
  if (rows) count *= static_cast<double>(*rows) / static_cast<double>(item.shape[0]);
  if (item.data_name.empty() || count > kMostElements) return std::nullopt;
  const TensorPlace place = PlaceOf(comparison, item, of_target);
  const auto file = load::OpenTensorIn(
      JoinPath(DirectoryOf(place.dump), run_files::kTensorDirectory), place.file);
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
