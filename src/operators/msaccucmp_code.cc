#include "operators/msaccucmp_code.h"

namespace plumbline::operators {

ErrorCode ErrorCodeOf(DumpCode code) {
  switch (code) {
    case DumpCode::kInvalidPath:
    case DumpCode::kDumpFileError:
      return ErrorCode::kNotFound;
    case DumpCode::kNoDumpFile:
    case DumpCode::kInvalidParameter:
    case DumpCode::kIndexOutOfBounds:
    case DumpCode::kInvalidShape:
    case DumpCode::kInvalidType:
    case DumpCode::kInvalidTarget:
    case DumpCode::kInvalidAlgorithm:
      return ErrorCode::kInvalidArgument;
    case DumpCode::kInvalidDataType:
    case DumpCode::kInvalidFormat:
    case DumpCode::kConverterFailed:
    case DumpCode::kNotSupported:
    case DumpCode::kFileTooLarge:
    case DumpCode::kDangerousFile:
      return ErrorCode::kUnsupported;
    case DumpCode::kInvalidDumpData:
    case DumpCode::kInvalidJson:
    case DumpCode::kInvalidFile:
    case DumpCode::kInvalidOverflowType:
    case DumpCode::kInvalidOverflowStatus:
    case DumpCode::kSizeDoesNotMatch:
    case DumpCode::kNanoParse:
      return ErrorCode::kCorrupt;
    case DumpCode::kCannotOpen:
    case DumpCode::kWriteError:
      return ErrorCode::kIo;
    case DumpCode::kUnknown:
      return ErrorCode::kInternal;
  }
  return ErrorCode::kInternal;
}

}  // namespace plumbline::operators
