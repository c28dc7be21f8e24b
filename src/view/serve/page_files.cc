#include "view/serve/page_files.h"

#include <array>

#include "report/page_files.h"

namespace plumbline::view {

std::span<const PageFile> BuiltPage() {
  if (!report::IsPageBuilt()) return {};
  static const report::PageFiles built = report::GetPageFiles();
  static const std::array<PageFile, 3> files = {
      PageFile{"index.html", "text/html; charset=utf-8", built.html},
      PageFile{"page.js", "text/javascript; charset=utf-8", built.js},
      PageFile{"page.css", "text/css; charset=utf-8", built.css}};
  return files;
}

}  // namespace plumbline::view
