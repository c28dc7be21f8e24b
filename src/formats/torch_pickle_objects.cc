// The part of the pickle machine that only checkpoints need: values beside tensors, never made,
// only written down.

#include "formats/pickle_opcodes.h"
#include "formats/torch_globals.h"
#include "formats/torch_pickle.h"

namespace plumbline::torch_pt {
namespace {

using Kind = PickleNode::Kind;

bool IsDictClass(const PickleNode& function) {
  return function.module == "collections" &&
         (function.text == "OrderedDict" || function.text == "defaultdict");
}

bool IsListClass(const PickleNode& function) {
  return function.text == "set" || function.text == "frozenset" || function.text == "list";
}

}  // namespace

Status PickleMachine::StepObject(uint8_t opcode, ByteReader& in) {
  switch (opcode) {
    case kShortBinBytes:
    case kBinBytes:
    case kBinBytes8:
    case kByteArray8: {
      uint64_t size = 0;
      if (opcode == kShortBinBytes) {
        PL_TRY_ASSIGN(size, in.ReadU8());
      } else if (opcode == kBinBytes) {
        PL_TRY_ASSIGN(size, in.ReadU32());
      } else {
        PL_TRY_ASSIGN(size, in.ReadU64());
      }
      PL_TRY(in.Skip(size));
      Push(Kind::kObject).text = "bytes";
      return {};
    }
    case kDup:
      PL_TRY(Need(1));
      stack_.push_back(stack_.back());
      return {};
    case kEmptySet:
      Push(Kind::kList).text = kSetMark;
      return {};
    case kAddItems:
      return Extend(/*marked=*/true, Kind::kList);
    case kFrozenSet:
      PL_TRY(MakeMarkedTuple());
      nodes_[stack_.back()].kind = Kind::kList;
      nodes_[stack_.back()].text = kSetMark;
      return {};
    case kNewObj:
      return MakeObject(1);
    case kNewObjEx:
      return MakeObject(2);
    default:
      return StepStack(opcode);
  }
}

// class, positional arguments[, keyword arguments] -> object
Status PickleMachine::MakeObject(size_t arguments) {
  PL_TRY(Need(arguments + 1));
  if (arguments == 2) Pop();
  const uint32_t values = Pop();
  const uint32_t type = Pop();
  if (nodes_[type].kind != Kind::kGlobal || nodes_[values].kind != Kind::kTuple) {
    return Error(ErrorCode::kCorrupt, "the pickle is damaged: an object without class");
  }
  return MakeOther(type, values);
}

Status PickleMachine::MakeOther(uint32_t function, uint32_t arguments) {
  const std::string_view module = nodes_[function].module;
  const std::string_view text = nodes_[function].text;
  const std::vector<uint32_t> items = nodes_[arguments].items;
  // (function, class, arguments, state): a plain tensor or parameter that has Python attributes.
  if (text == "_rebuild_from_type_v2" && items.size() == 4) {
    const PickleNode& inner = nodes_[items[0]];
    const PickleNode& type = nodes_[items[1]];
    const bool is_plain = inner.kind == Kind::kGlobal && inner.text != kRebuildParameter &&
                          IsTensorFunction(inner.module, inner.text) &&
                          inner.text.starts_with("_rebuild_") && type.kind == Kind::kGlobal &&
                          (type.text == "Tensor" || type.text == "Parameter");
    if (is_plain && nodes_[items[2]].kind == Kind::kTuple) {
      const std::vector<uint32_t> values = nodes_[items[2]].items;
      return RebuildTensor(inner.text, values);
    }
  }
  const bool wraps = text == "_rebuild_parameter_with_state";
  if (wraps && !items.empty() && nodes_[items[0]].kind == Kind::kTensor) {
    stack_.push_back(items[0]);
    return {};
  }
  if (IsDictClass(nodes_[function])) {
    const bool has_pairs = !items.empty() && nodes_[items.back()].kind == Kind::kDict;
    std::vector<uint32_t> pairs;
    if (has_pairs) pairs = nodes_[items.back()].items;
    Push(Kind::kDict).items = std::move(pairs);
    return {};
  }
  if (IsListClass(nodes_[function])) {
    std::vector<uint32_t> values;
    const bool is_sequence = !items.empty() && (nodes_[items[0]].kind == Kind::kList ||
                                                nodes_[items[0]].kind == Kind::kTuple);
    if (is_sequence) values = nodes_[items[0]].items;
    PickleNode& list = Push(Kind::kList);
    list.items = std::move(values);
    if (text != "list") list.text = kSetMark;
    return {};
  }
  PickleNode& node = Push(Kind::kObject);
  node.module = module;
  node.text = text;
  node.items = items;
  return {};
}

const PickleNode* PickleMachine::Find(const PickleNode& node, std::string_view key) const {
  const PickleNode* dict = &node;
  if (node.kind == Kind::kObject) {
    if (node.items.empty()) return nullptr;
    dict = &nodes_[node.items.back()];
  }
  if (dict->kind != Kind::kDict) return nullptr;
  const PickleNode* found = nullptr;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleNode& name = nodes_[dict->items[i]];
    // The last one of equal keys counts, as in Python.
    if (name.kind == Kind::kText && name.text == key) found = &nodes_[dict->items[i + 1]];
  }
  return found;
}

}  // namespace plumbline::torch_pt
