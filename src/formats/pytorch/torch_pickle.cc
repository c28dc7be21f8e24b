#include "formats/pytorch/torch_pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace plumbline::torch_pt {

namespace {

constexpr std::array<std::pair<std::string_view, DType>, 12> kStorageClasses = {{
    {"FloatStorage", DType::kFloat32},
    {"DoubleStorage", DType::kFloat64},
    {"HalfStorage", DType::kFloat16},
    {"BFloat16Storage", DType::kBFloat16},
    {"LongStorage", DType::kInt64},
    {"IntStorage", DType::kInt32},
    {"ShortStorage", DType::kInt16},
    {"CharStorage", DType::kInt8},
    {"ByteStorage", DType::kUInt8},
    {"BoolStorage", DType::kBool},
    {"ComplexFloatStorage", DType::kComplex64},
    {"ComplexDoubleStorage", DType::kComplex128},
}};

constexpr std::array<std::string_view, 12> kPlainBuiltins = {
    "set",   "frozenset", "list",  "tuple", "dict",  "int",
    "float", "complex",   "slice", "range", "bytes", "bytearray"};
// What a call to one of their functions would do does not matter: nothing is called.
constexpr std::array<std::string_view, 23> kDataPackages = {"torch",
                                                            "torch_npu",
                                                            "numpy",
                                                            "collections",
                                                            "argparse",
                                                            "enum",
                                                            "types",
                                                            "pathlib",
                                                            "datetime",
                                                            "megatron",
                                                            "transformer_engine",
                                                            "mindspeed",
                                                            "mindspeed_llm",
                                                            "modellink",
                                                            "transformers",
                                                            "accelerate",
                                                            "deepspeed",
                                                            "omegaconf",
                                                            "apex",
                                                            "lightning",
                                                            "pytorch_lightning",
                                                            "lightning_fabric",
                                                            "peft"};

}  // namespace

std::optional<DType> StorageDType(std::string_view class_name) {
  for (const auto& [name, dtype] : kStorageClasses) {
    if (name == class_name) return dtype;
  }
  if (class_name == kUntypedStorage) return DType::kUInt8;
  return std::nullopt;
}

std::string_view StorageClass(DType dtype) {
  for (const auto& [name, storage_dtype] : kStorageClasses) {
    if (storage_dtype == dtype) return name;
  }
  return {};
}

bool IsStorageModule(std::string_view module) {
  return module == "torch" || module == "torch.storage" || module == "torch.cuda" ||
         module == "torch.npu" || module == "torch_npu.npu";
}

std::optional<DType> TorchDType(std::string_view module, std::string_view name) {
  if (module != "torch") return std::nullopt;
  const auto dtype = ParseDType(fmt::format("torch.{}", name));
  // ParseDType knows other spellings too; only PyTorch's own is a global.
  if (dtype && InfoOf(*dtype).torch_name.substr(6) == name) return dtype;
  return std::nullopt;
}

bool IsTensorFunction(std::string_view module, std::string_view name) {
  if (module == "torch._utils") {
    return name == kRebuildV1 || name == kRebuildV2 || name == kRebuildV3 ||
           name == kRebuildParameter;
  }
  if (module == "torch_npu.utils.storage") return name == kRebuildNpu;
  return module == "torch" && (name == "Size" || name == "device");
}

bool IsDataModule(std::string_view module, std::string_view name) {
  if (module == "builtins" || module == "__builtin__") {
    return std::ranges::count(kPlainBuiltins, name) > 0;
  }
  if (module == "copyreg" || module == "copy_reg") return name == "_reconstructor";
  if (module == "_codecs") return name == "encode";
  const std::string_view package = module.substr(0, module.find('.'));
  return std::ranges::count(kDataPackages, package) > 0;
}

bool IsAllowedGlobal(std::string_view module, std::string_view name) {
  if (module == "torch._utils") {
    return name == kRebuildV1 || name == kRebuildV2 || name == kRebuildV3 ||
           name == kRebuildParameter;
  }
  if (module == "torch_npu.utils.storage") return name == kRebuildNpu;
  if (module == "collections") return name == "OrderedDict";
  if (module == "torch" && (name == "Size" || name == "device")) return true;
  if (IsStorageModule(module) && StorageDType(name)) return true;
  return TorchDType(module, name).has_value();
}

namespace {

using Kind = PickleNode::Kind;

// Values that one tensor may take, with much room: bounds memory for pickles of other things.
constexpr size_t kMaxNodes = 100000;
// Of a checkpoint: about 20 per tensor.
constexpr size_t kMaxCheckpointNodes = 4000000;
// PyTorch's own limit.
constexpr size_t kMaxRank = 64;

Error Damaged(std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("the pickle is damaged: {}", what));
}

std::string_view KindName(Kind kind) {
  constexpr std::array<std::string_view, 13> kNames = {
      "None",   "a bool", "an int",  "an int",    "a float",  "a text",   "a tuple",
      "a list", "a dict", "a class", "a storage", "a tensor", "an object"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

PickleNode& PickleMachine::Push(Kind kind) {
  stack_.push_back(static_cast<uint32_t>(nodes_.size()));
  nodes_.emplace_back();
  nodes_.back().kind = kind;
  return nodes_.back();
}

Status PickleMachine::Need(size_t count) const {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() - floor < count) return Damaged("its stack runs empty");
  return {};
}

uint32_t PickleMachine::Pop() {
  const uint32_t index = stack_.back();
  stack_.pop_back();
  return index;
}

Result<size_t> PickleMachine::PopMark() {
  if (marks_.empty()) return Damaged("a mark is missing");
  const size_t mark = marks_.back();
  marks_.pop_back();
  return mark;
}

Status PickleMachine::Run(ByteReader& in) {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  for (;;) {
    const size_t offset = in.offset();
    PL_TRY_ASSIGN(const uint8_t opcode, in.ReadU8());
    if (opcode == kStop) break;
    if (nodes_.size() > (is_checkpoint() ? kMaxCheckpointNodes : kMaxNodes)) {
      return Error(ErrorCode::kUnsupported, is_checkpoint()
                                                ? "the pickle holds more than 4 million values"
                                                : "the pickle holds far more than one tensor");
    }
    const Status step = Step(opcode, in);
    if (!step) return step.error().In(fmt::format("data.pkl, byte {}", offset));
  }
  if (stack_.size() != 1 || !marks_.empty()) return Damaged("it does not end with one value");
  return {};
}

Status PickleMachine::Step(uint8_t opcode, ByteReader& in) {
  switch (opcode) {
    case kProto:
      return in.Skip(1);
    case kFrame:
      return in.Skip(8);
    case kNone:
    case kNewTrue:
    case kNewFalse:
    case kEmptyTuple:
    case kEmptyList:
    case kEmptyDict:
      PushConstant(opcode);
      return {};
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kLong1:
    case kLong4:
    case kBinFloat:
      return PushNumber(opcode, in);
    case kBinUnicode:
    case kShortBinUnicode:
    case kBinUnicode8:
    case kBinString:
    case kShortBinString:
      return PushText(opcode, in);
    case kGlobal: {
      PL_TRY_ASSIGN(const std::string_view module, in.ReadUntil('\n'));
      PL_TRY_ASSIGN(const std::string_view name, in.ReadUntil('\n'));
      return PushGlobal(module, name);
    }
    case kMemoize:
    case kBinPut:
    case kLongBinPut:
    case kBinGet:
    case kLongBinGet:
      return StepMemo(opcode, in);
    default:
      return is_checkpoint() ? StepObject(opcode, in) : StepStack(opcode);
  }
}

// Opcodes that only work on the stack.
Status PickleMachine::StepStack(uint8_t opcode) {
  switch (opcode) {
    case kMark:
      marks_.push_back(stack_.size());
      return {};
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return MakeTuple(static_cast<size_t>(opcode - kTuple1) + 1);
    case kTuple:
      return MakeMarkedTuple();
    case kAppend:
    case kAppends:
      return Extend(opcode == kAppends, Kind::kList);
    case kSetItem:
    case kSetItems:
      return Extend(opcode == kSetItems, Kind::kDict);
    case kPop:
      PL_TRY(Need(1));
      Pop();
      return {};
    case kPopMark: {
      PL_TRY_ASSIGN(const size_t mark, PopMark());
      stack_.resize(mark);
      return {};
    }
    case kStackGlobal:
      return StackGlobal();
    case kBinPersId:
      return PersistentId();
    case kReduce:
      return Reduce();
    case kBuild:
      return Build();
    default:
      return Error(ErrorCode::kUnsupported,
                   fmt::format("pickle opcode {:#04x} (expected those of one tensor)", opcode));
  }
}

Status PickleMachine::StepMemo(uint8_t opcode, ByteReader& in) {
  if (opcode == kMemoize) return Memoize(memo_.size());
  uint32_t slot = 0;
  if (opcode == kBinPut || opcode == kBinGet) {
    PL_TRY_ASSIGN(slot, in.ReadU8());
  } else {
    PL_TRY_ASSIGN(slot, in.ReadU32());
  }
  return opcode == kBinPut || opcode == kLongBinPut ? Memoize(slot) : Recall(slot);
}

void PickleMachine::PushConstant(uint8_t opcode) {
  switch (opcode) {
    case kNewTrue:
    case kNewFalse:
      Push(Kind::kBool).number = opcode == kNewTrue ? 1 : 0;
      return;
    case kEmptyTuple:
      Push(Kind::kTuple);
      return;
    case kEmptyList:
      Push(Kind::kList);
      return;
    case kEmptyDict:
      Push(Kind::kDict);
      return;
    default:
      Push(Kind::kNone);
  }
}

Status PickleMachine::PushNumber(uint8_t opcode, ByteReader& in) {
  switch (opcode) {
    case kBinInt: {
      PL_TRY_ASSIGN(const uint32_t value, in.ReadU32());
      Push(Kind::kInt).number = static_cast<int32_t>(value);
      return {};
    }
    case kBinInt1: {
      PL_TRY_ASSIGN(const uint8_t value, in.ReadU8());
      Push(Kind::kInt).number = value;
      return {};
    }
    case kBinInt2: {
      PL_TRY_ASSIGN(const uint16_t value, in.ReadU16());
      Push(Kind::kInt).number = value;
      return {};
    }
    case kLong1: {
      PL_TRY_ASSIGN(const uint8_t size, in.ReadU8());
      return PushLong(size, in);
    }
    case kLong4: {
      PL_TRY_ASSIGN(const uint32_t size, in.ReadU32());
      return PushLong(size, in);
    }
    default: {  // kBinFloat: big-endian
      PL_TRY_ASSIGN(const std::string_view bytes, in.ReadText(sizeof(uint64_t)));
      uint64_t bits = 0;
      for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
      Push(Kind::kFloat).number = std::bit_cast<int64_t>(bits);
      return {};
    }
  }
}

Status PickleMachine::PushLong(uint64_t size, ByteReader& in) {
  PL_TRY_ASSIGN(const std::string_view bytes, in.ReadText(size));
  if (bytes.size() > sizeof(int64_t)) {
    Push(Kind::kLong).text = bytes;
    return {};
  }
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
  if (negative && bytes.size() < sizeof(value)) value |= ~uint64_t{0} << (8 * bytes.size());
  Push(Kind::kInt).number = std::bit_cast<int64_t>(value);
  return {};
}

Status PickleMachine::PushText(uint8_t opcode, ByteReader& in) {
  uint64_t size = 0;
  if (opcode == kBinUnicode8) {
    PL_TRY_ASSIGN(size, in.ReadU64());
  } else if (opcode == kBinUnicode || opcode == kBinString) {
    PL_TRY_ASSIGN(size, in.ReadU32());
  } else {
    PL_TRY_ASSIGN(size, in.ReadU8());
  }
  PL_TRY_ASSIGN(const std::string_view text, in.ReadText(size));
  Push(Kind::kText).text = text;
  return {};
}

Status PickleMachine::PushGlobal(std::string_view module, std::string_view name) {
  if (!IsAllowedGlobal(module, name) && !(is_checkpoint() && IsDataModule(module, name))) {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("unsupported object {}.{} (expected {}). Nothing was executed", module, name,
                    is_checkpoint() ? "tensors and plain data" : "one plain tensor"));
  }
  PickleNode& node = Push(Kind::kGlobal);
  node.module = module;
  node.text = name;
  return {};
}

Status PickleMachine::StackGlobal() {
  PL_TRY(Need(2));
  const PickleNode& name = nodes_[Pop()];
  const PickleNode& module = nodes_[Pop()];
  if (name.kind != Kind::kText || module.kind != Kind::kText) {
    return Damaged("a class has no name");
  }
  return PushGlobal(module.text, name.text);
}

Status PickleMachine::MakeTuple(size_t count) {
  PL_TRY(Need(count));
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<uint32_t> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  Push(Kind::kTuple).items = std::move(items);
  return {};
}

Status PickleMachine::MakeMarkedTuple() {
  PL_TRY_ASSIGN(const size_t mark, PopMark());
  return MakeTuple(stack_.size() - mark);
}

Status PickleMachine::Extend(bool marked, Kind kind) {
  size_t count = kind == Kind::kDict ? 2 : 1;
  if (marked) {
    PL_TRY_ASSIGN(const size_t mark, PopMark());
    count = stack_.size() - mark;
  }
  PL_TRY(Need(count + 1));
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  PickleNode& container = nodes_[*(first - 1)];
  if (container.kind == Kind::kObject) {  // a subclass of list or dict
    container.kind = kind;
    container.items.clear();
  }
  if (container.kind != kind) return Damaged("items are added to something that holds none");
  if (kind == Kind::kDict && count % 2 != 0) return Damaged("a key has no value");
  container.items.insert(container.items.end(), first, stack_.end());
  stack_.erase(first, stack_.end());
  return {};
}

Status PickleMachine::Memoize(uint64_t slot) {
  PL_TRY(Need(1));
  memo_[slot] = stack_.back();
  return {};
}

Status PickleMachine::Recall(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) return Damaged(fmt::format("memo {} was never set", slot));
  stack_.push_back(found->second);
  return {};
}

// ("storage", storage class, key, device, element count[, view]) -> storage
Status PickleMachine::PersistentId() {
  PL_TRY(Need(1));
  const PickleNode& id = nodes_[Pop()];
  if (id.kind != Kind::kTuple || id.items.size() < 5 || id.items.size() > 6) {
    return Damaged("a persistent id is no storage");
  }
  const PickleNode& tag = nodes_[id.items[0]];
  const PickleNode& type = nodes_[id.items[1]];
  const PickleNode& key = nodes_[id.items[2]];
  if (tag.kind != Kind::kText || tag.text != "storage" || type.kind != Kind::kGlobal ||
      key.kind != Kind::kText) {
    return Damaged("a persistent id is no storage");
  }
  const auto dtype = StorageDType(type.text);
  if (!dtype || !IsStorageModule(type.module)) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("a storage of {}.{}, which is not read", type.module, type.text));
  }
  if (id.items.size() == 6 && nodes_[id.items[5]].kind != Kind::kNone) {
    return Error(ErrorCode::kUnsupported, "a storage that is a view of another storage");
  }
  StorageRef storage{*dtype, type.text == kUntypedStorage, key.text, 0};
  PL_TRY_ASSIGN(storage.count, Integer(id.items[4]));
  if (storage.count < 0) return Damaged("a storage has a negative size");
  Push(Kind::kStorage).number = static_cast<int64_t>(storages_.size());
  storages_.push_back(storage);
  return {};
}

Status PickleMachine::Reduce() {
  PL_TRY(Need(2));
  const uint32_t arguments_index = Pop();
  const uint32_t function_index = Pop();
  const PickleNode& arguments = nodes_[arguments_index];
  const PickleNode& function = nodes_[function_index];
  if (function.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) {
    return Damaged("a call without function or arguments");
  }
  const std::vector<uint32_t>& items = arguments.items;
  if (is_checkpoint() && !IsTensorFunction(function.module, function.text)) {
    return MakeOther(function_index, arguments_index);
  }
  if (function.text.starts_with("_rebuild_") && function.text != kRebuildParameter) {
    return RebuildTensor(function.text, items);
  }
  if (function.text == "OrderedDict") {
    Push(Kind::kDict);  // hooks of the tensor; their contents are never used
    return {};
  }
  if (items.empty()) return Damaged("a call without arguments");
  const Kind first = nodes_[items[0]].kind;
  const bool parameter = function.text == kRebuildParameter && first == Kind::kTensor;
  const bool size = function.text == "Size" && (first == Kind::kTuple || first == Kind::kList);
  const bool device = function.text == "device" && first == Kind::kText;
  if (!parameter && !size && !device) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("call of {}.{} (expected one plain tensor). Nothing was executed",
                             function.module, function.text));
  }
  stack_.push_back(items[0]);
  return {};
}

Status PickleMachine::Build() {
  PL_TRY(Need(2));
  const uint32_t state = Pop();  // attributes set on the object
  const Kind kind = nodes_[stack_.back()].kind;
  if (kind == Kind::kObject) nodes_[stack_.back()].items = {state};
  if (is_checkpoint()) return {};
  if (kind == Kind::kTensor || kind == Kind::kDict) return {};
  return Damaged(fmt::format("attributes are set on {}", KindName(kind)));
}

// (storage, offset, sizes, strides, requires_grad, hooks, ...) -> tensor
Status PickleMachine::RebuildTensor(std::string_view function,
                                    const std::vector<uint32_t>& arguments) {
  if (arguments.size() < 4 || nodes_[arguments[0]].kind != Kind::kStorage) {
    return Damaged("a tensor without storage");
  }
  PickledTensor tensor;
  tensor.storage = storages_[static_cast<size_t>(nodes_[arguments[0]].number)];
  tensor.dtype = tensor.storage.dtype;
  PL_TRY_ASSIGN(tensor.offset, Integer(arguments[1]));
  PL_TRY(Sizes(arguments[2], tensor.sizes));
  PL_TRY(Sizes(arguments[3], tensor.strides));
  if (tensor.sizes.size() != tensor.strides.size()) {
    return Damaged("a tensor has more sizes than strides, or fewer");
  }
  size_t metadata = 6;
  if (function == kRebuildV3) {
    if (arguments.size() < 7) return Damaged("a tensor without dtype");
    const PickleNode& dtype = nodes_[arguments[6]];
    const auto parsed = TorchDType(dtype.module, dtype.text);
    if (dtype.kind != Kind::kGlobal || !parsed) return Damaged("a tensor without dtype");
    tensor.dtype = *parsed;
    metadata = 7;
  }
  // The device format of an NPU tensor does not change the stored elements.
  if (function != kRebuildNpu && arguments.size() > metadata) {
    PL_TRY(CheckMetadata(arguments[metadata]));
  }
  Push(Kind::kTensor).number = static_cast<int64_t>(tensors_.size());
  tensors_.push_back(std::move(tensor));
  return {};
}

// Flags that change the meaning of the stored elements must not be set.
Status PickleMachine::CheckMetadata(uint32_t index) const {
  const PickleNode& metadata = nodes_[index];
  if (metadata.kind == Kind::kNone) return {};
  if (metadata.kind != Kind::kDict) return Damaged("the tensor's metadata is no dict");
  for (size_t i = 0; i + 1 < metadata.items.size(); i += 2) {
    const PickleNode& flag = nodes_[metadata.items[i + 1]];
    if (flag.kind == Kind::kBool && flag.number == 0) continue;
    return Error(ErrorCode::kUnsupported,
                 fmt::format("tensor with the property \"{}\" (expected plain elements)",
                             nodes_[metadata.items[i]].text));
  }
  return {};
}

Status PickleMachine::Sizes(uint32_t index, std::vector<int64_t>& out) const {
  const PickleNode& tuple = nodes_[index];
  if (tuple.kind != Kind::kTuple && tuple.kind != Kind::kList) {
    return Damaged("a shape is no tuple");
  }
  if (tuple.items.size() > kMaxRank) return Damaged("a shape has more than 64 dimensions");
  for (const uint32_t item : tuple.items) {
    PL_TRY_ASSIGN(const int64_t size, Integer(item));
    out.push_back(size);
  }
  return {};
}

Result<int64_t> PickleMachine::Integer(uint32_t index) const {
  const PickleNode& node = nodes_[index];
  if (node.kind != Kind::kInt)
    return Damaged(fmt::format("{} instead of an int", KindName(node.kind)));
  return node.number;
}

Result<PickledTensor> PickleMachine::Tensor() const {
  const PickleNode& value = result();
  if (value.kind == Kind::kTensor) return tensors_[static_cast<size_t>(value.number)];
  return Error(ErrorCode::kUnsupported,
               fmt::format("the file holds {} (expected one tensor)", KindName(value.kind)));
}

// The part of the pickle machine that only checkpoints need: values beside tensors, never made,
// only written down.

namespace {

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
