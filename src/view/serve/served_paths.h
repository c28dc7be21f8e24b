// Which files a page may name: the paths given on the command line and the directories it allows.

#ifndef PLUMBLINE_VIEW_SERVE_SERVED_PATHS_H_
#define PLUMBLINE_VIEW_SERVE_SERVED_PATHS_H_

#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::view {

// Files and directories with all that lies below them, by their real paths. Every path of a request
// passes Resolve(), and nothing else opens what a request names. Thread-safe once filled.
class ServedPaths {
 public:
  // A file or directory that exists. kNotFound.
  Status Add(const std::string& path);
  [[nodiscard]] const std::vector<std::string>& roots() const { return roots_; }

  // The real path (without links, "." and "..") of an absolute path, or of one relative to a root.
  // kNotFound where it lies outside of the roots, does not exist, or is no path: with a NUL, longer
  // than a path can be. One message for all, which says nothing of what is there.
  [[nodiscard]] Result<std::string> Resolve(std::string_view path) const;

 private:
  [[nodiscard]] bool Holds(std::string_view real_path) const;

  std::vector<std::string> roots_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_SERVED_PATHS_H_
