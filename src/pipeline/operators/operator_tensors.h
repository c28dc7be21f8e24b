// The tensors of one execution of an operator: those of its dump file or, where FFTS+ cut it into
// tasks, those of the files of its tasks put together.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TENSORS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TENSORS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "formats/acl_dump.h"
#include "formats/acl_threads.h"
#include "load/operator_dumps.h"

namespace plumbline::pipeline {

// Move-only. Tensors lie in the files or in memory of this object.
class OperatorTensors {
 public:
  // Without slices the file at `path`, whose recorder called it `file_name`. Of joined ones each
  // output that is cut is put together along the dimension in which it is cut, in the order of the
  // slices, or in several as the attribute says where each part begins; inputs are those of the
  // first. Of a part by itself the tensors have the sizes of the part. Errors of
  // acl::DumpFile::Open() of any of the files; kCorrupt: parts that do not fit each other or their
  // own sizes; kUnsupported: an output that is cut in several dimensions, and nothing says where.
  static Result<OperatorTensors> Open(const std::string& path, const std::string& file_name,
                                      const load::OperatorSlices& slices);

  [[nodiscard]] const acl::Message& message() const { return message_; }
  // What is odd about the parts, for the reason of a row; empty: nothing.
  [[nodiscard]] const std::string& remark() const { return remark_; }
  // False: files of parts are missing, and the outputs are not the whole ones.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

 private:
  OperatorTensors() = default;
  Status OpenSlices(const load::OperatorSlices& slices);
  Status Join(const load::OperatorSlices& slices, const acl::ThreadSlices& facts);
  // `axes`: the dimensions in which the output is cut.
  Status JoinOutput(size_t index, const std::vector<size_t>& axes);

  std::vector<acl::DumpFile> files_;
  std::vector<acl::Message> parts_;  // of the files, with the sizes of the parts
  // Of each part and output: where it begins in the whole; empty: not said.
  std::vector<std::vector<Shape>> starts_;
  std::deque<std::vector<std::byte>> joined_;
  acl::Message message_;
  std::string remark_;
  bool is_whole_ = true;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TENSORS_H_
