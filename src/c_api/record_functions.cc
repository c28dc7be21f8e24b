// The functions of c_api.h that record.

#include <memory>
#include <string>
#include <utility>

#include "c_api/guard.h"
#include "capture/engine_recorder.h"
#include "formats/json/dump_json.h"
#include "tensor/dlpack.h"

using plumbline::Error;
using plumbline::ErrorCode;
using plumbline::Status;
using plumbline::TensorView;
using plumbline::c_api::Guard;
using plumbline::c_api::Need;
using plumbline::capture::EngineCall;
using plumbline::capture::EngineOptions;
using plumbline::capture::EngineRecorder;

struct plumb_recorder {
  std::shared_ptr<EngineRecorder> recorder;
};

struct plumb_call {
  std::shared_ptr<EngineRecorder> recorder;  // which may be finished before the call ends
  std::unique_ptr<EngineCall> call;
};

namespace {

namespace dlpack = plumbline::dlpack;
static_assert(sizeof(plumb_dltensor) == sizeof(dlpack::Tensor));
static_assert(offsetof(plumb_dltensor, shape) == offsetof(dlpack::Tensor, shape));
static_assert(offsetof(plumb_dltensor, byte_offset) == offsetof(dlpack::Tensor, byte_offset));

std::optional<std::string> TextOf(const char* text) {
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

// kInvalidArgument: it contradicts itself; kUnsupported: not in memory that can be read here, or of
// a type that plumbline does not know.
plumbline::Result<TensorView> ViewOf(const plumb_dltensor& told, dlpack::Strides& strides) {
  dlpack::Tensor tensor;
  std::memcpy(&tensor, &told, sizeof(tensor));
  if (!dlpack::IsOnHost(tensor)) {
    return Error(ErrorCode::kUnsupported, "tensor: is on device type " +
                                              std::to_string(tensor.device.type) +
                                              " (expected 1, the CPU). Copy it first");
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "tensor: has no shape");
  }
  const std::optional<TensorView> view = dlpack::ViewOf(tensor, strides);
  if (!view) {
    const dlpack::DataType& type = tensor.dtype;
    return Error(ErrorCode::kUnsupported,
                 "tensor: type code " + std::to_string(type.code) + " of " +
                     std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
                     " lanes with " + std::to_string(tensor.ndim) +
                     " dimensions is none that plumbline knows");
  }
  const plumbline::Result<int64_t> count = plumbline::ElementCount(view->sizes);
  if (!count) return Error(ErrorCode::kInvalidArgument, "tensor: " + count.error().message());
  if (*count > 0 && tensor.data == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "tensor: has elements and no memory");
  }
  return *view;
}

std::optional<EngineRecorder::Role> RoleOf(int32_t role) {
  switch (role) {
    case PLUMB_INPUT:
      return EngineRecorder::Role::kInput;
    case PLUMB_OUTPUT:
      return EngineRecorder::Role::kOutput;
    case PLUMB_PARAMETER:
      return EngineRecorder::Role::kParameter;
    default:
      return std::nullopt;
  }
}

Status AddTo(plumb_call& call, int32_t role, const char* name, const plumb_dltensor& told) {
  const std::optional<EngineRecorder::Role> known = RoleOf(role);
  if (!known) {
    return Error(ErrorCode::kInvalidArgument,
                 "role: is " + std::to_string(role) +
                     " (expected PLUMB_INPUT, PLUMB_OUTPUT or PLUMB_PARAMETER)");
  }
  dlpack::Strides strides;
  auto view = ViewOf(told, strides);
  if (!view) return view.error().In(call.call->name());
  return call.recorder->AddTensor(*call.call, *known, name == nullptr ? "" : name, *view);
}

}  // namespace

int32_t plumb_recorder_begin(const plumb_recorder_options* options, plumb_recorder** recorder,
                             plumb_error* error) noexcept {
  if (recorder != nullptr) *recorder = nullptr;
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(options, "options"));
    PL_TRY(Need(recorder, "recorder"));
    const plumb_recorder_options asked =
        plumbline::c_api::Read(options, plumb_recorder_options PLUMB_RECORDER_OPTIONS_INIT);
    EngineOptions made;
    made.keys = {plumbline::dump_json::kInputArgs, plumbline::dump_json::kInputKwargs,
                 plumbline::dump_json::kOutput, plumbline::dump_json::kParameters};
    made.config_path = TextOf(asked.config_path);
    made.overrides = {.task = TextOf(asked.task),
                      .dump_path = TextOf(asked.dump_path),
                      .level = TextOf(asked.level)};
    if (asked.framework != nullptr) made.framework = asked.framework;
    if (asked.rank >= 0) made.rank = asked.rank;
    PL_TRY_ASSIGN(std::shared_ptr<EngineRecorder> opened, EngineRecorder::Create(made));
    *recorder = new plumb_recorder{std::move(opened)};
    return {};
  });
}

void plumb_recorder_finish(plumb_recorder* recorder) noexcept {
  if (recorder == nullptr) return;
  (void)Guard(nullptr, [&]() -> Status {
    recorder->recorder->Finish();
    return {};
  });
  delete recorder;
}

int32_t plumb_step_begin(plumb_recorder* recorder, int32_t* is_recorded,
                         plumb_error* error) noexcept {
  if (is_recorded != nullptr) *is_recorded = 0;
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(recorder, "recorder"));
    PL_TRY_ASSIGN(const bool begun, recorder->recorder->BeginStep());
    if (is_recorded != nullptr) *is_recorded = begun ? 1 : 0;
    return {};
  });
}

int32_t plumb_step_end(plumb_recorder* recorder, plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(recorder, "recorder"));
    return recorder->recorder->EndStep();
  });
}

uint64_t plumb_recorder_directory(plumb_recorder* recorder, char* out, uint64_t size) noexcept {
  uint64_t length = 0;
  plumbline::c_api::CopyText({}, out, size);
  (void)Guard(nullptr, [&]() -> Status {
    PL_TRY(Need(recorder, "recorder"));
    const std::string directory = recorder->recorder->directory();
    plumbline::c_api::CopyText(directory, out, size);
    length = directory.size();
    return {};
  });
  return length;
}

int32_t plumb_call_begin(plumb_recorder* recorder, const char* name, const plumb_call* parent,
                         plumb_call** call, plumb_error* error) noexcept {
  if (call != nullptr) *call = nullptr;
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(recorder, "recorder"));
    PL_TRY(Need(name, "name"));
    PL_TRY(Need(call, "call"));
    const EngineCall* const inside = parent == nullptr ? nullptr : parent->call.get();
    PL_TRY_ASSIGN(std::unique_ptr<EngineCall> begun, recorder->recorder->BeginCall(name, inside));
    if (begun != nullptr) *call = new plumb_call{recorder->recorder, std::move(begun)};
    return {};
  });
}

int32_t plumb_call_add(plumb_call* call, int32_t role, const char* name,
                       const plumb_dltensor* tensor, plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    if (call == nullptr) return {};
    PL_TRY(Need(tensor, "tensor"));
    return AddTo(*call, role, name, *tensor);
  });
}

int32_t plumb_call_take(plumb_call* call, int32_t role, const char* name, plumb_dlmanaged* tensor,
                        plumb_error* error) noexcept {
  const int32_t code = Guard(error, [&]() -> Status {
    PL_TRY(Need(tensor, "tensor"));
    return call == nullptr ? Status() : AddTo(*call, role, name, tensor->dl_tensor);
  });
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
  return code;
}

int32_t plumb_call_end(plumb_call* call, plumb_error* error) noexcept {
  const std::unique_ptr<plumb_call> owned(call);
  return Guard(error, [&]() -> Status {
    return call == nullptr ? Status() : call->recorder->EndCall(*call->call);
  });
}
