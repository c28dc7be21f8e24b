// Pairs the operators of a device with those of a framework (or of the same model compiled
// otherwise) by the rule file that the compiler wrote.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_RULE_PAIRS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_RULE_PAIRS_H_

#include <string>
#include <vector>

#include "formats/fusion_rule.h"
#include "load/operator_dumps.h"
#include "pipeline/operators/paired_operator.h"

namespace plumbline::pipeline {

struct RuleInputs {
  const fusion::Rule& rule;
  const fusion::Rule* quant_rule = nullptr;    // original operators of the quantised model
  const fusion::Rule* unfused_rule = nullptr;  // of the golden model, compiled without fusion
  const load::OperatorDumps& target;
  const load::OperatorDumps& golden;
};

struct RulePairs {
  std::vector<PairedOperator> pairs;     // in the order of groups, then of the file
  std::vector<std::string> input_nodes;  // operators of type Data
  std::vector<std::string> notes;
  bool has_target_file = false;  // some operator of the rule file has one
};

// Of several executions the newest is compared. Operators without a file on my side are pairs only
// if the golden side has what they stand for; those of my side that the rule file lacks are pairs
// with a reason.
RulePairs PairByRule(const RuleInputs& inputs);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_RULE_PAIRS_H_
