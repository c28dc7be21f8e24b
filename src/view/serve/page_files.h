// The page's own files, built into the program.

#ifndef PLUMBLINE_VIEW_SERVE_PAGE_FILES_H_
#define PLUMBLINE_VIEW_SERVE_PAGE_FILES_H_

#include <span>
#include <string_view>

namespace plumbline::view {

// "index.html", its media type and its text.
struct PageFile {
  std::string_view name, type, text;
};

// Those of report/page_files.h; none: plumbline was compiled without Node.js.
std::span<const PageFile> BuiltPage();

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_PAGE_FILES_H_
