// The functions of c_api.h that read recordings.

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "load/run_reader.h"
#include "match/expand.h"
#include "plumbline/compare.h"
#include "plumbline/run.h"
#include "tensor/dlpack.h"

namespace plumbline::c_api {
namespace {

// One call, taken apart, with texts that end in NUL.
struct CallFacts {
  std::string parent;
  std::vector<plumb_slot> slots;
  std::vector<Item> items;        // whose shapes the slots refer to
  std::deque<std::string> texts;  // stay where they are

  const char* Keep(std::string_view text) { return texts.emplace_back(text).c_str(); }
};

plumb_number NumberOf(const Recorded& value, CallFacts& facts) {
  plumb_number number{};
  if (const auto* truth = std::get_if<bool>(&value)) {
    number.kind = PLUMB_BOOL;
    number.integer = *truth ? 1 : 0;
    number.real = *truth ? 1 : 0;
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    number.kind = PLUMB_INTEGER;
    number.integer = *integer;
    number.real = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number.kind = PLUMB_REAL;
    number.real = *real;
  } else if (const auto* text = std::get_if<Text>(&value)) {
    number.kind = PLUMB_TEXT;
    number.text = facts.Keep(*text);
  }
  return number;
}

int32_t RoleOf(ItemRole role) {
  switch (role) {
    case ItemRole::kInput:
      return PLUMB_INPUT;
    case ItemRole::kParameter:
      return PLUMB_PARAMETER;
    case ItemRole::kOutput:
      return PLUMB_OUTPUT;
    case ItemRole::kBuffer:
      return PLUMB_BUFFER;
    case ItemRole::kParameterGrad:
      return PLUMB_GRADIENT;
  }
  return PLUMB_INPUT;
}

plumb_slot SlotOf(const Item& item, CallFacts& facts) {
  plumb_slot slot{};
  slot.name = facts.Keep(item.name);
  slot.role = RoleOf(item.role);
  slot.is_tensor = item.is_tensor ? 1 : 0;
  slot.dtype = facts.Keep(item.dtype ? std::string_view(*item.dtype) : std::string_view());
  if (!item.shape.empty()) {
    const Shape& shape = *item.shape;
    slot.ndim = shape.size();
    slot.shape = shape.data();
  }
  slot.max = NumberOf(item.statistics[0], facts);
  slot.min = NumberOf(item.statistics[1], facts);
  slot.mean = NumberOf(item.statistics[2], facts);
  slot.norm = NumberOf(item.statistics[3], facts);
  slot.digest = facts.Keep(item.has_recorded_digest ? std::string_view(item.digest) : "");
  slot.data_name = facts.Keep(item.data_name);
  return slot;
}

Error NoSuch(const char* what, uint64_t number, uint64_t count) {
  return Error(ErrorCode::kNotFound, std::string("no ") + what + " " + std::to_string(number) +
                                         " (there are " + std::to_string(count) + ")");
}

}  // namespace
}  // namespace plumbline::c_api

using plumbline::Error;
using plumbline::ErrorCode;
using plumbline::Result;
using plumbline::Run;
using plumbline::Status;
using plumbline::TensorFile;
using plumbline::TensorView;
using plumbline::c_api::CallFacts;
using plumbline::c_api::Fill;
using plumbline::c_api::Guard;
using plumbline::c_api::Need;

// Calls are taken apart when they are asked for, and stay as long as the handle. Thread-safe.
struct plumb_run {
  explicit plumb_run(Run opened) : run(std::move(opened)) {
    const auto& calls = run.calls();
    for (size_t i = 0; i < calls.size(); ++i) numbers.emplace(calls[i].name, i);
  }

  Result<const CallFacts*> FactsOf(uint64_t call) const {
    const auto& calls = run.calls();
    if (call >= calls.size()) return plumbline::c_api::NoSuch("call", call, calls.size());
    const std::lock_guard lock(mutex);
    auto& facts = facts_of[call];
    if (facts != nullptr) return facts.get();
    PL_TRY_ASSIGN(facts, Expanded(calls[call]));
    return facts.get();
  }

  const Run run;
  std::unordered_map<std::string_view, uint64_t> numbers;  // by the names in `run`

 private:
  Result<std::unique_ptr<CallFacts>> Expanded(const plumbline::Call& call) const {
    plumbline::match::Expander expander;
    PL_TRY_ASSIGN(plumbline::match::CallItems items, run.header().holds_saves()
                                                         ? expander.ExpandSave(call)
                                                         : expander.ExpandCall(call));
    auto facts = std::make_unique<CallFacts>();
    facts->parent = run.ParentOf(call.name);
    facts->items = std::move(items.items);
    for (const plumbline::Item& item : facts->items) {
      facts->slots.push_back(plumbline::c_api::SlotOf(item, *facts));
    }
    return facts;
  }

  mutable std::mutex mutex;
  mutable std::unordered_map<uint64_t, std::unique_ptr<CallFacts>> facts_of;  // guarded by it
};

struct plumb_tensor {
  explicit plumb_tensor(TensorFile opened) : file(std::move(opened)), view(file.view()) {}
  const TensorFile file;
  const TensorView view;
};

namespace {

// Null: none such, `slot` of `count`.
Result<const plumb_slot*> SlotAt(const plumb_run* run, uint64_t call, uint64_t slot) {
  PL_TRY(Need(run, "run"));
  PL_TRY_ASSIGN(const CallFacts* facts, run->FactsOf(call));
  const auto& slots = facts->slots;
  if (slot >= slots.size()) return plumbline::c_api::NoSuch("slot", slot, slots.size());
  return &slots[slot];
}

}  // namespace

const char* plumb_version() noexcept { return PLUMBLINE_VERSION; }

int32_t plumb_run_open(const char* path, plumb_run** run, plumb_error* error) noexcept {
  if (run != nullptr) *run = nullptr;
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(path, "path"));
    PL_TRY(Need(run, "run"));
    PL_TRY_ASSIGN(Run opened, Run::Open(path));
    *run = new plumb_run(std::move(opened));
    return {};
  });
}

void plumb_run_close(plumb_run* run) noexcept { delete run; }

int32_t plumb_run_describe(const plumb_run* run, plumb_run_info* info,
                           plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(run, "run"));
    const plumbline::RunHeader& header = run->run.header();
    const plumbline::RunLoss& loss = run->run.loss();
    plumb_run_info filled{};
    filled.path = run->run.dump_json_path().c_str();
    filled.task = header.task.c_str();
    filled.level = header.level.c_str();
    filled.framework = header.framework.c_str();
    filled.call_count = run->run.calls().size();
    filled.is_complete =
        !loss.truncated && loss.recorder_drops == 0 && !loss.unfinished && loss.side_files.empty();
    return Fill(filled, info, "info");
  });
}

int32_t plumb_run_call(const plumb_run* run, uint64_t call, plumb_call_info* info,
                       plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(run, "run"));
    PL_TRY_ASSIGN(const CallFacts* facts, run->FactsOf(call));
    const plumbline::Call& recorded = run->run.calls()[call];
    plumb_call_info filled{};
    filled.name = recorded.name.c_str();
    filled.parent = facts->parent.c_str();
    filled.kind = static_cast<int32_t>(recorded.kind);
    filled.slot_count = facts->slots.size();
    return Fill(filled, info, "info");
  });
}

int32_t plumb_run_find(const plumb_run* run, const char* name, uint64_t* call,
                       plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(run, "run"));
    PL_TRY(Need(name, "name"));
    PL_TRY(Need(call, "call"));
    const auto found = run->numbers.find(name);
    if (found != run->numbers.end()) {
      *call = found->second;
      return {};
    }
    return Error(ErrorCode::kNotFound,
                 run->run.dump_json_path() + ": no call \"" + std::string(name) + "\"");
  });
}

int32_t plumb_run_slot(const plumb_run* run, uint64_t call, uint64_t slot, plumb_slot* info,
                       plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY_ASSIGN(const plumb_slot* found, SlotAt(run, call, slot));
    return Fill(*found, info, "info");
  });
}

int32_t plumb_run_read(const plumb_run* run, uint64_t call, uint64_t slot, plumb_tensor** tensor,
                       plumb_error* error) noexcept {
  if (tensor != nullptr) *tensor = nullptr;
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(tensor, "tensor"));
    PL_TRY_ASSIGN(const plumb_slot* found, SlotAt(run, call, slot));
    if (found->data_name[0] == '\0') {
      return Error(ErrorCode::kNotFound, std::string(found->name) +
                                             ": its elements were not saved (expected a recording "
                                             "of task tensor)");
    }
    PL_TRY_ASSIGN(TensorFile file, plumbline::load::OpenTensor(run->run, found->data_name));
    *tensor = new plumb_tensor(std::move(file));
    return {};
  });
}

int32_t plumb_tensor_view(const plumb_tensor* tensor, plumb_dltensor* view,
                          plumb_error* error) noexcept {
  return Guard(error, [&]() -> Status {
    PL_TRY(Need(tensor, "tensor"));
    PL_TRY(Need(view, "view"));
    const auto type = plumbline::dlpack::DataTypeOf(tensor->view.dtype);
    *view = {};
    // DLPack has no read-only memory.
    view->data = const_cast<std::byte*>(tensor->view.data);
    view->device.device_type = plumbline::dlpack::kCpu;
    view->ndim = static_cast<int32_t>(tensor->view.sizes.size());
    view->dtype = {type.code, type.bits, type.lanes};
    view->shape = const_cast<int64_t*>(tensor->view.sizes.data());
    view->strides = const_cast<int64_t*>(tensor->view.strides.data());
    return {};
  });
}

void plumb_tensor_close(plumb_tensor* tensor) noexcept { delete tensor; }
