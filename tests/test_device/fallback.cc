#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

// A CPU tensor with the geometry of `tensor` over `storage`, which holds the same bytes.
at::Tensor TensorOver(const c10::Storage& storage, const at::Tensor& tensor) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  c10::TensorImpl* const impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (tensor.is_conj()) view._set_conj(true);
  if (tensor.is_neg()) view._set_neg(true);
  return view;
}

c10::Storage StorageOver(const c10::Storage& storage) {
  // Resizable: an operator may enlarge its output, which then leaves the device's memory and is
  // brought back afterwards.
  return {c10::Storage::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(const_cast<void*>(storage.data()), c10::Device(c10::DeviceType::CPU)),
          c10::GetCPUAllocator(), true};
}

// Lets an operator that takes no generator draw from the device's one: the CPU's default generator
// has the device's state while this lives. Other threads that draw meanwhile are disturbed.
class BorrowedRandomState {
 public:
  explicit BorrowedRandomState(const at::Generator& cpu_generator)
      : ours_(*at::check_generator<at::CPUGeneratorImpl>(cpu_generator)),
        theirs_(*at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator())) {
    Swap();
  }
  ~BorrowedRandomState() { Swap(); }
  BorrowedRandomState(const BorrowedRandomState&) = delete;
  BorrowedRandomState& operator=(const BorrowedRandomState&) = delete;

 private:
  void Swap() {
    const at::mt19937 engine = ours_.engine();
    const std::optional<float> next_float = ours_.next_float_normal_sample();
    const std::optional<double> next_double = ours_.next_double_normal_sample();
    ours_.set_engine(theirs_.engine());
    ours_.set_next_float_normal_sample(theirs_.next_float_normal_sample());
    ours_.set_next_double_normal_sample(theirs_.next_double_normal_sample());
    theirs_.set_engine(engine);
    theirs_.set_next_float_normal_sample(next_float);
    theirs_.set_next_double_normal_sample(next_double);
  }
  at::CPUGeneratorImpl& ours_;
  at::CPUGeneratorImpl& theirs_;
};

// One call of an operator, from the device's arguments to the device's results.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {}

  void Run() {
    LendArguments();
    NoteOrder();
    const ActiveDefects defects = MatchDefects(op_.operator_name(), first_dtype_);
    SufferEvents(defects, op_.operator_name());
    torch::jit::Stack before;
    if (NeedArguments(defects)) before = CopyArguments();
    RunOnCpu();
    if (!defects.empty()) SpoilResults(defects, before, ChangedTensors());
    for (const size_t written : written_) TakeBack(lent_[written]);
    BringResultsBack();
  }

 private:
  struct Lent {
    at::Tensor device;
    at::Tensor host;
  };
  struct LentStorage {
    at::Tensor owner;  // a device tensor that has it
    c10::Storage host;
    const void* data = nullptr;  // where `host` started
    bool is_written = false;
  };

  void LendArguments() {
    const auto& arguments = op_.schema().arguments();
    const size_t first = stack_.size() - arguments.size();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* const alias = arguments[i].alias_info();
      is_written_ = alias != nullptr && alias->isWrite();
      c10::IValue& value = stack_[first + i];
      if (value.isNone() && IsGenerator(arguments[i])) {
        generator_argument_ = &value;
      } else {
        value = LendValue(value);
      }
    }
    const int device = device_ ? device_->index() : CurrentDevice();
    device_ = c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device));
  }

  static bool IsGenerator(const c10::Argument& argument) {
    const auto* const optional = argument.type()->castRaw<c10::OptionalType>();
    return optional != nullptr &&
           optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
  }

  c10::IValue LendValue(const c10::IValue& value) {
    if (value.isTensor()) return Lend(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> lent;
      for (const at::Tensor& tensor : value.toTensorVector()) lent.push_back(Lend(tensor));
      return lent;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> lent;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        lent.push_back(tensor ? std::optional<at::Tensor>(Lend(*tensor)) : std::nullopt);
      }
      return lent;
    }
    if (value.isDevice() && value.toDevice().type() == kDeviceType) {
      device_ = FullDevice(value.toDevice());
      return c10::Device(c10::DeviceType::CPU);
    }
    if (value.isGenerator() && value.toGenerator().device().type() == kDeviceType) {
      return CpuGeneratorOf(value.toGenerator());
    }
    return value;
  }

  at::Tensor Lend(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (!first_dtype_) first_dtype_ = tensor.scalar_type();
    if (tensor.device().type() != kDeviceType) {
      CheckHostArgument(tensor);
      hosts_.insert(tensor.unsafeGetTensorImpl());
      return tensor;
    }
    TORCH_CHECK(tensor.layout() == c10::kStrided, "testdev: ", op_.operator_name(),
                ": layout ", tensor.layout(), " is not supported");
    CheckDevice(tensor.device());
    at::Tensor host = TensorOver(LendStorage(tensor), tensor);
    returned_.emplace(host.unsafeGetTensorImpl(), tensor);
    if (is_written_) written_.push_back(lent_.size());
    lent_.push_back({tensor, host});
    return host;
  }

  // A real device refuses a host tensor among its arguments, and a test has to see that. Indices
  // and lengths are taken from the host by several operators, numbers by all.
  void CheckHostArgument(const at::Tensor& tensor) const {
    TORCH_CHECK(tensor.dim() == 0 || tensor.numel() == 0 ||
                    c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true),
                "testdev: ", op_.operator_name(),
                ": expected all tensors to be on the same device, but found at least two devices, "
                "testdev and ", tensor.device());
  }

  void CheckDevice(c10::Device device) {
    TORCH_CHECK(!device_ || *device_ == device, "testdev: ", op_.operator_name(),
                ": expected all tensors to be on the same device, but found at least two devices, "
                "testdev:", device_ ? device_->index() : 0, " and testdev:", device.index());
    device_ = device;
  }

  const c10::Storage& LendStorage(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.storage();
    LentStorage& lent = storages_[storage.unsafeGetStorageImpl()];
    if (!lent.owner.defined()) {
      open_.Open(storage.data());
      lent = {tensor, StorageOver(storage), storage.data(), false};
      owners_[lent.host.unsafeGetStorageImpl()] = storage.unsafeGetStorageImpl();
    }
    lent.is_written |= is_written_;
    return lent.host;
  }

  void NoteOrder() {
    const StreamKey stream = CurrentStream(device_->index());
    BeginWork(stream);
    for (const auto& [key, lent] : storages_) NoteAccess(lent.data, stream, lent.is_written);
  }

  torch::jit::Stack CopyArguments() const {
    torch::jit::Stack copies;
    const size_t count = op_.schema().arguments().size();
    for (size_t i = stack_.size() - count; i < stack_.size(); ++i) {
      const c10::IValue& value = stack_[i];
      const bool is_tensor = value.isTensor() && value.toTensor().defined();
      copies.push_back(is_tensor ? c10::IValue(value.toTensor().clone()) : value);
    }
    return copies;
  }

  void RunOnCpu() {
    Count(Counter::kKernels);
    CountOperator(op_.operator_name());
    if (op_.hasTag(at::Tag::data_dependent_output)) Count(Counter::kScalarReads);
    if (op_.hasTag(at::Tag::dynamic_output_shape)) Count(Counter::kShapeReads);
    const at::Generator cpu_generator = CpuGeneratorOf(DeviceGenerator(device_->index()));
    std::optional<BorrowedRandomState> borrowed;
    if (generator_argument_ != nullptr) {
      *generator_argument_ = cpu_generator;
    } else if (op_.hasTag(at::Tag::nondeterministic_seeded)) {
      borrowed.emplace(cpu_generator);
    }
    if (const BoxedCpuKernel stand_in = CpuStandIn(op_.operator_name())) {
      stand_in(&stack_);
    } else {
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    }
  }

  // Written arguments and fresh results, each once; views of arguments are no result of a
  // computation.
  std::vector<at::Tensor> ChangedTensors() const {
    std::vector<at::Tensor> changed;
    for (const size_t written : written_) changed.push_back(lent_[written].host);
    const auto add = [&](const at::Tensor& result) {
      if (!result.defined() || !result.has_storage()) return;
      const bool is_argument = owners_.count(result.storage().unsafeGetStorageImpl()) > 0 ||
                               hosts_.count(result.unsafeGetTensorImpl()) > 0;
      if (!is_argument) changed.push_back(result);
    };
    for (size_t i = stack_.size() - op_.schema().returns().size(); i < stack_.size(); ++i) {
      if (stack_[i].isTensor()) add(stack_[i].toTensor());
      if (!stack_[i].isTensorList()) continue;
      for (const at::Tensor& result : stack_[i].toTensorVector()) add(result);
    }
    return changed;
  }

  // A written argument that was resized, restrided or given other memory.
  void TakeBack(const Lent& lent) {
    c10::StorageImpl* const host_storage = lent.host.storage().unsafeGetStorageImpl();
    const auto owner = owners_.find(host_storage);
    if (owner == owners_.end()) {
      lent.device.unsafeGetTensorImpl()->set_storage_keep_dtype(Upload(lent.host.storage()));
    } else {
      TakeStorageBack(storages_[owner->second]);
    }
    c10::TensorImpl* const impl = lent.device.unsafeGetTensorImpl();
    if (impl->sizes() != lent.host.sizes() || impl->strides() != lent.host.strides() ||
        impl->storage_offset() != lent.host.storage_offset()) {
      impl->set_sizes_and_strides(lent.host.sizes(), lent.host.strides(),
                                  lent.host.storage_offset());
    }
  }

  void TakeStorageBack(LentStorage& lent) {
    if (lent.host.data() == lent.data) return;
    const c10::Storage& storage = lent.owner.storage();
    ResizeStorage(storage, lent.host.nbytes());
    open_.Open(storage.data());
    std::memcpy(storage.mutable_data(), lent.host.data(), lent.host.nbytes());
    lent.data = lent.host.data();
  }

  void BringResultsBack() {
    for (size_t i = stack_.size() - op_.schema().returns().size(); i < stack_.size(); ++i) {
      c10::IValue& value = stack_[i];
      if (value.isTensor()) {
        value = BringBack(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> results;
        for (const at::Tensor& result : value.toTensorVector()) {
          results.push_back(BringBack(result));
        }
        value = results;
      }
    }
  }

  at::Tensor BringBack(const at::Tensor& result) {
    if (!result.defined() || hosts_.count(result.unsafeGetTensorImpl()) > 0) return result;
    if (const auto same = returned_.find(result.unsafeGetTensorImpl()); same != returned_.end()) {
      return same->second;
    }
    TORCH_CHECK(result.layout() == c10::kStrided && !result.is_quantized(), "testdev: ",
                op_.operator_name(), ": results that are sparse or quantised are not supported");
    const auto owner = owners_.find(result.storage().unsafeGetStorageImpl());
    if (owner != owners_.end()) {
      const at::Tensor& base = storages_[owner->second].owner;
      const c10::DispatchKeySet keys =
          base.key_set() - c10::DispatchKeySet({c10::DispatchKey::Conjugate,
                                                c10::DispatchKey::Negative});
      return OnDevice(at::detail::make_tensor<c10::TensorImpl>(
                          c10::TensorImpl::VIEW, c10::Storage(base.storage()), keys,
                          result.dtype()), result);
    }
    const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    return OnDevice(at::detail::make_tensor<c10::TensorImpl>(Upload(result.storage()), keys,
                                                             result.dtype()), result);
  }

  static at::Tensor OnDevice(at::Tensor tensor, const at::Tensor& result) {
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(result.sizes(), result.strides(), result.storage_offset());
    if (result.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    if (result.is_conj()) tensor._set_conj(true);
    if (result.is_neg()) tensor._set_neg(true);
    return tensor;
  }

  // Device memory with the bytes of a fresh result; the same for all results that share it. Not
  // counted as a copy: a device computes its results in place.
  c10::Storage Upload(const c10::Storage& host) {
    const auto found = uploaded_.find(host.unsafeGetStorageImpl());
    if (found != uploaded_.end()) return found->second;
    const int before = CurrentDevice();
    SetCurrentDevice(device_->index());
    c10::Storage storage(c10::Storage::use_byte_size_t(), host.nbytes(),
                         DeviceAllocator()->allocate(host.nbytes()), DeviceAllocator(), true);
    SetCurrentDevice(before);
    open_.Open(storage.data());
    NoteAccess(storage.data(), CurrentStream(device_->index()), /*is_write=*/true);
    if (host.nbytes() > 0) std::memcpy(storage.mutable_data(), host.data(), host.nbytes());
    uploaded_.emplace(host.unsafeGetStorageImpl(), storage);
    return storage;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  OpenBlocks open_;
  std::optional<c10::Device> device_;
  std::optional<at::ScalarType> first_dtype_;
  c10::IValue* generator_argument_ = nullptr;
  bool is_written_ = false;  // of the argument being lent
  std::vector<Lent> lent_;
  std::vector<size_t> written_;  // numbers in lent_
  std::unordered_set<const c10::TensorImpl*> hosts_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> returned_;             // by host tensor
  std::unordered_map<const c10::StorageImpl*, LentStorage> storages_;           // by device storage
  std::unordered_map<const c10::StorageImpl*, const c10::StorageImpl*> owners_;  // host to device
  std::unordered_map<const c10::StorageImpl*, c10::Storage> uploaded_;          // by host storage
};

}  // namespace

at::Tensor HostView(const at::Tensor& tensor, OpenBlocks& open) {
  open.Open(tensor.storage().data());
  return TensorOver(StorageOver(tensor.storage()), tensor);
}

void Fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // The CPU's kernels call other operators: those must run on the CPU as they are, without being
  // recorded for a backward pass or cast.
  const at::AutoDispatchBelowAutograd no_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Call(op, *stack).Run();
}

}  // namespace plumbline_test_device
