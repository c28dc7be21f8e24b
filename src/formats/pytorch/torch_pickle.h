// Pickles in files of torch.save: opcodes, the names that may occur, and the machine that reads
// them. It builds plain data and calls nothing.

#ifndef PLUMBLINE_FORMATS_PYTORCH_TORCH_PICKLE_H_
#define PLUMBLINE_FORMATS_PYTORCH_TORCH_PICKLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/memory/bytes.h"
#include "plumbline/tensor.h"

namespace plumbline::torch_pt {

// The opcodes that occur in files of torch.save, named as in Python's pickletools.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kDup = '2',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

// The names that may occur in the pickle of one tensor.

inline constexpr std::string_view kRebuildV1 = "_rebuild_tensor";
inline constexpr std::string_view kRebuildV2 = "_rebuild_tensor_v2";
inline constexpr std::string_view kRebuildV3 = "_rebuild_tensor_v3";
inline constexpr std::string_view kRebuildParameter = "_rebuild_parameter";
inline constexpr std::string_view kRebuildNpu = "_rebuild_npu_tensor";

inline constexpr std::string_view kUntypedStorage = "UntypedStorage";

// The dtype of a storage class such as "FloatStorage" (uint8 for UntypedStorage), or nothing.
std::optional<DType> StorageDType(std::string_view class_name);
// The typed storage class of a dtype, or an empty text where PyTorch has none.
std::string_view StorageClass(DType dtype);
// Modules in which storage classes live, device variants included.
bool IsStorageModule(std::string_view module);
// The dtype object "torch.<name>", or nothing.
std::optional<DType> TorchDType(std::string_view module, std::string_view name);
// True for rebuild functions of tensors, storages, dtypes, sizes, devices and OrderedDict.
bool IsAllowedGlobal(std::string_view module, std::string_view name);
// True for functions whose result is a tensor or part of one, as far as it can be read.
bool IsTensorFunction(std::string_view module, std::string_view name);
// True for what checkpoints hold beside tensors: classes of frameworks and of plain data. Not for
// functions of the interpreter or the operating system.
bool IsDataModule(std::string_view module, std::string_view name);

// The machine: values of a pickle, and descriptions of its tensors.

// A storage named by a persistent id: which record holds the elements.
struct StorageRef {
  DType dtype = DType::kUInt8;
  bool is_untyped = false;  // `count` is in bytes
  std::string_view key;
  int64_t count = 0;
};

// What a pickled tensor says about itself. Sizes and strides are not checked against the storage.
struct PickledTensor {
  DType dtype = DType::kFloat32;
  StorageRef storage;
  int64_t offset = 0;  // elements
  Shape sizes;
  std::vector<int64_t> strides;  // as long as sizes
};

// One value on the machine's stack. `items` are indices of other nodes; a dict holds key, value,
// key, value. Texts are views into the pickle.
struct PickleNode {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kLong,   // integer outside int64_t; `text` is its little-endian two's complement
    kFloat,  // `number` holds the bits of the double
    kText,
    kTuple,
    kList,  // also a set: `text` is kSetMark then
    kDict,
    kGlobal,   // `module` and `text`
    kStorage,  // `number` indexes the machine's storages
    kTensor,   // `number` indexes the machine's tensors
    // Anything else that a class or function would make; `module` and `text` name it. `items` are
    // its arguments, or its state alone where that is recorded apart.
    kObject,
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string_view text;
  std::string_view module;
  std::vector<uint32_t> items;
};

// The `text` of lists that were sets: their items have no order of their own.
inline constexpr std::string_view kSetMark = "set";

// What a pickle may name.
enum class PickleScope : uint8_t {
  kOneTensor,  // tensor parts only
  // Also data of frameworks (settings, metadata, NumPy values), kept as kObject. Nothing is called
  // here either; names outside these frameworks are refused.
  kCheckpoint,
};

// Runs one pickle after another on the same bytes (protocols 2 to 5). Memory stays proportional to
// the bytes read, and no value is ever walked recursively. The bytes must outlive the machine.
class PickleMachine {
 public:
  explicit PickleMachine(PickleScope scope = PickleScope::kOneTensor) : scope_(scope) {}

  // Reads up to and with the STOP opcode. kCorrupt for damage; kUnsupported for opcodes, globals
  // and calls that have no place in a file of one tensor (the message names them).
  Status Run(ByteReader& in);
  // The value of the last pickle. Requires: the last Run succeeded.
  [[nodiscard]] const PickleNode& result() const { return nodes_[stack_.back()]; }
  [[nodiscard]] uint32_t result_index() const { return stack_.back(); }
  // All storages that were named, in order; those of several tensors repeat.
  [[nodiscard]] const std::vector<StorageRef>& storages() const { return storages_; }
  [[nodiscard]] const PickleNode& node(uint32_t index) const { return nodes_[index]; }
  // The tensor of the last pickle; kUnsupported if it is something else.
  [[nodiscard]] Result<PickledTensor> Tensor() const;
  // Requires: node.kind is kTensor.
  [[nodiscard]] const PickledTensor& tensor(const PickleNode& node) const {
    return tensors_[static_cast<size_t>(node.number)];
  }
  // The value of a text key of a dict, or of the state of an object; null when it has none.
  [[nodiscard]] const PickleNode* Find(const PickleNode& node, std::string_view key) const;

 private:
  Status Step(uint8_t opcode, ByteReader& in);
  Status StepStack(uint8_t opcode);
  Status StepMemo(uint8_t opcode, ByteReader& in);
  // Opcodes that files of one tensor lack.
  Status StepObject(uint8_t opcode, ByteReader& in);
  Status MakeObject(size_t arguments);
  // The result of a call that has no tensor parts: `arguments` is a tuple.
  Status MakeOther(uint32_t function, uint32_t arguments);
  [[nodiscard]] bool is_checkpoint() const { return scope_ == PickleScope::kCheckpoint; }
  void PushConstant(uint8_t opcode);
  Status PushNumber(uint8_t opcode, ByteReader& in);
  Status PushText(uint8_t opcode, ByteReader& in);
  Status PushLong(uint64_t size, ByteReader& in);
  Status PushGlobal(std::string_view module, std::string_view name);
  Status StackGlobal();
  Status MakeTuple(size_t count);
  Status MakeMarkedTuple();
  Status Extend(bool marked, PickleNode::Kind kind);
  Status Memoize(uint64_t slot);
  Status Recall(uint64_t slot);
  Status PersistentId();
  Status Reduce();
  Status Build();
  Status RebuildTensor(std::string_view function, const std::vector<uint32_t>& arguments);
  Status CheckMetadata(uint32_t index) const;
  Status Sizes(uint32_t index, std::vector<int64_t>& out) const;
  [[nodiscard]] Result<int64_t> Integer(uint32_t index) const;

  Status Need(size_t count) const;
  Result<size_t> PopMark();
  uint32_t Pop();
  PickleNode& Push(PickleNode::Kind kind);

  PickleScope scope_;
  std::vector<PickleNode> nodes_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  std::vector<StorageRef> storages_;
  std::vector<PickledTensor> tensors_;
};

}  // namespace plumbline::torch_pt

#endif  // PLUMBLINE_FORMATS_PYTORCH_TORCH_PICKLE_H_
