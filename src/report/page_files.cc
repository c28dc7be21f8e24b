#include "report/page_files.h"

namespace plumbline::report {

// Generated from the files of build/web/dist.
extern const std::string_view kBuiltPageHtml;
extern const std::string_view kBuiltPageJs;
extern const std::string_view kBuiltPageCss;
extern const std::string_view kBuiltPageJsSha256;
extern const std::string_view kBuiltPageCssSha256;

bool IsPageBuilt() { return !kBuiltPageHtml.empty() && !kBuiltPageJs.empty(); }

PageFiles GetPageFiles() {
  return {kBuiltPageHtml, kBuiltPageJs, kBuiltPageCss, kBuiltPageJsSha256, kBuiltPageCssSha256};
}

}  // namespace plumbline::report
