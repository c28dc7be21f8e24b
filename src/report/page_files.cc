#include "report/page_files.h"

namespace plumbline::report {

PageFile FindPageFile(std::string_view) { return {}; }

}  // namespace plumbline::report
