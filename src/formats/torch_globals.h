// The names that may occur in the pickle of one tensor.

#ifndef PLUMBLINE_FORMATS_TORCH_GLOBALS_H_
#define PLUMBLINE_FORMATS_TORCH_GLOBALS_H_

#include <optional>
#include <string_view>

#include "plumbline/tensor.h"

namespace plumbline::torch_pt {

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

}  // namespace plumbline::torch_pt

#endif  // PLUMBLINE_FORMATS_TORCH_GLOBALS_H_
