// The tensor file that an item of a recording names.

#ifndef PLUMBLINE_LOAD_RECORDED_TENSOR_H_
#define PLUMBLINE_LOAD_RECORDED_TENSOR_H_

#include <string>

#include "formats/tensor_file.h"
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

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_RECORDED_TENSOR_H_
