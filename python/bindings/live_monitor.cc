#include "live_monitor.h"

#include <fmt/format.h>

#include <utility>

#include "callback.h"
#include "errors.h"
#include "grad_hook.h"
#include "python_program.h"
#include "watch/live/layer_features.h"
#include "watch/live/sample.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

constexpr size_t kWorthRemembering = 4096;  // bytes: below, reading is cheaper than looking up

// A call of a watched module that has begun on this thread.
struct OpenCall {
  const ModuleWatch* watch = nullptr;
  bool is_watched = false;
  int32_t micro_step = 0;
  uint32_t repeat = 0;
  std::shared_ptr<BackwardCall> backward;
  // Of what it was given, before it could change it; rows stand in the order in which calls end.
  std::vector<std::pair<const watch::WatchedName*, watch::TensorValues>> inputs;
};
std::vector<OpenCall>& OpenCalls() {
  // Never destroyed: a thread's end may come after the interpreter's.
  thread_local auto* calls = new std::vector<OpenCall>;
  return *calls;
}

// Appends what a container holds; nothing for anything else.
void AppendItems(PyObject* value, std::vector<PyObject*>* items) {
  if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      items->push_back(PySequence_Fast_GET_ITEM(value, i));
    }
  } else if (PyDict_Check(value)) {
    PyObject* item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, nullptr, &item) != 0;) items->push_back(item);
  }
}

// All tensors in a value, in their order.
void Collect(PyObject* value, const LiveMonitor& monitor, int depth,
             std::vector<PyObject*>* found) {
  constexpr int kDeepest = 10;
  if (depth > kDeepest) return;
  if (monitor.IsTensor(value)) return found->push_back(value);
  std::vector<PyObject*> items;
  AppendItems(value, &items);
  for (PyObject* item : items) Collect(item, monitor, depth + 1, found);
}

// All tensors in a value, those of outer containers first: the place of an argument does not depend
// on what others hold.
void CollectByDepth(PyObject* value, const LiveMonitor& monitor, std::vector<PyObject*>* found) {
  constexpr int kDeepest = 10;
  std::vector<PyObject*> level = {value};
  for (int depth = 0; depth <= kDeepest && !level.empty(); ++depth) {
    std::vector<PyObject*> next;
    for (PyObject* one : level) {
      if (monitor.IsTensor(one)) {
        found->push_back(one);
      } else {
        AppendItems(one, &next);
      }
    }
    level = std::move(next);
  }
}

using Form = watch::ElementSpec::Form;

// What a configuration asks for of a tuple or of a single value; Py_None where it is not there.
PyObject* Pick(PyObject* value, const watch::ElementSpec& spec, const WatchedModule& module,
               std::string_view side, LiveMonitor& monitor) {
  const bool is_tuple = PyTuple_Check(value);
  if (spec.form == Form::kTuple && is_tuple && PyTuple_GET_SIZE(value) == spec.length) {
    return PyTuple_GET_ITEM(value, spec.index);
  }
  if (spec.form == Form::kWhole && !is_tuple && monitor.IsTensor(value)) return value;
  if (spec.form == Form::kWhole && is_tuple && PyTuple_GET_SIZE(value) == 1) {
    return PyTuple_GET_ITEM(value, 0);
  }
  const std::string expected =
      spec.form == Form::kWhole ? std::string("tensor") : fmt::format("tuple[{}]", spec.length);
  const std::string got =
      is_tuple ? fmt::format("tuple[{}]", PyTuple_GET_SIZE(value)) : TypeNameOf(value);
  monitor.Warn(
      fmt::format("config spec validate failed: {} of {} is {} (expected {} as the "
                  "configuration says); its rows have no values",
                  side, module.name, got, expected));
  return Py_None;
}

struct Side {
  MonitorKind kind;
  bool is_output;
  const watch::ElementSpec& spec;

  [[nodiscard]] std::string_view name() const { return is_output ? "output" : "input"; }
};

using Elements = WatchedModule::Elements;

// `element`: its index, of how many.
std::string ElementName(const WatchedModule& module, const Side& side, uint32_t repeat,
                        std::pair<size_t, size_t> element) {
  std::string name = module.name;
  if (repeat > 0) name += fmt::format("#{}", repeat);
  if (module.elements == Elements::kNumbered) {
    const bool is_gradient = side.kind == MonitorKind::kActivationGradient;
    return fmt::format("{}.{}{}.{}", name, is_gradient ? "grad_" : "", side.name(), element.first);
  }
  if (element.second > 1) return fmt::format("{}.{}_{}", name, side.name(), element.first);
  return fmt::format("{}.{}", name, side.name());
}

// The name of an element's rows. Most modules have one on each side and are called once.
const watch::WatchedName* NameOf(LiveMonitor& monitor, const WatchedModule& module,
                                 const Side& side, uint32_t repeat,
                                 std::pair<size_t, size_t> element) {
  const auto make = [&] {
    return monitor.monitor().Name(ElementName(module, side, repeat, element), module.vpp_stage,
                                  module.group);
  };
  const bool depends_on_count = module.elements != Elements::kNumbered && element.second > 1;
  if (repeat > 0 || depends_on_count) return make();
  const size_t gradients = side.kind == MonitorKind::kActivationGradient ? 2 : 0;
  auto& known = module.names[gradients + (side.is_output ? 1 : 0)];
  if (known.size() <= element.first) known.resize(element.first + 1);
  if (known[element.first] == nullptr) known[element.first] = make();
  return known[element.first];
}

// Whether a call was given or gave nothing at all, not even None.
bool IsNothing(PyObject* value) { return PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 0; }

// The first one, though it be None: that of an input that needs none. Null: none at all.
PyObject* FirstGradient(PyObject* value) {
  return PyTuple_Check(value) && PyTuple_GET_SIZE(value) > 0 ? PyTuple_GET_ITEM(value, 0) : nullptr;
}

using Element = std::pair<const watch::WatchedName*, PyObject*>;

// What is watched of one side of a call: of what a module was given or gave, or of their gradients.
std::vector<Element> ElementsOf(LiveMonitor& monitor, const WatchedModule& module, const Side& side,
                                uint32_t repeat, PyObject* value) {
  std::vector<PyObject*> chosen;
  const bool is_gradients = side.kind == MonitorKind::kActivationGradient && PyTuple_Check(value);
  if (module.elements == Elements::kAll && is_gradients) {
    // One that is not needed keeps its place: the others have the numbers of their tensors.
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      chosen.push_back(PyTuple_GET_ITEM(value, i));
    }
  } else if (module.elements == Elements::kNumbered) {
    CollectByDepth(value, monitor, &chosen);
  } else if (module.elements == Elements::kAll) {
    Collect(value, monitor, 0, &chosen);
  } else if (side.spec.form != Form::kFirst) {
    chosen.push_back(Pick(value, side.spec, module, side.name(), monitor));
  } else {
    PyObject* first = side.kind == MonitorKind::kActivationGradient
                          ? FirstGradient(value)
                          : FirstTensor(value, monitor.types().tensor);
    // A row without values says that there was a call, and no tensor where one was expected.
    if (first != nullptr || !IsNothing(value)) chosen.push_back(first == nullptr ? Py_None : first);
  }
  std::vector<Element> elements;
  for (size_t i = 0; i < chosen.size(); ++i) {
    elements.emplace_back(NameOf(monitor, module, side, repeat, {i, chosen.size()}), chosen[i]);
  }
  return elements;
}

void AddSide(LiveMonitor& monitor, const WatchedModule& module, const Side& side,
             const std::pair<int32_t, uint32_t>& call, PyObject* value) {
  for (const auto& [name, element] : ElementsOf(monitor, module, side, call.second, value)) {
    monitor.Add(side.kind, name, call.first, element);
  }
}

}  // namespace

LiveMonitor::LiveMonitor(FrameworkTypes types, FrameworkHooks hooks,
                         std::unique_ptr<watch::Monitor> monitor, double zero_bound)
    : types_(std::move(types)),
      hooks_(hooks),
      reader_(types_),
      monitor_(std::move(monitor)),
      zero_bound_(zero_bound) {}

LiveMonitor::~LiveMonitor() {
  monitor_->Close();
  Release(types_);
  Release(hooks_);
}

void LiveMonitor::CountLoss(std::string_view counter, std::string_view what) {
  const auto found = losses_.find(counter);
  if (found != losses_.end()) {
    ++found->second;
    return;
  }
  losses_.emplace(counter, 1);
  messages_.push_back(fmt::format("{}: {} (said once; the training goes on)", counter, what));
}

void LiveMonitor::Warn(const std::string& text) {
  if (told_.emplace(text, true).second) messages_.push_back(text);
}

std::vector<std::string> LiveMonitor::TakeMessages() {
  std::vector<std::string> messages = std::exchange(messages_, {});
  for (std::string& line : monitor_->TakeMessages()) messages.push_back(std::move(line));
  if (auto problem = monitor_->TakeProblem()) {
    messages.push_back(fmt::format("values were not written: {}", *problem));
  }
  return messages;
}

nb::object LiveMonitor::Readable(PyObject* tensor) {
  constexpr Py_ssize_t kSource = 4;
  const nb::object answer = nb::steal(CheckedPython(
      PyObject_CallFunctionObjArgs(hooks_.describe_tensor, tensor, Py_True, nullptr)));
  if (!PyTuple_Check(answer.ptr()) || PyTuple_GET_SIZE(answer.ptr()) <= kSource) return {};
  PyObject* source = PyTuple_GET_ITEM(answer.ptr(), kSource);
  return IsTensor(source) ? nb::borrow(source) : nb::object();
}

watch::TensorValues LiveMonitor::MeasureMemory(PyObject* tensor, const HostTensor& host,
                                               double zero_bound, bool may_cache) {
  const TensorView view = host.view();
  if (is_sampled_) return watch::MeasureSample(view, samples_++);
  const bool remembers = may_cache && view.size_bytes() >= kWorthRemembering;
  if (remembers) {
    const watch::TensorValues* known =
        cache_.Find(tensor, [&](void* weak_reference, const capture::TensorIdentity& identity) {
          return PyWeakref_GetObject(static_cast<PyObject*>(weak_reference)) == tensor &&
                 IdentityOf(tensor, host) == identity;
        });
    if (known != nullptr) return *known;
  }
  const kernels::Team team = PythonThreads().team();
  const watch::TensorValues values = watch::Measure(view, zero_bound, &team);
  if (remembers) {
    cache_.Store(tensor, IdentityOf(tensor, host), values, [&] {
      PyObject* reference = PyWeakref_NewRef(tensor, nullptr);
      if (reference == nullptr) DropError();
      return TakeRef(reference);
    });
  }
  return values;
}

watch::TensorValues LiveMonitor::Measure(PyObject* value) {
  return MeasureAny(value, zero_bound_, /*may_cache=*/true);
}

watch::TensorValues LiveMonitor::MeasureOnce(PyObject* value, double zero_bound) {
  return MeasureAny(value, zero_bound, /*may_cache=*/false);
}

watch::TensorValues LiveMonitor::MeasureAny(PyObject* value, double zero_bound, bool may_cache) {
  if (PyFloat_Check(value)) return watch::ValuesOfNumber(PyFloat_AS_DOUBLE(value));
  if (!IsTensor(value)) return watch::NoValues();
  watch::TensorValues values = watch::NoValues();
  const OwnWork own_work;
  RunGuarded(*this, [&] {
    HostTensor host;
    const nb::object source = OnHost(value, &host);
    if (source.is_valid()) {
      values =
          MeasureMemory(source.ptr(), host, zero_bound, may_cache && source.is(nb::handle(value)));
    } else {
      CountLoss("tensors_unreadable", "a tensor whose values cannot be read");
    }
  });
  return values;
}

nb::object LiveMonitor::OnHost(PyObject* tensor, HostTensor* host) {
  if (!IsTensor(tensor)) return {};
  PyTypeObject* type = Py_TYPE(tensor);
  const bool is_plain = type == reinterpret_cast<PyTypeObject*>(types_.tensor) ||
                        type == reinterpret_cast<PyTypeObject*>(hooks_.parameter_type);
  const bool has_memory = is_plain && reader_.Read(tensor, host);
  if (has_memory && host->on_host && !IsLazy(tensor, host->dtype)) return nb::borrow(tensor);
  const nb::object source = has_memory ? nb::borrow(tensor) : Readable(tensor);
  if (!source.is_valid()) return {};
  nb::object copy = nb::steal(CheckedPython(PyObject_CallOneArg(hooks_.to_host, source.ptr())));
  return reader_.Read(copy.ptr(), host) && host->on_host ? copy : nb::object();
}

template <class Use>
bool LiveMonitor::ReadBoth(PyObject* first, PyObject* second, const Use& use) {
  bool has_both = false;
  const OwnWork own_work;
  RunGuarded(*this, [&] {
    HostTensor one, other;
    const nb::object one_owner = OnHost(first, &one);
    const nb::object other_owner = OnHost(second, &other);
    has_both = one_owner.is_valid() && other_owner.is_valid();
    if (has_both) use(one.view(), other.view());
  });
  return has_both;
}

bool LiveMonitor::AddDirection(const watch::WatchedName* name, PyObject* gradient,
                               PyObject* momentum) {
  return ReadBoth(gradient, momentum, [&](const TensorView& first, const TensorView& second) {
    monitor_->Add(MonitorKind::kDirection, name, 0,
                  watch::ValuesOfNumber(watch::SignAgreement(first, second)));
  });
}

bool LiveMonitor::AddAdam(const watch::WatchedName* name, PyObject* first, PyObject* second,
                          const watch::AdamRule& rule) {
  bool has_values = false;
  ReadBoth(first, second, [&](const TensorView& one, const TensorView& other) {
    const auto histograms = watch::HistogramsOfAdam(one, other, rule);
    if (!histograms) return;
    monitor_->AddAdam(name, *histograms);
    has_values = true;
  });
  return has_values;
}

void LiveMonitor::AddFeature(MonitorKind kind, const watch::WatchedName* name, int32_t micro_step,
                             PyObject* first, PyObject* second) {
  std::optional<watch::TensorValues> values;
  const auto take = [&](const TensorView& one, const TensorView& other) {
    if (kind == MonitorKind::kAttentionFeature) {
      values = watch::AttentionFeatures(one, other, is_batch_first_);
    } else if (kind == MonitorKind::kLinearFeature) {
      values = watch::LinearFeatures(one, name->text);
    } else if (kind == MonitorKind::kRouterWeightFeature) {
      values = watch::RouterWeightFeatures(one);
    } else {
      values = watch::RouterLogitFeatures(one);
    }
  };
  ReadBoth(first, second == nullptr ? first : second, take);
  if (!values) {
    Warn(fmt::format(
        "{}: {} has no tensors of the expected form{}", InfoOf(kind).file, name->text,
        kind == MonitorKind::kRouterLogitFeature ? "; it gets no row" : "; its row is 0"));
    if (kind == MonitorKind::kRouterLogitFeature) return;
  }
  monitor_->Add(kind, name, micro_step, values.value_or(watch::ZeroFeatures(kind)));
}

void LiveMonitor::Commit(int64_t step) {
  cache_.Clear();
  awaited_.clear();
  const nb::gil_scoped_release release;
  monitor_->Commit(step);
}

void LiveMonitor::Drop() {
  cache_.Clear();
  awaited_.clear();
  monitor_->Drop();
}

std::string LiveMonitor::AwaitGradients(const std::shared_ptr<const WatchedModule>& module,
                                        int32_t micro_step, uint32_t repeat) {
  std::string name = std::to_string(++calls_);
  awaited_.emplace(name, AwaitedCall{module, micro_step, repeat});
  return name;
}

PackedPart LiveMonitor::PackBackwardInput(std::string_view name, PyObject* grad_outputs) {
  const auto found = awaited_.find(std::string(name));
  if (found == awaited_.end()) return {};
  const AwaitedCall& call = found->second;
  AddSide(*this, *call.module,
          {MonitorKind::kActivationGradient, true, call.module->spec.output_grad},
          {call.micro_step, call.repeat}, grad_outputs);
  return {};
}

void LiveMonitor::EndBackward(const std::string& name, const std::string* /*parent*/,
                              PackedPart /*results*/, PyObject* grad_inputs) {
  const auto found = awaited_.find(name);
  if (found == awaited_.end()) return;
  const AwaitedCall call = found->second;
  awaited_.erase(found);
  AddSide(*this, *call.module,
          {MonitorKind::kActivationGradient, false, call.module->spec.input_grad},
          {call.micro_step, call.repeat}, grad_inputs);
}

nb::object LiveMonitor::Add(const Autograd& autograd, nb::handle first, nb::handle second) {
  const OwnWork own_work;
  return autograd.add(first, second);
}

bool IsTraining(PyObject* module) {
  static PyObject* const training = PyUnicode_InternFromString("training");
  return nb::steal(CheckedPython(PyObject_GetAttr(module, training))).ptr() == Py_True;
}

ModuleWatch::ModuleWatch(LiveMonitor& monitor, const Autograd& autograd, nb::object is_recomputing,
                         std::shared_ptr<WatchedModule> module)
    : monitor_(monitor),
      autograd_(autograd),
      owner_(nb::borrow(monitor.owner())),
      is_recomputing_(std::move(is_recomputing)),
      module_(std::move(module)) {}

void ModuleWatch::AddFeature(MonitorKind kind, const watch::WatchedName* name) {
  (kind == MonitorKind::kAttentionFeature ? module_->attention : module_->logits) = name;
}

void ModuleWatch::Count(int32_t* micro_step, uint32_t* repeat) {
  MicroBatches& batches = *module_->batches;
  const uint64_t epoch = monitor_.epoch();
  if (batches.epoch != epoch) batches = {epoch, 0};
  if (module_->is_root) ++batches.root_calls;
  *micro_step = std::max(batches.root_calls - 1, 0);
  if (epoch_ != epoch || micro_step_ != *micro_step) calls_in_batch_ = 0;
  epoch_ = epoch;
  micro_step_ = *micro_step;
  *repeat = calls_in_batch_++;
  // Parts that are called without the whole: each call is one of a micro-batch of its own.
  if (batches.root_calls == 0) *micro_step = static_cast<int32_t>(std::exchange(*repeat, 0));
}

void ModuleWatch::Begin(PyObject* module, PyObject* args, PyObject* kwargs) {
  OpenCall& call = OpenCalls().back();
  if (!IsTraining(module) && !module_->in_evaluation) return;
  if (!is_recomputing_.is_none() && nb::cast<bool>(is_recomputing_())) return;
  Count(&call.micro_step, &call.repeat);
  call.is_watched = true;
  const NoOverride unseen(monitor_.types(), monitor_.hooks(), nullptr);
  if (module_->forward) {
    const bool takes_keywords = PyDict_Check(kwargs) && (PyTuple_GET_SIZE(args) == 0 ||
                                                         module_->elements != Elements::kSpec);
    const nb::object both =
        takes_keywords ? nb::steal(CheckedPython(PyTuple_Pack(2, args, kwargs))) : nb::borrow(args);
    const Side input{MonitorKind::kActivation, false, module_->spec.input};
    for (const auto& [name, element] :
         ElementsOf(monitor_, *module_, input, call.repeat, both.ptr())) {
      call.inputs.emplace_back(name, monitor_.Measure(element));
    }
  }
  if (module_->attention != nullptr) {
    const bool has_both = PyTuple_GET_SIZE(args) > 1;
    monitor_.AddFeature(MonitorKind::kAttentionFeature, module_->attention, call.micro_step,
                        has_both ? PyTuple_GET_ITEM(args, 0) : Py_None,
                        has_both ? PyTuple_GET_ITEM(args, 1) : nullptr);
  }
  if (!module_->backward || !nb::cast<bool>(autograd_.is_grad_enabled())) return;
  call.backward = std::make_shared<BackwardCall>(
      monitor_, autograd_, monitor_.AwaitGradients(module_, call.micro_step, call.repeat), "",
      args);
}

void ModuleWatch::Before(PyObject* module, PyObject* args, PyObject* kwargs) {
  OpenCalls().push_back({this, false, 0, 0, nullptr, {}});
  RunGuarded(monitor_, [&] {
    const ModeOff mode_off(monitor_.hooks(), ThisThread());
    Begin(module, args, kwargs);
  });
}

void ModuleWatch::After(PyObject* /*module*/, PyObject* output) {
  auto& calls = OpenCalls();
  size_t depth = calls.size();
  while (depth > 0 && calls[depth - 1].watch != this) --depth;
  if (depth == 0) return;
  const OpenCall call = std::move(calls[depth - 1]);
  calls.resize(depth - 1);
  if (!call.is_watched) return;
  RunGuarded(monitor_, [&] {
    const ModeOff mode_off(monitor_.hooks(), ThisThread());
    const NoOverride unseen(monitor_.types(), monitor_.hooks(), nullptr);
    for (const auto& [name, values] : call.inputs) {
      monitor_.monitor().Add(MonitorKind::kActivation, name, call.micro_step, values);
    }
    if (module_->forward) {
      AddSide(monitor_, *module_, {MonitorKind::kActivation, true, module_->spec.output},
              {call.micro_step, call.repeat}, output);
    }
    if (module_->logits != nullptr) {
      PyObject* logits = FirstTensor(output, monitor_.types().tensor);
      monitor_.AddFeature(MonitorKind::kRouterLogitFeature, module_->logits, call.micro_step,
                          logits == nullptr ? Py_None : logits, nullptr);
    }
    if (call.backward != nullptr) call.backward->Watch(output);
  });
}

PyObject* NewParameterHook(LiveMonitor& monitor, const Autograd& autograd,
                           const watch::WatchedName* name, const ParameterRule& rule) {
  const auto weak = rule.adds_to == nullptr
                        ? nb::object()
                        : nb::steal(CheckedPython(PyWeakref_NewRef(rule.adds_to, nullptr)));
  return NewCallback(monitor, [&monitor, &autograd, name, rule, weak, calls = int32_t{0},
                               epoch = uint64_t{0}](PyObject* args) mutable {
    static PyObject* const grad_name = PyUnicode_InternFromString("grad");
    if (epoch != monitor.epoch()) calls = 0;
    epoch = monitor.epoch();
    ++calls;
    if (!rule.takes_every && calls % rule.micro_batches != 0) return;
    nb::object gradient = nb::borrow(PyTuple_GET_ITEM(args, 0));
    if (rule.is_accumulated) {
      gradient = nb::steal(CheckedPython(PyObject_GetAttr(gradient.ptr(), grad_name)));
    } else if (weak.is_valid()) {
      const nb::object owner = weak();
      const nb::object so_far =
          owner.is_none() ? nb::none()
                          : nb::steal(CheckedPython(PyObject_GetAttr(owner.ptr(), grad_name)));
      const bool adds = !so_far.is_none() && calls > 1;
      if (adds) gradient = monitor.Add(autograd, so_far, gradient);
    }
    if (gradient.is_none()) return;
    monitor.Add(MonitorKind::kUnreducedGradient, name, rule.takes_every ? calls - 1 : 0,
                gradient.ptr());
  });
}

}  // namespace plumbline::python
