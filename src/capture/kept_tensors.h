// Tensors of a call under way whose fate is open: only when the call has ended is it known whether
// it is stored with its tensors.

#ifndef PLUMBLINE_CAPTURE_KEPT_TENSORS_H_
#define PLUMBLINE_CAPTURE_KEPT_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/recorded_program.h"

namespace plumbline::capture {

// Which of its arguments a call may write to: they are copied before the call.
enum class Writes : uint8_t {
  kNothing,
  kFirst,         // the first argument, or all tensors in it: x.add_(y), x[i] = y, foreach_add_(xs)
  kOverwritten,   // the first argument, whose values the call does not read: x.fill_(1)
  kOut,           // likewise the keyword argument `out`
  kRunningStats,  // running_mean and running_var of a normalisation
  kEverything,
};

// What the arguments of a call say of that.
struct WriteHints {
  bool has_out = false;       // the keyword `out` is given
  bool is_in_place = false;   // inplace=True is
  bool ends_in_true = false;  // the last of several positional arguments is True
};

// From the API's name ("Tensor.add_") and its arguments.
Writes WritesOf(std::string_view api, const WriteHints& hints);
// Whether the tensor at `path` ("input.0", "kwargs.out") is one of those.
bool MayWrite(Writes writes, std::string_view path);
// Whether its values can matter to the call. Fresh memory that a call is to fill holds anything.
bool IsRead(Writes writes, std::string_view path);
// Whether the call leaves its result in the first argument alone.
bool WritesFirst(Writes writes);

// What a look at a tensor found.
struct Sight {
  bool hit = false;
  bool unknown = false;    // not readable (counted)
  bool saturated = false;  // no NaN and no Inf, and the largest magnitude is the end of the type
};

// One tensor, and where the packed bytes describe it for now.
struct KeptTensor {
  size_t begin = 0, end = 0;       // of its description in the bytes of its part
  ObjectRef tensor;                // the tensor
  ObjectRef copy;                  // its values before the call could change them; may be empty
  std::optional<int64_t> version;  // of `tensor` when it was met
  bool requires_grad = false;      // likewise
  std::string path;
};

// Whether a tensor on a device is finite: asked for, and not waited for yet.
struct AwaitedFlag {
  ObjectRef is_finite;
  bool in_output = false;
};

// The tensors of one part of an entry, or of a whole entry, and what was seen in them. Move-only.
// Thread-compatible; to let go of tensors, their references may need the program's lock.
class KeptTensors {
 public:
  KeptTensors() = default;
  KeptTensors(KeptTensors&& other) noexcept { *this = std::move(other); }
  KeptTensors& operator=(KeptTensors&& other) noexcept;
  ~KeptTensors() { Clear(); }

  // Forgets everything, for the next entry.
  void Clear();
  // Takes what was seen in the tensor at `path` into account, unless the call does not read it.
  void Note(Sight sight, std::string_view path);
  // Takes the answer for the tensor at `path` into account when it is there; empty: there is none.
  void Await(ObjectRef is_finite, std::string_view path);
  // Takes over the tensors of a part that was packed elsewhere and begins at `offset` here.
  void Append(KeptTensors&& part, size_t offset);
  // Makes the places of the tensors those in a part of its own, without the first `size` bytes.
  void TakeOff(size_t size);
  // Another holder of the same tensor is about to see it changed: `make_copy()` refers to its
  // values so far.
  template <class MakeCopy>
  void Share(const void* tensor, std::optional<int64_t> version, const MakeCopy& make_copy) {
    for (KeptTensor& kept : tensors) {
      const bool is_it = kept.tensor.get() == tensor && kept.version == version;
      if (is_it && kept.copy.get() == nullptr) kept.copy = make_copy();
    }
  }

  std::vector<KeptTensor> tensors;
  std::vector<AwaitedFlag> awaited;
  size_t head = 0;                   // bytes before the entry's members
  Writes writes = Writes::kNothing;  // of the call
  bool in_output = false;            // what is being walked
  bool has_input = false;            // inputs were looked at
  bool input_hit = false, output_hit = false;
  bool is_unknown = false;  // a tensor could not be read
  bool input_saturated = false, output_saturated = false;

  [[nodiscard]] bool is_hit() const { return input_hit || output_hit; }
  // Saturated tensors are all there is.
  [[nodiscard]] bool is_saturated() const {
    return !is_hit() && (input_saturated || output_saturated);
  }
  // Whether NaN and Inf came into being in this call: "origin", "propagated" or "unknown"; where
  // there are none, the same of saturated tensors.
  [[nodiscard]] std::string_view origin() const;
};

// Part of an entry packed before the rest: what the bytes describe and the tensors in them.
struct PackedPart {
  std::vector<std::byte> bytes;
  KeptTensors kept;
  uint32_t stack = 0;  // of the call; 0: none, or listed when it began
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_KEPT_TENSORS_H_
