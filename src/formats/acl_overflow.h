// Overflow (OpDebug) records, which a device dumps as outputs of Opdebug.Node_OpDebug
// (docs/formats/acl_dump.md).

#ifndef PLUMBLINE_FORMATS_ACL_OVERFLOW_H_
#define PLUMBLINE_FORMATS_ACL_OVERFLOW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::acl {

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

#endif  // PLUMBLINE_FORMATS_ACL_OVERFLOW_H_
