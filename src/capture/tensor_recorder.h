// The tensors of an entry: one pass over memory, statistics, digest, file, and their record.

#ifndef PLUMBLINE_CAPTURE_TENSOR_RECORDER_H_
#define PLUMBLINE_CAPTURE_TENSOR_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "capture/call_recorder.h"
#include "capture/tensor_cache.h"
#include "kernels/tensor_scan.h"
#include "plumbline/tensor.h"
#include "record/value.h"

namespace plumbline::capture {

// How dump.json spells what belongs to the framework (docs/formats/dump_json.md).
struct FrameworkTexts {
  std::string name;              // header: "pytorch", "mindspore", "mindtorch"
  std::string_view tensor_type;  // "torch.Tensor"
  std::string_view dtype_type;   // "torch.dtype"
  bool has_mindspore_dtypes;     // "Float32" and not "torch.float32"
  bool tells_grad;               // requires_grad of tensors, is_recompute of calls
  bool tells_device;             // a value under the key "device" is a device

  [[nodiscard]] std::string_view DTypeText(DType dtype) const {
    return has_mindspore_dtypes ? InfoOf(dtype).mindspore_name : InfoOf(dtype).torch_name;
  }
};
// Of a framework's name. Everything that is not MindSpore's is spelled as PyTorch does.
FrameworkTexts TextsOf(std::string name);

// Texts and flags of a tensor's record that are not read from memory; borrowed.
struct TensorLabels {
  std::string_view type = {};
  std::string_view dtype_text = {};  // empty: that of the memory
  std::optional<bool> requires_grad = {};
  const Shape* shape = nullptr;                   // null: that of the memory
  uint64_t implicit_zeros = 0;                    // elements that the memory leaves out (sparse)
  std::span<const std::byte> extra_members = {};  // further members, packed
  bool is_parameter = false;                      // never a tensor of tokens
};

// Under the program's lock, which it gives up while it reads a large tensor.
class TensorRecorder {
 public:
  // Borrows both, which outlive it.
  TensorRecorder(CallRecorder& calls, const FrameworkTexts& texts);

  // Whether values that are only described should have every element: a file or digest is wanted.
  [[nodiscard]] bool WantsEveryElement(const ThreadState& thread) const {
    return thread.saves_tensors || wants_digest_ || wants_xor_;
  }
  // Whether an entry may be packed before the values of its tensors are known.
  // Not where it is sent to another machine, with all of its tensors.
  [[nodiscard]] bool TakesLateValues() const {
    return calls_.search() == Search::kNothing && !calls_.config().online.is_on;
  }
  // Whether what was found out about a tensor of the training may be remembered. Searches for NaN
  // remember less than is wanted here.
  [[nodiscard]] bool remembers() const {
    return calls_.search() == Search::kNothing || calls_.search() == Search::kDifference;
  }

  // What the entry under way wants to know of a tensor.
  struct Reading {
    TensorFacts facts;
    std::string data_name;  // of its file; empty: none is wanted, or it was lost (counted)
  };
  // `path`: the tensor's place in the entry. `known`: what was found out before; null: nothing.
  [[nodiscard]] Reading Read(const ThreadState& thread, const TensorView& view,
                             std::string_view path, uint64_t implicit_zeros,
                             const TensorFacts* known) const;
  // Packs the record of a tensor that was read.
  void Pack(const TensorView& view, const Reading& reading, const TensorLabels& labels,
            EntryPacker& out) const;
  // The same of a tensor on a device, whose values come later, under `number`: to
  // Observer::AddReduced() or, where every element is wanted, to AddLate().
  struct LateTensor {
    uint64_t number = 0;
    DType dtype = DType::kFloat32;
    std::span<const int64_t> sizes;
  };
  void PackLate(const ThreadState& thread, const LateTensor& tensor, std::string_view path,
                const TensorLabels& labels, EntryPacker& out) const;
  // Takes the elements of such a tensor, on any thread and without the program's lock.
  void AddLate(uint64_t number, const TensorView& view) const;
  // The same without values.
  void PackWithoutValues(const TensorLabels& labels, EntryPacker& out) const;
  // Type, dtype, shape and, where it is told, requires_grad.
  void PackBare(const TensorLabels& labels, EntryPacker& out) const;

  // Whether it holds NaN or Inf or, where that is wanted, is saturated.
  [[nodiscard]] Sight Look(const TensorView& view) const;
  // Reading less again costs no more than finding out that nothing has changed.
  [[nodiscard]] static bool IsWorthRemembering(const TensorView& view);

 private:
  // A thread of the program holds its lock, and others help it.
  enum class On : uint8_t { kProgram, kBackground };
  // What the summary mode wants of one pass: statistics, with the CRC or digest; or only the XOR.
  [[nodiscard]] kernels::ScanWants WantsOfMode() const;
  void TakeScan(const TensorView& view, const kernels::TensorScan& scan, TensorFacts* facts) const;
  void ScanInto(const TensorView& view, On thread, TensorFacts* facts) const;
  [[nodiscard]] std::string ReserveName(RunWriter& writer, const ThreadState& thread,
                                        std::string_view path) const;
  // Stores the tensor in that file, or links a file of the same contents; fills `facts` if they are
  // not known yet. False: it was lost (counted).
  bool Save(RunWriter& writer, const std::string& file_name, const TensorView& view, On thread,
            TensorFacts* facts) const;
  [[nodiscard]] kernels::TensorScan Scan(const TensorView& view, kernels::ScanWants wants,
                                         On thread) const;
  [[nodiscard]] TensorStats StatsWithZeros(const TensorView& view, uint64_t zeros) const;
  [[nodiscard]] std::string DigestText(const TensorFacts& facts) const;
  // Memory for a copy. Waiting for the writer's budget does not stop the other threads.
  [[nodiscard]] TensorBuffer BufferFrom(RunWriter& writer, size_t bytes, On thread) const;
  void PackWithMembers(const PackedTensor& tensor, const TensorLabels& labels,
                       std::string_view reason, EntryPacker& out) const;

  CallRecorder& calls_;
  const FrameworkTexts& texts_;
  bool wants_digest_ = false;  // the CRC
  bool wants_xor_ = false;
  bool wants_position_digest_ = false;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_TENSOR_RECORDER_H_
