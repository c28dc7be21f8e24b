// Steps of optimizers: one entry for each parameter, whichever kernels the optimizer calls.

#ifndef PLUMBLINE_PYTHON_BINDINGS_OPTIMIZER_STEPS_H_
#define PLUMBLINE_PYTHON_BINDINGS_OPTIMIZER_STEPS_H_

#include <nanobind/nanobind.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "recorder.h"

namespace plumbline::python {

// Records `Optimizer.{parameter}.{n}.forward` around an optimizer's step: the parameter, its
// gradient, its state and the settings of its group before, parameter and state afterwards. A loop
// over parameters, foreach and fused kernels make the same entries.
//
// A parameter has the name that the models give it, else `{group}.{index}`. Only parameters with a
// gradient have an entry, and only tasks that record every call. Uses the interpreter lock; nothing
// is raised into training.
class OptimizerSteps {
 public:
  explicit OptimizerSteps(Recorder& recorder) : recorder_(recorder) {}
  OptimizerSteps(const OptimizerSteps&) = delete;
  OptimizerSteps& operator=(const OptimizerSteps&) = delete;

  // The models whose parameters have names: a list.
  void UseModels(nanobind::list models);
  void Before(nanobind::handle optimizer);
  void After(nanobind::handle optimizer);
  // No step is under way.
  void Clear() { begun_.clear(); }

 private:
  struct Begun {
    capture::ApiCall call;
    std::string parent;
    nanobind::object optimizer, parameter;
    PackedPart inputs;
  };

  [[nodiscard]] bool Wants() const;
  void ReadNames();
  // Empty: not one of the models'.
  std::string NameOf(nanobind::handle parameter);
  void BeginGroup(nanobind::handle optimizer, size_t number, const nanobind::dict& group,
                  const capture::StackInfo& stack);
  void Begin(Begun update, const nanobind::tuple& inputs, const nanobind::dict& settings);
  void End(Begun update);

  Recorder& recorder_;
  nanobind::list models_;
  std::unordered_map<PyObject*, std::string> names_;  // of parameters that models_ hold
  bool names_are_read_ = false;                       // for this step
  std::vector<Begun> begun_;                          // steps may be nested
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_OPTIMIZER_STEPS_H_
