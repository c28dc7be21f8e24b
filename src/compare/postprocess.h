// `plumb compare --postprocess FILE`: tensors that are changed before they are compared, as
// upstream's newest release does.

#ifndef PLUMBLINE_COMPARE_POSTPROCESS_H_
#define PLUMBLINE_COMPARE_POSTPROCESS_H_

#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "load/processed_tensor.h"
#include "match/expand.h"
#include "plumbline/compare.h"
#include "plumbline/run.h"

namespace plumbline::compare {

// What the file says of one side.
struct PostprocessSide {
  // By the name of the tensor's file: products, in order.
  std::unordered_map<std::string, std::vector<load::ProcessingStep>> products;
  // A part of a call's name, and the argument that tells how many rows of its results are written.
  std::vector<std::pair<std::string, std::string>> tails;
};

struct PostprocessRules {
  std::string path;
  PostprocessSide target, golden;
  std::vector<std::string> warnings;  // what in the file is not used, one sentence each
};

// docs/reference/compare-postprocess.md has the form of the file. Paths in it become absolute.
// kNotFound, kIo; kCorrupt (not YAML); kInvalidArgument (another form: the message says where).
Result<PostprocessRules> ReadPostprocess(const std::string& path);

// Gives the items of one side whose tensors are to be changed the name, the shape and the
// statistics of what becomes of them. A tensor that cannot be changed stays as it is, and a warning
// says so; so does one about names that no item has. Requires: names of items as Expander makes
// them.
void Postprocess(const PostprocessRules& rules, const Run& run, bool of_target,
                 std::vector<match::CallItems>& calls, std::vector<std::string>& warnings);

// Adds to every row with a changed tensor a note that says how it was, and a warning that counts
// them.
void NotePostprocessed(Comparison& comparison);

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_POSTPROCESS_H_
