// The text Python's str() gives for a recorded value: how two arguments are compared and shown.

#ifndef PLUMBLINE_MATCH_PYTHON_TEXT_H_
#define PLUMBLINE_MATCH_PYTHON_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"

namespace plumbline::match {

// str(value): "None", "True", "1e-05", "[1, 'a']", "{'k': 2}"; a text stays as it is.
std::string PythonText(const Value& value);
// str(type(value)): "<class 'int'>". Tensors give "<class 'dict'>", as they stand in the file.
std::string_view PythonTypeText(const Value& value);
// "[2, 8]", and "(3,)" for the tuple form.
std::string ShapeText(std::span<const int64_t> shape);
std::string TupleText(std::span<const int64_t> shape);
// str() of a list of texts, such as the frames of a call stack.
std::string ListText(const std::vector<std::string>& texts);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_PYTHON_TEXT_H_
