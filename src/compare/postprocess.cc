#include "compare/postprocess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/yaml_file.h"
#include "load/run_reader.h"
#include "measure/stats_metrics.h"
#include "record/recorded_number.h"
#include "tensor/element_value.h"

namespace plumbline::compare {
namespace {

using load::ProcessingStep;
using match::CallItems;
using StepKind = ProcessingStep::Kind;

constexpr std::string_view kGroupIndex = "group_index";
constexpr std::string_view kGroupList = "group_list";

// --- the file --------------------------------------------------------------------------------

class RulesReader {
 public:
  explicit RulesReader(YamlFile file) : file_(std::move(file)) {}

  Result<PostprocessRules> Read() && {
    rules_.path = file_.path();
    const YAML::Node& root = file_.root();
    const bool is_empty = !root.IsDefined() || root.IsNull();
    if (!is_empty && !root.IsMap()) return file_.Bad(root, "expected a mapping");
    bool has_handlers = false;
    if (!is_empty) {
      // In the order in which upstream applies them.
      const std::string mode = ModeOf(root);
      if (!mode.empty()) {
        if (mode != "right_matmul") {
          return file_.Bad(root["mode"], fmt::format("mode {} (expected right_matmul)", mode));
        }
        PL_TRY(AddMaps(root, "", StepKind::kMultiply));
      }
      for (const auto& entry : root) {
        if (!Knows(entry.first.Scalar(), !mode.empty())) Ignore(entry.first, "key");
      }
      PL_TRY(AddMode(root, "right_matmul", {{"", StepKind::kMultiply}}));
      PL_TRY(AddMode(root, "left_matmul", {{"", StepKind::kMultiplyLeft}}));
      PL_TRY(AddMode(root, "left_right_matmul",
                     {{"left_", StepKind::kMultiplyLeft}, {"right_", StepKind::kMultiply}}));
      has_handlers = root["compare_handlers"].IsDefined();
      if (has_handlers) PL_TRY(AddHandlers(root["compare_handlers"]));
    }
    if (!has_handlers) {
      rules_.target.tails = {{"npu_dequant_swiglu_quant", std::string(kGroupIndex)},
                             {"npu_grouped_matmul", std::string(kGroupList)}};
    }
    return std::move(rules_);
  }

 private:
  using Parts = std::vector<std::pair<std::string_view, StepKind>>;  // prefix of the maps' keys
  static constexpr std::array<std::string_view, 2> kMaps = {"target_tensor_map",
                                                            "golden_tensor_map"};

  static std::string ModeOf(const YAML::Node& root) {
    const YAML::Node mode = root["mode"];
    return mode.IsDefined() && mode.IsScalar() ? mode.Scalar() : std::string();
  }

  static bool Knows(std::string_view key, bool has_mode) {
    constexpr std::array<std::string_view, 4> kKeys = {"right_matmul", "left_matmul",
                                                       "left_right_matmul", "compare_handlers"};
    const bool of_mode = key == "mode" || key == kMaps[0] || key == kMaps[1];
    return std::ranges::find(kKeys, key) != kKeys.end() || (has_mode && of_mode);
  }

  void Ignore(const YAML::Node& node, std::string_view what) {
    rules_.warnings.push_back(
        file_.Bad(node, fmt::format("{} {} is not known and not used", what, node.Scalar()))
            .message());
  }

  Status AddMode(const YAML::Node& root, const std::string& key, const Parts& parts) {
    const YAML::Node node = root[key];
    if (!node.IsDefined() || node.IsNull()) return {};
    if (!node.IsMap()) return file_.Bad(node, fmt::format("{} is not a mapping", key));
    for (const auto& entry : node) {
      const bool known = std::ranges::any_of(parts, [&](const auto& part) {
        return std::ranges::any_of(kMaps, [&](std::string_view map) {
          return entry.first.Scalar() == fmt::format("{}{}", part.first, map);
        });
      });
      if (!known) Ignore(entry.first, fmt::format("key {}:", key));
    }
    for (const auto& [prefix, kind] : parts) PL_TRY(AddMaps(node, prefix, kind));
    return {};
  }

  Status AddMaps(const YAML::Node& node, std::string_view prefix, StepKind kind) {
    for (size_t side = 0; side < kMaps.size(); ++side) {
      const std::string key = fmt::format("{}{}", prefix, kMaps[side]);
      const YAML::Node map = node[key];
      if (!map.IsDefined() || map.IsNull()) continue;
      if (!map.IsMap()) return file_.Bad(map, fmt::format("{} is not a mapping", key));
      for (const auto& entry : map) {
        PL_TRY(AddMatrix(entry.first, entry.second, kind,
                         side == 0 ? rules_.target : rules_.golden));
      }
    }
    return {};
  }

  Status AddMatrix(const YAML::Node& matrix, const YAML::Node& names, StepKind kind,
                   PostprocessSide& side) {
    if (!matrix.IsScalar() || matrix.Scalar().empty()) {
      return file_.Bad(matrix, "expected the path of a matrix");
    }
    if (!names.IsSequence()) {
      rules_.warnings.push_back(
          file_.Bad(names, fmt::format("{} has no list of data names and is not used",
                                       matrix.Scalar()))
              .message());
      return {};
    }
    ProcessingStep step{kind, 0, matrix.Scalar()};
    if (auto path = AbsolutePath(step.matrix)) step.matrix = std::move(*path);
    for (const YAML::Node& name : names) {
      if (!name.IsScalar()) return file_.Bad(name, "expected the data_name of a tensor");
      std::vector<ProcessingStep>& steps = side.products[name.Scalar()];
      const bool is_second = std::ranges::any_of(
          steps, [&](const ProcessingStep& each) { return each.kind == kind; });
      if (is_second) {
        return file_.Bad(name, fmt::format("{} has two matrices of one kind", name.Scalar()));
      }
      steps.push_back(step);
    }
    return {};
  }

  // {target: {api: "builtin_handlers.py:extract_valid_len_by_group_index"}}
  Status AddHandlers(const YAML::Node& node) {
    if (node.IsNull()) return {};
    if (!node.IsMap()) return file_.Bad(node, "compare_handlers is not a mapping");
    for (const auto& side : node) {
      const bool of_target = side.first.Scalar() == "target";
      if (!of_target && side.first.Scalar() != "golden") {
        Ignore(side.first, "key compare_handlers:");
        continue;
      }
      if (side.second.IsNull()) continue;
      if (!side.second.IsMap()) return file_.Bad(side.second, "expected API: function");
      auto& tails = (of_target ? rules_.target : rules_.golden).tails;
      for (const auto& entry : side.second) {
        const std::string function = entry.second.IsScalar() ? entry.second.Scalar() : "";
        const std::string_view name = std::string_view(function).substr(function.find(':') + 1);
        const bool by_index = name == "extract_valid_len_by_group_index";
        if (!by_index && name != "extract_valid_len_by_group_list") {
          Ignore(entry.second, fmt::format("the function of {}:", entry.first.Scalar()));
          continue;
        }
        tails.emplace_back(entry.first.Scalar(), by_index ? kGroupIndex : kGroupList);
      }
    }
    return {};
  }

  const YamlFile file_;
  PostprocessRules rules_;
};

// --- how many rows a call wrote --------------------------------------------------------------

const Item* ArgumentOf(const CallItems& call, std::string_view name) {
  const auto found = std::ranges::find_if(call.items, [&](const Item& item) {
    const std::string_view full = item.name.view();
    return item.role == ItemRole::kInput && full.size() > name.size() && full.ends_with(name) &&
           full[full.size() - name.size() - 1] == '.';
  });
  return found == call.items.end() ? nullptr : &*found;
}

Result<std::vector<int64_t>> IntegersOf(const TensorView& view) {
  const DTypeKind kind = InfoOf(view.dtype).kind;
  if (kind == DTypeKind::kFloat || kind == DTypeKind::kComplex || view.sizes.size() > 1) {
    return Error(ErrorCode::kInvalidArgument, "it is no list of whole numbers");
  }
  std::vector<std::byte> bytes(view.size_bytes());
  CopyContiguous(view, bytes);
  std::vector<int64_t> numbers(static_cast<size_t>(view.element_count()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::byte* const at = bytes.data() + i * InfoOf(view.dtype).size_bytes;
    const double number = ElementAsDouble(view.dtype, at);
    if (!(number >= 0 && number < 0x1p53)) {
      return Error(ErrorCode::kInvalidArgument, "it holds a number below 0 or beyond 2^53");
    }
    numbers[i] = static_cast<int64_t>(number);
  }
  if (numbers.empty()) return Error(ErrorCode::kInvalidArgument, "it names no group");
  return numbers;
}

// group_index and, with group_list_type 1, group_list count the rows of each group; otherwise
// group_list says where each group ends, as torch_npu describes it.
Result<int64_t> RowsWritten(const Run& run, const CallItems& call, const Item& groups,
                            std::string_view argument) {
  PL_TRY_ASSIGN(const TensorFile file, load::OpenTensor(run, groups.data_name));
  PL_TRY_ASSIGN(const std::vector<int64_t> numbers, IntegersOf(file.view()));
  int64_t type = argument == kGroupList ? 0 : 1;
  if (argument == kGroupList) {
    if (const Item* const given = ArgumentOf(call, "group_list_type")) {
      const std::optional<double> number = NumberOf(given->statistics[0]);
      type = number == 0 ? 0 : number == 1 ? 1 : -1;
    }
  }
  if (type < 0) {
    return Error(ErrorCode::kUnsupported, "its group_list_type is neither 0 nor 1");
  }
  if (type == 0) {
    if (!std::ranges::is_sorted(numbers)) {
      return Error(ErrorCode::kInvalidArgument, "the ends of its groups do not grow");
    }
    return numbers.back();
  }
  int64_t sum = 0;
  for (const int64_t number : numbers) sum += number;
  return sum;
}

// --- the items -------------------------------------------------------------------------------

// What is to become of one tensor.
struct Change {
  Item* item = nullptr;
  std::vector<ProcessingStep> wanted;
  std::vector<std::string> failures{};
};

// Steps that fail are left out.
void Apply(const Run& run, Change& change) {
  Item& item = *change.item;
  Result<TensorFile> now = load::OpenTensor(run, item.data_name);
  if (!now) return;  // the row says so
  std::vector<ProcessingStep> done;
  for (ProcessingStep& step : change.wanted) {
    Result<TensorFile> next = load::Process(now->view(), {&step, 1});
    if (!next) {
      change.failures.push_back(next.error().message());
      continue;
    }
    now = std::move(next);
    done.push_back(std::move(step));
  }
  if (done.empty()) return;
  const TensorView view = now->view();
  item.data_name = load::ProcessedName(item.data_name.view(), done);
  const Shape shape(view.sizes.begin(), view.sizes.end());
  item.shape_text = fmt::format("[{}]", fmt::join(shape, ", "));
  item.shape = shape;
  item.finite_extremes = {};
  measure::TakeStatistics(view, item);
}

class Warnings {
 public:
  explicit Warnings(std::vector<std::string>& warnings) : warnings_(warnings) {}

  // One sentence for all tensors with one problem.
  void Add(const std::string& problem, std::string_view name) {
    auto& [first, count] = problems_[problem];
    if (count++ == 0) first = name;
  }
  void Write() {
    for (const auto& [problem, names] : problems_) {
      const auto& [first, count] = names;
      warnings_.push_back(fmt::format(
          "{}: is compared as it was recorded{}: {}", first,
          count == 1 ? "" : fmt::format(", the first of {} such tensors", count), problem));
    }
  }

 private:
  std::vector<std::string>& warnings_;
  std::map<std::string, std::pair<std::string, size_t>> problems_;
};

// Which rows of the results of `call` are left; nothing: all.
std::optional<ProcessingStep> TailOf(const PostprocessSide& side, const Run& run,
                                     const CallItems& call, Warnings& warnings) {
  for (const auto& [api, argument] : side.tails) {
    if (call.name.view().find(api) == std::string_view::npos) continue;
    const Item* const groups = ArgumentOf(call, argument);
    if (groups == nullptr || !groups->is_tensor || groups->data_name.empty()) continue;
    const Result<int64_t> rows = RowsWritten(run, call, *groups, argument);
    if (rows) return ProcessingStep{StepKind::kKeepRows, *rows, {}};
    warnings.Add(fmt::format("{}: {}", argument, rows.error().message()), call.name.view());
  }
  return std::nullopt;
}

}  // namespace

Result<PostprocessRules> ReadPostprocess(const std::string& path) {
  PL_TRY_ASSIGN(YamlFile file, YamlFile::Read(path));
  return RulesReader(std::move(file)).Read();
}

void Postprocess(const PostprocessRules& rules, const Run& run, bool of_target,
                 std::vector<CallItems>& calls, std::vector<std::string>& all_warnings) {
  const PostprocessSide& side = of_target ? rules.target : rules.golden;
  if (side.products.empty() && side.tails.empty()) return;
  Warnings warnings(all_warnings);
  std::vector<Change> changes;
  size_t found = 0;
  for (CallItems& call : calls) {
    const std::optional<ProcessingStep> tail = TailOf(side, run, call, warnings);
    for (Item& item : call.items) {
      if (!item.is_tensor || item.data_name.empty()) continue;
      Change change{&item, {}};
      const bool has_tail = tail && item.role == ItemRole::kOutput && !item.shape->empty() &&
                            tail->rows < item.shape->front();
      if (has_tail) change.wanted.push_back(*tail);
      const auto products = side.products.find(std::string(item.data_name.view()));
      if (products != side.products.end()) {
        ++found;
        change.wanted.insert(change.wanted.end(), products->second.begin(),
                             products->second.end());
      }
      if (!change.wanted.empty()) changes.push_back(std::move(change));
    }
  }
  ParallelFor(changes.size(), [&](size_t i) { Apply(run, changes[i]); });
  for (const Change& change : changes) {
    for (const std::string& failure : change.failures) {
      warnings.Add(failure, change.item->name.view());
    }
  }
  warnings.Write();
  if (found < side.products.size()) {
    all_warnings.push_back(
        fmt::format("{}: {} of {} tensors of the {} that it names are in the recording", rules.path,
                    found, side.products.size(), of_target ? "target" : "golden side"));
  }
}

void NotePostprocessed(Comparison& comparison) {
  size_t count = 0;
  for (ComparedRow& row : comparison.rows) {
    std::vector<std::string> parts;
    for (const bool of_target : {true, false}) {
      const Slot<Item>& item = of_target ? row.target : row.golden;
      if (!item) continue;
      const auto processed = load::ParseProcessedName(item->data_name.view());
      if (!processed) continue;
      for (const ProcessingStep& step : processed->steps) {
        parts.push_back(fmt::format("{}: {}", of_target ? "target" : "golden", step.Text()));
      }
    }
    if (parts.empty()) continue;
    ++count;
    row.AddNote({"post-processed", fmt::format("Before the comparison, {}.",
                                               fmt::join(parts, "; "))});
  }
  if (count == 0) return;
  comparison.warnings.push_back(
      fmt::format("{} {} compared after they were changed as --postprocess says; Err_message "
                  "post-processed tells how",
                  count, count == 1 ? "row was" : "rows were"));
}

}  // namespace plumbline::compare
