// What every function of c_api.h does: catch, check its arguments, fill the caller's structs.

#ifndef PLUMBLINE_C_API_GUARD_H_
#define PLUMBLINE_C_API_GUARD_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "plumbline/c_api.h"
#include "plumbline/result.h"

namespace plumbline::c_api {

static_assert(PLUMB_INTERNAL == static_cast<int>(ErrorCode::kInternal) + 1);

// As much of `text` as fits into `size` bytes with a NUL.
inline void CopyText(std::string_view text, char* out, uint64_t size) {
  if (out == nullptr || size == 0) return;
  const size_t copied = std::min<size_t>(text.size(), size - 1);
  std::memcpy(out, text.data(), copied);
  out[copied] = '\0';
}

// Writes what happened into the caller's struct and returns its code.
inline int32_t Tell(int32_t code, std::string_view message, plumb_error* error) {
  constexpr uint64_t kHead = offsetof(plumb_error, message);
  if (error == nullptr || error->size < kHead) return code;
  error->code = code;
  CopyText(message, error->message, std::min<uint64_t>(error->size, sizeof(*error)) - kHead);
  return code;
}

// Runs `work`, which returns a Status; nothing leaves it but its code. The one place that catches.
template <class Work>
int32_t Guard(plumb_error* error, const Work& work) noexcept {
  try {
    const Status status = work();
    if (status) return Tell(PLUMB_OK, "", error);
    return Tell(static_cast<int32_t>(status.error().code()) + 1, status.error().message(), error);
  } catch (const std::bad_alloc&) {
    return Tell(PLUMB_INTERNAL, "no memory left", error);
  } catch (...) {
    return Tell(PLUMB_INTERNAL, "an exception inside plumbline", error);
  }
}

// kInvalidArgument that names the argument if it is null.
inline Status Need(const void* argument, const char* name) {
  if (argument != nullptr) return {};
  return Error(ErrorCode::kInvalidArgument, std::string(name) + ": is null");
}

// Fills the caller's struct, as far as it goes; its size stays what it was.
template <class T>
Status Fill(T filled, T* out, const char* name) {
  PL_TRY(Need(out, name));
  if (out->size < sizeof(out->size)) {
    return Error(ErrorCode::kInvalidArgument,
                 std::string(name) + ": its size is not set (expected sizeof of the struct)");
  }
  filled.size = out->size;
  std::memcpy(out, &filled, std::min<uint64_t>(filled.size, sizeof(T)));
  return {};
}

// What the caller's struct says, with the rest as `given` has it.
template <class T>
T Read(const T* in, T given) {
  if (in != nullptr) std::memcpy(&given, in, std::min<uint64_t>(in->size, sizeof(T)));
  return given;
}

}  // namespace plumbline::c_api

#endif  // PLUMBLINE_C_API_GUARD_H_
