// The entries of `kernels` in a dump configuration: which kernels of a graph they select.

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_KERNEL_ENTRIES_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_KERNEL_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/name_pattern.h"
#include "plumbline/result.h"

namespace plumbline::graph_dump {

enum class EntryKind : uint8_t {
  kRegex,  // name-regex(...): an ECMAScript expression that matches the whole full name
  kName,   // the full scoped name itself
  kType,   // part of the kernel's own name, whatever its case
};

class KernelEntries {
 public:
  struct Entry {
    size_t index;      // in the list that was parsed
    std::string text;  // without quotes, and without spaces at its ends
    EntryKind kind;
    std::string lower;  // of a type
    Expression expression;
  };

  // kInvalidArgument for an expression that does not compile, "kernels[2]: ...", with the position
  // in the entry, and for one of more than 1000 characters.
  static Result<KernelEntries> Parse(const std::vector<std::string>& entries);

  // Whether one entry selects a kernel by its full scoped name, "Default/net/Conv2D-op1".
  static bool Matches(const Entry& entry, std::string_view full_name);
  // The entry that selects a kernel, as index in the parsed list: expressions first, then names,
  // then types. When nothing but empty entries was given every kernel is selected, by index 0.
  [[nodiscard]] std::optional<size_t> Select(std::string_view full_name) const;

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }  // none is empty
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
};

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_KERNEL_ENTRIES_H_
