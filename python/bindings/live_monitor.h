// The monitor of a training, as its hooks see it: Python values become rows of watch::Monitor.

#ifndef PLUMBLINE_PYTHON_BINDINGS_LIVE_MONITOR_H_
#define PLUMBLINE_PYTHON_BINDINGS_LIVE_MONITOR_H_

#include "python_api.h"
#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backward_call.h"
#include "capture/tensor_cache.h"
#include "framework_guards.h"
#include "tensor_from_python.h"
#include "watch/live/monitor.h"

namespace plumbline::python {

// How many times the outermost module was called in this step: the micro-batch under way.
struct MicroBatches {
  uint64_t epoch = 0;
  int32_t root_calls = 0;
};

// A module that is watched.
struct WatchedModule {
  std::string name;  // as printed
  int32_t vpp_stage = 0;
  uint32_t group = 0;
  bool is_root = false;  // its calls count micro-batches
  bool forward = false, backward = false;
  // Which tensors of what it takes and gives have rows, and how these are called.
  enum class Elements : uint8_t {
    kSpec,      // one: "fc.input", of values and of gradients
    kAll,       // the same where there is one, else "fc.input_0", "fc.input_1"
    kNumbered,  // "fc.input.0", "fc.grad_input.0"
  };
  Elements elements = Elements::kSpec;
  bool in_evaluation = false;  // watched while it is not training, too
  watch::Target spec;
  // Of attention and of the logits of a router; null: not asked for.
  const watch::WatchedName* attention = nullptr;
  const watch::WatchedName* logits = nullptr;
  std::shared_ptr<MicroBatches> batches;
  // Names of rows that were asked for, by element: of the input, the output and their gradients.
  mutable std::array<std::vector<const watch::WatchedName*>, 4> names;
};

class ModuleWatch;

// Nothing here raises into training; what could not be looked at is counted. Requires the
// interpreter lock for every method.
class LiveMonitor final : public BackwardSink {
 public:
  // Takes over the references in `types` and `hooks`.
  LiveMonitor(FrameworkTypes types, FrameworkHooks hooks, std::unique_ptr<watch::Monitor> monitor,
              double zero_bound);
  ~LiveMonitor() override;
  LiveMonitor(const LiveMonitor&) = delete;
  LiveMonitor& operator=(const LiveMonitor&) = delete;

  watch::Monitor& monitor() { return *monitor_; }
  void set_owner(PyObject* owner) { owner_ = owner; }
  // Where files are written; empty for nowhere.
  [[nodiscard]] const std::string& directory() const { return directory_; }
  void set_directory(std::string directory) { directory_ = std::move(directory); }
  [[nodiscard]] const FrameworkHooks& hooks() const { return hooks_; }
  [[nodiscard]] const FrameworkTypes& types() const { return types_; }

  // From here on looks at samples of tensors alone (watch/live/sample.h).
  void set_sampled() { is_sampled_ = true; }
  // Of a tensor, or of a number; watch::NoValues() for anything else.
  watch::TensorValues Measure(PyObject* value);
  // The same with another bound of zeros and past what is remembered.
  watch::TensorValues MeasureOnce(PyObject* value, double zero_bound);
  // What is remembered about tensors holds no longer.
  void ForgetTensors() { cache_.Clear(); }
  void Add(MonitorKind kind, const watch::WatchedName* name, int32_t micro_step, PyObject* value) {
    monitor_->Add(kind, name, micro_step, Measure(value));
  }
  // See watch::SignAgreement(); false if one is no tensor that can be read.
  bool AddDirection(const watch::WatchedName* name, PyObject* gradient, PyObject* momentum);
  // See watch::HistogramsOfAdam(); false where that gives nothing or a moment cannot be read.
  bool AddAdam(const watch::WatchedName* name, PyObject* first, PyObject* second,
               const watch::AdamRule& rule);
  // See watch/live/layer_features.h; `second` is K of attention, else null. What has no features is
  // warned of and a row of 0, or no row where logits were expected.
  void AddFeature(MonitorKind kind, const watch::WatchedName* name, int32_t micro_step,
                  PyObject* first, PyObject* second);
  void set_batch_first(bool is_batch_first) { is_batch_first_ = is_batch_first; }
  // Ends the step, or forgets it.
  void Commit(int64_t step);
  void Drop();
  // What went wrong since the last call, one sentence for each kind.
  std::vector<std::string> TakeMessages();
  // One sentence, told once.
  void Warn(const std::string& text);

  // A call of a watched module whose gradients are awaited; its way back is named by the answer.
  std::string AwaitGradients(const std::shared_ptr<const WatchedModule>& module, int32_t micro_step,
                             uint32_t repeat);

  // BackwardSink.
  [[nodiscard]] PyObject* owner() const override { return owner_; }
  void CountLoss(std::string_view counter, std::string_view what) override;
  [[nodiscard]] bool IsTensor(PyObject* value) const override {
    return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(types_.tensor)) != 0;
  }
  [[nodiscard]] const FrameworkNames& names() const override { return hooks_.names; }
  [[nodiscard]] uint64_t epoch() override { return monitor_->epoch(); }
  void BeginBackward(const std::string& /*name*/) override {}
  PackedPart PackBackwardInput(std::string_view name, PyObject* grad_outputs) override;
  void EndBackward(const std::string& name, const std::string* parent, PackedPart results,
                   PyObject* grad_inputs) override;
  nanobind::object Add(const Autograd& autograd, nanobind::handle first,
                       nanobind::handle second) override;

 private:
  struct AwaitedCall {
    std::shared_ptr<const WatchedModule> module;
    int32_t micro_step = 0;
    uint32_t repeat = 0;
  };
  // The tensor itself, or one with its values; empty when there is none.
  nanobind::object Readable(PyObject* tensor);
  // The tensor or a copy whose memory `host` is; empty when it cannot be read.
  nanobind::object OnHost(PyObject* tensor, HostTensor* host);
  // Calls use(first, second) with the memory of two tensors; false if one is no tensor that can be
  // read.
  template <class Use>
  bool ReadBoth(PyObject* first, PyObject* second, const Use& use);
  watch::TensorValues MeasureMemory(PyObject* tensor, const HostTensor& host, double zero_bound,
                                    bool may_cache);
  watch::TensorValues MeasureAny(PyObject* value, double zero_bound, bool may_cache);

  FrameworkTypes types_;
  FrameworkHooks hooks_;
  TensorReader reader_;
  std::unique_ptr<watch::Monitor> monitor_;
  double zero_bound_;
  bool is_sampled_ = false, is_batch_first_ = false;
  uint64_t samples_ = 0;
  PyObject* owner_ = nullptr;  // borrowed
  std::string directory_;
  capture::TensorCacheOf<watch::TensorValues> cache_;
  std::unordered_map<std::string, AwaitedCall> awaited_;
  uint64_t calls_ = 0;
  std::map<std::string, uint64_t, std::less<>> losses_;
  std::map<std::string, bool, std::less<>> told_;
  std::vector<std::string> messages_;
};

// What a module or cell says in its attribute `training`; throws where it has none.
bool IsTraining(PyObject* module);

// Forward pre hook and forward hook of one module.
class ModuleWatch {
 public:
  // `is_recomputing`: () -> whether a call now is made again for a backward pass; or None.
  ModuleWatch(LiveMonitor& monitor, const Autograd& autograd, nanobind::object is_recomputing,
              std::shared_ptr<WatchedModule> module);

  void Before(PyObject* module, PyObject* args, PyObject* kwargs);
  void After(PyObject* module, PyObject* output);
  // Before it is used: features of each call (kAttentionFeature, kRouterLogitFeature).
  void AddFeature(MonitorKind kind, const watch::WatchedName* name);

 private:
  void Begin(PyObject* module, PyObject* args, PyObject* kwargs);
  // Counts this call: of which micro-batch it is, and which of the module's in it.
  void Count(int32_t* micro_step, uint32_t* repeat);

  LiveMonitor& monitor_;
  const Autograd& autograd_;
  nanobind::object owner_;
  nanobind::object is_recomputing_;
  std::shared_ptr<WatchedModule> module_;
  uint64_t epoch_ = 0;
  int32_t micro_step_ = -1;
  uint32_t calls_in_batch_ = 0;
};

// How the gradient of a parameter is seen before ranks combine it.
struct ParameterRule {
  int32_t micro_batches = 1;
  bool takes_every = false;     // else at each `micro_batches`-th call alone
  bool is_accumulated = false;  // called with the parameter, whose gradient has been added up; else
                                // with the gradient that arrives
  PyObject* adds_to = nullptr;  // the parameter whose gradient so far that one is added to, or null
};

// A hook of a parameter, which adds its gradient as `name`. New reference.
PyObject* NewParameterHook(LiveMonitor& monitor, const Autograd& autograd,
                           const watch::WatchedName* name, const ParameterRule& rule);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_LIVE_MONITOR_H_
