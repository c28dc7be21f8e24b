#include "precheck/reference/user_references.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>
#include <utility>

#include "base/text/yaml_file.h"

namespace plumbline::precheck::reference {
namespace {

// Element types of the interface.
constexpr std::array kTypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                               DType::kInt64,   DType::kInt32,   DType::kUInt8,   DType::kBool};

std::optional<DType> TypeNamed(const char* name) {
  for (const DType dtype : kTypes) {
    if (name && InfoOf(dtype).name == name) return dtype;
  }
  return std::nullopt;
}

Result<std::string> TextOf(const YamlFile& file, const YAML::Node& node, std::string_view key) {
  if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
  return file.Bad(node, fmt::format("{} is no text", key));
}

Result<UserReference> EntryOf(const YamlFile& file, const std::string& name,
                              const YAML::Node& node) {
  UserReference entry{name, {}, {}, {}};
  if (!node.IsMap()) {
    return file.Bad(node, fmt::format("operator {} has no map (expected forward, and if wanted "
                                      "backward and description)",
                                      name));
  }
  for (const auto& pair : node) {
    const std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "";
    std::string* const to = key == "forward"       ? &entry.forward
                            : key == "backward"    ? &entry.backward
                            : key == "description" ? &entry.description
                                                   : nullptr;
    if (to == nullptr) {  // a misspelt key must not leave an operator without its backward
      return file.Bad(pair.first, fmt::format("\"{}\" is no key of an operator (expected forward, "
                                              "backward or description)",
                                              key));
    }
    PL_TRY_ASSIGN(*to, TextOf(file, pair.second, key));
  }
  if (!entry.forward.empty()) return entry;
  return file.Bad(node, fmt::format("operator {} has no forward", name));
}

// A call in the form of C, and the results that it gets. Text and sizes are borrowed from the
// values.
class CallInC {
 public:
  explicit CallInC(const std::vector<UserValue>& values) {
    call_.size = sizeof(call_);
    call_.arguments = Convert(values);
    call_.count = values.size();
    call_.state = this;
    call_.add_result = [](void* state, const char* dtype, const int64_t* sizes, uint64_t rank) {
      return static_cast<CallInC*>(state)->AddResult(dtype, sizes, rank);
    };
    call_.add_none = [](void* state) {
      static_cast<CallInC*>(state)->results_.emplace_back(std::nullopt);
    };
    call_.explain = [](void* state, const char* problem) {
      if (problem) static_cast<CallInC*>(state)->problem_ = problem;
    };
  }
  CallInC(const CallInC&) = delete;
  CallInC& operator=(const CallInC&) = delete;

  [[nodiscard]] const plumbline_call& call() const { return call_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  std::vector<std::optional<Array>> TakeResults() { return std::move(results_); }

 private:
  const plumbline_argument* Convert(const std::vector<UserValue>& values) {
    auto& list = lists_.emplace_back(values.size());  // does not move: a deque
    for (size_t i = 0; i < values.size(); ++i) list[i] = Convert(values[i]);
    return list.data();
  }

  // Members that the kind does not name stay 0.
  plumbline_argument Convert(const UserValue& from) {
    plumbline_argument to = {};
    to.kind = static_cast<int32_t>(from.value.index());  // the order of the variant
    to.name = from.name.empty() ? nullptr : from.name.c_str();
    if (const auto* const truth = std::get_if<bool>(&from.value)) to.integer = *truth ? 1 : 0;
    if (const auto* const integer = std::get_if<int64_t>(&from.value)) to.integer = *integer;
    if (const auto* const real = std::get_if<double>(&from.value)) to.real = *real;
    if (const auto* const text = std::get_if<std::string>(&from.value)) to.text = text->c_str();
    if (const auto* const tensor = std::get_if<Operand>(&from.value)) {
      to.tensor = {InfoOf(tensor->dtype).name.data(), tensor->data, tensor->shape.data(),
                   tensor->shape.size()};
    }
    if (const auto* const list = std::get_if<UserValue::List>(&from.value)) {
      to.items = Convert(*list);
      to.count = list->size();
    }
    return to;
  }

  // The library may ask for anything: what cannot be had is null.
  void* AddResult(const char* dtype, const int64_t* sizes, uint64_t rank) {
    const std::optional<DType> type = TypeNamed(dtype);
    if (!type || rank > 64 || (rank > 0 && !sizes)) return nullptr;
    const Shape shape(sizes, sizes + rank);
    const Result<int64_t> count = ElementCount(shape);
    if (!count || *count > (int64_t{1} << 40)) return nullptr;
    std::optional<Array> result = Array::Try(*type, shape);
    return result ? results_.emplace_back(std::move(result))->data() : nullptr;
  }

  plumbline_call call_ = {};
  std::deque<std::vector<plumbline_argument>> lists_;
  std::vector<std::optional<Array>> results_;
  std::string problem_;
};

// The first tensor of a type that the interface does not know.
std::optional<DType> ForeignType(const std::vector<UserValue>& values) {
  for (const UserValue& value : values) {
    const auto* const tensor = std::get_if<Operand>(&value.value);
    if (tensor && std::find(kTypes.begin(), kTypes.end(), tensor->dtype) == kTypes.end()) {
      return tensor->dtype;
    }
    const auto* const list = std::get_if<UserValue::List>(&value.value);
    if (const auto found = list ? ForeignType(*list) : std::nullopt) return found;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<UserReference>> ReadUserReferences(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path, ErrorCode::kInvalidArgument));
  const YAML::Node& root = file.root();
  std::vector<UserReference> entries;
  if (!root || root.IsNull()) return entries;
  if (!root.IsMap() || root.size() != 1 || !root["operators"]) {
    return file.Bad("expected one key, operators");
  }
  const YAML::Node operators = root["operators"];
  if (operators.IsNull()) return entries;
  if (!operators.IsMap()) return file.Bad(operators, "operators is no map of names");
  for (const auto& pair : operators) {
    PL_TRY_ASSIGN(const std::string name, TextOf(file, pair.first, "the name of an operator"));
    PL_TRY_ASSIGN(UserReference entry, EntryOf(file, name, pair.second));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<UserLibrary> UserLibrary::Open(const std::string& path) {
  // A name without a slash would be looked for in the system's folders.
  const std::string named = path.find('/') == std::string::npos ? "./" + path : path;
  void* const library = dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: cannot be loaded as a library ({})", path, dlerror()));
  }
  const auto function =
      reinterpret_cast<plumbline_references_function>(dlsym(library, PLUMBLINE_REFERENCES_SYMBOL));
  uint64_t count = 0;
  const plumbline_reference* const first = function ? function(&count) : nullptr;
  // Checked once, so that calls need not.
  const bool is_complete =
      first && std::all_of(first, first + count, [](const plumbline_reference& reference) {
        return reference.name && reference.forward;
      });
  if (is_complete) return UserLibrary(path, first, count);
  return BadArgument(path,
                     "has no reference functions (expected plumbline_references() of "
                     "plumbline/reference_api.h, each with a name and a forward)");
}

const plumbline_reference* UserLibrary::Find(const std::string& name) const {
  const auto* const end = first_ + count_;
  const auto* const at = std::find_if(
      first_, end, [&](const plumbline_reference& reference) { return name == reference.name; });
  return at == end ? nullptr : at;
}

std::vector<std::string> UserLibrary::names() const {
  std::vector<std::string> names;
  for (uint64_t i = 0; i < count_; ++i) names.emplace_back(first_[i].name);
  return names;
}

bool UserLibrary::has_backward(const std::string& name) const {
  const plumbline_reference* const reference = Find(name);
  return reference && reference->backward;
}

Result<std::vector<std::optional<Array>>> UserLibrary::Run(
    const std::string& name, bool is_backward, const std::vector<UserValue>& arguments) const {
  const plumbline_reference* const reference = Find(name);
  const plumbline_reference_function function = !reference    ? nullptr
                                                : is_backward ? reference->backward
                                                              : reference->forward;
  if (!function) {
    return BadArgument(path_,
                       fmt::format("has no {} of {}", is_backward ? "backward" : "forward", name));
  }
  if (const std::optional<DType> foreign = ForeignType(arguments)) {
    return BadArgument(name, fmt::format("tensors of type {} cannot be handed to a library",
                                         InfoOf(*foreign).name));
  }
  CallInC call(arguments);
  // The library may be wrong in any way; what it returns is all that is known.
  const int32_t status = function(&call.call());
  if (status == 0) return call.TakeResults();
  return BadArgument(name, call.problem().empty()
                               ? fmt::format("the function of {} failed with {}", path_, status)
                               : call.problem());
}

}  // namespace plumbline::precheck::reference
