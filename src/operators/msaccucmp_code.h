// Failures of commands that stand in for upstream's program msaccucmp: its error numbers, on which
// scripts rely as exit codes. Those of every verb are here.

#ifndef PLUMBLINE_OPERATORS_MSACCUCMP_CODE_H_
#define PLUMBLINE_OPERATORS_MSACCUCMP_CODE_H_

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "plumbline/result.h"

namespace plumbline::operators {

// Those that are used here, by upstream's numbers.
enum class DumpCode : uint8_t {
  kUnknown = 1,
  kNoDumpFile = 2,  // also wrong usage, as Python's argument parser has it
  kInvalidPath = 3,
  kInvalidParameter = 6,
  kCannotOpen = 7,
  kInvalidDumpData = 11,
  kIndexOutOfBounds = 12,
  kDumpFileError = 18,
  kWriteError = 19,
  kInvalidDataType = 21,
  kInvalidFormat = 22,
  kInvalidShape = 23,
  kInvalidType = 24,
  kInvalidTarget = 25,
  kConverterFailed = 26,
  kInvalidJson = 29,
  kNotSupported = 30,
  kInvalidAlgorithm = 31,
  kInvalidFile = 33,
  kInvalidOverflowType = 35,
  kNoWorkspace = kInvalidOverflowType,  // upstream has no number of its own for it
  kInvalidOverflowStatus = 36,
  kSizeDoesNotMatch = 39,
  kFileTooLarge = 43,
  kDangerousFile = 46,
  kNanoParse = 47,
};

struct DumpFailure {
  DumpCode code = DumpCode::kUnknown;
  std::string text;  // as the message of an Error
};

// A T or a DumpFailure, as Result<T>.
template <class T>
class [[nodiscard]] DumpResult : public tl::expected<T, DumpFailure> {
 public:
  using Base = tl::expected<T, DumpFailure>;
  using Base::Base;
  DumpResult(DumpFailure failure)  // NOLINT: implicit by design
      : Base(tl::unexpect, std::move(failure)) {}
};
using DumpStatus = DumpResult<void>;

// What a number means to commands that have plumbline's own exit codes.
ErrorCode ErrorCodeOf(DumpCode code);

// An error that happened where only `code` can be meant.
inline DumpFailure Failed(DumpCode code, const Error& error) { return {code, error.message()}; }

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_MSACCUCMP_CODE_H_
