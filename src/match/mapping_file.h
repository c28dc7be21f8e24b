// The mapping files of a comparison (YAML): what stands on the target's side is called something
// else on the golden side. docs/reference/compare-mappings.md describes them for users.
//
// Errors of all readers: kNotFound, kIo; kCorrupt (not YAML, with the line); kInvalidArgument
// (empty, or of another form: the message says where).

#ifndef PLUMBLINE_MATCH_MAPPING_FILE_H_
#define PLUMBLINE_MATCH_MAPPING_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::match {

// Target's text and golden's text, in the order of the file. No text of the target's side twice.
using TextPairs = std::vector<std::pair<std::string, std::string>>;

// Values by their full names: `Cell.a.Dense.forward.0.input.0: Module.a.Linear.forward.0.input.0`.
// "N/A" on the right: no counterpart.
Result<TextPairs> ReadDataMapping(const std::string& path);

// One API and its arguments. The lists pair by position; an index or name that is not listed has no
// counterpart.
struct ApiRule {
  std::string target, golden;  // "Functional.conv2d"
  TextPairs args, output, parameters, parameters_grad;
};
struct ApiRules {
  std::vector<ApiRule> rules;
  std::vector<std::string> skipped;  // why elements of the file are not used, one sentence each
};
// A list of rules, or one rule; keys ms_api, pt_api, ms_args, pt_args, ms_output (ms_outputs) and
// so on.
Result<ApiRules> ReadApiMapping(const std::string& path);
// The built-in pairs of a MindSpore and a PyTorch API, sorted by the MindSpore name.
const TextPairs& BuiltInApis();

// Modules: `fc2.Dense: fc2.Linear`; or any part of a module's name.
Result<TextPairs> ReadCellMapping(const std::string& path);

// Children of a class: below a module of class `class_name` ("TopLayer": the whole model) the
// target's path stands for the golden side's path.
struct LayerRules {
  std::string class_name;
  TextPairs paths;
};
Result<std::vector<LayerRules>> ReadLayerMapping(const std::string& path);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_MAPPING_FILE_H_
