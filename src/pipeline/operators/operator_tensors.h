// The tensors of one execution of an operator: those of its dump file or, where FFTS+ cut it into
// tasks, those of the files of its tasks put together.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TENSORS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "formats/acl_dump.h"
#include "formats/acl_threads.h"
#include "formats/acl_types.h"
#include "load/operator_dumps.h"

namespace plumbline::pipeline {

// Move-only. Tensors lie in the files or in memory of this object.
class OperatorTensors {
 public:
  // Without slices the file at `path`, whose recorder called it `file_name`. Of joined ones each
  // output that is cut is put together: where the attribute says where each part begins, there,
  // otherwise along the one dimension in which it is cut, in the order of the slices. Inputs are
  // put together where the attribute says where each part begins, and the parts, which may share
  // borders, make a whole; else they are those of one part. parts() has those of all. Of a part by
  // itself the tensors have the sizes of the part. Errors of acl::DumpFile::Open() of any of the
  // files; kCorrupt: parts that do not fit each other, the places or the whole sizes that are said,
  // or that have other numbers than there should be; kUnsupported: an output that is cut in several
  // dimensions, and nothing says where.
  static Result<OperatorTensors> Open(const std::string& path, const std::string& file_name,
                                      const load::OperatorSlices& slices);

  [[nodiscard]] const acl::Message& message() const {
    return is_one_file_ ? files_.front().message() : message_;
  }
  // What is odd about the parts, for the reason of a row; empty: nothing.
  [[nodiscard]] const std::string& remark() const { return remark_; }
  // False: files of parts are missing, and the outputs are not the whole ones.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  // Of the parts that were put together; empty: the operator was not cut.
  [[nodiscard]] const std::vector<int64_t>& numbers() const { return numbers_; }
  // The messages of these, with the sizes of the parts; empty: no parts were put together.
  [[nodiscard]] std::span<const acl::Message> parts() const {
    return are_joined_ ? std::span<const acl::Message>(parts_) : std::span<const acl::Message>();
  }
  // Whether the input `index` of message() is the whole one: not cut, or put together.
  [[nodiscard]] bool IsInputWhole(size_t index) const {
    return !are_joined_ || joined_inputs_.contains(index);
  }
  // What is wrong with the output `index`, which is not cut: parts that have another one, sizes
  // that are not those of the message; empty: nothing.
  [[nodiscard]] std::string Disagreement(size_t index) const {
    const auto found = disagreements_.find(index);
    return found == disagreements_.end() ? "" : found->second;
  }

 private:
  OperatorTensors() = default;
  Status OpenSlices(const load::OperatorSlices& slices);
  Status OpenPart(const load::OperatorSlice& slice);
  void AddRemark(const std::string& sentence);
  // Which parts there are, against how many there should be.
  Status CheckNumbers(const load::OperatorSlices& slices);
  Status Join(const load::OperatorSlices& slices);
  // `axes`: the dimensions in which the output is cut.
  Status JoinOutput(size_t index, const std::vector<size_t>& axes);
  // Leaves the parts of one that is not cut, or where they make no whole.
  void JoinInput(size_t index);
  // Makes `tensor` the whole of its parts.
  void TakeJoined(const std::vector<const acl::DumpedTensor*>& parts, acl::Elements whole,
                  acl::DumpedTensor& tensor);
  // An output that no part cuts is the same in all of them; `taken`: the part whose one counts.
  void CompareUncut(size_t index, size_t taken);
  // The sizes of an output against those in the message of the part `taken`.
  [[nodiscard]] Status CheckSizes(size_t index, size_t taken) const;

  std::vector<acl::DumpFile> files_;
  std::vector<acl::Message> parts_;  // of the files, with the sizes of the parts
  std::vector<int64_t> numbers_;     // of the parts
  std::optional<acl::ThreadSlices> facts_;
  bool lacks_attribute_ = false;  // some part has no such facts
  // Of each part and output, or input: where it begins in the whole; empty: not said.
  std::vector<std::vector<Shape>> starts_, input_starts_;
  std::set<size_t> joined_inputs_;
  std::deque<std::vector<std::byte>> joined_;
  acl::Message message_;  // of several files
  bool is_one_file_ = false, are_joined_ = false;
  std::string remark_;
  std::map<size_t, std::string> disagreements_;
  bool is_whole_ = true;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TENSORS_H_
