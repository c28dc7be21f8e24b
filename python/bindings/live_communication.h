// Communication calls of a training that is watched: what the tensors hold before and after them.

#ifndef PLUMBLINE_PYTHON_BINDINGS_LIVE_COMMUNICATION_H_
#define PLUMBLINE_PYTHON_BINDINGS_LIVE_COMMUNICATION_H_

#include "python_api.h"
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "live_monitor.h"
#include "watch/live/communication.h"

namespace plumbline::python {

// Rows "{function}.pre_{i}" and "{function}.post_{i}": one for each argument that is a tensor, a
// list of tensors or a list of point-to-point operations. Outermost calls alone are seen. Nothing
// here raises or waits. Requires the interpreter lock for every method.
class CommunicationWatch {
 public:
  // `handle_type`: what calls return that go on in the background; `operation_type`: has its tensor
  // as attribute `tensor`. `before`: rows "pre" too.
  CommunicationWatch(LiveMonitor& monitor, nanobind::object handle_type,
                     nanobind::object operation_type, bool before);

  // Around every call of a function. `masked`: arguments, by position or name, whose contents mean
  // nothing before the call. `is_asked_for`: its values are wanted.
  void Begin(const std::string& name, const nanobind::tuple& args, const nanobind::dict& kwargs,
             const nanobind::list& masked, bool is_asked_for);
  // `result` null: the call has raised.
  void End(PyObject* result);
  // Whether a call now is within another one.
  [[nodiscard]] bool is_inside() const;
  // The user has waited for what `handle` stands for.
  void Completed(PyObject* handle);
  // Adds the rows of the step; calls still under way have none.
  void EndStep();
  // Forgets what was seen.
  void Forget();

 private:
  using Item = std::vector<nanobind::object>;  // tensors that count as one
  struct Call {
    std::string name;
    std::vector<Item> items;
    std::vector<nanobind::object> handles;  // not waited for yet
    bool is_watched = false;
  };
  static std::vector<Call>& OpenCalls();

  // The tensors of one argument.
  [[nodiscard]] Item ItemOf(PyObject* value) const;
  void AddRows(const Call& call, const char* moment, const std::vector<bool>& are_masked);
  [[nodiscard]] std::vector<nanobind::object> HandlesIn(PyObject* result) const;

  LiveMonitor& monitor_;
  nanobind::object handle_type_, operation_type_;
  bool before_;
  watch::CommunicationValues values_;
  std::vector<Call> pending_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_LIVE_COMMUNICATION_H_
