// Tensor files by the names that a recording gives them, and single dump files of devices.
// run_reader.cc implements Run (include/plumbline/run.h).

#ifndef PLUMBLINE_LOAD_RUN_READER_H_
#define PLUMBLINE_LOAD_RUN_READER_H_

#include <optional>
#include <string>

#include "formats/json/dump_json.h"
#include "formats/pytorch/tensor_file.h"
#include "plumbline/run.h"

namespace plumbline::load {

// Opens `data_name` (of an Item) in `directory`; also what load/derived_tensor.h makes. A name that
// leaves the directory comes from a damaged or foreign dump.json and is not followed
// (kInvalidArgument); else as TensorFile::Open.
Result<TensorFile> OpenTensorIn(const std::string& directory, const std::string& data_name,
                                torch_pt::DataCheck check = torch_pt::DataCheck::kVerify);

// The same in the tensor directory of `run`.
Result<TensorFile> OpenTensor(const Run& run, const std::string& data_name);

// What the user should know of where the tensors of `run` come from: one sentence where they do not
// lie beside its dump.json, or lay where another recording is now. Else empty.
std::string NoteOnTensorDirectory(const Run& run);

// construct.json of `run`; no rows where there is none or it could not be read.
const dump_json::CallTree& CallTreeOf(const Run& run);

// The name that the recorder gave the file `path`, as mapping.csv beside it has it, if the file is
// the dump of an operator: by that name or, where the name says nothing, by what is in the file.
// Nothing: it is something else, or no regular file.
std::optional<std::string> DumpNameOf(const std::string& path);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_RUN_READER_H_
