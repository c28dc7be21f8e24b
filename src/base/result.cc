#include "plumbline/result.h"

namespace plumbline {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

int ExitStatus(ErrorCode code) {
  return code == ErrorCode::kInternal ? 70 : static_cast<int>(code) + 2;
}

Error Error::In(std::string_view context) const {
  std::string text(context);
  text += ": ";
  text += message_;
  return Error(code_, std::move(text));
}

}  // namespace plumbline
