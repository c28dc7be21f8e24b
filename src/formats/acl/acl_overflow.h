// What device dumps say beside their tensors (docs/formats/acl_dump.md): how FFTS+ cut an operator
// into tasks, and which overflows happened.

#ifndef PLUMBLINE_FORMATS_ACL_ACL_OVERFLOW_H_
#define PLUMBLINE_FORMATS_ACL_ACL_OVERFLOW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/acl/acl_dump.h"
#include "plumbline/result.h"

namespace plumbline::acl {

// Operators that FFTS+ cut into tasks: what the attribute of their dump files says.

struct ThreadSlices {
  bool is_automatic = false;       // threads, not slices named by hand
  int64_t instance_count = 0;      // files of the whole operator
  std::vector<Shape> output_cuts;  // of each output, in how many parts each dimension is cut
  // [thread][tensor]: sizes of its part.
  std::vector<std::vector<Shape>> inputs, outputs;
  // [thread][tensor]: where its part begins in the whole.
  std::vector<std::vector<Shape>> input_starts, output_starts;

  // Sizes of one tensor's part; nothing if the attribute does not say.
  [[nodiscard]] std::optional<Shape> InputOf(uint64_t thread, size_t index) const;
  [[nodiscard]] std::optional<Shape> OutputOf(uint64_t thread, size_t index) const;
};

// Nothing where no attribute is the JSON text of FFTS+. kCorrupt for one that is damaged.
Result<std::optional<ThreadSlices>> ReadThreadSlices(const Message& message);

// Overflow (OpDebug) records, which a device dumps as outputs of Opdebug.Node_OpDebug.

// One member of a record, in the order in which it is written.
struct OverflowField {
  std::string name;
  std::vector<uint64_t> values;  // one; a list where `is_list`
  bool is_hex = false;
  bool is_list = false;
};

// Of one kind of hardware: "AI Core", "DHA Atomic Add", "L2 Atomic Add" (old records), "AIC",
// "AIV", "AICPU", "SDMA" (new ones).
struct OverflowPart {
  std::string kind;
  std::vector<OverflowField> fields;

  // The first value of a field; nothing if the part has none of that name.
  [[nodiscard]] std::optional<uint64_t> Value(std::string_view name) const;
  // Whether a status is not 0.
  [[nodiscard]] bool has_overflow() const;
};

struct OverflowRecord {
  bool is_new = false;
  std::vector<OverflowPart> parts;  // one in new records, else three
  // Of new records.
  uint32_t version = 0, valid = 0, reserved = 0, data_bytes = 0;
};

// kCorrupt for another size and a record that ends early, kUnsupported for a kind of hardware that
// no release has.
Result<OverflowRecord> ReadOverflow(std::span<const std::byte> bytes);

// The record as JSON, as upstream's program writes it: indented by four, no line end.
std::string OverflowJson(const OverflowRecord& record);

}  // namespace plumbline::acl

#endif  // PLUMBLINE_FORMATS_ACL_ACL_OVERFLOW_H_
