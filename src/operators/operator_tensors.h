// The tensors of one operator, in the layout in which they are compared.

#ifndef PLUMBLINE_OPERATORS_OPERATOR_TENSORS_H_
#define PLUMBLINE_OPERATORS_OPERATOR_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_overflow.h"
#include "formats/acl/acl_types.h"
#include "load/operator_dumps.h"
#include "operators/user_code.h"
#include "plumbline/tensor.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

// Tensors of device dumps and arrays, brought into a layout in which two sides can be compared.

// The layout to bring a tensor into.
struct PlainLayout {
  DeviceFormat format = DeviceFormat::kND;
  Shape sizes;
};

// The plain layout that a dumped tensor stands for by its own facts: the device shape is that of
// the original shape in exactly this order. Nothing: it is plain already, no order fits, or several
// do that differ in what is padding.
std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor);
// The same where the user has a converter from the tensor's layout: to what the original shape is
// by its number of dimensions, as upstream takes it (four NCHW, five NCDHW, others ND).
std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor, const UserCode* own);
// Whether the user has a converter from the tensor's layout.
bool HasConverter(const UserCode* own, const acl::DumpedTensor& tensor, DeviceFormat to);

// Whether the device shape is that of `layout`: nothing but padding is cropped. Plain tensors:
// false.
bool IsExactly(const acl::DumpedTensor& tensor, const PlainLayout& layout);

// The elements in `layout`, or as they are without one. Errors of acl::ElementsOf() and
// PlanLayout(); the messages have no path. The elements may lie in the tensor's data.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout);
// The same; a converter of the user comes before the built-in one. kInternal: it failed.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout, UserCode* own);

// Own layouts of dumped tensors and the way to them, found once for all tensors of the same format
// and sizes: networks repeat them. Thread-safe.
class OwnLayouts {
 public:
  struct Known {
    std::optional<PlainLayout> layout;  // OwnLayout()
    std::optional<LayoutPlan> plan;     // from the device shape to it, where there is one
    UserCode* converter = nullptr;      // the user's own, where there is one
  };
  // `user` may be null; must outlive this object.
  explicit OwnLayouts(UserCode* user = nullptr) : user_(user) {}
  std::shared_ptr<const Known> Of(const acl::DumpedTensor& tensor);

 private:
  using Key = std::tuple<DeviceFormat, int32_t, std::optional<acl::Dims>, std::optional<acl::Dims>>;
  // Also finds what is borrowed.
  using Map = std::map<Key, std::shared_ptr<const Known>, std::less<>>;
  UserCode* user_;
  std::mutex mutex_;
  Map known_;  // guarded by mutex_
};

// The same as with the layout alone. Requires: `own` is that of the tensor. What must be
// converted takes `memory`, where there is any: that of elements before these needs no new pages.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor, const OwnLayouts::Known& own,
                                    std::vector<std::byte>* memory = nullptr);

// Elements of a plain array in another order of its axes (kNHWC as kNCHW).
Result<acl::Elements> Reordered(acl::Elements elements, DeviceFormat from, const PlainLayout& to);

// The tensors of one execution of an operator: those of its dump file or, where FFTS+ cut it into
// tasks, those of the files of its tasks put together.

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

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_OPERATOR_TENSORS_H_
