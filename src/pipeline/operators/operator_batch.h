// Several models of one recording, each compared by its own rule file.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_BATCH_H_
#define PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_BATCH_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// One model on one device: {device}/{model}/{model id}/{step} below the recording.
struct BatchModel {
  std::string device, model, step;
  std::string directory;
  std::string rule_path;

  // "0_resnet_10_result", the start of its result's name.
  [[nodiscard]] std::string ResultPrefix() const {
    return device + "_" + model + "_" + step + "_result";
  }
};

struct OperatorBatch {
  std::vector<BatchModel> models;
  std::vector<std::string> notes;
};

// Joins the rule files of `rules` (their graph names) with the models below `recording`, a
// directory named by its time. Where no name fits, the second number in both names decides. Of
// several steps the highest counts. kInvalidArgument: `recording` is not such a directory;
// kNotFound: nothing fits; kCorrupt: a rule file.
Result<OperatorBatch> FindBatch(const std::string& recording, const std::string& rules);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_BATCH_H_
