#include "load/graph_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/number_text.h"
#include "record/run_files.h"

namespace plumbline::load {

Result<GraphContent> ReadGraphContent(const std::string& directory,
                                      const std::vector<std::string>& names,
                                      const std::function<void(StatisticRow row)>& visit) {
  const auto is_file = [](const std::string& name) { return name.ends_with(".npy"); };
  GraphContent content;
  content.files = static_cast<uint64_t>(std::ranges::count_if(names, is_file));
  content.has_tensors = content.files > 0;
  if (std::ranges::find(names, run_files::kStatisticCsv) == names.end()) return content;
  uint64_t rows = 0;
  const Status read =
      VisitStatisticTable(JoinPath(directory, run_files::kStatisticCsv), [&](StatisticRow row) {
        ++rows;
        visit(std::move(row));
      });
  if (!read && content.files == 0) return read.error();
  if (!read) {
    content.problem = read.error().message();
  } else if (rows > content.files) {
    content.has_tensors = false;
    if (content.files == 0) return content;
    content.problem =
        fmt::format("{}: {} for {} rows of {}", directory, CountText(content.files, "tensor file"),
                    rows, run_files::kStatisticCsv);
  }
  return content;
}

}  // namespace plumbline::load
