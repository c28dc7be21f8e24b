#include "match/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/digest.h"
#include "match/python_text.h"

namespace plumbline::match {
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
};

int RowGroup(ItemRole role) {
  switch (role) {
    case ItemRole::kInput:
      return 0;
    case ItemRole::kParameter:
      return 1;
    case ItemRole::kOutput:
      return 2;
    case ItemRole::kParameterGrad:
      return 3;
  }
  return 3;
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
class Expander {
 public:
  // `named_by_files`: rows of stored tensors are named after their files.
  Expander(ItemRole role, std::vector<Item>& items, bool named_by_files = true)
      : role_(role), items_(items), named_by_files_(named_by_files) {}

  Status Walk(const Value& value, const std::string& name, int depth) {
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
    for (const auto& [key, member] : *map) PL_TRY(Walk(member, name + "." + key, depth + 1));
    return {};
  }

 private:
  Status WalkList(const ValueList& list, const std::string& name, int depth) {
    for (size_t i = 0; i < list.size(); ++i) {
      // Gradients are lists of one whose index is not part of the name.
      const bool numbered = role_ != ItemRole::kParameterGrad;
      PL_TRY(Walk(list[i], numbered ? fmt::format("{}.{}", name, i) : name, depth + 1));
    }
    return {};
  }

  Item& Add(const std::string& name) {
    Item& item = items_.emplace_back();
    item.name = name;
    item.role = role_;
    return item;
  }

  void AddTensor(const TensorRecord& tensor, const std::string& name) {
    Item& item = Add(name);
    item.is_tensor = true;
    item.dtype = tensor.dtype_text;
    item.shape = tensor.shape;
    item.shape_text = ShapeText(tensor.shape);
    item.requires_grad = tensor.requires_grad;
    item.statistics = {ToRecorded(tensor.max), ToRecorded(tensor.min), ToRecorded(tensor.mean),
                       ToRecorded(tensor.norm)};
    if (tensor.max_finite) item.finite_extremes[0] = ToRecorded(*tensor.max_finite);
    if (tensor.min_finite) item.finite_extremes[1] = ToRecorded(*tensor.min_finite);
    if (tensor.digest) {
      item.digest = *tensor.digest;
      item.has_recorded_digest = true;
    }
    if (tensor.data_name && !tensor.data_name->empty() && *tensor.data_name != "-1") {
      item.data_name = *tensor.data_name;
      // The row is named after its file: keyword tensors are "kwargs" there and "input" elsewhere.
      if (named_by_files_) item.name = item.data_name.substr(0, item.data_name.rfind('.'));
    }
  }

  void AddTyped(const Value& value, const std::string& type, const std::string& name) {
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

  ItemRole role_;
  std::vector<Item>& items_;
  bool named_by_files_;
};

}  // namespace

Result<CallItems> ExpandCall(const Call& call, bool named_by_files) {
  CallItems result;
  result.name = call.name;
  result.kind = call.kind;
  const Value* recomputed = call.Find("is_recompute");
  const bool* is_recomputed = recomputed == nullptr ? nullptr : recomputed->As<bool>();
  result.recomputed = is_recomputed != nullptr && *is_recomputed;
  if (call.kind == CallKind::kParametersGrad) {
    Expander expander(ItemRole::kParameterGrad, result.items);
    for (const auto& [key, value] : call.members) {
      PL_TRY(expander.Walk(value, call.name + "." + key, 0));
    }
    return result;
  }
  for (const MemberRule& rule : kMembers) {
    const Value* value = call.Find(rule.key);
    if (value == nullptr) continue;
    Expander expander(rule.role, result.items, named_by_files);
    PL_TRY(expander.Walk(*value, call.name + std::string(rule.part), 0));
  }
  std::stable_sort(result.items.begin(), result.items.end(), [](const Item& a, const Item& b) {
    return RowGroup(a.role) < RowGroup(b.role);
  });
  return result;
}

Result<std::vector<CallItems>> ExpandCalls(const std::vector<Call>& calls, bool named_by_files) {
  std::vector<CallItems> result;
  result.reserve(calls.size());
  for (const Call& call : calls) {
    PL_TRY_ASSIGN(CallItems items, ExpandCall(call, named_by_files));
    result.push_back(std::move(items));
  }
  return result;
}

Result<std::vector<CallItems>> ExpandSaves(const std::vector<Call>& entries) {
  std::vector<CallItems> result;
  result.reserve(entries.size());
  for (const Call& entry : entries) {
    CallItems& items = result.emplace_back();
    items.name = entry.name;
    Expander expander(ItemRole::kOutput, items.items, /*named_by_files=*/false);
    // The reader takes a value that is no object as one nameless member.
    const bool bare = entry.members.size() == 1 && entry.members.front().first.empty();
    PL_TRY(expander.Walk(bare ? entry.members.front().second : Value(ValueMap(entry.members)),
                         entry.name, 0));
  }
  return result;
}

void AlignSaveNames(std::vector<CallItems>& a, std::vector<CallItems>& b) {
  constexpr std::string_view kMark = ".debug";
  const auto is_marked = [&](const CallItems& entry) { return entry.name.ends_with(kMark); };
  if (std::ranges::any_of(a, is_marked) == std::ranges::any_of(b, is_marked)) return;
  for (std::vector<CallItems>* side : {&a, &b}) {
    for (CallItems& entry : *side) {
      if (!is_marked(entry)) continue;
      const size_t at = entry.name.size() - kMark.size();
      entry.name.erase(at);
      for (Item& item : entry.items) item.name.erase(at, kMark.size());
    }
  }
}

bool HasDigests(const std::vector<CallItems>& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const CallItems& call) {
    return std::any_of(call.items.begin(), call.items.end(),
                       [](const Item& item) { return item.has_recorded_digest; });
  });
}

}  // namespace plumbline::match
