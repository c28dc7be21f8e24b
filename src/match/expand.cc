#include "match/expand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "base/memory/digest.h"
#include "base/text/number_text.h"
#include "load/gathered_tensor.h"
#include "load/processed_tensor.h"

namespace plumbline::match {

namespace {

void AppendRepr(const Value& value, std::string& out);

// repr(str) for the texts that occur in dumps: quotes and backslashes escaped, controls as \n, \t,
// \r or \xNN.
void AppendQuoted(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += quote;
}

struct ReprVisitor {
  std::string& out;
  void operator()(std::monostate) const { out += "None"; }
  void operator()(bool v) const { out += v ? "True" : "False"; }
  void operator()(int64_t v) const { out += std::to_string(v); }
  void operator()(double v) const { AppendPythonFloat(v, out); }
  void operator()(const BigInt& v) const { out += v.digits; }
  void operator()(const std::string& v) const { AppendQuoted(v, out); }
  void operator()(const ValueList& list) const {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ", ";
      AppendRepr(list[i], out);
    }
    out += ']';
  }
  void operator()(const ValueMap& map) const {
    out += '{';
    for (size_t i = 0; i < map.size(); ++i) {
      if (i > 0) out += ", ";
      AppendQuoted(map[i].first, out);
      out += ": ";
      AppendRepr(map[i].second, out);
    }
    out += '}';
  }
  void operator()(const TensorRecord& tensor) const {
    out += fmt::format("tensor({}, {})", tensor.dtype_text, ShapeText(tensor.shape));
  }
};

void AppendRepr(const Value& value, std::string& out) {
  std::visit(ReprVisitor{out}, value.storage());
}

struct TypeVisitor {
  std::string_view operator()(std::monostate) const { return "<class 'NoneType'>"; }
  std::string_view operator()(bool) const { return "<class 'bool'>"; }
  std::string_view operator()(int64_t) const { return "<class 'int'>"; }
  std::string_view operator()(double) const { return "<class 'float'>"; }
  std::string_view operator()(const BigInt&) const { return "<class 'int'>"; }
  std::string_view operator()(const std::string&) const { return "<class 'str'>"; }
  std::string_view operator()(const ValueList&) const { return "<class 'list'>"; }
  std::string_view operator()(const ValueMap&) const { return "<class 'dict'>"; }
  std::string_view operator()(const TensorRecord&) const { return "<class 'dict'>"; }
};

}  // namespace

std::string PythonText(const Value& value) {
  if (const auto* text = value.As<std::string>()) return *text;
  std::string out;
  AppendRepr(value, out);
  return out;
}

std::string_view PythonTypeText(const Value& value) {
  return std::visit(TypeVisitor{}, value.storage());
}

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string TupleText(std::span<const int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string ListText(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ", ";
    AppendQuoted(texts[i], out);
  }
  return out + "]";
}

namespace {

// The list of arguments, 400 containers, and what is inside the innermost.
constexpr int kMaxDepth = 402;

// Keys in the order in which upstream scans them, and the name part each contributes.
struct MemberRule {
  std::string_view key;
  std::string_view part;
  ItemRole role;
};
constexpr MemberRule kMembers[] = {
    {"input_args", ".input", ItemRole::kInput},
    {"input_kwargs", ".input", ItemRole::kInput},
    {"input", ".input", ItemRole::kInput},
    {"output", ".output", ItemRole::kOutput},
    {"parameters", ".parameters", ItemRole::kParameter},
    {"buffers", ".buffers", ItemRole::kBuffer},
};

int RowGroup(ItemRole role) {
  switch (role) {
    case ItemRole::kInput:
      return 0;
    case ItemRole::kParameter:
      return 1;
    case ItemRole::kOutput:
      return 2;
    case ItemRole::kBuffer:
      return 3;
    case ItemRole::kParameterGrad:
      return 4;
  }
  return 4;
}

std::string DigestOfText(std::string_view text) {
  return Crc32Hex(Crc32(std::as_bytes(std::span(text.data(), text.size()))));
}

Recorded ToRecorded(const Statistic& statistic) {
  return std::visit([](const auto& v) { return Recorded(v); }, statistic);
}

Recorded ToRecorded(const Value& value) {
  if (value.is_null()) return {};
  if (const auto* v = value.As<bool>()) return *v;
  if (const auto* v = value.As<int64_t>()) return *v;
  if (const auto* v = value.As<double>()) return *v;
  return PythonText(value);
}

// Walks one value; every leaf becomes an item.
class Walker {
 public:
  // `named_by_files`: rows of stored tensors are named after their files.
  Walker(TensorForms& forms, ItemRole role, std::vector<Item>& items, bool named_by_files = true)
      : forms_(forms), role_(role), items_(items), named_by_files_(named_by_files) {}

  // `name` is that of the value; longer while what is below is walked.
  Status Walk(const Value& value, std::string& name, int depth) {
    if (depth > kMaxDepth) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: arguments nest deeper than {} levels", name, kMaxDepth));
    }
    if (value.is_null()) {
      Add(name);
      return {};
    }
    if (const auto* tensor = value.As<TensorRecord>()) {
      AddTensor(*tensor, name);
      return {};
    }
    if (const auto* list = value.As<ValueList>()) return WalkList(*list, name, depth);
    const auto* map = value.As<ValueMap>();
    if (map == nullptr) return {};
    const Value* type = value.Find("type");
    if (type != nullptr && type->As<std::string>() != nullptr) {
      AddTyped(value, *type->As<std::string>(), name);
      return {};
    }
    for (const auto& [key, member] : *map) PL_TRY(WalkPart(member, key, name, depth));
    return {};
  }

 private:
  Status WalkList(const ValueList& list, std::string& name, int depth) {
    for (size_t i = 0; i < list.size(); ++i) {
      // Gradients are lists of one whose index is not part of the name.
      const bool numbered = role_ != ItemRole::kParameterGrad;
      if (numbered) {
        const fmt::format_int index(i);
        PL_TRY(WalkPart(list[i], {index.data(), index.size()}, name, depth));
      } else {
        PL_TRY(Walk(list[i], name, depth + 1));
      }
    }
    return {};
  }

  Status WalkPart(const Value& value, std::string_view part, std::string& name, int depth) {
    const size_t size = name.size();
    name += '.';
    name += part;
    PL_TRY(Walk(value, name, depth + 1));
    name.resize(size);
    return {};
  }

  Item& Add(std::string_view name) {
    Item& item = items_.emplace_back();
    item.name = name;
    item.role = role_;
    return item;
  }

  void AddTensor(const TensorRecord& tensor, std::string_view name) {
    Item& item = Add(name);
    item.is_tensor = true;
    const TensorForms::Form& form = forms_.Of(tensor);
    item.dtype = form.dtype;
    item.shape = form.shape;
    item.shape_text = form.shape_text;
    item.requires_grad = tensor.requires_grad;
    const Statistic* const statistics[] = {&tensor.max, &tensor.min, &tensor.mean, &tensor.norm};
    for (size_t i = 0; i < item.statistics.size(); ++i) {
      item.statistics[i] = ToRecorded(*statistics[i]);
    }
    if (tensor.max_finite || tensor.min_finite) {
      item.finite_extremes =
          std::array<Recorded, 2>{tensor.max_finite ? ToRecorded(*tensor.max_finite) : Recorded(),
                                  tensor.min_finite ? ToRecorded(*tensor.min_finite) : Recorded()};
    }
    if (tensor.digest) {
      item.digest = *tensor.digest;
      item.has_recorded_digest = true;
    }
    // A name that stands for what is made of a file, and names other files, is plumbline's alone.
    const bool is_file = tensor.data_name && !load::ParseProcessedName(*tensor.data_name);
    if (is_file && !tensor.data_name->empty() && *tensor.data_name != "-1") {
      item.data_name = *tensor.data_name;
      // The row is named after its file: keyword tensors are "kwargs" there and "input" elsewhere.
      const bool is_own_file = !load::ParseGatheredName(item.data_name.view());
      if (named_by_files_ && is_own_file)
        item.name = item.data_name.substr(0, item.data_name.rfind('.'));
    }
  }

  void AddTyped(const Value& value, const std::string& type, std::string_view name) {
    static const Value kNone;
    const Value* found = value.Find("value");
    const Value& content = found == nullptr ? kNone : *found;
    Item& item = Add(name);
    const Value* shown = &content;
    item.digest = DigestOfText(found == nullptr ? std::string() : PythonText(content));
    item.shape_text = "[]";
    if (type == "torch.Size") {
      item.dtype = type;
      item.shape_text = PythonText(content);
      item.statistics.fill(std::monostate());
      return;
    }
    if (type == "slice") {
      item.dtype = type;
      const auto* parts = content.As<ValueList>();
      const auto count = static_cast<int64_t>(parts == nullptr ? 0 : parts->size());
      item.shape_text = TupleText(parts == nullptr ? Shape() : Shape{count});
    } else if (type == "ellipsis") {
      item.dtype = type;
    } else if (type == "torch.ProcessGroup") {
      item.dtype = type;
      const Value* ranks = value.Find("group_ranks");
      shown = ranks == nullptr ? &kNone : ranks;
      item.statistics.fill(PythonText(*shown));
      return;
    } else if (const Value* dtype = value.Find("dtype"); dtype && dtype->As<std::string>()) {
      item.dtype = *dtype->As<std::string>();
      const Value* shape = value.Find("shape");
      if (shape != nullptr) item.shape_text = PythonText(*shape);
    } else {
      item.dtype = std::string(PythonTypeText(content));
    }
    item.statistics.fill(ToRecorded(*shown));
  }

  TensorForms& forms_;
  ItemRole role_;
  std::vector<Item>& items_;
  bool named_by_files_;
};

}  // namespace

const TensorForms::Form& TensorForms::Of(const TensorRecord& tensor) {
  if (tensor.dtype_text != last_dtype_ || last_ == nullptr) {
    last_dtype_ = tensor.dtype_text;
    last_ = &by_dtype_[tensor.dtype_text];
  }
  std::vector<Form>& candidates = *last_;
  for (const Form& form : candidates) {
    if (form.shape == tensor.shape) return form;
  }
  if (candidates.size() == kMostForms) candidates.clear();
  return candidates.emplace_back(
      Form{tensor.dtype_text, ShapeText(tensor.shape), Shared<Shape>(tensor.shape)});
}

Result<CallItems> Expander::ExpandCall(const Call& call, bool named_by_files) {
  CallItems result;
  result.name = call.name;
  result.kind = call.kind;
  const Value* recomputed = call.Find("is_recompute");
  const bool* is_recomputed = recomputed == nullptr ? nullptr : recomputed->As<bool>();
  result.recomputed = is_recomputed != nullptr && *is_recomputed;
  items_.clear();
  if (call.kind == CallKind::kParametersGrad) {
    Walker walker(forms_, ItemRole::kParameterGrad, items_);
    for (const auto& [key, value] : call.members) {
      if (key == "parallel_merge_info") continue;  // how ranks were merged, no gradient
      (name_ = call.name).append(".").append(key);
      PL_TRY(walker.Walk(value, name_, 0));
    }
    result.items = TakeItems();
    return result;
  }
  for (const MemberRule& rule : kMembers) {
    const Value* value = call.Find(rule.key);
    if (value == nullptr) continue;
    Walker walker(forms_, rule.role, items_, named_by_files);
    (name_ = call.name).append(rule.part);
    PL_TRY(walker.Walk(*value, name_, 0));
  }
  const auto is_before = [](const Item& a, const Item& b) {
    return RowGroup(a.role) < RowGroup(b.role);
  };
  // Sorting takes memory even where nothing is to be done.
  if (!std::is_sorted(items_.begin(), items_.end(), is_before)) {
    std::stable_sort(items_.begin(), items_.end(), is_before);
  }
  result.items = TakeItems();
  return result;
}

std::vector<Item> Expander::TakeItems() {
  return {std::make_move_iterator(items_.begin()), std::make_move_iterator(items_.end())};
}

Result<CallItems> Expander::ExpandSave(const Call& entry) {
  CallItems items;
  items.name = entry.name;
  items_.clear();
  Walker walker(forms_, ItemRole::kOutput, items_, /*named_by_files=*/false);
  // The reader takes a value that is no object as one nameless member.
  const bool bare = entry.members.size() == 1 && entry.members.front().first.empty();
  name_ = entry.name;
  PL_TRY(
      walker.Walk(bare ? entry.members.front().second : Value(ValueMap(entry.members)), name_, 0));
  items.items = TakeItems();
  return items;
}

void AlignSaveNames(std::vector<CallItems>& a, std::vector<CallItems>& b) {
  constexpr std::string_view kMark = ".debug";
  const auto is_marked = [&](const CallItems& entry) { return entry.name.ends_with(kMark); };
  if (std::ranges::any_of(a, is_marked) == std::ranges::any_of(b, is_marked)) return;
  for (std::vector<CallItems>* side : {&a, &b}) {
    for (CallItems& entry : *side) {
      if (!is_marked(entry)) continue;
      const size_t at = entry.name.size() - kMark.size();
      entry.name = entry.name.substr(0, at);
      for (Item& item : entry.items) {
        std::string name = item.name;
        item.name = name.erase(at, kMark.size());
      }
    }
  }
}

bool HasDigests(const std::vector<CallItems>& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const CallItems& call) {
    return std::any_of(call.items.begin(), call.items.end(),
                       [](const Item& item) { return item.has_recorded_digest; });
  });
}

std::string_view FirstDigest(const std::vector<CallItems>& calls) {
  for (const CallItems& call : calls) {
    for (const Item& item : call.items) {
      if (item.has_recorded_digest && item.is_tensor && !item.digest.empty()) return item.digest;
    }
  }
  return {};
}

}  // namespace plumbline::match
