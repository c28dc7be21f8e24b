#include "optimizer_steps.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "callback.h"
#include "errors.h"
#include "formats/json/dump_json.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// What a group says of how a step is carried out and not of what it makes.
constexpr std::array<std::string_view, 6> kForms = {"params",     "param_names", "foreach", "fused",
                                                    "capturable", "differentiable"};

nb::dict SettingsOf(nb::handle optimizer, const nb::dict& group) {
  nb::dict settings;
  settings["optimizer"] = nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(optimizer.ptr())))
                              .attr("__name__");
  for (const auto [key, value] : group) {
    const std::string_view name = PyUnicode_Check(key.ptr()) ? TextOf(key.ptr()) : "";
    if (std::find(kForms.begin(), kForms.end(), name) == kForms.end()) settings[key] = value;
  }
  return settings;
}

// A copy; `state` is a defaultdict, which must not be asked for what it lacks.
nb::object StateOf(nb::handle optimizer, nb::handle parameter) {
  const nb::object all = optimizer.attr("state");
  nb::object state = all.attr("get")(parameter, nb::dict());
  return PyDict_Check(state.ptr()) ? state.attr("copy")() : state;
}

// Megatron accumulates in main_grad.
nb::object GradientOf(nb::handle parameter) {
  nb::object main = nb::getattr(parameter, "main_grad", nb::none());
  return main.is_none() ? parameter.attr("grad") : main;
}

}  // namespace

void OptimizerSteps::UseModels(nb::list models) {
  models_ = std::move(models);
  names_.clear();
}

bool OptimizerSteps::Wants() const {
  const capture::CallRecorder& calls = recorder_.calls();
  const Task task = calls.config().task;
  return calls.search() == capture::Search::kNothing &&
         (task == Task::kStatistics || task == Task::kTensor) &&
         WantsDirection(calls.config().data_mode, CallKind::kForward);
}

void OptimizerSteps::ReadNames() {
  names_are_read_ = true;
  names_.clear();
  const bool is_list = nb::len(models_) > 1;
  for (size_t i = 0; i < nb::len(models_); ++i) {
    const std::string prefix = is_list ? std::to_string(i) + "." : std::string();
    for (const nb::handle item : models_[i].attr("named_parameters")()) {
      names_.emplace(nb::object(item[1]).ptr(), prefix + nb::cast<std::string>(item[0]));
    }
  }
}

std::string OptimizerSteps::NameOf(nb::handle parameter) {
  // FSDP2 puts other tensors in the places of parameters.
  if (!names_.contains(parameter.ptr()) && !names_are_read_) ReadNames();
  const auto found = names_.find(parameter.ptr());
  return found == names_.end() ? std::string() : found->second;
}

void OptimizerSteps::Before(nb::handle optimizer) {
  ThreadState& thread = ThisThread();
  if (!Wants() || !recorder_.calls().Records(thread)) return;
  RunGuarded(recorder_, [&] {
    const InTool in_tool(thread, recorder_.gate());
    const ModeOff mode_off(recorder_.hooks(), thread);
    const NoOverride unseen(recorder_.types(), recorder_.hooks(), nullptr);
    names_are_read_ = false;
    const capture::StackInfo stack = recorder_.UseStack();
    size_t number = 0;
    for (const nb::handle group : optimizer.attr("param_groups")) {
      BeginGroup(optimizer, number++, nb::cast<nb::dict>(group), stack);
    }
  });
}

void OptimizerSteps::BeginGroup(nb::handle optimizer, size_t number, const nb::dict& group,
                                const capture::StackInfo& stack) {
  const nb::dict settings = SettingsOf(optimizer, group);
  size_t index = 0;
  for (const nb::handle parameter : nb::object(group["params"])) {
    const size_t at = index++;
    const nb::object gradient = GradientOf(parameter);
    if (gradient.is_none()) continue;
    std::string name = NameOf(parameter);
    if (name.empty()) name = std::to_string(number) + "." + std::to_string(at);
    const uint32_t id = recorder_.observer().counters().Register("Optimizer." + name);
    Begun update;
    update.call = recorder_.calls().NameApi(id);
    recorder_.calls().Select(update.call);
    if (!update.call.is_selected) continue;
    update.parent = ThisThread().module_name();
    update.inputs.stack = stack.id;
    update.optimizer = nb::borrow(optimizer);
    update.parameter = nb::borrow(parameter);
    nb::dict given = nb::cast<nb::dict>(settings.attr("copy")());
    given["state"] = StateOf(optimizer, parameter);
    Begin(std::move(update), nb::make_tuple(parameter, gradient), given);
  }
}

void OptimizerSteps::Begin(Begun update, const nb::tuple& inputs, const nb::dict& settings) {
  ThreadState& thread = ThisThread();
  capture::CallRecorder& calls = recorder_.calls();
  EntryPacker& out = thread.event;
  out.Clear();
  if (calls.WantsInput(update.call)) {
    calls.NameEntry(thread, update.call.name, &update.inputs.kept);
    ValueWalker walker(recorder_.types(), recorder_, thread.with_paths());
    const std::vector<PyObject*> items = ItemsOf(inputs.ptr());
    walker.List(dump_json::kInputArgs, "input", items.data(), std::ssize(items), out);
    walker.Dict(dump_json::kInputKwargs, "kwargs", settings.ptr(), out);
    calls.CountUnreadable(thread, walker.failures());
    update.inputs.bytes.assign(out.bytes().begin(), out.bytes().end());
  }
  begun_.push_back(std::move(update));
}

void OptimizerSteps::After(nb::handle optimizer) {
  ThreadState& thread = ThisThread();
  // Those behind are of steps that raised.
  const auto first = std::ranges::find_if(
      begun_, [&](const Begun& one) { return one.optimizer.is(optimizer); });
  std::vector<Begun> ended(std::make_move_iterator(first), std::make_move_iterator(begun_.end()));
  begun_.erase(first, begun_.end());
  if (ended.empty() || !recorder_.calls().MayRecordLate(thread)) return;
  RunGuarded(recorder_, [&] {
    const InTool in_tool(thread, recorder_.gate());
    const ModeOff mode_off(recorder_.hooks(), thread);
    const NoOverride unseen(recorder_.types(), recorder_.hooks(), nullptr);
    for (Begun& update : ended) {
      if (update.optimizer.is(optimizer)) End(std::move(update));
    }
  });
}

void OptimizerSteps::End(Begun update) {
  ThreadState& thread = ThisThread();
  capture::CallRecorder& calls = recorder_.calls();
  if (!calls.StillHasPlace(update.call.epoch, update.call.name)) return;
  const nb::tuple left =
      nb::make_tuple(update.parameter, StateOf(update.optimizer, update.parameter));
  KeptTensors kept;
  calls.BeginLate(thread, update.call.name, calls.wants_parents() ? &update.parent : nullptr,
                  std::move(update.inputs), &kept);
  if (calls.WantsOutput(update.call)) {
    kept.in_output = true;
    calls.NameEntry(thread, update.call.name, &kept);
    ValueWalker walker(recorder_.types(), recorder_, thread.with_paths());
    walker.Result(dump_json::kOutput, "output", left.ptr(), thread.event);
    calls.CountUnreadable(thread, walker.failures());
  }
  calls.EndEntry(thread, update.call.name, thread.event, kept, /*is_listed=*/true);
}

}  // namespace plumbline::python
