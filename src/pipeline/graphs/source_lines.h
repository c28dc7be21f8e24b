// Which lines of the training script a kernel of a static graph comes from, by any of the names
// that dumps give it.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_SOURCE_LINES_H_
#define PLUMBLINE_PIPELINE_GRAPHS_SOURCE_LINES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/graph_ir.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

// How a name was found.
enum class NameMatch {
  kNone,
  kExact,      // the whole name of a kernel, "/" and "." as "_" or not
  kPart,       // the end of one, or one with something before or behind it
  kAmbiguous,  // of several kernels, or of one with several sources
};
std::string_view NameMatchName(NameMatch match);  // "exact"

// Thread-safe for reading; movable.
class SourceLines {
 public:
  struct Kernel {
    std::string full_name;
    std::string_view source;  // for graph_ir::SourceLines()
  };
  struct Found {
    NameMatch match = NameMatch::kNone;
    std::vector<const Kernel*> kernels;  // in the order of the graphs
  };

  // Adds the kernels of a graph: a protocol buffer where the name ends in .pb, otherwise a text. A
  // gradient has the source of the node it belongs to, where the text says it. Returns what to tell
  // the user, one sentence each. kNotFound, kIo; kCorrupt for other and damaged files.
  Result<std::vector<std::string>> AddFile(const std::string& path);

  // A name from a file or a table. Part: the longest that begins and ends where letters and digits
  // do; kernels outside of every scope ("0") only as a whole.
  [[nodiscard]] Found Find(std::string_view name) const;

  [[nodiscard]] size_t size() const { return kernels_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Numbers = std::vector<size_t>;
  using Index = std::unordered_map<std::string, Numbers, Hash, std::equal_to<>>;

  void AddText(const graph_ir::Graph& graph);
  void Add(std::string_view full_name, std::string_view source);
  [[nodiscard]] Numbers LongestInside(std::string_view name) const;
  [[nodiscard]] Numbers EndingIn(std::string_view name) const;

  std::vector<std::unique_ptr<std::string>> texts_;  // storage of sources
  std::vector<Kernel> kernels_;
  Index by_name_;  // mangled full name
  Index by_end_;   // what stands behind the last slash, mangled
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_SOURCE_LINES_H_
