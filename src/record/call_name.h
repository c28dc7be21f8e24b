// Names of dump.json entries, such as Functional.conv2d.0.forward: parts, building and parsing.
//
// Components may contain dots themselves, so names are read from the right and by their first
// component (docs/formats/dump_json.md, "entry names").

#ifndef PLUMBLINE_RECORD_CALL_NAME_H_
#define PLUMBLINE_RECORD_CALL_NAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"

namespace plumbline {

// The parts of an entry name; the texts are borrowed from the name that was parsed.
//
//   form        name                                             parts
//   kApi        Functional.linear.0.forward                      prefix, path, number, kind
//   kModule     Module.0.layer1.conv.Conv2d.forward.3            prefix, path, class_name, number,
//   kind kGradients  Module.layer1.conv.Conv2d.parameters_grad[.2]    prefix, path, class_name,
//   [number]
//
// A list position of the model ("0." above) is the first component of `path`. Primitives
// (Primitive.attr.Class.n.forward) and jit functions are kApi with the prefix "Primitive" or "Jit".
struct CallName {
  enum class Form : uint8_t { kApi, kModule, kGradients };

  Form form = Form::kApi;
  CallKind kind = CallKind::kForward;  // kForward or kBackward; kParametersGrad for kGradients
  std::string_view prefix;             // first component
  std::string_view path;               // dotted API name or module path; not empty for kApi
  std::string_view class_name;         // empty for kApi
  std::optional<uint64_t> number;      // always there except for kGradients

  friend bool operator==(const CallName&, const CallName&) = default;
};

// The parts of `name`, or nothing if it is no entry name of these forms (debug entries, pseudo
// entries such as "optimizer").
std::optional<CallName> ParseCallName(std::string_view name);

// The inverse of ParseCallName.
std::string BuildCallName(const CallName& name);

// The name of an API without the mark of the rank that called it, which merged recordings put
// behind first part: "matmul_rank4" -> "matmul". Borrowed; other texts as they are.
std::string_view WithoutRankMark(std::string_view part);

// "{entry}.{part}.{path}", the name of one tensor of a call and of its file without extension.
// `part` is "input", "kwargs", "output" or "parameters"; empty for parameter gradients.
std::string TensorName(std::string_view entry, std::string_view part, std::string_view path);

// Names of static-graph dumps: of kernels, and a number in front of a tensor's name that says in
// which of several directories it lies.

struct GraphName {
  size_t directory = 0;   // index
  std::string_view name;  // borrowed
};

// "2:file" is in the third directory; "file", and a number that `directories` does not reach, are
// names of the first one.
GraphName ParseGraphName(std::string_view data_name, size_t directories);

// What stands in front of the names of a directory: nothing for the first one.
std::string GraphNamePrefix(size_t directory);

// "Default_net_Conv2D-op1" of "Default/net/Conv2D-op1": a kernel as the names of files and most
// tables have it.
std::string MangledKernel(std::string_view full_name);

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_CALL_NAME_H_
