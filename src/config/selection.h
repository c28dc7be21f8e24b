// Which steps, ranks, calls and parts of calls are recorded. Pure state over names; no I/O.

#ifndef PLUMBLINE_CONFIG_SELECTION_H_
#define PLUMBLINE_CONFIG_SELECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/name_pattern.h"
#include "plumbline/record.h"

namespace plumbline {

// A non-empty rank list selects nothing while the rank is unknown.
bool WantsRank(const Config& config, std::optional<int> rank);
bool WantsStep(const Config& config, int64_t step);
// No later step can be wanted: the recorder may remove itself.
bool IsPastLastStep(const Config& config, int64_t step);

// Whether the part of an entry is recorded at all. Parts are decided per direction and side.
bool WantsDirection(const DataMode& mode, CallKind kind);
bool WantsInput(const DataMode& mode, CallKind kind);
bool WantsOutput(const DataMode& mode, CallKind kind);

// The scope, list and risk filters of one process. The range stays open over steps until its end
// name occurs: an entry that matches, if it is a pattern, and of modules inside each other that do
// the outermost one. Feed it events in program order; thread-compatible (the recorder's lock).
//
// APIs: SelectApi(name) once, when the forward entry begins and when the backward entry is there;
// its answer holds for all parts of the entry, so the closing entry of a range is complete.
// Modules: EnterModule(name) when forward or backward begins and LeaveModule(name) when it ends,
// whose answer decides the module's entry. Gradients of parameters: SelectGradients() when one
// arrives.
class Selection {
 public:
  // kInvalidArgument: scope is not two patterns or complete names of the level's kind; a pattern is
  // no expression.
  static Result<Selection> Create(const Config& config);

  [[nodiscard]] bool SelectApi(std::string_view name);
  // False: SelectApi(name) is and stays false and no range ends there, so it need not be called.
  [[nodiscard]] bool MaySelectApi(std::string_view name) const;
  void EnterModule(std::string_view name);
  [[nodiscard]] bool LeaveModule(std::string_view name);
  // False: LeaveModule of the running call `name` will refuse it, so its values need not be read.
  [[nodiscard]] bool MaySelectModule(std::string_view name) const {
    return !expanding_.empty() || InList(name);
  }

  // Whether gradients of the parameters of `module`, a name without direction, are in range now.
  [[nodiscard]] bool SelectGradients(std::string_view module) const {
    return (scope_.empty() || open_) && (!expanding_.empty() || InList(module));
  }

  // Whether tensors of the entry are stored although the task asks for none (tensor_list).
  [[nodiscard]] bool SavesTensors(std::string_view name) const {
    return tensor_list_.SelectAny(name);
  }

  // Neither scope, list nor risk level: everything is selected and no event needs to be fed.
  [[nodiscard]] bool selects_all() const {
    return scope_.empty() && list_.empty() && risk_level_ == RiskLevel::kAll;
  }

 private:
  [[nodiscard]] bool InList(std::string_view name) const {
    return list_.empty() || list_.SelectAny(name);
  }
  [[nodiscard]] bool IsFirst(std::string_view name) const { return scope_.Names(0, name); }
  [[nodiscard]] bool IsLast(std::string_view name) const { return scope_.Names(1, name); }

  Level level_ = Level::kL1;
  NamePatterns scope_, list_, tensor_list_;
  RiskLevel risk_level_ = RiskLevel::kAll;  // kAll with a scope or list
  bool open_ = false;                       // inside the scope
  std::vector<std::string> expanding_;      // running modules named by the list (mix)
  std::vector<std::string> ending_;         // running modules that the pattern of the end names
};

}  // namespace plumbline

#endif  // PLUMBLINE_CONFIG_SELECTION_H_
