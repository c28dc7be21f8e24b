// The mapping files of a comparison (YAML): what stands on the target's side is called something
// else on the golden side. docs/reference/compare-mappings.md describes them for users.
//
// Errors of all readers: kNotFound, kIo; kCorrupt (not YAML, with the line); kInvalidArgument
// (empty, or of another form: the message says where).

#ifndef PLUMBLINE_MATCH_MAPPING_FILE_H_
#define PLUMBLINE_MATCH_MAPPING_FILE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "match/expand.h"
#include "match/name_match.h"
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

// Mapping files applied: under which name a target call and its items are looked up in the golden
// recording.

// Sets mapped_name of the target's calls from a cell mapping: the path and class of a module are
// replaced where a line names them exactly, else every part of the name that a line names, in the
// order of the file. "Cell" becomes "Module" in any case; `pairs` may be empty.
void MapCells(const TextPairs& pairs, std::vector<CallItems>& target);

// Sets mapped_name (and mapped_parts, where a rule lists arguments) of the target's calls: Mint
// becomes Torch and MintFunctional Functional, the other APIs follow the built-in table, and rules
// of the user's for APIs that both recordings hold go first.
void MapApis(const std::vector<ApiRule>& rules, const std::vector<CallItems>& golden,
             std::vector<CallItems>& target);

// Pairing by a data mapping: single values instead of whole calls.

// Pairs the target's values with the golden values that `mapping` names; unmapped values of the
// same calls keep their own name, then their place in the golden call of the mapped ones. Shapes
// and dtypes do not count. A call whose values go to several golden calls is several pairs; several
// values may go to one. All other calls pair as in MatchCalls(). Order as there.
// A line whose name neither recording has adds a sentence to `warnings`.
//
// The items of both sides are the same afterwards.
std::vector<CallPair> MatchByValues(std::vector<CallItems>& target, std::vector<CallItems>& golden,
                                    const TextPairs& mapping, const MatchOptions& options,
                                    std::vector<std::string>& warnings);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_MAPPING_FILE_H_
