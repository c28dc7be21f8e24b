// What is kept of MindSpore calls that did not pass: a recording with tensors of their inputs and
// of what the tested side made of them, which can be pre-checked again.

#ifndef PLUMBLINE_PRECHECK_MINDSPORE_ERROR_DATA_H_
#define PLUMBLINE_PRECHECK_MINDSPORE_ERROR_DATA_H_

#include <mutex>
#include <string>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/result.h"
#include "precheck/call_flow.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// Tensors go into `<output_directory>/error_data`, named as a recorder names them
// ("Mint.add.0.forward.input.0.npy"); dump.json and stack.json into the output directory or, where
// another recording's dump.json is there already, beside the tensors. Add() is thread-safe.
class MindSporeErrorData {
 public:
  MindSporeErrorData(std::string output_directory, std::string framework);

  // Writes the tensors of both directions of a call that was run. kIo.
  plumbline::Status Add(const RanCall& ran, const CallOutcome& outcome);
  // Writes dump.json and stack.json, with what an earlier run kept there; nothing without calls.
  plumbline::Status Finish();

  // Takes over what another process kept with `part` as its output directory, and removes it.
  // kCorrupt, kIo.
  plumbline::Status TakePart(const std::string& part);
  // Of a process that was killed. Absent is success. kIo.
  static plumbline::Status RemovePart(const std::string& part);

  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  plumbline::Status AddEarlier(const std::string& path);

  const std::string output_directory_, directory_, framework_;
  std::mutex mutex_;
  std::vector<Call> calls_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_MINDSPORE_ERROR_DATA_H_
