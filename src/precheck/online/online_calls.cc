#include "precheck/online/online_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "formats/json/dump_json.h"
#include "precheck/api_inventory.h"
#include "precheck/call_arguments.h"
#include "precheck/output_grade.h"
#include "precheck/preparation.h"
#include "record/value.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kForward = ".forward", kBackward = ".backward";

// Bodies of the frames of one entry; later ones add members.
using Bodies = std::vector<std::span<const std::byte>>;

struct SentCall {
  std::string name;
  Bodies forward, backward;
  std::optional<Skip> skip;
};

// One entry put together, and the tensors that came with it.
struct Entry {
  Call call;
  std::map<std::string, online::FrameTensor, std::less<>> tensors;
};

Result<Entry> ReadEntry(const Bodies& bodies) {
  Entry entry;
  for (const auto body : bodies) {
    PL_TRY_ASSIGN(const online::Record record, online::ParseRecord(body));
    PL_TRY_ASSIGN(UnpackedEntry unpacked, UnpackEntry(record.packed));
    entry.call.name = unpacked.call.name;
    entry.call.kind = unpacked.call.kind;
    for (auto& [key, value] : unpacked.call.members) {
      const auto known = std::ranges::find(entry.call.members, key, [](const auto& member) {
        return std::string_view(member.first);
      });
      if (known != entry.call.members.end()) {
        known->second = std::move(value);
      } else {
        entry.call.members.emplace_back(key, std::move(value));
      }
    }
    for (const online::FrameTensor& tensor : record.tensors) {
      entry.tensors.insert_or_assign(std::string(tensor.name), tensor);
    }
  }
  return entry;
}

// What was sent of one direction, its tensors where they lie among the frames.
struct SentReturn {
  SideValue value = tl::unexpected<Skip>(Skip{SkipCause::kMissingData, "no output was recorded"});
};

// What the device had, for who judges the call.
struct SentReturns {
  SentReturn forward;
  std::optional<SentReturn> backward;
};

uint64_t MachineBytes() {
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Recorders write down every sequence as a list, and what is none as a list of one.
CallValue LikeBench(const CallValue& bench, CallValue sent) {
  const auto* const of_bench = bench.As<CallSequence>();
  auto* const of_sent = sent.As<CallSequence>();
  if (of_bench == nullptr || of_sent == nullptr) return sent;
  of_sent->kind = of_bench->kind;
  const size_t items = std::min(of_bench->items.size(), of_sent->items.size());
  for (size_t i = 0; i < items; ++i) {
    of_sent->items[i] = LikeBench(of_bench->items[i], std::move(of_sent->items[i]));
  }
  return sent;
}

CallValue Unwrapped(const CallValue& bench, const CallValue& sent) {
  const auto* const list = sent.As<CallSequence>();
  if (list == nullptr || list->items.size() != 1) return LikeBench(bench, sent);
  const auto* const of_bench = bench.As<CallSequence>();
  const bool is_nested = list->items.front().As<CallSequence>() != nullptr;
  const bool unwraps = of_bench == nullptr || (is_nested && of_bench->items.size() != 1);
  return LikeBench(bench, unwraps ? list->items.front() : sent);
}

bool HasShapeOf(const CallValue& one, const CallValue& other) {
  const auto* const left = one.As<TensorPlace>();
  const auto* const right = other.As<TensorPlace>();
  return left != nullptr && right != nullptr && left->shape == right->shape;
}

}  // namespace

// What is judged: what the training got, or what the device of this machine made.
struct ReturnedSide {
  const SideValue* forward = nullptr;
  const SideValue* backward = nullptr;  // null: none
  std::span<const std::byte> memory;
};

struct OnlineCalls::Impl {
  std::shared_ptr<const MappedFile> map;
  std::vector<SentCall> calls;
  PreparationOptions preparation;
  std::string note;

  [[nodiscard]] std::span<const std::byte> memory() const { return map->bytes(); }
  bool runs_device = false;
  std::vector<CallOutcome> own_outcomes;  // of the device here, by call; each is written once, by who judges it

  [[nodiscard]] SentReturn ReturnOf(const Entry& entry) const;
  [[nodiscard]] CallOutcome JudgeSide(const RanCall& ran, const ReturnedSide& side) const;
  [[nodiscard]] DirectionOutcome JudgeBackward(const RanCall& ran, const ReturnedSide& side) const;
};

OnlineCalls::OnlineCalls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OnlineCalls::~OnlineCalls() = default;

Result<std::unique_ptr<OnlineCalls>> OnlineCalls::Open(const online::ReceivedStep& step,
                                                       const PlanOptions& options,
                                                       bool runs_device) {
  auto impl = std::make_unique<Impl>();
  impl->runs_device = runs_device;
  PL_TRY_ASSIGN(impl->map, MappedFile::Open(step.path));
  impl->note = fmt::format("step {}", step.step);
  impl->preparation.keep_random = options.keep_random;
  impl->preparation.memory_limit =
      options.memory_limit > 0 ? options.memory_limit : MachineBytes();
  std::unordered_map<std::string, size_t> index;
  online::VisitFrames(impl->map->bytes(), [&](const online::FrameHeader& header,
                                              std::span<const std::byte> body) {
    if (header.kind != online::FrameKind::kRecord) return;
    const auto record = online::ParseRecord(body);
    if (!record) return;
    const auto head = PeekEntry(record->packed);
    if (!head) return;
    const bool is_forward = head->name.ends_with(kForward);
    if (!is_forward && !head->name.ends_with(kBackward)) return;  // gradients of parameters
    const size_t suffix = is_forward ? kForward.size() : kBackward.size();
    const std::string name(head->name.substr(0, head->name.size() - suffix));
    if (!ParseApiName(name)) return;  // a module
    const auto [at, is_new] = index.emplace(name, impl->calls.size());
    if (is_new) impl->calls.emplace_back().name = name;
    SentCall& call = impl->calls[at->second];
    (is_forward ? call.forward : call.backward).push_back(body);
  });
  for (SentCall& call : impl->calls) {
    call.skip = WhyNotRun(call.name, options);
    if (!call.skip && call.forward.empty()) {
      call.skip = Skip{SkipCause::kMissingData, "its forward was not sent"};
    }
  }
  if (runs_device) impl->own_outcomes.resize(impl->calls.size());
  return std::unique_ptr<OnlineCalls>(new OnlineCalls(std::move(impl)));
}

size_t OnlineCalls::size() const { return impl_->calls.size(); }

std::vector<size_t> OnlineCalls::Order() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < size(); ++i) {
    if (!impl_->calls[i].skip) order.push_back(i);
  }
  return order;
}

CallOutcome OnlineCalls::Unrunnable(size_t index) const {
  return Skipped(index, *impl_->calls[index].skip);
}

SentReturn OnlineCalls::Impl::ReturnOf(const Entry& entry) const {
  SentReturn sent;
  const Value* const output = entry.call.Find(dump_json::kOutput);
  if (output == nullptr || output->is_null()) return sent;
  const PlaceTensor place = [&](const TensorRecord& record,
                                const std::string& path) -> OrSkip<CallValue> {
    const auto found = record.data_name ? entry.tensors.find(*record.data_name) : entry.tensors.end();
    if (found == entry.tensors.end()) {
      return Skip{SkipCause::kMissingData, path + ": came without its elements"};
    }
    TensorPlace tensor;
    tensor.dtype = found->second.dtype;
    tensor.shape = found->second.sizes;
    tensor.offset = static_cast<size_t>(found->second.bytes.data() - memory().data());
    return CallValue(std::move(tensor));
  };
  auto value = BuildValue(*output, std::string(dump_json::kOutput), place);
  if (value) {
    sent.value = *std::move(value);
  } else {
    sent.value = tl::unexpected<Skip>(value.error());
  }
  return sent;
}

OrSkip<CallToRun> OnlineCalls::Prepare(size_t index) const {
  const SentCall& sent = impl_->calls[index];
  const auto forward = ReadEntry(sent.forward);
  if (!forward) return Skip{SkipCause::kMissingData, forward.error().message()};
  std::optional<Entry> backward;
  if (!sent.backward.empty()) {
    auto read = ReadEntry(sent.backward);
    if (!read) return Skip{SkipCause::kMissingData, read.error().message()};
    backward = *std::move(read);
  }
  const std::optional<ApiName> parts = ParseApiName(sent.name);
  RecordedCall recorded{sent.name, std::string_view(sent.name).substr(0, sent.name.find('.')),
                        parts->api, &forward->call, backward ? &backward->call : nullptr};
  PreparationOptions options = impl_->preparation;
  options.find_tensor = [&](std::string_view name) -> std::optional<TensorView> {
    auto found = forward->tensors.find(name);
    if (found == forward->tensors.end()) {
      if (!backward) return std::nullopt;
      found = backward->tensors.find(name);
      if (found == backward->tensors.end()) return std::nullopt;
    }
    const online::FrameTensor& tensor = found->second;
    // Strides are not looked at: what is held is contiguous.
    return TensorView{tensor.dtype, tensor.bytes.data(), tensor.sizes, {}};
  };
  OrSkip<PreparedCall> prepared = PrepareCall(recorded, options);
  if (!prepared) return std::move(prepared).error();
  CallToRun to_run;
  to_run.call = *std::move(prepared);
  to_run.call.wants_node_gradients = true;
  to_run.runs_device = impl_->runs_device;
  auto returns = std::make_shared<SentReturns>();
  returns->forward = impl_->ReturnOf(*forward);
  if (backward) returns->backward = impl_->ReturnOf(*backward);
  to_run.extra = std::move(returns);
  return to_run;
}

CallOutcome OnlineCalls::Skipped(size_t index, Skip skip) const {
  CallOutcome outcome;
  outcome.name = impl_->calls[index].name;
  outcome.note = impl_->note;
  outcome.backward = DirectionOutcome::Skipped(skip);
  outcome.forward = DirectionOutcome::Skipped(std::move(skip));
  return outcome;
}

// Gradients are those of the last autograd node on both sides. What was not sent nobody needed in
// the training.
DirectionOutcome OnlineCalls::Impl::JudgeBackward(const RanCall& ran,
                                                  const ReturnedSide& side) const {
  const PreparedCall& call = ran.to_run->call;
  if (call.backward_skip) return DirectionOutcome::Skipped(*call.backward_skip);
  if (!call.grads || side.backward == nullptr) return {};
  if (!ran.bench->backward) {
    return DirectionOutcome::Skipped({SkipCause::kBackwardSkipped, "no gradient was computed"});
  }
  if (!*ran.bench->backward) return DirectionOutcome::Skipped(ran.bench->backward->error());
  if (!*side.backward) return DirectionOutcome::Skipped(side.backward->error());
  CallValue bench = **ran.bench->backward;
  CallValue device = LikeBench(bench, **side.backward);
  auto* const of_bench = bench.As<CallSequence>();
  auto* const of_device = device.As<CallSequence>();
  const Skip other_node{SkipCause::kNoCounterpart,
                        "the CPU takes this gradient by another formula of autograd"};
  if (of_bench == nullptr || of_device == nullptr ||
      of_bench->items.size() != of_device->items.size()) {
    return DirectionOutcome::Skipped(other_node);
  }
  size_t pairs = 0;
  for (size_t i = 0; i < of_bench->items.size(); ++i) {
    CallValue& one = of_bench->items[i];
    CallValue& other = of_device->items[i];
    if (one.is_null() || other.is_null()) {
      one = other = CallValue();
      continue;
    }
    if (!HasShapeOf(one, other)) return DirectionOutcome::Skipped(other_node);
    ++pairs;
  }
  if (pairs == 0) {
    return DirectionOutcome::Skipped({SkipCause::kBackwardSkipped, "no gradient was recorded"});
  }
  GradeOptions options;
  // Places among the gradients of a node are places of arguments where there is one of either.
  size_t arguments = 0;
  ForEachInput(call, [&](const TensorPlace&) { ++arguments; });
  if (arguments == 1 && of_bench->items.size() == 1) {
    options.given = {&call, ran.inputs, {&*ran.bench->forward, ran.bench_memory}, {}};
  }
  return GradeDirection(call.name, call.api, Direction::kBackward,
                        {&bench, ran.bench_memory, &device, side.memory}, options);
}

CallOutcome OnlineCalls::Impl::JudgeSide(const RanCall& ran, const ReturnedSide& side) const {
  const PreparedCall& call = ran.to_run->call;
  CallOutcome outcome;
  outcome.name = call.name;
  outcome.note = note;
  if (*side.forward) {
    const CallValue device = Unwrapped(*ran.bench->forward, **side.forward);
    GradeOptions options;
    options.given = {&call, ran.inputs, {&*ran.bench->forward, ran.bench_memory},
                     {&device, side.memory}};
    outcome.forward = GradeDirection(
        call.name, call.api, Direction::kForward,
        {&*ran.bench->forward, ran.bench_memory, &device, side.memory}, options);
    for (OutputRow& row : outcome.forward.rows) {
      if (ran.bench->note.empty()) continue;
      row.message += fmt::format("{}benchmark: {}.", row.message.empty() ? "" : "\n",
                                 ran.bench->note);
    }
  } else {
    outcome.forward = DirectionOutcome::Skipped(side.forward->error());
  }
  outcome.backward = JudgeBackward(ran, side);
  return outcome;
}

CallOutcome OnlineCalls::Judge(const RanCall& ran) const {
  if (ran.device != nullptr) {
    CallOutcome& own = impl_->own_outcomes[ran.index];
    if (!ran.device->forward) {
      own = Skipped(ran.index, OnDevice(ran.device->forward.error()));
    } else if (ran.bench->forward) {
      const auto& backward = ran.device->backward;
      own = impl_->JudgeSide(ran, {&ran.device->forward, backward ? &*backward : nullptr,
                                   ran.device_memory});
    }
  }
  if (!ran.bench->forward) return Skipped(ran.index, ran.bench->forward.error());
  const auto& sent = *static_cast<const SentReturns*>(ran.to_run->extra.get());
  return impl_->JudgeSide(ran, {&sent.forward.value,
                                sent.backward ? &sent.backward->value : nullptr,
                                impl_->memory()});
}

const CallOutcome& OnlineCalls::DeviceOutcome(size_t index) const {
  return impl_->own_outcomes[index];
}

}  // namespace plumbline::precheck
