// c_api.h for C++17: handles that close themselves, errors as exceptions. Nothing of it is in the
// library, so that it works with every compiler, and what it does is what c_api.h says.

#ifndef PLUMBLINE_CXX_API_H_
#define PLUMBLINE_CXX_API_H_

#include <memory>
#include <stdexcept>
#include <string>

#include "plumbline/c_api.h"

namespace plumbline::api {

// Code and message of a plumb_error.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const plumb_error& error)
      : std::runtime_error(error.message), code_(error.code) {}
  [[nodiscard]] int32_t code() const { return code_; }

 private:
  int32_t code_;
};

// Runs function(arguments..., &error) and throws what it reports.
template <class Function, class... Arguments>
void Check(Function function, Arguments... arguments) {
  plumb_error error = PLUMB_ERROR_INIT;
  if (function(arguments..., &error) != PLUMB_OK) throw Failure(error);
}

// Of function(handle, arguments..., &filled, &error): the struct that it fills.
template <class Filled, class Function, class... Arguments>
Filled Get(Function function, Arguments... arguments) {
  Filled filled{};
  filled.size = sizeof(filled);
  Check(function, arguments..., &filled);
  return filled;
}

template <class T, void (*Close)(T*) PLUMBLINE_NOEXCEPT>
struct Closer {
  void operator()(T* handle) const { Close(handle); }
};
template <class T, void (*Close)(T*) PLUMBLINE_NOEXCEPT>
using Handle = std::unique_ptr<T, Closer<T, Close>>;

inline void EndCall(plumb_call* call) noexcept { plumb_call_end(call, nullptr); }

using Tensor = Handle<plumb_tensor, plumb_tensor_close>;
using Call = Handle<plumb_call, EndCall>;  // null: it is not recorded

class Run {
 public:
  explicit Run(const std::string& path) {
    plumb_run* opened = nullptr;
    Check(plumb_run_open, path.c_str(), &opened);
    handle_.reset(opened);
  }
  [[nodiscard]] plumb_run_info info() const {
    return Get<plumb_run_info>(plumb_run_describe, handle_.get());
  }
  [[nodiscard]] plumb_call_info call(uint64_t number) const {
    return Get<plumb_call_info>(plumb_run_call, handle_.get(), number);
  }
  [[nodiscard]] uint64_t Find(const std::string& name) const {
    uint64_t number = 0;
    Check(plumb_run_find, handle_.get(), name.c_str(), &number);
    return number;
  }
  [[nodiscard]] plumb_slot slot(uint64_t call, uint64_t number) const {
    return Get<plumb_slot>(plumb_run_slot, handle_.get(), call, number);
  }
  [[nodiscard]] Tensor Read(uint64_t call, uint64_t slot) const {
    plumb_tensor* opened = nullptr;
    Check(plumb_run_read, handle_.get(), call, slot, &opened);
    return Tensor(opened);
  }

 private:
  Handle<plumb_run, plumb_run_close> handle_;
};

class Comparison {
 public:
  Comparison(const std::string& target, const std::string& golden,
             const plumb_compare_options& options = PLUMB_COMPARE_OPTIONS_INIT) {
    plumb_comparison* made = nullptr;
    Check(plumb_compare, target.c_str(), golden.c_str(), &options, &made);
    handle_.reset(made);
  }
  [[nodiscard]] plumb_verdict verdict() const {
    return Get<plumb_verdict>(plumb_comparison_verdict, handle_.get());
  }
  [[nodiscard]] const char* text() const { return plumb_comparison_text(handle_.get()); }
  [[nodiscard]] const char* json() const { return plumb_comparison_json(handle_.get()); }
  void Write(const std::string& directory, const char* formats = nullptr) {
    Check(plumb_comparison_write, handle_.get(), directory.c_str(), formats);
  }

 private:
  Handle<plumb_comparison, plumb_comparison_close> handle_;
};

// Finishes when it is destroyed.
class Recorder {
 public:
  explicit Recorder(const plumb_recorder_options& options) {
    plumb_recorder* begun = nullptr;
    Check(plumb_recorder_begin, &options, &begun);
    handle_.reset(begun);
  }
  bool BeginStep() {
    int32_t is_recorded = 0;
    Check(plumb_step_begin, handle_.get(), &is_recorded);
    return is_recorded != 0;
  }
  void EndStep() { Check(plumb_step_end, handle_.get()); }
  [[nodiscard]] Call BeginCall(const std::string& name, const Call& parent = {}) {
    plumb_call* begun = nullptr;
    Check(plumb_call_begin, handle_.get(), name.c_str(), parent.get(), &begun);
    return Call(begun);
  }

 private:
  Handle<plumb_recorder, plumb_recorder_finish> handle_;
};

// The next input or output of a call, or a parameter.
inline void AddTensor(const Call& call, plumb_role role, const plumb_dltensor& tensor,
                      const char* name = nullptr) {
  Check(plumb_call_add, call.get(), static_cast<int32_t>(role), name, &tensor);
}

}  // namespace plumbline::api

#endif  // PLUMBLINE_CXX_API_H_
