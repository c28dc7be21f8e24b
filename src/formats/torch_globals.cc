#include "formats/torch_globals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

}  // namespace plumbline::torch_pt
