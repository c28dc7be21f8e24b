#include "formats/pytorch/logged_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"

namespace plumbline::debug_mode {

namespace {

// "Aten.add.Tensor" of "aten::add.Tensor", "Aten.mm.default" of "aten::mm": as the operators of a
// recording of level L2 are called. Other name spaces stay; "Torch.f" of "torch.x.f".
std::string BaseName(std::string_view name, bool is_kernel) {
  if (is_kernel) return fmt::format("Triton.{}", name);
  const size_t colons = name.find("::");
  if (colons == std::string_view::npos) {
    return fmt::format("Torch.{}", name.substr(name.rfind('.') + 1));
  }
  constexpr std::string_view kAten = "aten::";
  const bool has_overload = name.find('.', colons) != std::string_view::npos;
  if (name.starts_with(kAten)) name.remove_prefix(kAten.size());
  return fmt::format("Aten.{}{}", name, has_overload ? "" : ".default");
}

// log_tensor_hashes() takes no hash of what these return: nobody has written it yet.
bool IsUnwritten(std::string_view name) { return name.find("empty") != std::string_view::npos; }

// "aten::_foreach_mul_.Tensor"
bool IsInPlace(std::string_view name) {
  const size_t dot = name.find('.', name.find("::"));
  return name.substr(0, dot).ends_with('_');
}

std::optional<double> RealIn(std::string_view text) {
  const bool is_special = text == "nan" || text == "inf" || text == "-inf";
  const bool is_real = is_special || text.find_first_of(".e") != std::string_view::npos;
  return is_real ? ParseReal(text) : std::nullopt;
}

// Where objects lie in memory, which no two runs agree in, is left out.
std::string WithoutAddresses(std::string_view text) {
  constexpr std::string_view kAt = " at 0x";
  std::string out;
  for (size_t at = text.find(kAt); at != std::string_view::npos; at = text.find(kAt)) {
    out += text.substr(0, at);
    text.remove_prefix(at + kAt.size());
    text.remove_prefix(std::min(text.find_first_not_of("0123456789abcdef"), text.size()));
  }
  return out.append(text);
}

Value Typed(std::string_view type, Value value) {
  return ValueMap{{"type", std::string(type)}, {"value", std::move(value)}};
}

Value ScalarOf(const Printed& value) {
  if (value.is_none()) return {};
  if (value.kind == Printed::Kind::kWord) {
    if (value.text == "True" || value.text == "False") return Typed("bool", value.text == "True");
    if (const auto integer = ParseInteger(value.text)) return Typed("int", *integer);
    if (const auto real = RealIn(value.text)) return Typed("float", *real);
  }
  return Typed("str", WithoutAddresses(value.text));
}

// What is known of a tensor whose values the log does not have.
Value SizeOf(const PrintedTensor& tensor) {
  ValueList sizes(tensor.shape.begin(), tensor.shape.end());
  return Typed("torch.Size", std::move(sizes));
}

const Printed* ItemOf(const Printed* tree, size_t index) {
  if (tree == nullptr || !tree->is_sequence() || index >= tree->items.size()) return nullptr;
  return &tree->items[index];
}

bool HasHash(const Printed* hash) {
  if (hash == nullptr || hash->is_none()) return false;
  if (hash->items.empty()) return !hash->is_sequence() && hash->kind != Printed::Kind::kDict;
  return std::ranges::any_of(hash->items, [](const Printed& item) { return HasHash(&item); });
}

}  // namespace

TensorRecord NewTensor(std::string_view dtype, Shape shape) {
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = dtype;
  tensor.shape = std::move(shape);
  return tensor;
}

LoggedCalls::LoggedCalls(const dump_json::KeepEntry& keep, LogFile& out) : keep_(keep), out_(out) {
  out_.header.task = "statistics";
  out_.header.level = "L2";
  out_.header.framework = "pytorch";
}

std::string LoggedCalls::NextName(const std::string& base) {
  return fmt::format("{}.{}.forward", base, numbers_[base]++);
}

// --- modules ----------------------------------------------------------------------------------

void LoggedCalls::EnterModule(int64_t depth, std::string_view path) {
  while (!modules_.empty() && modules_.back().depth >= depth) modules_.pop_back();
  const std::string base = fmt::format("Module.{}.forward", path);
  std::string name = fmt::format("{}.{}", base, numbers_[base]++);
  const std::string parent = modules_.empty() ? std::string() : modules_.back().name;
  Keep({name, CallKind::kForward, {}}, parent, {});
  modules_.push_back({depth, std::move(name)});
}

// The dump tells no calls of a module apart.
std::string LoggedCalls::ModuleCall(std::string_view path, bool is_backward) {
  if (path.empty() || path == "<none>") return {};
  std::string name = fmt::format("Module.{}.{}.0", path, is_backward ? "backward" : "forward");
  if (module_calls_.contains(name)) return name;
  const size_t dot = path.rfind('.');
  const bool is_inside =
      dot != std::string_view::npos && std::ranges::count(path, '.') <= kMostNested;
  const std::string parent =
      is_inside ? ModuleCall(path.substr(0, dot), is_backward) : std::string();
  module_calls_.insert(name);
  Keep({name, is_backward ? CallKind::kBackward : CallKind::kForward, {}}, parent, {});
  return name;
}

void LoggedCalls::Keep(Call call, std::string_view parent, const Frames& stack) {
  const Text name(call.name);
  const auto& rows = out_.tree.rows;
  const Text above =
      rows.empty() || rows.back().parent.view() != parent ? Text(parent) : rows.back().parent;
  out_.tree.rows.push_back({name, above});
  if (!stack->empty()) out_.stacks.emplace_back(name, stack);
  if (!keep_ || keep_(call, out_.header)) out_.calls.push_back(std::move(call));
}

// --- hashes -----------------------------------------------------------------------------------

void LoggedCalls::AppendDigest(const Printed& hash, std::string& text, TensorRecord& tensor) {
  if (!hash.items.empty()) {  // several hash functions
    for (const Printed& item : hash.items) AppendDigest(item, text, tensor);
    return;
  }
  if (!text.empty()) text += ' ';
  if (hash.kind == Printed::Kind::kWord) {
    if (const auto real = RealIn(hash.text)) {
      hash_kinds_.insert("norm");
      // A norm that is no number says the same of every other statistic.
      if (!(std::abs(*real) <= std::numeric_limits<double>::max())) tensor.norm = *real;
      text += hash.text;
      return;
    }
    uint64_t bits = 0;
    const char* const end = hash.text.data() + hash.text.size();
    const auto parsed = std::from_chars(hash.text.data(), end, bits);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
      hash_kinds_.insert("hash_tensor");
      text += fmt::format("0x{:016x}", bits);  // an XOR of words, spelled as recordings spell it
      return;
    }
  }
  hash_kinds_.insert("other");
  text += WithoutAddresses(hash.text);
}

void LoggedCalls::SetDigest(const Printed& hash, TensorRecord& tensor) {
  std::string text;
  AppendDigest(hash, text, tensor);
  tensor.digest = std::move(text);
  ++digests_;
}

// --- values -----------------------------------------------------------------------------------

Value LoggedCalls::TensorOf(const PrintedTensor& tensor, const Printed* hash, bool is_hashed) {
  const bool has_hash = HasHash(hash);
  if (!has_hash && !(is_hashed && tensor.is_plain)) return SizeOf(tensor);
  TensorRecord record = NewTensor(tensor.dtype, tensor.shape);
  if (has_hash) SetDigest(*hash, record);
  return record;
}

// `is_hashed`: a tensor in it should have a hash.
Value LoggedCalls::ValueOf(const Printed& value, const Printed* hash, bool is_hashed) {
  if (const auto tensor = TensorIn(value)) return TensorOf(*tensor, hash, is_hashed);
  if (!value.is_sequence()) {
    return value.kind == Printed::Kind::kDict ? Typed("str", "{...}") : ScalarOf(value);
  }
  ValueList list;
  for (size_t i = 0; i < value.items.size(); ++i) {
    list.push_back(ValueOf(value.items[i], ItemOf(hash, i), is_hashed));
  }
  return list;
}

// Of a result that was not printed: types and shapes are unknown.
Value LoggedCalls::HashTree(const Printed& hash) {
  if (hash.is_none()) return {};
  if (hash.is_sequence()) {
    ValueList list;
    for (const Printed& item : hash.items) list.push_back(HashTree(item));
    return list;
  }
  TensorRecord record = NewTensor();
  SetDigest(hash, record);
  return record;
}

void LoggedCalls::AddInputs(const Entry& entry, Call& call) {
  const Printed* const tree = entry.input_hash ? &*entry.input_hash : nullptr;
  const Printed* const by_place = ItemOf(tree, 0);
  const Printed* const by_keyword = ItemOf(tree, 1);
  const auto places = static_cast<size_t>(std::ranges::count_if(
      entry.arguments, [](const Argument& each) { return each.keyword.empty(); }));
  if (HasHash(tree)) ++hashed_inputs_;
  // A text with a comma in it stands there as two arguments: no hash can be given to its place.
  const bool is_apart = by_place != nullptr && by_place->items.size() != places;
  ValueList list;
  ValueMap keywords;
  for (const Argument& argument : entry.arguments) {
    if (argument.keyword.empty()) {
      const Printed* const hash = is_apart ? nullptr : ItemOf(by_place, list.size());
      list.push_back(ValueOf(argument.value, hash, tree != nullptr && !is_apart));
    } else {
      const Printed* const hash =
          by_keyword == nullptr ? nullptr : by_keyword->Find(argument.keyword);
      keywords.emplace_back(argument.keyword, ValueOf(argument.value, hash, tree != nullptr));
    }
  }
  if (is_apart) list = {Value(std::move(list)), HashTree(*by_place)};
  call.members.emplace_back("input_args", std::move(list));
  call.members.emplace_back("input_kwargs", std::move(keywords));
}

void LoggedCalls::AddKernelTensors(const Entry& entry, Call& call) {
  ValueMap inputs, outputs;
  hashed_inputs_ += entry.input_hash ? 1 : 0;
  for (const auto& [keyword, value] : entry.arguments) {
    const Printed* const before = entry.input_hash ? entry.input_hash->Find(keyword) : nullptr;
    const Printed* const behind = entry.hash ? entry.hash->Find(keyword) : nullptr;
    inputs.emplace_back(keyword, ValueOf(value, before, entry.input_hash.has_value()));
    if (const auto tensor = TensorIn(value)) {
      outputs.emplace_back(keyword, TensorOf(*tensor, behind, /*is_hashed=*/true));
    }
  }
  call.members.emplace_back("input_kwargs", std::move(inputs));
  call.members.emplace_back("output", std::move(outputs));
  if (kernels_++ == 0) first_kernel_ = entry.name;
}

void LoggedCalls::AddOutput(const Entry& entry, Call& call) {
  const Printed* const hash = entry.hash ? &*entry.hash : nullptr;
  if (!entry.output) {
    if (HasHash(hash)) {
      Value tree = HashTree(*hash);
      call.members.emplace_back(
          "output", hash->is_sequence() ? std::move(tree) : Value(ValueList{std::move(tree)}));
    } else if (IsInPlace(entry.name)) {
      if (in_place_++ == 0) first_in_place_ = entry.name;
    }
    return;
  }
  const bool is_hashed = !IsUnwritten(entry.name);
  Value value = ValueOf(*entry.output, hash, is_hashed);
  const bool is_list = entry.output->is_sequence();
  call.members.emplace_back("output",
                            is_list ? std::move(value) : Value(ValueList{std::move(value)}));
}

void LoggedCalls::Add(int64_t depth, const Entry& entry) {
  while (!modules_.empty() && modules_.back().depth >= depth) modules_.pop_back();
  Call call{NextName(BaseName(entry.name, entry.is_kernel)), CallKind::kForward, {}};
  if (entry.is_kernel) {
    AddKernelTensors(entry, call);
  } else {
    AddInputs(entry, call);
    AddOutput(entry, call);
    const auto is_spread = [](const Argument& argument) {
      const auto tensor = TensorIn(argument.value);
      return tensor && !tensor->is_plain;
    };
    spread_ += std::ranges::any_of(entry.arguments, is_spread) && !entry.output ? 1 : 0;
  }
  Keep(std::move(call), modules_.empty() ? std::string_view() : modules_.back().name, entry.stack);
}

void LoggedCalls::AddLeaves(std::string_view member, const std::vector<HashedLeaf>& leaves,
                            const std::optional<TensorRecord>& known, Call& call) {
  ValueMap values;
  for (const HashedLeaf& leaf : leaves) {
    TensorRecord record = known ? *known : NewTensor();
    SetDigest(leaf.hash, record);
    values.emplace_back(leaf.part, std::move(record));
  }
  if (values.empty() && known) values.emplace_back("0", *known);
  if (!values.empty()) call.members.emplace_back(member, std::move(values));
}

void LoggedCalls::Add(const HashBlock& block) {
  // torchtitan writes the operator's name alone.
  const bool is_bare = !block.is_kernel && block.name.find("::") == std::string::npos;
  const std::string base =
      is_bare ? fmt::format("Aten.{}", block.name) : BaseName(block.name, block.is_kernel);
  const std::string parent = ModuleCall(block.module, block.is_backward);
  Call call{NextName(base), CallKind::kForward, {}};
  if (block.is_kernel && kernels_++ == 0) first_kernel_ = block.name;
  hashed_inputs_ += block.inputs.empty() ? 0 : 1;
  AddLeaves("input_args", block.inputs, {}, call);
  AddLeaves("output", block.outputs, block.result, call);
  Keep(std::move(call), parent, block.stack);
}

// --- the end ----------------------------------------------------------------------------------

void LoggedCalls::NoteUnseen() {
  std::vector<std::string>& said = out_.loss.unseen;
  if (kernels_ > 0) {
    said.push_back(fmt::format(
        "{} of Triton kernels, the first of {}, went past the dispatcher: the log has hashes of "
        "their arguments, but not which of these a kernel writes",
        CountText(kernels_, "launch", "launches"), first_kernel_));
  }
  if (spread_ > 0 || redistributed_ > 0) {
    said.push_back(fmt::format(
        "{} of DTensors and {}: the log has no hash of these, but of the operators that they "
        "make on the parts of this rank",
        CountText(spread_, "call"), CountText(redistributed_, "redistribution")));
  }
  if (in_place_ > 0) {
    said.push_back(fmt::format(
        "{} that {} in place and {} nothing, the first {}: the log has no hash of what was "
        "written, which shows where it is read next",
        CountText(in_place_, "operator"), in_place_ == 1 ? "works" : "work",
        in_place_ == 1 ? "returns" : "return", first_in_place_));
  }
  if (digests_ > 0 && hashed_inputs_ == 0) {
    said.emplace_back(
        "no hash of what calls read: log_tensor_hashes(hash_inputs=True) takes them, and then a "
        "call that was given a wrong value is told from one that made it");
  }
}

void LoggedCalls::Finish(std::string_view log_form, std::string_view digits) {
  out_.header.log_form = log_form;
  if (digests_ > 0) {
    out_.header.digest_kind = fmt::format("{}{}", fmt::join(hash_kinds_, " and "), digits);
  } else {
    out_.header.task = "structure";
  }
  NoteUnseen();
}

}  // namespace plumbline::debug_mode
