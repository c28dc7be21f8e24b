// Errors as values: Error, Result<T>, Status and the two propagation macros. Start here.
//
// No function of plumbline throws. A function that can fail returns Result<T> (a value or an Error)
// or Status (nothing or an Error); ignoring either is a compiler warning. An Error is built where
// the fact is known, callers only prefix where it happened with In(), and it is printed once, at
// the outer edge.

#ifndef PLUMBLINE_RESULT_H_
#define PLUMBLINE_RESULT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace plumbline {

// What kind of failure it is. Decides the exit code of `plumb` and the Python exception.
// Values are part of the C ABI (code + 1) and must not be renumbered.
enum class ErrorCode : uint8_t {
  kInvalidArgument = 0,  // the caller asked for something meaningless   exit 2, ValueError
  kNotFound = 1,         // a named file, directory or call is missing   exit 3, FileNotFoundError
  kUnsupported = 2,      // valid, but plumbline cannot do it            exit 4, UnsupportedError
  kCorrupt = 3,          // the bytes contradict their own format        exit 5, CorruptDataError
  kIo = 4,               // the operating system refused                 exit 6, OSError
  kInternal = 5,         // a bug in plumbline                           exit 70, InternalError
};

// Lower-case name of a code, such as "corrupt".
std::string_view ErrorCodeName(ErrorCode code);

// Process exit status for a command that ended with this error (0 and 1 are never returned:
// 0 is success, 1 is "differences found").
int ExitStatus(ErrorCode code);

// One failure: a code and a sentence of the form
// `<path or object>: <what is wrong> (expected X, got Y). <what to do>`. A plain value.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

  // The same error with "context: " in front of the message.
  [[nodiscard]] Error In(std::string_view context) const;

 private:
  ErrorCode code_;
  std::string message_;
};

// A T or an Error. `return Error(...)` and `return value` both work.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}  // NOLINT: implicit by design
};

// Success or an Error. `return Status()` or `return {}` is success.
using Status = Result<void>;

}  // namespace plumbline

#define PL_CONCAT_INNER_(a, b) a##b
#define PL_CONCAT_(a, b) PL_CONCAT_INNER_(a, b)

// Evaluates `expr` (a Status or Result) and returns its error to the caller, if any.
#define PL_TRY(expr)                                       \
  do {                                                     \
    auto&& pl_status_ = (expr);                            \
    if (!pl_status_) return std::move(pl_status_).error(); \
  } while (false)

// PL_TRY_ASSIGN(auto x, F()): declares x from the value of F(), or returns its error.
#define PL_TRY_ASSIGN(decl, expr) \
  PL_TRY_ASSIGN_IMPL_(PL_CONCAT_(pl_result_, __COUNTER__), decl, expr)
#define PL_TRY_ASSIGN_IMPL_(tmp, decl, expr) \
  auto&& tmp = (expr);                       \
  if (!tmp) return std::move(tmp).error();   \
  decl = *std::move(tmp)

#endif  // PLUMBLINE_RESULT_H_
