#include "precheck/mindspore_check.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "precheck/input_data.h"

namespace plumbline::precheck {
namespace {

DirectionOutcome SkippedDirection(Skip skip) {
  DirectionOutcome outcome;
  outcome.status = Status::kSkip;
  outcome.skip = std::move(skip);
  return outcome;
}

// What was recorded of one direction, read into memory of its own.
struct RecordedSide {
  const RecordedReturn& recorded;
  std::vector<std::byte> memory;

  explicit RecordedSide(const RecordedReturn& what)
      : recorded(what), memory(what.memory.input_bytes) {}
  OrSkip<void> Read() { return FillInputs(recorded.memory, memory); }
  [[nodiscard]] ReturnedSide side() const { return {&recorded.value, memory}; }
};

// A call that was run, judged by one limit of the cosine and one of the error.
class RanJudge {
 public:
  RanJudge(const RanCall& ran, const MindSporeLimits& limits)
      : ran_(ran),
        made_(*static_cast<const MindSporeCall*>(ran.to_run->extra.get())),
        call_(ran.to_run->call),
        limits_(limits) {}

  // The benchmark comes first: a call that it cannot run was rebuilt wrongly, whatever was tested.
  [[nodiscard]] DirectionOutcome Forward() const {
    if (!ran_.bench->forward) return SkippedDirection(ran_.bench->forward.error());
    const ReturnedSide bench{&*ran_.bench->forward, ran_.bench_memory};
    if (ran_.device != nullptr) {
      if (!ran_.device->forward) return SkippedDirection(ran_.device->forward.error());
      return JudgeForward(call_.name, bench, {&*ran_.device->forward, ran_.device_memory}, limits_);
    }
    if (made_.forward_skip) return SkippedDirection(*made_.forward_skip);
    RecordedSide tested(*made_.forward);
    if (auto read = tested.Read(); !read) return SkippedDirection(read.error());
    return JudgeForward(call_.name, bench, tested.side(), limits_);
  }

  // Judged apart from the forward: either may fail alone.
  [[nodiscard]] DirectionOutcome Backward() const {
    if (call_.backward_skip) return SkippedDirection(*call_.backward_skip);
    if (!call_.grads) return {};
    for (const SideResult* side : {ran_.bench, ran_.device}) {
      if (side == nullptr) continue;
      // An executor that ended in the forward has said nothing of the backward.
      if (!side->backward) return SkippedDirection(ForwardSkip(*side));
      if (!*side->backward) return SkippedDirection(side->backward->error());
    }
    const ReturnedSide bench{&**ran_.bench->backward, ran_.bench_memory};
    if (ran_.device != nullptr) {
      return JudgeBackward(call_.name, bench, {&**ran_.device->backward, ran_.device_memory},
                           GradientOrder::kAligned, limits_);
    }
    RecordedSide tested(*made_.backward);
    if (auto read = tested.Read(); !read) return SkippedDirection(read.error());
    return JudgeBackward(call_.name, bench, tested.side(), made_.backward->order, limits_);
  }

 private:
  static Skip ForwardSkip(const SideResult& side) {
    if (!side.forward) return side.forward.error();
    return {SkipCause::kBackwardSkipped, "no gradient was computed"};
  }

  const RanCall& ran_;
  const MindSporeCall& made_;
  const PreparedCall& call_;
  const MindSporeLimits& limits_;
};

}  // namespace

OrSkip<CallToRun> MindSporeCheck::Prepare(size_t index) const {
  auto made = plan_.Prepare(index);
  if (!made) return std::move(made).error();
  CallToRun to_run;
  to_run.call = std::move(made->call);
  to_run.runs_device = !plan_.uses_recorded_data();
  // What is left of it beside the call: the recorded outputs.
  to_run.extra = std::make_shared<const MindSporeCall>(*std::move(made));
  return to_run;
}

CallOutcome MindSporeCheck::Skipped(size_t index, Skip skip) const {
  const PlannedCall& planned = plan_.call(index);
  CallOutcome outcome;
  outcome.name = planned.name;
  if (!planned.forward.empty()) outcome.forward = SkippedDirection(skip);
  if (!planned.backward.empty()) outcome.backward = SkippedDirection(std::move(skip));
  return outcome;
}

CallOutcome MindSporeCheck::Judge(const RanCall& ran) const {
  const RanJudge judge(ran, limits_);
  CallOutcome outcome;
  outcome.name = ran.to_run->call.name;
  outcome.forward = judge.Forward();
  outcome.backward = judge.Backward();
  return outcome;
}

}  // namespace plumbline::precheck
