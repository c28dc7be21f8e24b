// Reference functions of users: the file that names them, and shared libraries that hold some.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_USER_REFERENCES_H_
#define PLUMBLINE_PRECHECK_REFERENCE_USER_REFERENCES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plumbline/reference_api.h"
#include "precheck/reference/array.h"

namespace plumbline::precheck::reference {

// One entry of a file: `operators: {npu_my_op: {forward: f, backward: g, description: text}}`.
struct UserReference {
  std::string name;
  std::string forward, backward;  // as written; backward may be empty
  std::string description;
};
// kInvalidArgument names file, line and key.
Result<std::vector<UserReference>> ReadUserReferences(const std::string& path);

// An argument of a call, with what it consists of.
struct UserValue {
  using List = std::vector<UserValue>;
  std::string name;  // of a keyword; empty: positional
  std::variant<std::monostate, bool, int64_t, double, std::string, Operand, List> value;
};

// A shared library with the functions of plumbline/reference_api.h. It stays loaded until the
// process ends: its code may hold threads or handlers. Thread-compatible.
class UserLibrary {
 public:
  // kNotFound, kInvalidArgument: no such library, or none of reference functions.
  static Result<UserLibrary> Open(const std::string& path);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has_backward(const std::string& name) const;
  // kInvalidArgument: the function failed, with what it says; it wants tensors of a type that the
  // interface has not. A result that is None is absent.
  [[nodiscard]] Result<std::vector<std::optional<Array>>> Run(
      const std::string& name, bool is_backward, const std::vector<UserValue>& arguments) const;

 private:
  UserLibrary(std::string path, const plumbline_reference* first, uint64_t count)
      : path_(std::move(path)), first_(first), count_(count) {}
  [[nodiscard]] const plumbline_reference* Find(const std::string& name) const;

  std::string path_;
  const plumbline_reference* first_;  // of the library
  uint64_t count_;
};

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_USER_REFERENCES_H_
