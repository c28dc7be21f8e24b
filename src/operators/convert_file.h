// One dump file of a device converted.

#ifndef PLUMBLINE_OPERATORS_CONVERT_FILE_H_
#define PLUMBLINE_OPERATORS_CONVERT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "formats/acl/acl_types.h"
#include "load/dump_files.h"
#include "operators/convert_options.h"
#include "operators/output_names.h"

namespace plumbline::operators {

// Dumps that lie where their outputs will: none is replaced before it was read.

// kInvalidParameter: an output of one of the files may have the place of another one, to which a
// link may lead. `output_directory` is that of all of them, with DumpPath::directory behind it.
// Reads headers of dumps only where an input has the name of an output.
DumpStatus CheckSparesInputs(const std::vector<load::DumpPath>& files,
                             const std::string& output_directory, const ConvertOptions& options);

// What a summary says of one tensor.

// As Python prints them: integers exactly, "nan" where an element is NaN.
struct TensorExtremes {
  std::string max, min, mean;
};

// Requires: at least one element, no complex type.
TensorExtremes ExtremesOf(const acl::Elements& elements);

// One device dump as files of other programs.

// What failed: a part ("input:0", "output:2") or, where that is empty, the file.
struct ConvertFailure {
  std::string part;
  DumpFailure failure;
};

struct FileConversion {
  std::vector<PlacedFile> outputs;  // finished files
  std::vector<ConvertFailure> failures;
  std::vector<std::string> notes;  // what is odd and did no harm
};

// Converts the dump at `path` (or what else the options take), whose outputs are named after
// `name`. Whatever can be read is written; each output appears under its name when it is complete.
FileConversion ConvertFile(const std::string& path, const std::string& name,
                           const ConvertOptions& options, OutputDirectory& directory);

// What converting a file of overflow records would fail with, for what lies in the file. Writes
// nothing.
std::vector<ConvertFailure> CheckRecords(const std::string& path, const std::string& name);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_CONVERT_FILE_H_
