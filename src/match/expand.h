// From one call of dump.json to the items that become rows, and the text of their values.

#ifndef PLUMBLINE_MATCH_EXPAND_H_
#define PLUMBLINE_MATCH_EXPAND_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plumbline/compare.h"
#include "plumbline/record.h"

namespace plumbline::match {

// The text Python's str() gives for a recorded value: how two arguments are compared and shown.

// str(value): "None", "True", "1e-05", "[1, 'a']", "{'k': 2}"; a text stays as it is.
std::string PythonText(const Value& value);
// str(type(value)): "<class 'int'>". Tensors give "<class 'dict'>", as they stand in the file.
std::string_view PythonTypeText(const Value& value);
// "[2, 8]", and "(3,)" for the tuple form.
std::string ShapeText(std::span<const int64_t> shape);
std::string TupleText(std::span<const int64_t> shape);
// str() of a list of texts, such as the frames of a call stack.
std::string ListText(const std::vector<std::string>& texts);

// From one call of dump.json to the items that become rows (docs/reference/compare.md, "rows").

// The items of one call in row order: inputs and keyword arguments, parameters, outputs,
// parameter gradients; within a group the order of the file. A plain value.
struct CallItems {
  Text name;
  CallKind kind = CallKind::kOther;
  bool recomputed = false;  // activation checkpointing ran the call a second time
  std::vector<Item> items;
  // Set by mapping files on the target's side: the name to look for in the golden recording, and of
  // each item the part behind that name (kNoPart: the item has no counterpart). Empty: no mapping.
  Text mapped_name{};
  std::vector<std::string> mapped_parts{};

  static constexpr std::string_view kNoPart = "N/A";
  [[nodiscard]] const Text& key() const { return mapped_name.empty() ? name : mapped_name; }
};

// The types and shapes that the tensors of one side have, each kept once. Not copyable;
// single-threaded.
class TensorForms {
 public:
  TensorForms() = default;
  TensorForms(const TensorForms&) = delete;
  TensorForms& operator=(const TensorForms&) = delete;
  struct Form {
    Text dtype, shape_text;
    Shared<Shape> shape;
  };
  // Valid until the next call.
  const Form& Of(const TensorRecord& tensor);

 private:
  // Of one type: with more, looking for one would cost more than another copy.
  static constexpr size_t kMostForms = 64;
  std::unordered_map<std::string, std::vector<Form>> by_dtype_;
  std::string last_dtype_;
  std::vector<Form>* last_ = nullptr;  // of this type; elements of the map stay where they are
};

// Expands the calls of one side. Single-threaded.
class Expander {
 public:
  // The list of a call may be empty. kCorrupt when arguments nest deeper than the recorder can have
  // written (400 levels). `named_by_files`: stored tensors are called as their files are, not by
  // their place in the call.
  Result<CallItems> ExpandCall(const Call& call, bool named_by_files = true);
  // The same for an entry of a debug.json: the whole value becomes outputs, which keep the names of
  // their places whatever their files are called. The kind is kOther whatever the name says.
  Result<CallItems> ExpandSave(const Call& entry);

 private:
  // Exactly as many as there are: most calls have few, and there are many calls.
  std::vector<Item> TakeItems();

  TensorForms forms_;
  std::vector<Item> items_;  // of the call being expanded
  std::string name_;
};

// Releases after 1.2.2 end the names of saved values in ".debug". Takes that off where only one of
// the two sides has it, so that the same values have the same names.
void AlignSaveNames(std::vector<CallItems>& a, std::vector<CallItems>& b);

// Whether any recorded tensor carries a digest.
bool HasDigests(const std::vector<CallItems>& calls);
// That of the first tensor that has one; empty: none has. Lives as long as `calls`.
std::string_view FirstDigest(const std::vector<CallItems>& calls);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_EXPAND_H_
