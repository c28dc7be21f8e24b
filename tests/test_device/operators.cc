// The operators that have kernels of their own, and how all others find Fallback().
// Size caps: the signatures of `empty` and `empty_strided` are PyTorch's.
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

using DType = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

c10::Device CheckedDevice(OptionalDevice device, Layout layout) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "testdev: layout ", *layout,
              " is not supported");
  return FullDevice(device.value_or(c10::Device(kDeviceType)));
}

at::Tensor Empty(at::IntArrayRef size, DType dtype, Layout layout, OptionalDevice device,
                 std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(CheckedDevice(device, layout));
  return at::detail::empty_generic(size, DeviceAllocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride, DType dtype, Layout layout,
                        OptionalDevice device, std::optional<bool>) {
  const c10::DeviceGuard guard(CheckedDevice(device, layout));
  return at::detail::empty_strided_generic(size, stride, DeviceAllocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// PyTorch's own has no bytes at all, which no kernel behind this device could read.
at::Tensor Zeros(at::IntArrayRef size, DType dtype, Layout layout, OptionalDevice device,
                 std::optional<bool> pinned) {
  const at::Tensor zeros = Empty(size, dtype, layout, device, pinned, std::nullopt);
  OpenBlocks open;
  open.Open(zeros.storage().data());
  const StreamKey stream = CurrentStream(zeros.device().index());
  BeginWork(stream);
  NoteAccess(zeros.storage().data(), stream, /*is_write=*/true);
  if (zeros.nbytes() > 0) std::memset(zeros.storage().mutable_data(), 0, zeros.nbytes());
  return zeros;
}

// ---------------------------------------------------------------- copies

bool IsOnDevice(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }

// Whether the copy could be deferred: the bytes of `source` were taken, `host` is filled later.
bool TryDefer(const at::Tensor& source, const at::Tensor& host, StreamKey stream) {
  if (!IsDeferred() || !host.is_contiguous() || host.is_conj() || host.is_neg()) return false;
  const at::Tensor taken =
      source.expand_as(host).to(host.scalar_type()).contiguous().resolve_conj().resolve_neg();
  std::vector<char> bytes(taken.nbytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), taken.const_data_ptr(), bytes.size());
  DeferCopy(stream, host, std::move(bytes));
  return true;
}

void CopyToHost(const at::Tensor& source, const at::Tensor& host, bool non_blocking) {
  Count(Counter::kD2hCopies);
  Count(Counter::kD2hBytes, source.nbytes());
  OpenBlocks open;
  const at::Tensor view = HostView(source, open);
  const StreamKey stream = CurrentStream(source.device().index());
  BeginWork(stream);
  NoteAccess(source.storage().data(), stream, /*is_write=*/false);
  const bool is_pinned = IsPinned(host.storage().data());
  // As with real devices: memory that is not pinned makes the host wait whatever was asked for.
  if (non_blocking && is_pinned) {
    if (TryDefer(view, host, stream)) return;
  } else {
    Count(Counter::kCopySyncs);
    CompleteStream(stream);
  }
  host.copy_(view);
}

void CopyToDevice(const at::Tensor& host, const at::Tensor& target, bool non_blocking) {
  Count(Counter::kH2dCopies);
  Count(Counter::kH2dBytes, host.nbytes());
  const StreamKey stream = CurrentStream(target.device().index());
  // In stream order the earlier copy into this host memory is done before it is read again.
  CompleteOverlapping(host.storage().data(), host.storage().nbytes());
  BeginWork(stream);
  NoteAccess(target.storage().data(), stream, /*is_write=*/true);
  if (!non_blocking) {
    Count(Counter::kCopySyncs);
    CompleteStream(stream);
  }
  OpenBlocks open;
  HostView(target, open).copy_(host);
}

void CopyWithin(const at::Tensor& source, const at::Tensor& target) {
  static const c10::OperatorName name("aten::_copy_from", "");
  Count(Counter::kD2dCopies);
  Count(Counter::kD2dBytes, source.nbytes());
  CountOperator(name);
  const ActiveDefects defects = MatchDefects(name, source.scalar_type());
  SufferEvents(defects, name);
  const StreamKey stream = CurrentStream(target.device().index());
  BeginWork(stream);
  NoteAccess(source.storage().data(), stream, /*is_write=*/false);
  NoteAccess(target.storage().data(), stream, /*is_write=*/true);
  OpenBlocks open;
  const at::Tensor host_target = HostView(target, open);
  host_target.copy_(HostView(source, open));
  if (!defects.empty()) SpoilResults(defects, {}, {host_target});
}

at::Tensor CopyFrom(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const at::AutoDispatchBelowAutograd no_autograd;
  if (target.numel() == 0) return target;
  if (IsOnDevice(source) && IsOnDevice(target)) {
    CopyWithin(source, target);
  } else if (IsOnDevice(source)) {
    CopyToHost(source, target, non_blocking);
  } else {
    CopyToDevice(source, target, non_blocking);
  }
  return target;
}

at::Tensor CopyFromAndResize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return CopyFrom(source, target, /*non_blocking=*/false);
}

at::Scalar ReadScalar(const at::Tensor& tensor) {
  const at::AutoDispatchBelowAutograd no_autograd;
  Count(Counter::kScalarReads);
  const StreamKey stream = CurrentStream(tensor.device().index());
  BeginWork(stream);
  NoteAccess(tensor.storage().data(), stream, /*is_write=*/false);
  CompleteStream(stream);
  OpenBlocks open;
  return at::_local_scalar_dense(HostView(tensor, open));
}

// ---------------------------------------------------------------- geometry and storage

void GrowStorage(const at::Tensor& tensor, size_t needed_bytes) {
  if (tensor.numel() > 0 && needed_bytes > tensor.storage().nbytes()) {
    ResizeStorage(tensor.storage(), needed_bytes);
  }
}

// PyTorch's own resize_ would copy the bytes on the host.
const at::Tensor& Resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  if (self.sizes() != size) impl->set_sizes_contiguous(size);
  if (format) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "resize_: unsupported memory format ",
                *format);
    impl->empty_tensor_restride(*format);
  }
  GrowStorage(self, at::detail::computeStorageNbytes(self.sizes(), self.strides(),
                                                     self.dtype().itemsize(),
                                                     static_cast<size_t>(self.storage_offset())));
  return self;
}

at::Tensor& SetStorage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                       at::IntArrayRef stride) {
  TORCH_CHECK(source.device() == self.device(), "set_: storage on ", source.device(),
              " cannot be that of a tensor on ", self.device());
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  if (stride.data() == nullptr && !size.empty()) {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  GrowStorage(self, at::detail::computeStorageNbytes(self.sizes(), self.strides(),
                                                     self.dtype().itemsize(),
                                                     static_cast<size_t>(offset)));
  return self;
}

at::Tensor& SetTensor(at::Tensor& self, const at::Tensor& source) {
  return SetStorage(self, source.storage(), source.storage_offset(), source.sizes(),
                    source.strides());
}

at::Tensor& SetWholeStorage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return SetStorage(self, std::move(source), 0, {count}, {1});
}

at::Tensor& SetNothing(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  const at::Storage nothing(c10::Storage::use_byte_size_t(), 0, DeviceAllocator()->allocate(0),
                            DeviceAllocator(), true);
  return SetStorage(self, nothing, 0, {0}, {1});
}

void RecordStream(at::Tensor& tensor, at::Stream stream) {
  NoteStream(tensor.storage().data(), {FullDevice(stream.device()).index(), stream.id()});
}

// ---------------------------------------------------------------- registrations

using c10::DispatchKey;

torch::CppFunction ToFallback() { return torch::CppFunction::makeFromBoxedFunction<&Fallback>(); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(ToFallback()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(Empty));
  library.impl("empty_strided", TORCH_FN(EmptyStrided));
  library.impl("_efficientzerotensor", TORCH_FN(Zeros));
  library.impl("_copy_from", TORCH_FN(CopyFrom));
  library.impl("_copy_from_and_resize", TORCH_FN(CopyFromAndResize));
  library.impl("_local_scalar_dense", TORCH_FN(ReadScalar));
  library.impl("resize_", TORCH_FN(Resize));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(SetStorage));
  library.impl("set_.source_Storage", TORCH_FN(SetWholeStorage));
  library.impl("set_.source_Tensor", TORCH_FN(SetTensor));
  library.impl("set_", TORCH_FN(SetNothing));
  library.impl("record_stream", TORCH_FN(RecordStream));
  library.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(
                           &at::native::view));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

// Their fallbacks clone the argument, and a clone is a copy: without this a copy calls itself.
template <class Library>
void PassCopiesThrough(Library& library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Conjugate, library) { PassCopiesThrough(library); }
TORCH_LIBRARY_IMPL(aten, Negative, library) { PassCopiesThrough(library); }
TORCH_LIBRARY_IMPL(aten, ZeroTensor, library) { PassCopiesThrough(library); }

// Operators that PyTorch would take apart although the CPU has a kernel for the whole: the parts
// round differently, and an `.out` form called for the functional one may warn. For convolutions
// it would call a hook that only real backends implement.
const bool is_registered_whole = [] {
  // Kept for ever: its end would take the registrations back.
  static auto* const library = new torch::Library(torch::Library::IMPL, "aten",
                                                  DispatchKey::PrivateUse1, __FILE__, __LINE__);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || op->hasKernelForDispatchKey(DispatchKey::PrivateUse1)) continue;
    const bool is_convolution =
        name.overload_name.empty() &&
        (name.name == "aten::convolution" || name.name == "aten::convolution_backward");
    const bool is_taken_apart =
        op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
        op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
        op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
    if (is_convolution || (is_taken_apart && op->hasKernelForDispatchKey(DispatchKey::CPU))) {
      library->impl(c10::toString(name).c_str(), ToFallback());
    }
  }
  return true;
}();

}  // namespace
}  // namespace plumbline_test_device
