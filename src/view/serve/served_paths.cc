#include "view/serve/served_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline::view {

Status ServedPaths::Add(const std::string& path) {
  PL_TRY_ASSIGN(std::string real, RealPath(path));
  if (!Holds(real)) roots_.push_back(std::move(real));
  return {};
}

bool ServedPaths::Holds(std::string_view real_path) const {
  return std::ranges::any_of(roots_, [&](std::string_view root) {
    if (root == "/" || real_path == root) return true;
    return real_path.starts_with(root) && real_path[root.size()] == '/';
  });
}

Result<std::string> ServedPaths::Resolve(std::string_view path) const {
  const bool is_path =
      !path.empty() && path.size() < PATH_MAX && path.find('\0') == std::string_view::npos;
  if (is_path && path.starts_with('/')) {
    Result<std::string> real = RealPath(std::string(path));
    if (real && Holds(*real)) return real;
  } else if (is_path) {
    for (const std::string& root : roots_) {
      Result<std::string> real = RealPath(JoinPath(root, path));
      if (real && Holds(*real)) return real;
    }
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: there is no such path below those that are served. Name it on the "
                           "command line of plumb view, or with --root",
                           Utf8Beginning(path, 200)));
}

}  // namespace plumbline::view
